package kind

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/internal/barewalk"
	"unwire/decode/wire"
)

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
	}{{"descriptors", barewalk.Descriptors(b)}, {"descriptors-4MB", bytes.Repeat(barewalk.Descriptors(b), 26)}, {"chat-100KB", chat(100 << 10)}, {"chat-4MB", chat(4 << 20)}} {
		b.Run(in.name, func(b *testing.B) {
			tree := new(wire.Tree)
			barewalk.Compare(b, in.data, func() {
				tree.Reset(in.data, wire.Options{})
				r := NewReader(tree, nil)
				readAll(r, tree, 0)
			})
			b.ReportMetric(float64(len(tree.Nodes)), "nodes")
		})
	}
}

// BenchmarkEvidence is the evidence of one large message, again and again.
func BenchmarkEvidence(b *testing.B) {
	data := barewalk.Descriptors(b)
	ev := NewEvidence()
	barewalk.Compare(b, data, func() {
		if err := ev.Add("R", data); err != nil {
			b.Fatal(err)
		}
	})
}
