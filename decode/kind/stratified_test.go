package kind

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/internal/barewalk"
	"unwire/decode/kind/stablehash"
	"unwire/decode/wire"
)

// TestTurnWeighs: the first payloads count as one each; of those behind them few
// are scored, and what they stand for is about all.
func TestTurnWeighs(t *testing.T) {
	for _, n := range []int64{1, scoredFirst, 100, 1000, 1_000_000} {
		var u stratifiedSampler
		scored, sum := int64(0), int64(0)
		for k := range n {
			w := u.weight(1)
			if k < scoredFirst && w != 1 {
				t.Fatalf("payload %d counts as %d", k, w)
			}
			if w > 0 {
				scored++
			}
			sum += w
		}
		if off := sum - n; off > stride(n) || off < -stride(n) {
			t.Errorf("%d payloads count as %d", n, sum)
		}
		if scored > scoredFirst+scoredThen*20 {
			t.Errorf("of %d payloads %d are scored", n, scored)
		}
		if u.weight(2) != 1 {
			t.Error("another message begins anew")
		}
	}
}

// list is a message of many payloads of field 1, one of them another.
func list(n, at int, usual func(i int) []byte, odd []byte) []byte {
	var b []byte
	for i := range n {
		p := usual(i)
		if i == at {
			p = odd
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), p)
	}
	return b
}

// TestEveryPayloadRefutes: one payload among thousands that are not scored refutes
// what it refutes.
func TestEveryPayloadRefutes(t *testing.T) {
	const n = 5000
	word := func(i int) []byte { return fmt.Appendf(nil, "word%04d", i) }
	numbers := func(i int) []byte { return []byte{byte(i % 50), 7, 9, 1} }
	entry := func(i int) []byte {
		return protowire.AppendVarint(protowire.AppendTag(protowire.AppendVarint([]byte{0x08}, uint64(i)), 2, protowire.VarintType), 1)
	}
	for _, c := range []struct {
		name  string
		usual func(int) []byte
		odd   []byte
		is    func(l *Payloads) bool
	}{
		{"no UTF-8", word, []byte("word\xff\x01\x01"), func(l *Payloads) bool { return l.NotText }},
		{"no varints", numbers, []byte{1, 2, 3, 0x80}, func(l *Payloads) bool { return l.NotVarints }},
		{"overlong varints", numbers, []byte{1, 2, 0x80, 0}, func(l *Payloads) bool { return l.NotVarints }},
		{"no words of four bytes", numbers, []byte{1, 2, 3}, func(l *Payloads) bool { return l.NotFixed32 && l.NotFixed64 }},
		{"no words of eight bytes", word, []byte("word"), func(l *Payloads) bool { return !l.NotFixed32 && l.NotFixed64 }},
		{"no message", entry, []byte("\x08"), func(l *Payloads) bool { return l.NotMessage && l.NotMap }},
		{"a key twice", entry, entry(7), func(l *Payloads) bool { return !l.NotMessage && l.NotMap }},
		{"greater", numbers, []byte{0xff, 0xff, 3, 1}, func(l *Payloads) bool { return l.Elements.Max == 0xffff }},
		{"greater, of one byte", numbers, []byte{100, 3, 3, 1}, func(l *Payloads) bool { return l.Elements.Max == 100 }},
		{"negative", numbers, protowire.AppendVarint(nil, 1<<64-5), func(l *Payloads) bool { return l.elements().Negative == 1 && l.Elements.Lowest == -5 }},
		{"longer", word, []byte("a longer word"), func(l *Payloads) bool { return l.Longest == 13 }},
		{"another beginning", word, []byte("Word0000"), func(l *Payloads) bool { return len(l.Prefix) == 0 }},
	} {
		odd := 0
		for _, at := range []int{0, 40, 777, 4321, n - 1} {
			ev := NewEvidence()
			if err := ev.Add("R", list(n, at, c.usual, c.odd)); err != nil {
				t.Fatal(err)
			}
			if f := fieldAt(ev.Root("R"), 1); !c.is(f.Len) || f.Len.N != n {
				t.Errorf("%s at %d: %+v", c.name, at, f.Len)
			}
			odd++
		}
		ev := NewEvidence()
		if err := ev.Add("R", list(n, -1, c.usual, nil)); err != nil || odd == 0 {
			t.Fatal(err)
		}
		if c.is(fieldAt(ev.Root("R"), 1).Len) {
			t.Errorf("%s: without it too", c.name)
		}
	}
}

