package kind

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/decode/internal/samples"
	"unwire/decode/wire"
)

// evidenceOf is the evidence of samples of which each has a field 1 with some payloads.
func evidenceOf(t testing.TB, samples ...[][]byte) *Evidence {
	t.Helper()
	e := NewEvidence()
	for _, payloads := range samples {
		var m []byte
		for _, p := range payloads {
			m = protowire.AppendBytes(protowire.AppendTag(m, 1, protowire.BytesType), p)
		}
		if err := e.Add("R", m); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// TestBytesOrNumbers: what is in bytes fields and looks like numbers at first.
func TestBytesOrNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, c := range []struct {
		name string
		want wire.Kind
		make func() []byte
	}{
		{"offsets, upper bytes first", wire.KindBytes, func() (p []byte) {
			v := uint32(r.IntN(100))
			for range 4 + r.IntN(12) {
				v += uint32(r.IntN(4000))
				p = binary.BigEndian.AppendUint32(p, v)
			}
			return p
		}},
		{"offsets", wire.KindPacked, func() (p []byte) {
			v := uint32(r.IntN(100))
			for range 4 + r.IntN(12) {
				v += uint32(r.IntN(4000))
				p = binary.LittleEndian.AppendUint32(p, v)
			}
			return p
		}},
		{"arrays of several types", wire.KindBytes, func() (p []byte) {
			which := r.IntN(3)
			for range 4 + r.IntN(8) {
				switch which {
				case 0:
					p = binary.LittleEndian.AppendUint32(p, math.Float32bits(r.Float32()))
				case 1:
					p = binary.LittleEndian.AppendUint64(p, math.Float64bits(r.Float64()))
				case 2:
					p = binary.LittleEndian.AppendUint64(p, uint64(r.IntN(50)))
				}
			}
			return p
		}},
		{"floats", wire.KindPacked, func() (p []byte) {
			for range 4 + r.IntN(8) {
				p = binary.LittleEndian.AppendUint32(p, math.Float32bits(r.Float32()))
			}
			return p
		}},
		{"amounts with two decimals", wire.KindPacked, func() (p []byte) {
			for range 1 + r.IntN(4) {
				p = binary.LittleEndian.AppendUint64(p, math.Float64bits(float64(r.IntN(1_000_000))/100))
			}
			return p
		}},
		{"a mask", wire.KindBytes, func() []byte {
			p := make([]byte, 10+r.IntN(20))
			for range len(p) {
				p[r.IntN(len(p))] |= 1 << r.IntN(7)
			}
			return p
		}},
		{"names within", wire.KindBytes, func() (p []byte) {
			for range 2 + r.IntN(4) {
				p = append(p, 0x12, byte(r.Uint32()))
				p = append(p, []string{"water", "temperature", "the level of the river", "station"}[r.IntN(4)]...)
				p = append(p, 0xff)
			}
			return append(p, 0)
		}},
		{"a null hash", wire.KindBytes, func() []byte { return make([]byte, 32) }},
		{"counts", wire.KindPacked, func() (p []byte) {
			for range 3 + r.IntN(20) {
				p = protowire.AppendVarint(p, uint64(r.ExpFloat64()*40))
			}
			return p
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var samples [][][]byte
			for range 8 {
				samples = append(samples, [][]byte{c.make()})
			}
			f := fieldAt(evidenceOf(t, samples...).Root("R"), 1)
			if got := f.readings(); got[0].Kind != c.want {
				t.Errorf("%s", describe(got))
			}
		})
	}
}

// TestEvidenceOfFilesMerges: evidence of files and numbers in shards is that of all at once.
func TestEvidenceOfFilesMerges(t *testing.T) {
	files := samples.Files(t, []byte("what is in it"))
	payload := rapid.Custom(func(t *rapid.T) []byte {
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			return files[rapid.SampledFrom([]string{"png", "gzip", "cbor", "der", "bson", "zlib"}).Draw(t, "file")]
		case 1:
			n := rapid.IntRange(0, 5).Draw(t, "numbers")
			var p []byte
			for range n {
				p = binary.BigEndian.AppendUint32(p, rapid.Uint32Range(0, 5000).Draw(t, "number"))
			}
			return p
		case 2:
			return rapid.SliceOfN(rapid.Byte(), 0, 90).Draw(t, "bytes")
		}
		return []byte(rapid.StringN(0, 40, 90).Draw(t, "text"))
	})
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.SliceOfN(payload, 1, 3), 1, 8).Draw(t, "samples")
		doc := func(e *Evidence) string {
			b, err := json.Marshal(e.Doc())
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		add := func(e *Evidence, samples [][][]byte) {
			for _, payloads := range samples {
				var m []byte
				for _, p := range payloads {
					m = protowire.AppendBytes(protowire.AppendTag(m, 1, protowire.BytesType), p)
				}
				if err := e.Add("R", m); err != nil {
					t.Fatal(err)
				}
			}
		}
		all, a, b := NewEvidence(), NewEvidence(), NewEvidence()
		add(all, samples)
		cut := rapid.IntRange(0, len(samples)).Draw(t, "cut")
		add(a, samples[cut:])
		add(b, samples[:cut])
		a.Merge(b)
		if x, y := doc(all), doc(a); x != y {
			t.Fatalf("%s\n%s", x, y)
		}
		var back Doc
		if err := json.Unmarshal([]byte(doc(all)), &back); err != nil {
			t.Fatal(err)
		}
		again, err := back.Evidence()
		if err != nil {
			t.Fatal(err)
		}
		if x, y := doc(all), doc(again); x != y {
			t.Fatalf("%s\n%s", x, y)
		}
	})
}

// TestSeveralWireTypes: of a field with several wire types, the occurrences with each
// are judged together, and as quickly as others.
func TestSeveralWireTypes(t *testing.T) {
	var data []byte
	for i := range 2000 {
		data = protowire.AppendString(protowire.AppendTag(data, 3, protowire.BytesType), fmt.Sprintf("word %d", i))
		data = protowire.AppendVarint(protowire.AppendTag(data, 4, protowire.VarintType), uint64(i))
		if i%10 == 0 {
			data = protowire.AppendVarint(protowire.AppendTag(data, 3, protowire.VarintType), uint64(i%3))
			data = protowire.AppendString(protowire.AppendTag(data, 4, protowire.BytesType), fmt.Sprintf("note %d\n", i))
		}
	}
	tree := wire.Parse(data, wire.Options{})
	r := NewReader(tree, nil)
	for c := range tree.Children(0) {
		want := wire.KindString
		if tree.Node(c).Type == wire.Varint {
			want = wire.KindVarint
		}
		if is, _, p := r.Best(c); is != want || want == wire.KindString && p < 0.8 {
			t.Fatalf("node %d, field %d: %s %.2f", c, tree.Node(c).Number, is, p)
		}
	}
	if got := r.Readings(tree.Nodes[0].First); got[0].Kind != wire.KindString || len(got[0].Why) < 2 || got[0].Value != "word 0" {
		t.Errorf("%s", describe(got))
	}
	reads := testing.AllocsPerRun(5, func() {
		for c := range tree.Children(0) {
			r.Best(c)
		}
	})
	if reads > 100 {
		t.Errorf("%.0f allocations for 4,400 nodes that are judged", reads)
	}
}
