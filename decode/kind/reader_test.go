package kind

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/internal/samples"
	"unwire/decode/wire"
)

// TestPooledEvidenceDecides: what one frame cannot tell, the others do, and a
// node is never read in a way that its own bytes refute.
func TestPooledEvidenceDecides(t *testing.T) {
	ev := NewEvidence()
	for i := range 40 {
		if err := ev.Add("R", field([]byte(fmt.Sprintf("file %d of many", i)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		payload string
		want    wire.Kind
	}{
		{"", wire.KindString}, // alone, an empty payload is rather a message
		{"image.png", wire.KindString},
		{"\xff\xfe\x00\x81", wire.KindBytes}, // no text, whatever the others are
	} {
		tree := wire.Parse(field([]byte(c.payload)), wire.Options{})
		if got := NewReader(tree, ev.Root("R")).Readings(1); got[0].Kind != c.want {
			t.Errorf("%q: %s", c.payload, describe(got))
		}
	}
	if got := readingsOf(wire.Parse(field(nil), wire.Options{}), 1); got[0].Kind != wire.KindMessage {
		t.Errorf("alone: %s", describe(got))
	}
	f := fieldAt(ev.Root("R"), 1)
	if f == nil || fieldAt(ev.Root("R"), 1, 2) != nil || fieldAt(ev.Root("R"), 9) != nil {
		t.Error("At")
	}
	list := f.readings()
	Costs{}.explain(f, list)
	if r := list[0]; r.Kind != wire.KindString || r.P < 0.9 || len(r.Why) < 2 || r.Why[0].Weight < 10 {
		t.Errorf("%+v", r)
	}
}

// Files are read as bytes, and their formats are remarked on.
func TestFilesAreBytes(t *testing.T) {
	for what, content := range samples.Contents() {
		for want, p := range samples.Files(t, content) {
			if len(p) == 0 {
				continue // snappy writes nothing of nothing
			}
			message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), p)
			tree := wire.Parse(message, wire.Options{})
			r := NewReader(tree, nil)
			is, _, prob := r.Best(tree.Nodes[0].First)
			if is != wire.KindBytes || prob < 0.9 {
				t.Errorf("%s of %s is read as %s %.2f: %x", want, what, is, prob, p)
			}
			if got := r.Remark(tree.Nodes[0].First, is, "bytes").Form; got != want {
				t.Errorf("%s of %s: the remark says %q", want, what, got)
			}
		}
	}
}

// TestReset: a Reader that has read other messages gives the same results as a new one, whatever the memory that it
// reuses contained.
func TestReset(t *testing.T) {
	other := NewEvidence()
	frames := mixedFrames()
	for _, data := range frames[:len(frames)/3] {
		_ = other.Add("R", data) // truncated frames are no evidence
	}
	shared := NewPooled(other.Root("R"))
	for name, newReader := range map[string]func(*wire.Tree) *Reader{
		"alone":  func(t *wire.Tree) *Reader { return NewReader(t, nil) },
		"pooled": func(t *wire.Tree) *Reader { return NewReader(t, other.Root("R")) },
		"shared": shared.NewReader,
	} {
		reused := newReader(wire.Parse(nil, wire.Options{}))
		for f, data := range frames {
			tree := wire.Parse(data, wire.Options{})
			fresh := newReader(tree)
			reused.Reset(tree)
			if len(tree.Nodes) > 1 && f%5 == 0 {
				choice := []Choice{{Path: tree.PathOf(1), Kind: wire.KindBytes, Type: "bytes"}}
				fresh.Choose(choice)
				reused.Choose(choice)
			}
			for i := range tree.Nodes[:min(len(tree.Nodes), 100)] {
				n := int32(i)
				is, typ, p := fresh.Best(n)
				if k, s, q := reused.Best(n); k != is || s != typ || p != q {
					t.Fatalf("%s: frame %d, node %d: %s %s %v, want %s %s %v", name, f, i, k, s, q, is, typ, p)
				}
				if got, want := reused.Remark(n, is, typ), fresh.Remark(n, is, typ); got != want {
					t.Fatalf("%s: frame %d, node %d: %v, want %v", name, f, i, got, want)
				}
				if got, want := fmt.Sprint(reused.Readings(n)), fmt.Sprint(fresh.Readings(n)); got != want {
					t.Fatalf("%s: frame %d, node %d:\n%s, want\n%s", name, f, i, got, want)
				}
			}
		}
	}
}

// mixedFrames returns small messages of many shapes, some of them damaged, and one that exceeds what a Reader keeps.
func mixedFrames() (frames [][]byte) {
	r := rand.New(rand.NewPCG(3, 3))
	for rest := chat(60 << 10); len(rest) > 0; {
		_, _, n := protowire.ConsumeField(rest)
		frame := bytes.Clone(rest[:n])
		rest = rest[n:]
		switch r.IntN(12) {
		case 0:
			frame = frame[:r.IntN(len(frame))]
		case 1:
			frame[r.IntN(len(frame))] ^= 1 << r.IntN(8)
		case 2:
			frame = protowire.AppendVarint(protowire.AppendTag(frame, protowire.Number(200+r.IntN(400)), protowire.VarintType), r.Uint64())
		case 3:
			frame = protowire.AppendFixed32(protowire.AppendTag(frame, 1, protowire.Fixed32Type), r.Uint32())
		case 4:
			frame = protowire.AppendGroup(protowire.AppendTag(nil, 2, protowire.StartGroupType), 2, frame)
		}
		frames = append(frames, frame, frame[min(len(frame), 3):], protowire.AppendVarint([]byte{8}, r.Uint64N(300)))
	}
	var large []byte
	for n := range protowire.Number(3 * maxRecycled) {
		large = protowire.AppendBytes(protowire.AppendTag(large, n%400+1, protowire.BytesType), fmt.Appendf(nil, "\x08%c\x12\x02%02d", n%100, n%100))
	}
	return slices.Insert(frames, len(frames)/2, large)
}

// TestResetReusesMemory: the statistics of small messages are not allocated again.
func TestResetReusesMemory(t *testing.T) {
	tree := wire.Parse([]byte("\x0a\x18\x0a\x04Hi00\x10\x96\x01\x1a\x0dsome more tex\x20\x05"), wire.Options{})
	r := NewReader(tree, nil)
	perMessage := testing.AllocsPerRun(100, func() {
		r.Reset(tree)
		readAll(r, tree, 0)
	})
	if perMessage > 10 {
		t.Errorf("%v allocations for a message of six fields", perMessage)
	}
}

// TestResetDropsLargeMaps: a large message does not make the small ones after it expensive.
func TestResetDropsLargeMaps(t *testing.T) {
	large := bytes.Repeat([]byte("\x0a\x02\x08\x01"), 2*maxRecycled)
	r := NewReader(wire.Parse(large, wire.Options{}), nil)
	r.Best(1)
	r.Reset(wire.Parse([]byte("\x08\x01"), wire.Options{}))
	if c := cap(r.fields); c > maxRecycled {
		t.Errorf("memory for %d nodes is kept", c)
	}
}

// TestManyInvalidNumbers: fields whose number is invalid share no statistics. A Reader of many of them keeps those of
// few, and its types are the ones that it infers from each alone.
func TestManyInvalidNumbers(t *testing.T) {
	for name, one := range map[string]string{"varint": "\x00\x01", "empty": "\x02\x00", "message": "\x02\x02\x08\x01", "text": "\x02\x05hello"} {
		t.Run(name, func(t *testing.T) {
			want := NewReader(wire.Parse([]byte(one), wire.Options{}), nil).Readings(1)
			tree := wire.Parse(bytes.Repeat([]byte(one), 4*maxSingle), wire.Options{})
			r := NewReader(tree, nil)
			costs := len(r.costs)
			for i := range tree.Children(0) {
				_, typ, p := r.Best(i)
				if got := r.Readings(i); !reflect.DeepEqual(got, want) || typ != want[0].Type || p != want[0].P {
					t.Fatalf("node %d: %v, %s %v, want %v", i, got, typ, p, want)
				}
				r.Remark(i, want[0].Kind, typ)
				if r.fields[i] != nil || len(r.single) > maxSingle || len(r.costs) > costs+maxSingle || len(r.parts) > maxSingle {
					t.Fatalf("node %d: the Reader keeps the statistics of %d nodes", i, len(r.single))
				}
			}
		})
	}
}

// TestMemo: a Reader that has read other messages infers the same as a new one, with the same evidence, although it
// remembers what it inferred from single values.
func TestMemo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	texts := []string{"assistant", "user", "ok", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "\x08\x01\x12\x04text", "\xff\xfe\x00\x01", "\x00\x00\x80\x3f", "a\nb", "\x0a\x04name\x10\x01", "{\"a\":1}"}
	var message func(depth int) []byte
	message = func(depth int) (b []byte) {
		for range 1 + r.IntN(5) {
			number := protowire.Number(1 + r.IntN(4))
			switch r.IntN(4) {
			case 0:
				b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), []uint64{0, 1, 7, 99, 100, 1_700_000_000, 1_700_000_000_000, 1 << 45, 1<<64 - 3, 1 << 63}[r.IntN(10)])
			case 1:
				b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), r.Uint64N(3)<<62)
			default:
				p := []byte(texts[r.IntN(len(texts))])
				if depth < 3 && r.IntN(3) == 0 {
					p = message(depth + 1)
				}
				b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), p)
			}
		}
		return b
	}
	var used *Reader
	remembered := 0
	for range 2000 {
		tree := wire.Parse(message(0), wire.Options{})
		if used == nil {
			used = NewReader(tree, nil)
		} else {
			used.Reset(tree)
		}
		fresh := NewReader(tree, nil)
		order := r.Perm(len(tree.Nodes))
		for _, i := range order {
			i := int32(i)
			if f := used.fields[i]; f != nil && f.Len != nil && f.Len.deferred {
				remembered++
			}
			if got, want := used.Types(i), fresh.Types(i); !reflect.DeepEqual(got, want) {
				t.Fatalf("node %d of %x: %v, a new Reader infers %v", i, tree.Data, got, want)
			}
			if got, want := used.Remark(i, wire.KindMessage, ""), fresh.Remark(i, wire.KindMessage, ""); got != want {
				t.Fatalf("node %d of %x: %v, a new Reader remarks %v", i, tree.Data, got, want)
			}
		}
		for i := range order {
			i := int32(i)
			if got, want := used.Readings(i), fresh.Readings(i); !reflect.DeepEqual(got, want) {
				t.Fatalf("node %d of %x: %v, a new Reader infers %v", i, tree.Data, got, want)
			}
			if f, g := used.Field(i), fresh.Field(i); f.Len != nil && (f.Len.costSums.Raw != g.Len.costSums.Raw || f.Len.Forms.Of(f.Len.N) != g.Len.Forms.Of(g.Len.N) || f.Len.N != g.Len.N || f.Len.Longest != g.Len.Longest) {
				t.Fatalf("node %d of %x: the evidence differs: %+v, of a new Reader %+v", i, tree.Data, f.Len, g.Len)
			}
		}
	}
	if remembered == 0 {
		t.Error("nothing is remembered")
	}
}