// TestOrderOfLargeMessages: also where not all payloads are scored the order of
// messages does not show, nor that evidence was merged.
func TestOrderOfLargeMessages(t *testing.T) {
	var samples [][]byte
	for k := range 4 {
		samples = append(samples, list(700*(k+1), -1, func(i int) []byte { return fmt.Appendf(nil, "%d of %d, %x", i, k, stablehash.Mix(uint64(i*k))) }, nil))
	}
	write := func(e *Evidence) string {
		b, err := json.Marshal(e.Doc())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	all, back, parts := NewEvidence(), NewEvidence(), NewEvidence()
	for i, s := range samples {
		part := NewEvidence()
		if all.Add("R", s) != nil || back.Add("R", samples[len(samples)-1-i]) != nil || part.Add("R", s) != nil {
			t.Fatal("no message")
		}
		parts.Merge(part)
	}
	if a := write(all); a != write(back) || a != write(parts) {
		t.Errorf("%s\n%s\n%s", a, write(back), write(parts))
	}
}

// TestLargeListReadsAsItsParts: what a field is said to be does not depend on how
// many of its payloads were scored.
func TestLargeListReadsAsItsParts(t *testing.T) {
	for _, c := range []struct {
		want  wire.Kind
		usual func(i int) []byte
	}{
		{wire.KindString, func(i int) []byte { return fmt.Appendf(nil, "name-%d", i*7919%1000) }},
		{wire.KindBytes, func(i int) []byte {
			return protowire.AppendFixed64(protowire.AppendFixed64(nil, stablehash.Mix(uint64(i))), stablehash.Mix(uint64(^i)))
		}},
		// No encoder writes a packed list twice in one message.
		{wire.KindBytes, func(i int) []byte {
			return protowire.AppendVarint(protowire.AppendVarint(nil, uint64(i)), uint64(i*i%3000))
		}},
		{wire.KindMessage, func(i int) []byte {
			return protowire.AppendVarint(protowire.AppendTag(protowire.AppendVarint([]byte{0x08}, uint64(i)), 3, protowire.VarintType), 1)
		}},
	} {
		for _, n := range []int{30, 300, 3000} {
			ev := NewEvidence()
			if err := ev.Add("R", list(n, -1, c.usual, nil)); err != nil {
				t.Fatal(err)
			}
			if g := fieldAt(ev.Root("R"), 1).readings(); g[0].Kind != c.want || g[0].P < 0.8 {
				t.Errorf("%d of %s: %s", n, c.want, describe(g))
			}
		}
	}
}

// TestBestIsTheFirstReading: both ways to ask agree, whichever comes first, and the
// evidence is with the readings.
func TestBestIsTheFirstReading(t *testing.T) {
	data := barewalk.Descriptors(t)
	tree := wire.Parse(data[:len(data)/8*8], wire.Options{})
	ev := NewEvidence()
	if err := ev.Add("R", data); err != nil {
		t.Fatal(err)
	}
	pooled := NewPooled(ev.Root("R"))
	for name, readers := range map[string][2]*Reader{
		"alone":  {NewReader(tree, nil), NewReader(tree, nil)},
		"by it":  {NewReader(tree, ev.Root("R")), NewReader(tree, ev.Root("R"))},
		"pooled": {pooled.NewReader(tree), pooled.NewReader(tree)},
	} {
		for i := range tree.Nodes[:2000] {
			k, typ, p := readers[0].Best(int32(i))
			again, _, _ := readers[0].Best(int32(i))
			list := readers[1].Readings(int32(i))
			if g := list[0]; g.Kind != k || g.Type != typ || g.P != p || again != k {
				t.Fatalf("%s: node %d: %s %s %v and %s", name, i, k, typ, p, describe(list))
			}
			if late := readers[0].Readings(int32(i)); !slices.EqualFunc(list, late, func(a, b Reading) bool { return a.Type == b.Type && len(a.Why) == len(b.Why) }) {
				t.Fatalf("%s: node %d: %+v and %+v", name, i, list, late)
			}
		}
	}
}
