package infer

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema/internal/schematest"
)

// TestStructInAllPlaces: each place of google.protobuf.Struct and Value has other kinds of values, so that their
// fields have little in common.
func TestStructInAllPlaces(t *testing.T) {
	tags := func() schematest.Tags { return nil }
	structOf := func(values ...[]byte) (b schematest.Tags) {
		for i, v := range values {
			b = b.Text(1, string(tags().Text(1, fmt.Sprintf("key%d", i)).Text(2, string(v))))
		}
		return b
	}
	var samples [][]byte
	for i := range 6 {
		text := tags().Text(3, fmt.Sprintf("some text %d", i))
		number := tags().Fixed64(2, math.Float64bits(0.5*float64(i+1)))
		no := tags().Varint(4, 0)
		list := tags().Text(6, string(tags().Text(1, string(number)).Text(1, string(no))))
		b := tags().Text(1, string(structOf(number, text))).Text(2, string(structOf(no, no))).Text(3, string(structOf(text, text)))
		b = b.Text(4, string(structOf(list)))
		b = b.Text(5, string(tags().Text(5, string(structOf(text, no)))))
		if i%2 > 0 {
			b = tags().Text(5, string(number))
		}
		samples = append(samples, b)
	}
	in := inferAll(t, samples...)
	for n, want := range []string{structType, structType, structType, structType, valueType} {
		if f := fieldEvidence(t, in, "p.Root", int32(n+1)); f.Type != want {
			t.Errorf("field %d is %s, want %s", n+1, f.Type, want)
		}
	}
	if s := must(in.Text()); strings.Count(s, "message ") != 1 {
		t.Errorf("other messages than the root:\n%s", s)
	}
}

// TestStructIsNotGuessed: messages that have one shape of Struct, in a file without other Structs, and messages of
// which some have two fields of Value.
func TestStructIsNotGuessed(t *testing.T) {
	entry := func(i int, v schematest.Tags) string {
		return string(schematest.Tags(nil).Text(1, string(schematest.Tags(nil).Text(1, fmt.Sprintf("key%d", i)).Text(2, string(v)))))
	}
	var samples [][]byte
	for i := range 8 {
		both := schematest.Tags(nil).Fixed64(2, math.Float64bits(float64(i)))
		if i > 5 {
			both = both.Text(3, "text")
		}
		one := schematest.Tags(nil).Text(3, fmt.Sprintf("some text %d", i))
		samples = append(samples, schematest.Tags(nil).Text(1, entry(i, one)).Text(2, entry(i, both)))
	}
	if s := must(inferAll(t, samples...).Text()); strings.Contains(s, "struct.proto") {
		t.Error(s)
	}
}

// TestPairHasOneType: the two messages of a range are of one type although they have few fields, one of which only
// occurs at the end.
func TestPairHasOneType(t *testing.T) {
	point := func(line, column uint64) (b schematest.Tags) {
		if line > 0 {
			b = b.Varint(1, line)
		}
		return b.Varint(2, column)
	}
	var pairs, others [][]byte
	for i := range uint64(10) {
		b := schematest.Tags(nil).Text(1, string(point(0, 11+i))).Text(2, string(point(i/8, 24+i)))
		pairs = append(pairs, schematest.Tags(nil).Text(1, string(b)))
		others = append(others, schematest.Tags(nil).Text(1, string(b.Text(3, fmt.Sprintf("text %d", i)))))
	}
	typesOf := func(samples [][]byte) [2]string {
		in := inferAll(t, samples...)
		name := fieldEvidence(t, in, "p.Root", 1).Type
		return [2]string{fieldEvidence(t, in, name, 1).Type, fieldEvidence(t, in, name, 2).Type}
	}
	if types := typesOf(pairs); types[0] != types[1] {
		t.Errorf("types %q", types)
	}
	if types := typesOf(others); types[0] == types[1] {
		t.Errorf("two of three fields are of one type, %q, without more evidence", types)
	}
}

