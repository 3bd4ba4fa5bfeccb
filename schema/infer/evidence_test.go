package infer

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"unwire/decode/kind"
	"unwire/schema"
	"unwire/schema/internal/schematest"
)

// maxKindFields is how many fields a kind.Evidence keeps.
const maxKindFields = 50_000

// fieldsGen draws message bytes: mostly valid fields, nested, at times text.
func fieldsGen(depth int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		var b []byte
		for range rapid.IntRange(0, 5).Draw(t, "fields") {
			n := protowire.Number(rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4, 5, 16, 300}).Draw(t, "number"))
			switch rapid.IntRange(0, 6).Draw(t, "wire") {
			case 0:
				b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), rapid.Uint64().Draw(t, "v"))
			case 1:
				b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(rapid.IntRange(0, 3).Draw(t, "v")))
			case 2:
				b = protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), rapid.Uint32().Draw(t, "v"))
			case 3:
				b = protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), rapid.Uint64().Draw(t, "v"))
			case 4:
				b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), rapid.String().Draw(t, "s"))
			case 5:
				b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "b"))
			default:
				if depth < 3 {
					b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), fieldsGen(depth+1).Draw(t, "m"))
				}
			}
		}
		return b
	})
}

func evidenceOf(t interface{ Fatal(...any) }, samples ...[]byte) *Evidence {
	ev := NewEvidence()
	for i, s := range samples {
		if err := ev.Add([]string{"A", "B"}[i%2], s); err != nil {
			t.Fatal(err)
		}
	}
	return ev
}

func written(t interface{ Fatal(...any) }, ev *Evidence) string {
	b, err := json.Marshal(ev.doc(nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMergeCommutesAndAssociates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(fieldsGen(0), 0, 12).Draw(t, "samples")
		add := func(lo, hi int) *Evidence {
			ev := NewEvidence()
			for _, s := range samples[lo:hi] {
				if err := ev.Add("A", s); err != nil {
					t.Fatal(err)
				}
			}
			return ev
		}
		n := len(samples)
		i := rapid.IntRange(0, n).Draw(t, "i")
		j := rapid.IntRange(i, n).Draw(t, "j")
		whole := written(t, add(0, n))

		left := add(0, i)
		left.Merge(add(i, j))
		left.Merge(add(j, n))
		right := add(j, n)
		middle := add(i, j)
		middle.Merge(right)
		middle.Merge(add(0, i))
		for name, ev := range map[string]*Evidence{"(a+b)+c": left, "(b+c)+a": middle} {
			if n > 0 && written(t, ev) != whole {
				t.Fatalf("%s:\n%s\nwhole:\n%s", name, written(t, ev), whole)
			}
		}
		if written(t, right) != written(t, add(j, n)) {
			t.Fatal("Merge changed its argument")
		}
	})
}

// What is surely text is that as well behind something that is none.
func TestTextBehindNoText(t *testing.T) {
	text := schematest.Tags(nil).Text(5, "the quick brown fox jumps over the lazy dog")
	other := schematest.Tags(nil).Text(5, "\x1a\x0a\x81\x01\x86\x32\x16\x00\x00\x00\x00\x00")
	add := func(samples ...[]byte) *Evidence {
		ev := NewEvidence()
		for _, s := range samples {
			if err := ev.Add("A", s); err != nil {
				t.Fatal(err)
			}
		}
		return ev
	}
	merged := add(text)
	merged.Merge(add(other))
	for name, ev := range map[string]*Evidence{"text first": add(text, other), "text last": add(other, text)} {
		if a, b := written(t, ev), written(t, merged); a != b {
			t.Errorf("%s:\n%s\nmerged:\n%s", name, a, b)
		}
	}
}

func TestOrderDoesNotShow(t *testing.T) {
	c := schematest.RandomCorpus(t, 7, 40)
	want := inferCorpus(t, c)
	r := rand.New(rand.NewPCG(3, 3))
	for range 5 {
		r.Shuffle(len(c.Samples), func(i, j int) { c.Samples[i], c.Samples[j] = c.Samples[j], c.Samples[i] })
		got := inferCorpus(t, c)
		if a, _ := got.Text(); a != must(want.Text()) {
			t.Fatal("another order of samples gave other definitions")
		}
	}
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

func TestEvidenceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev := evidenceOf(t, rapid.SliceOfN(fieldsGen(0), 1, 8).Draw(t, "samples")...)
		text := written(t, ev)
		back, err := ReadEvidence(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if got := written(t, back); got != text {
			t.Fatalf("wrote\n%s\nread\n%s", text, got)
		}
	})
}

