package kind

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/wire"
)

// descriptors is a real message of some 100 KB: a set of file descriptors.
func descriptors(t testing.TB) []byte {
	set := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		return true
	})
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) < 100<<10 {
		b = append(b, b...)
	}
	return b
}

// walk reads all tags of a message, and of payloads that begin like one, and
// keeps nothing: as fast as the format can be read.
func walk(b []byte) (fields int, ok bool) {
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fields, false
		}
		b = b[n:]
		fields++
		if typ == protowire.BytesType {
			v, k := protowire.ConsumeBytes(b)
			if k < 0 {
				return fields, false
			}
			inner, _ := walk(v)
			fields, b = fields+inner, b[k:]
			continue
		}
		k := protowire.ConsumeFieldValue(1, typ, b)
		if k < 0 {
			return fields, false
		}
		b = b[k:]
	}
	return fields, true
}

// beside runs f as the benchmark, and a bare walk over the same data in turn with
// it. It reports the best round of each, as "x-walk" how many times as long f takes,
// and as "best-MB/s": other work on the machine lengthens all but the best.
func beside(b *testing.B, data []byte, f func()) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	bare, own := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	round := func(best *time.Duration, f func()) {
		start := time.Now()
		f()
		*best = min(*best, time.Since(start))
	}
	for b.Loop() {
		round(&own, f)
		b.StopTimer()
		round(&bare, func() {
			if n, _ := walk(data); n == 0 {
				b.Fatal("the walk failed")
			}
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(own)/float64(bare), "x-walk")
	b.ReportMetric(float64(len(data))/1e6/own.Seconds(), "best-MB/s")
}

// chat is a stream's messages in one: text of several languages, code, ids and
// numbers, in lists of lists.
func chat(size int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("the stream of words that a model writes, and what it says of files and tests: func main() { return } " +
		"слова по-русски тоже и 日本語の文章 mit Umlauten und é à ü {\"path\":\"cmd/main.go\",\"line\":12} https://example.com/a?b=c")
	text := func(n int) []byte {
		var p []byte
		for range n {
			p = append(append(p, words[r.IntN(len(words))]...), ' ')
		}
		return p
	}
	put := func(b []byte, n protowire.Number, p []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p)
	}
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	var all []byte
	for len(all) < size {
		m := put(nil, 1, fmt.Appendf(nil, "%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48)))
		m = number(m, 2, r.Uint64N(3))
		m = number(m, 3, 1_780_000_000_000+r.Uint64N(1e9))
		for range r.IntN(3) {
			m = put(m, 4, number(put(nil, 1, text(1+r.IntN(60))), 2, r.Uint64N(900)))
		}
		if r.IntN(4) == 0 {
			p := make([]byte, 16+r.IntN(200))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			m = put(m, 5, p)
			m = put(m, 6, protowire.AppendVarint(protowire.AppendVarint(nil, r.Uint64N(300)), r.Uint64N(9)))
		}
		all = put(all, 1, m)
	}
	return all
}

// readAll asks for the best reading of every node below i that a reader of the
// message is shown.
func readAll(r *Reader, t *wire.Tree, i int32) {
	for c := t.Nodes[i].First; c != wire.None; c = t.Nodes[c].Next {
		if k, _, _ := r.Best(c); k == wire.KindMessage || k == wire.KindGroup {
			readAll(r, t, c)
		}
	}
}

// BenchmarkReadings is parsing, and the best reading of every node that is shown.
func BenchmarkReadings(b *testing.B) {
	for _, in := range []struct {
		name string
		data []byte
	}{{"descriptors", descriptors(b)}, {"descriptors-4MB", bytes.Repeat(descriptors(b), 26)}, {"chat-100KB", chat(100 << 10)}, {"chat-4MB", chat(4 << 20)}} {
		b.Run(in.name, func(b *testing.B) {
			tree := new(wire.Tree)
			beside(b, in.data, func() {
				tree.Reset(in.data, wire.Options{})
				r := NewReader(tree, nil)
				readAll(r, tree, 0)
			})
			b.ReportMetric(float64(len(tree.Nodes)), "nodes")
		})
	}
}

// BenchmarkTree is parsing alone.
func BenchmarkTree(b *testing.B) {
	data := descriptors(b)
	tree := new(wire.Tree)
	beside(b, data, func() { tree.Reset(data, wire.Options{}) })
}

// BenchmarkEvidence is the evidence of one large message, again and again.
func BenchmarkEvidence(b *testing.B) {
	data := descriptors(b)
	ev := NewEvidence()
	beside(b, data, func() {
		if err := ev.Add("R", data); err != nil {
			b.Fatal(err)
		}
	})
}