// TestPairKeepsLabels: a field that is a list in one of two messages does not become a list in the other.
func TestPairKeepsLabels(t *testing.T) {
	var samples [][]byte
	for i := range uint64(10) {
		one := schematest.Tags(nil).Varint(1, 20+i)
		list := schematest.Tags(nil).Varint(1, 21+i).Varint(1, 22+i).Varint(1, 23+i)
		samples = append(samples, schematest.Tags(nil).Text(1, string(schematest.Tags(nil).Text(1, string(one)).Text(2, string(list)))))
	}
	in := inferAll(t, samples...)
	name := fieldEvidence(t, in, "p.Root", 1).Type
	for n, want := range []string{Singular, Repeated} {
		if f := fieldEvidence(t, in, fieldEvidence(t, in, name, int32(n+1)).Type, 1); f.Label != want {
			t.Errorf("field %d has a field that is %s, want %s", n+1, f.Label, want)
		}
	}
}

// TestRareMembersOfOneofs: a recursive type of alternatives is found in places where few of its fields were seen.
func TestRareMembersOfOneofs(t *testing.T) {
	leaf := func(n, i int) string {
		return string(schematest.Tags(nil).Text(1, fmt.Sprintf("member %d of %d", n, i)))
	}
	var samples [][]byte
	for i := range 24 {
		b := schematest.Tags(nil).Text(protowire.Number(1+i%8), leaf(i%8, i))
		if i < 2 {
			inside := schematest.Tags(nil).Text(protowire.Number(1+i), leaf(i, i))
			b = schematest.Tags(nil).Text(9, string(schematest.Tags(nil).Text(1, string(inside))))
		}
		samples = append(samples, b)
	}
	in := inferAll(t, samples...)
	wrapper := fieldEvidence(t, in, "p.Root", 9).Type
	if f := fieldEvidence(t, in, wrapper, 1); f.Type != "p.Root" {
		t.Errorf("type %s, want p.Root", f.Type)
	}
}

// TestStructsOfFewKindsOfValues: two places of google.protobuf.Struct, each with one kind of values, are recognized
// together although each could be a map to another message.
func TestStructsOfFewKindsOfValues(t *testing.T) {
	var samples [][]byte
	for i := range 8 {
		entry := func(value schematest.Tags) string {
			e := schematest.Tags(nil).Text(1, fmt.Sprintf("key %d", i)).Text(2, string(value))
			return string(schematest.Tags(nil).Text(1, string(e)))
		}
		texts, doubles := entry(schematest.Tags(nil).Text(3, fmt.Sprintf("some text %d", i))), entry(schematest.Tags(nil).Fixed64(2, math.Float64bits(float64(i)+0.5)))
		samples = append(samples, schematest.Tags(nil).Text(1, texts).Text(2, doubles))
	}
	in := inferAll(t, samples...)
	for n := range int32(2) {
		if f := fieldEvidence(t, in, "p.Root", n+1); f.Type != structType {
			t.Errorf("field %d has type %s", n+1, f.Type)
		}
	}
}

// TestListsOfOneType: two messages with only a list of messages of one type are of one type, even if no message has
// both, as in the operands of a union and of an intersection.
func TestListsOfOneType(t *testing.T) {
	var samples [][]byte
	for i := range 16 {
		list := schematest.Tags(nil)
		for k := range 2 + i%2 {
			list = list.Text(1, string(schematest.Tags(nil).Text(7, fmt.Sprintf("element %d of %d", k, i)).Varint(9, uint64(1000+i))))
		}
		samples = append(samples, schematest.Tags(nil).Text(protowire.Number(4+i%2), string(list)))
	}
	in := inferAll(t, samples...)
	if a, b := fieldEvidence(t, in, "p.Root", 4).Type, fieldEvidence(t, in, "p.Root", 5).Type; a != b {
		t.Errorf("types %s and %s", a, b)
	}
}

