package decode

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// randomMessage returns a message of a few fields, some of which are nested or damaged.
func randomMessage(r *rand.Rand, depth int) []byte {
	var b []byte
	for range 1 + r.IntN(6) {
		number := protowire.Number(1 + r.IntN(5))
		switch r.IntN(5) {
		case 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), r.Uint64()>>r.IntN(64))
		case 1:
			b = protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), r.Uint32())
		case 2:
			b = append(b, textField(number, []string{"", "Hi", "some words", "\xff\x00", "2026-11-30"}[r.IntN(5)])...)
		default:
			if depth < 3 {
				b = append(b, textField(number, string(randomMessage(r, depth+1)))...)
			}
		}
	}
	if r.IntN(20) == 0 {
		b = b[:r.IntN(len(b)+1)]
	}
	return b
}

func fieldsJSON(t *testing.T, fields []*field.Field) []byte {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Fields do not depend on the messages that were decoded in the same Memory before, or are being decoded.
func TestMemoryIsReused(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	ev := kind.NewEvidence()
	for range 20 {
		// Damaged messages are no evidence.
		_ = ev.AddTree("M", wire.Parse(randomMessage(r, 1), wire.Options{}))
	}
	choice, err := kind.ParseChoice("2:bytes")
	if err != nil {
		t.Fatal(err)
	}
	views := []View{{}, {Evidence: kind.NewPooled(ev.Root("M"))}, {Choices: []kind.Choice{choice}}}
	var memory Memory
	for i := range 2000 {
		v := views[r.IntN(len(views))]
		if i < 500 {
			v = views[0]
		}
		data := randomMessage(r, 0)
		tree := wire.Parse(data, wire.Options{})
		want := fieldsJSON(t, v.Fields(tree))

		v.Memory = &memory
		kept := v.Fields(tree)
		other := views[r.IntN(len(views))]
		other.Memory = &memory
		var got [][]byte
		for f := range v.Each(tree) {
			got = append(got, bytes.Clone(fieldsJSON(t, []*field.Field{f})))
			other.Fields(wire.Parse(randomMessage(r, 0), wire.Options{}))
		}
		for j, f := range kept {
			if alone := fieldsJSON(t, []*field.Field{f}); !bytes.Equal(got[j], alone) {
				t.Fatalf("%x: Each yields %s, want %s", data, got[j], alone)
			}
		}
		line, err := json.Marshal(&fieldTree{view: v, message: tree})
		if err != nil || !bytes.Equal(line, want) {
			t.Fatalf("%x: written as %s, %v, want %s", data, line, err, want)
		}
		if now := fieldsJSON(t, kept); !bytes.Equal(now, want) {
			t.Fatalf("%x: %s, want %s", data, now, want)
		}
	}
}

// What is allocated for the fields of a message, one at a time, does not grow with their number, and what is allocated
// for small messages is allocated once.
func TestDecodingAllocatesLittle(t *testing.T) {
	each := func(v View, tree *wire.Tree) float64 {
		return testing.AllocsPerRun(5, func() {
			for range v.Each(tree) {
			}
		})
	}
	few := each(View{}, wire.Parse(bytes.Repeat([]byte{8, 1}, 1000), wire.Options{}))
	if many := each(View{}, wire.Parse(bytes.Repeat([]byte{8, 1}, 4000), wire.Options{})); many > few+10 {
		t.Errorf("%v allocations for 4000 fields, %v for 1000", many, few)
	}

	small := wire.Parse([]byte{8, 1, 16, 2, 24, 3}, wire.Options{})
	alone := each(View{}, small)
	if reused := each(View{Memory: &Memory{}}, small); reused > alone/2 {
		t.Errorf("%v allocations for a small message, %v without Memory", reused, alone)
	}
}