func TestReadEvidenceRefuses(t *testing.T) {
	good := written(t, evidenceOf(t, []byte{8, 1, 0x12, 2, 'h', 'i'}))
	for name, edit := range map[string][2]string{
		"no JSON":          {good, "{"},
		"a newer format":   {`"unwire_evidence":2`, `"unwire_evidence":3`},
		"more than seen":   {`"most":1`, `"most":9`},
		"negative counts":  {`"samples":1`, `"samples":-1`},
		"a number of zero": {`"fields":{"1"`, `"fields":{"0"`},
		"a wild number":    {`"fields":{"1"`, `"fields":{"999999999"`},
		"overflow":         {`"bytes":2`, `"bytes":9223372036854775807`},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing to edit in %s", name, good)
		}
		if _, err := ReadEvidence(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.HasPrefix(err.Error(), "schema: the evidence file (statistics about fields) is malformed: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	t.Run("depth", func(t *testing.T) {
		var b []byte
		for range 10_000 {
			b = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
		}
		ev := evidenceOf(t, b)
		in, err := Infer(ev, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Fields) > kind.MaxDepth {
			t.Errorf("%d fields", len(in.Fields))
		}
	})
	t.Run("fields", func(t *testing.T) {
		var b []byte
		for n := range 3 * maxKindFields {
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(n+1), protowire.VarintType), 1)
		}
		ev := evidenceOf(t, b)
		if !ev.kinds.Truncated() || ev.kinds.Fields() > maxKindFields {
			t.Errorf("%d fields, truncated %v", ev.kinds.Fields(), ev.kinds.Truncated())
		}
	})
	t.Run("types", func(t *testing.T) {
		var b schematest.Tags
		for n := range 20_000 {
			b = b.Text(protowire.Number(n+1), string(schematest.Tags(nil).Text(1, "abc").Varint(2, uint64(n)).Varint(3, 1)))
		}
		start := time.Now()
		in, err := Infer(evidenceOf(t, b, b), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Minute || len(in.Fields) > 41_000 {
			t.Errorf("%d fields after %v", len(in.Fields), took)
		}
	})
	t.Run("errors", func(t *testing.T) {
		err := NewEvidence().Add("A", []byte{8, 1, 0xff})
		if err == nil || !strings.Contains(err.Error(), "not a protobuf message of type A: tag at 0x2: ") {
			t.Errorf("%v", err)
		}
	})
}

// TestInferredReadsItsSamples is the promise of Infer on structured junk.
func TestInferredReadsItsSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(fieldsGen(0), 1, 10).Draw(t, "samples")
		ev := NewEvidence()
		for _, s := range samples {
			if err := ev.Add("Root", s); err != nil {
				t.Fatal(err)
			}
		}
		in, err := Infer(ev, Options{Package: "p"})
		if err != nil {
			t.Fatal(err)
		}
		text := must(in.Text())
		odd := strings.Contains(text, "another wire type") || strings.Contains(text, " is left out: ") // said in so many words
		for _, s := range samples {
			m := dynamicpb.NewMessage(in.Schema.Message("p.Root"))
			if err := proto.Unmarshal(s, m); err != nil {
				t.Fatalf("%x: %v\n%s", s, err, text)
			}
			if path := schema.TypeWithUnknownFields(m); path != "" && !odd {
				t.Fatalf("%x: unknown fields in %s\n%s", s, path, text)
			}
		}
	})
}

// Absorbed evidence is what merged evidence is, and evidence that has no messages takes it over without a copy.
func TestAbsorb(t *testing.T) {
	of := func(root, message string) *Evidence {
		e := NewEvidence()
		if err := e.Add(root, []byte(message)); err != nil {
			t.Fatal(err)
		}
		return e
	}
	merged, absorbed := NewEvidence(), NewEvidence()
	for i, root := range []string{"a", "b", "a"} {
		merged.Merge(of(root, "\x08\x02\x12\x01x"))
		more := of(root, "\x08\x02\x12\x01x")
		own := more.Root(root)
		if absorbed.Absorb(more); i == 0 && absorbed.Root(root) != own {
			t.Error("the first evidence was copied")
		}
	}
	got, gotErr := absorbed.AppendBinary(nil, nil)
	want, wantErr := merged.AppendBinary(nil, nil)
	if gotErr != nil || wantErr != nil || string(got) != string(want) || len(got) < 50 {
		t.Errorf("%d bytes of evidence, want %d (%v, %v)", len(got), len(want), gotErr, wantErr)
	}
}
