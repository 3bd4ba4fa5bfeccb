package kind

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"
)

// manyMessages are more than are scored, of fields of all kinds; some say what the
// others do not: in them a text is none, a number is greater, or negative.
func manyMessages(r *rand.Rand, n int) (all [][]byte) {
	put := func(b []byte, n protowire.Number, p []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p)
	}
	word := func(n int) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = "etaoin shrdlu"[r.IntN(13)]
		}
		return p
	}
	for i := range n {
		m := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(i))
		m = put(m, 2, word(r.IntN(60)))
		m = put(m, 3, protowire.AppendFixed64(nil, uint64(r.IntN(1000))))
		var packed []byte
		for range r.IntN(6) {
			packed = protowire.AppendVarint(packed, r.Uint64N(300))
		}
		m = put(put(m, 4, packed), 6, []byte{0, byte(i), 1, byte(r.IntN(3))})
		if i%3 == 0 {
			for range r.IntN(60) {
				m = put(m, 5, put(nil, 1, word(4*r.IntN(5))))
			}
		}
		switch r.IntN(n) {
		case 0:
			m = put(m, 2, []byte("\xff\xfe"))
		case 1:
			m = put(m, 4, protowire.AppendVarint(nil, 1<<64-7))
		case 2:
			m = put(m, 6, word(33))
		case 3:
			m = put(m, 3, word(8))
		}
		all = append(all, m)
	}
	for range n / 4 { // and the same again and again
		all = append(all, all[r.IntN(3)])
	}
	return all
}

func docOf(t *testing.T, e *Evidence) string {
	t.Helper()
	b, err := json.Marshal(e.Doc())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRanksAreOfTheSet: what is scored of more messages than are needed depends neither
// on their order nor on what was merged when.
func TestRanksAreOfTheSet(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		samples := manyMessages(r, 5000)
		of := func(list [][]byte) *Evidence {
			e := NewEvidence()
			for _, s := range list {
				if err := e.Add("R", s); err != nil {
					t.Fatal(err)
				}
			}
			return e
		}
		all := of(samples)
		want := docOf(t, all)
		if f := fieldAt(all.Root("R"), 2).Len; f.Threshold == 0 || f.Scored >= f.Bytes/2 || len(f.Levels) == 0 {
			t.Fatalf("of %d bytes %d are scored, from rank %d on, %d tiers", f.Bytes, f.Scored, f.Threshold, len(f.Levels))
		}
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		if docOf(t, of(samples)) != want {
			t.Fatal("another order gives other evidence")
		}
		var parts []*Evidence
		for left := samples; len(left) > 0; {
			n := min(1+r.IntN(3000), len(left))
			parts = append(parts, of(left[:n]))
			left = left[n:]
		}
		for len(parts) > 1 {
			i := r.IntN(len(parts) - 1)
			before := docOf(t, parts[i+1])
			parts[i].Merge(parts[i+1])
			if docOf(t, parts[i+1]) != before {
				t.Fatal("merging changes what is merged")
			}
			parts = append(parts[:i+1], parts[i+2:]...)
		}
		if docOf(t, parts[0]) != want {
			t.Fatal("merged in parts it is other evidence")
		}
		var doc Doc
		if err := json.Unmarshal([]byte(want), &doc); err != nil {
			t.Fatal(err)
		}
		back, err := doc.Evidence()
		if err != nil || docOf(t, back) != want {
			t.Fatalf("read back: %v", err)
		}
	}
}

// TestFewScoredReadAsAll: what a field is said to be does not depend on how many of its
// payloads were scored.
func TestFewScoredReadAsAll(t *testing.T) {
	for _, c := range []struct {
		want  wire.Kind
		usual func(r *rand.Rand, i int) []byte
	}{
		{wire.KindString, func(r *rand.Rand, _ int) []byte {
			return []byte("name-" + string(rune('a'+r.IntN(26))) + string(rune('a'+r.IntN(26))))
		}},
		{wire.KindBytes, func(r *rand.Rand, _ int) []byte {
			return protowire.AppendFixed64(protowire.AppendFixed64(nil, r.Uint64()), r.Uint64())
		}},
		{wire.KindPacked, func(r *rand.Rand, _ int) []byte {
			return protowire.AppendVarint(protowire.AppendVarint(nil, r.Uint64N(5000)), r.Uint64N(90))
		}},
		{wire.KindMessage, func(r *rand.Rand, i int) []byte {
			return protowire.AppendVarint(protowire.AppendTag(protowire.AppendVarint([]byte{0x08}, uint64(i)), 3, protowire.VarintType), r.Uint64N(2))
		}},
	} {
		r := rand.New(rand.NewPCG(1, 9))
		ev := NewEvidence()
		for i := range 20_000 {
			if err := ev.Add("R", protowire.AppendBytes([]byte{0x0a}, c.usual(r, i))); err != nil {
				t.Fatal(err)
			}
			if n := i + 1; n == 100 || n == 1500 || n == 20_000 {
				f := fieldAt(ev.Root("R"), 1)
				if g := f.readings(); g[0].Kind != c.want || g[0].P < 0.8 {
					t.Errorf("%d of %s: %s", n, c.want, describe(g))
				}
				if l := f.Len; n == 20_000 && (l.Scored > l.Bytes/3 || l.Scored*40 < l.Bytes) {
					t.Errorf("of %d bytes %d are scored", l.Bytes, l.Scored)
				}
			}
		}
	}
}
