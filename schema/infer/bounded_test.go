package infer

import (
	"os"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"unwire/schema/internal/schematest"
)

// stream adds generated frames to ev until they come to size bytes. None is kept.
func stream(t testing.TB, ev *Evidence, seed uint64, size int64) {
	c := schematest.RandomCorpus(t, 12, 1)
	g := schematest.NewGenerator(schematest.NewRand(seed))
	var pool [][]byte // frames are made once for each of the pools that follow each other
	for done := int64(0); done < size; {
		if len(pool) == 0 {
			for range 400 {
				b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Message(c.Truth, 0))
				if err != nil {
					t.Fatal(err)
				}
				pool = append(pool, b)
			}
		}
		for _, b := range pool {
			if err := ev.Add("Root", b); err != nil {
				t.Fatal(err)
			}
			done += int64(len(b))
		}
		if done%(8<<20) < 1<<20 {
			pool = nil
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestEvidenceMemoryIsFlat: what evidence takes depends on the fields, not on the frames.
func TestEvidenceMemoryIsFlat(t *testing.T) {
	size := int64(4 << 20)
	if os.Getenv("UNWIRE_LONG") != "" {
		size = 1 << 29
	}
	ev := NewEvidence()
	stream(t, ev, 1, size)
	half, written := heap(), len(written(t, ev))
	stream(t, ev, 2, size)
	whole := heap()
	t.Logf("%d MB: heap %d KB; twice that: %d KB; as JSON %d KB", size>>20, half>>10, whole>>10, written>>10)
	if whole > half+half/4+1<<20 {
		t.Errorf("heap grew from %d to %d bytes", half, whole)
	}
	runtime.KeepAlive(ev)
}

// TestTwoTypesUnderOneName: what cannot be one type is said to be none for sure.
func TestTwoTypesUnderOneName(t *testing.T) {
	ev := NewEvidence()
	for i := range uint64(20) {
		b := schematest.Tags(nil).Text(1, "a text that is long enough").Varint(2, i)
		if i%2 == 0 {
			b = schematest.Tags(nil).Varint(1, i).Text(2, "and the other type's text")
		}
		if err := ev.Add("Root", b); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Infer(ev, Options{Package: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int32{1, 2} {
		if f := fieldEvidence(t, in, "p.Root", n); f.P > 0.7 {
			t.Errorf("field %d: %s at %.2f, half of its occurrences are of another wire type", n, f.Kind, f.P)
		}
	}
}

// TestHostileShapes: a million numbers in one message and fields nested without
// end are cut, said, and do not take the rest with them.
func TestHostileShapes(t *testing.T) {
	var wide []byte
	for n := range 1_000_000 {
		wide = protowire.AppendVarint(protowire.AppendTag(wide, protowire.Number(n+1), protowire.VarintType), 1)
	}
	ev := NewEvidence()
	for _, b := range [][]byte{wide, schematest.Tags(nil).Text(1, "x"), schematest.Tags(nil).Varint(2, 300)} {
		if err := ev.Add("Root", b); err != nil {
			t.Fatal(err)
		}
	}
	if n := ev.kinds.Fields(); !ev.kinds.Truncated() || n > 2*maxKindFields {
		t.Errorf("truncated %v, %d fields", ev.kinds.Truncated(), n)
	}
	good := NewEvidence()
	if err := good.Add("Root", schematest.Tags(nil).Text(3, "a good message")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{{0xff}, []byte("no protobuf at all"), {0x0a, 0x7f, 1}} {
		if good.Add("Root", bad) == nil {
			t.Errorf("%q is no message", bad)
		}
	}
	if in, err := Infer(good, Options{Package: "p"}); err != nil || len(in.Fields) != 1 {
		t.Errorf("%+v, %v", in, err)
	}
}