// TestSizesOfOneType: messages with two numbers are of one type if the numbers have the same sizes in both places, and
// of two types if the sizes differ.
func TestSizesOfOneType(t *testing.T) {
	typesOf := func(second, third uint64) [2]string {
		var samples [][]byte
		for i := range uint64(10) {
			numbers := func(small, large uint64) string {
				return string(schematest.Tags(nil).Varint(1, small+i).Varint(2, large+i))
			}
			inner := schematest.Tags(nil).Text(1, fmt.Sprintf("text %d", i)).Text(2, numbers(60, 1<<40))
			samples = append(samples, schematest.Tags(nil).Text(1, string(inner)).Text(2, numbers(second, third)))
		}
		in := inferAll(t, samples...)
		return [2]string{fieldEvidence(t, in, fieldEvidence(t, in, "p.Root", 1).Type, 2).Type, fieldEvidence(t, in, "p.Root", 2).Type}
	}
	if types := typesOf(70, 1<<40+50); types[0] != types[1] {
		t.Errorf("numbers of the same sizes, but types %q", types)
	}
	if types := typesOf(1<<30, 90); types[0] == types[1] {
		t.Errorf("numbers of other sizes, but one type %q", types[0])
	}
}

// TestLengthsOfOneType: messages with one text are of one type if the texts have the same length in both places, and of
// two types if the lengths differ.
func TestLengthsOfOneType(t *testing.T) {
	typesOf := func(length int) [2]string {
		var samples [][]byte
		for i := range 6 {
			text := func(words string, n int) string {
				return string(schematest.Tags(nil).Text(2, strings.Repeat(fmt.Sprintf("%s %d, ", words, i), 5)[:n]))
			}
			inner := schematest.Tags(nil).Text(1, fmt.Sprintf("text %d", i)).Text(2, text("some words", 24))
			samples = append(samples, schematest.Tags(nil).Text(1, string(inner)).Text(2, text("other things", length)))
		}
		in := inferAll(t, samples...)
		return [2]string{fieldEvidence(t, in, fieldEvidence(t, in, "p.Root", 1).Type, 2).Type, fieldEvidence(t, in, "p.Root", 2).Type}
	}
	if types := typesOf(24); types[0] != types[1] {
		t.Errorf("texts of the same length, but types %q", types)
	}
	if types := typesOf(43); types[0] == types[1] {
		t.Errorf("texts of other lengths, but one type %q", types[0])
	}
}

// TestSizesOfEntries: values of one size say little about messages that may be the entries of two maps.
func TestSizesOfEntries(t *testing.T) {
	of := func(numbers ...int32) *class {
		c := &class{samples: 10, distinctSamples: 10, fields: map[int32]*classField{}, numbers: numbers}
		for _, n := range numbers {
			stats := &kind.Varints{N: 10, Min: 1 << 20, Max: 1 << 20}
			stats.Bits[21] = 10
			c.fields[n] = &classField{
				Field:     &kind.Field{Seen: 10, Most: 1, Varint: stats},
				judgement: kind.Judgement{Kind: wire.KindVarint, P: 1},
			}
		}
		return c
	}
	entries, others := similarity(of(1, 2), of(1, 2)), similarity(of(1, 3), of(1, 3))
	if gain := others - entries - (numberEvidence(3) - numberEvidence(2)); gain < 1 {
		t.Errorf("entries %.2f, other messages %.2f", entries, others)
	}
}

// TestEchoedValue: a value that a call and its result have in common is no second reason, by its length, to take them for
// one type.
func TestEchoedValue(t *testing.T) {
	ev := NewEvidence()
	field := func(root string) *classField {
		if err := ev.Add(root, schematest.Tags(nil).Text(1, "internal/retry/backoff.go")); err != nil {
			t.Fatal(err)
		}
		return &classField{Field: ev.Root(root).Field(1), judgement: kind.Judgement{Kind: wire.KindString, P: 1}}
	}
	call, result := field("Call"), field("Result")
	values, lengths := valueEvidence(call, result), lengthEvidence(call, result)
	if got := fieldLikeness(call, result, false); values <= 0 || lengths <= 0 || got > max(values, lengths)+0.01 {
		t.Errorf("%.2f, by values %.2f, by lengths %.2f", got, values, lengths)
	}
}
