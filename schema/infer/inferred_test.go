package infer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/schema/internal/schematest"
)

// TestChosen: a field is what somebody chose it to be, where its values can be
// that, also through files of evidence and in any order.
func TestChosen(t *testing.T) {
	choice := func(s string) kind.Choice {
		c, err := kind.ParseChoice(s)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	exchange := func(id int64, choices ...string) *decode.Exchange {
		ex := &decode.Exchange{Exchange: captures.Exchange{ID: id}, Call: decode.Call{Service: "p.S", RPC: "M", Codec: "proto"}}
		for _, c := range choices {
			ex.Choices[captures.Down] = append(ex.Choices[captures.Down], choice(c))
		}
		for i := range 5 {
			data := schematest.Tags(nil).Text(1, string(schematest.Tags(nil).Text(1, "inside").Varint(2, uint64(i)))).Varint(2, uint64(3+i)).Text(3, "\xff\xfe\x80").Text(4, "").
				Text(5, "\x01\x02\x04\x05\x01\x02\x04\x05").Text(6, "\x01\x02\x04\x05").Text(7, "\x01\x00\x01").Text(8, "\x01\x02\x04\x05\x06")
			ex.Frames = append(ex.Frames, decode.Frame{Dir: captures.Down, Frame: envelope.Frame{Data: data, Framed: true}})
		}
		return ex
	}
	a, b := NewEvidence(), NewEvidence()
	if err := a.AddExchange(exchange(1, "1:bytes", "2:sint64", "3:string")); err != nil {
		t.Fatal(err)
	}
	if err := b.AddExchange(exchange(2, "4:message", "1[0]:string", "2:sint64", "5:float", "6:packed-sint32", "7:bool", "8:packed-double")); err != nil {
		t.Fatal(err)
	}
	a, err := ReadEvidence(strings.NewReader(written(t, a)))
	if err != nil {
		t.Fatal(err)
	}
	b.Merge(a)
	in, err := Infer(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		number int32
		typ    string
		p      float64
		note   string
	}{
		{1, "bytes", 1, "chosen as bytes"},
		{2, "sint64", 1, "chosen as sint64"},
		{3, "bytes", 0, "chosen as string, which not all of its values can be"},
		{4, "p.MResponseField4", 1, "chosen as message"},
		{5, "float", 1, "chosen as float"},
		{6, "sint64", 1, "chosen as packed sint64"},
		{7, "bool", 1, "chosen as bool"},
		{8, "", 0, "chosen as packed double, which not all of its values can be"},
	} {
		v := fieldEvidence(t, in, "p.MResponse", c.number)
		if c.typ != "" && v.Type != c.typ || v.P < c.p || !strings.Contains(v.Note, c.note) && c.number != 4 {
			t.Errorf("field %d: %+v", c.number, v)
		}
	}
}

// TestExamples: comments and evidence have short texts, and no secrets.
func TestExamples(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.e30.abc"
	var samples [][]byte
	for i := range 40 {
		samples = append(samples, schematest.Tags(nil).Text(1, []string{"auto", "fast"}[i%2]).Text(2, jwt).
			Text(3, fmt.Sprintf("sk-ant-api03-%02d-abcdefghijklmnopqrst", i)).Text(4, fmt.Sprintf("what %d is about", i)).
			Text(5, fmt.Sprintf("src/file%d.go", i)).Text(6, fmt.Sprintf("%032x", 7919*i*i+1)).Varint(7, uint64(2+i%3)))
	}
	in := inferAll(t, samples...)
	for number, want := range map[int32]string{1: `only "`, 5: `for example "src/file`, 7: "only 2, 3, 4"} {
		if v := fieldEvidence(t, in, "p.Root", number); !strings.Contains(v.Note, want) {
			t.Errorf("field %d: %q, want %q", number, v.Note, want)
		}
	}
	if v := fieldEvidence(t, in, "p.Root", 1); !strings.Contains(v.Note, `"auto"`) || !strings.Contains(v.Note, `"fast"`) {
		t.Errorf("%q", v.Note)
	}
	var file bytes.Buffer
	if err := in.WriteEvidence(&file); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{jwt, "sk-ant-api03-1", "00000001"} {
		if strings.Contains(must(in.Text()), secret) || strings.Contains(file.String(), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	if strings.Contains(must(in.Text()), "is about") {
		t.Error("a part of a sentence is shown")
	}
}

// TestMixtures: messages of two types under one name are said to be that, and
// those of one type are not.
func TestMixtures(t *testing.T) {
	var two, one, variants [][]byte
	for i := range 30 {
		n := uint64(i)
		if i%2 == 0 {
			two = append(two, schematest.Tags(nil).Text(1, "a name").Varint(2, n).Text(3, "more").Varint(6, n+1))
			variants = append(variants, schematest.Tags(nil).Varint(1, 1).Text(2, "x y").Varint(3, n+1))
		} else {
			two = append(two, schematest.Tags(nil).Varint(1, n).Text(2, "words").Varint(4, n).Text(5, "end"))
			variants = append(variants, schematest.Tags(nil).Varint(1, 2).Text(4, "z w").Varint(5, n+1))
		}
		b := schematest.Tags(nil).Varint(1, n)
		if i%3 > 0 {
			b = b.Text(2, "at times")
		}
		if i%5 > 0 {
			b = b.Text(3, "at others")
		}
		one = append(one, b)
	}
	in := inferAllOdd(t, two)
	if len(in.Mixtures) != 1 || in.Mixtures[0].P < 0.9 || len(in.Mixtures[0].Conflicts) != 2 || fmt.Sprint(in.Mixtures[0].Sets) != "[{[3 6] 15} {[4 5] 15}]" {
		t.Errorf("%+v", in.Mixtures)
	}
	if text := must(in.Text()); !strings.Contains(text, "// Probably messages of more than one type (probability 0.95): field 1 is") {
		t.Errorf("%s", text)
	}
	if in := inferAll(t, one...); len(in.Mixtures) > 0 {
		t.Errorf("%+v", in.Mixtures)
	}
	if in := inferAll(t, variants...); len(in.Mixtures) != 1 || in.Mixtures[0].P > 0.5 || len(in.Mixtures[0].Conflicts) > 0 {
		t.Errorf("%+v", in.Mixtures)
	}
	var file bytes.Buffer
	if err := in.WriteEvidence(&file); err != nil || !strings.Contains(file.String(), `"mixed": [{"message":"p.Root"`) {
		t.Errorf("%v\n%s", err, file.String()[:min(file.Len(), 3000)])
	}
}

// inferAllOdd is inferAll for samples that no one type reads.
func inferAllOdd(t testing.TB, samples [][]byte) *Inferred {
	t.Helper()
	return inferCorpus(t, schematest.Corpus{Name: t.Name(), Samples: samples})
}

// TestSupposedTypes: what the bytes do not prove is said, and not written.
func TestSupposedTypes(t *testing.T) {
	var samples [][]byte
	for i := range 12 {
		detail := schematest.Tags(nil).Text(1, "type.googleapis.com/p.Detail").Text(2, string(schematest.Tags(nil).Varint(1, uint64(i+1))))
		status := schematest.Tags(nil).Varint(1, uint64(1+i%16)).Text(2, "went wrong at last").Text(3, string(detail))
		mask := schematest.Tags(nil).Text(1, []string{"display_name", "labels", "spec.replicas"}[i%3]).Text(1, "etag")
		var wrapper schematest.Tags
		if i%4 > 0 {
			wrapper = wrapper.Text(1, fmt.Sprintf("wrapped text %d", i))
		}
		samples = append(samples, schematest.Tags(nil).Text(1, string(status)).Text(2, string(mask)).Text(3, string(wrapper)))
	}
	in := inferAll(t, samples...)
	for number, want := range map[int32]string{1: "google.rpc.Status", 2: "google.protobuf.FieldMask", 3: "google.protobuf.StringValue"} {
		v := fieldEvidence(t, in, "p.Root", number)
		if v.Known == nil || v.Known.Name != want || v.Known.P <= 0 || v.Known.P > 0.9 || !strings.Contains(must(in.Text()), want) {
			t.Errorf("field %d: %+v\n%s", number, v, must(in.Text()))
		}
	}
}

// TestManyZeros: a message of very many fields compiles in time, explicit presence or not.
func TestManyZeros(t *testing.T) {
	var b schematest.Tags
	for n := range 8_000 {
		b = b.Varint(protowire.Number(n+1), 0)
	}
	in := inferAll(t, b)
	if n := strings.Count(must(in.Text()), " optional "); n == 0 || n > maxPresence/8_000 {
		t.Errorf("%d fields are optional", n)
	}
}

// TestDeep: where nothing more is looked into, that is said.
func TestDeep(t *testing.T) {
	inner := string(schematest.Tags(nil).Varint(3, 1))
	for range kind.MaxDepth + 5 {
		inner = string(schematest.Tags(nil).Varint(3, 1).Text(9, inner))
	}
	if in := inferAll(t, []byte(inner)); in.Deep {
		t.Error("a message inside itself is no deep one: it is looked into")
	}
	inner = "\x08\x05"
	for range 3_000 {
		inner = string(schematest.Tags(nil).Text(9, inner))
	}
	in := inferAllOdd(t, [][]byte{[]byte(inner)})
	if !in.Deep || !strings.Contains(must(in.Text()), "messages nested deeper than") {
		t.Errorf("nothing is said of depth\n%s", must(in.Text()))
	}
}

// TestExamplesOfMany: of very many texts in one message not all are remembered,
// and nothing is said of all.
func TestExamplesOfMany(t *testing.T) {
	var b schematest.Tags
	for i := range 500 {
		b = b.Text(1, []string{"auto", "fast"}[min(i/490, 1)])
	}
	b = b.Text(2, "alone").Text(2, "alone")
	in := inferAll(t, b)
	if v := fieldEvidence(t, in, "p.Root", 1); strings.Contains(v.Note, "always") {
		t.Errorf("%q", v.Note)
	}
	if v := fieldEvidence(t, in, "p.Root", 2); !strings.Contains(v.Note, `always "alone"`) {
		t.Errorf("%q", v.Note)
	}
}
