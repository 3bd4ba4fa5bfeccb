package infer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/decode"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/internal/schematest"
)

// inferAll infers type p.Root from samples and makes sure that it reads them.
func inferAll(t testing.TB, samples ...[]byte) *Inferred {
	t.Helper()
	c := schematest.Corpus{Name: t.Name(), Samples: samples}
	in := inferCorpus(t, c)
	checkDecodes(t, c.Name, in.Schema.Message("p.Root"), samples)
	return in
}

// fieldEvidence returns what was inferred about a field.
func fieldEvidence(t testing.TB, in *Inferred, message string, number int32) FieldEvidence {
	t.Helper()
	for _, f := range in.Fields {
		if f.Message == message && f.Number == number {
			return f
		}
	}
	t.Fatalf("nothing of %s.%d in\n%s", message, number, must(in.Text()))
	return FieldEvidence{}
}

func TestInferKindsTypesAndLabels(t *testing.T) {
	double := func(f float64) uint64 { return math.Float64bits(f) }
	var samples [][]byte
	for i := range 12 {
		n := uint64(i)
		b := schematest.Tags(nil).Text(1, fmt.Sprintf("answer number %d", i)).
			Varint(2, ^uint64(0)-n).              // int32, negative
			Varint(3, 1).                         // bool
			Varint(4, 1_700_000_000_000+977*n).   // milliseconds
			Fixed64(5, double(0.25*float64(i+1))) // double
		b = b.Text(6, "\x01\x80\x02\x03"+string(rune(n))) // packed
		b = b.Varint(7, n+3).Varint(7, n)                 // unpacked list
		b = b.Text(8, string([]byte{0xff, byte(i), 0xfe, 0x80, byte(7 * i)}))
		b = b.Text(9, string(schematest.Tags(nil).Text(1, "inside").Varint(2, n+1)))
		b = b.Varint(10, uint64(i%2)) // a zero is written: presence
		b = b.Fixed64(11, 0x9e3779b97f4a7c15*(n+1))
		samples = append(samples, b)
	}
	in := inferAll(t, samples...)
	for _, want := range []struct {
		number          int32
		kind            wire.Kind
		typ, label, has string
	}{
		{1, wire.KindString, "string", Singular, "string field_1 = 1;"},
		{2, wire.KindVarint, "int32", Singular, "int32 field_2 = 2;"},
		{3, wire.KindVarint, "bool", Singular, "bool field_3 = 3;"},
		{4, wire.KindVarint, "int64", Singular, "int64 field_4 = 4;"},
		{5, wire.KindFixed64, "double", Singular, "double field_5 = 5;"},
		{6, wire.KindPacked, "int32", Repeated, "repeated int32 field_6 = 6;"},
		{7, wire.KindVarint, "int32", Repeated, "repeated int32 field_7 = 7 [packed = false];"},
		{8, wire.KindBytes, "bytes", Singular, "bytes field_8 = 8;"},
		{9, wire.KindMessage, "p.RootField9", Singular, "RootField9 field_9 = 9;"},
		{10, wire.KindVarint, "bool", Optional, "optional bool field_10 = 10;"},
		{11, wire.KindFixed64, "fixed64", Singular, "fixed64 field_11 = 11;"},
	} {
		f := fieldEvidence(t, in, "p.Root", want.number)
		if f.Kind != want.kind || f.Type != want.typ || f.Label != want.label || f.P < 0.9 || f.Samples != 12 || f.Seen != 12 {
			t.Errorf("%+v, want %+v", f, want)
		}
		if !strings.Contains(must(in.Text()), want.has) {
			t.Errorf("no %q in\n%s", want.has, must(in.Text()))
		}
	}
}

// TestInferTraps are payloads that one reading explains only by accident.
func TestInferTraps(t *testing.T) {
	digest := string([]byte{
		0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
		0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
	})
	for _, c := range []struct {
		name    string
		payload string
		times   int
		want    wire.Kind
	}{
		{"a digest is no list of numbers", digest, 1, wire.KindBytes},
		{"a file's name parses as a message", "image.png", 5, wire.KindString},
		{"an empty message in a message", "\x42\x00", 4, wire.KindMessage},
		{"a flag in a message", "\x38\x01", 8, wire.KindMessage},
		{"nothing at all", "", 2, wire.KindMessage},
		{"other scripts are text", "Привет, 世界", 1, wire.KindString},
		{"digits are text", "1763712000", 6, wire.KindString},
	} {
		var samples [][]byte
		for range c.times {
			samples = append(samples, schematest.Tags(nil).Text(3, c.payload))
		}
		if f := fieldEvidence(t, inferAll(t, samples...), "p.Root", 3); f.Kind != c.want {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestInferMap(t *testing.T) {
	entry := func(k string, v uint64) string { return string(schematest.Tags(nil).Text(1, k).Varint(2, v)) }
	var maps, lists [][]byte
	for i := range uint64(8) {
		maps = append(maps, schematest.Tags(nil).Text(1, entry("alpha", i)).Text(1, entry("beta", 0)).Text(1, entry("gamma", 7)))
		lists = append(lists, schematest.Tags(nil).Text(1, entry("same", i)).Text(1, entry("same", i+1)))
	}
	if f := fieldEvidence(t, inferAll(t, maps...), "p.Root", 1); f.Label != Map || f.Type != "map<string, int32>" || f.LabelP < 0.8 {
		t.Errorf("%+v", f)
	}
	if f := fieldEvidence(t, inferAll(t, lists...), "p.Root", 1); f.Label != Repeated {
		t.Errorf("keys repeat: %+v", f)
	}
}

func TestInferOneof(t *testing.T) {
	var samples, free [][]byte
	for i := range 24 {
		m := string(schematest.Tags(nil).Text(1, strings.Repeat("text ", i%5+1)))
		b := schematest.Tags(nil).Varint(9, uint64(i+1))
		switch i % 3 {
		case 0:
			b = b.Text(1, m)
		case 1:
			b = b.Text(2, m+m)
		default:
			b = b.Text(4, "plain text")
		}
		samples = append(samples, b)
		free = append(free, schematest.Tags(b).Text(int32ToNumber(5+i%2), m))
	}
	in := inferAll(t, samples...)
	for _, n := range []int32{1, 2, 4} {
		if f := fieldEvidence(t, in, "p.Root", n); f.Oneof != "choice_1" {
			t.Errorf("%+v", f)
		}
	}
	if f := fieldEvidence(t, in, "p.Root", 9); f.Oneof != "" {
		t.Errorf("%+v", f)
	}
	if o := in.Schema.Message("p.Root").Oneofs().ByName("choice_1"); o == nil || o.Fields().Len() != 3 {
		t.Error(must(in.Text()))
	}
	// One message with two of them is proof.
	both := append(slices.Clone(samples), schematest.Tags(nil).Text(1, "").Text(2, "").Text(4, "x"))
	if f := fieldEvidence(t, inferAll(t, both...), "p.Root", 1); f.Oneof != "" {
		t.Errorf("%+v", f)
	}
	inferAll(t, free...)
}

func int32ToNumber(n int) protowire.Number { return protowire.Number(n) }

func TestInferRecursionAndSharedTypes(t *testing.T) {
	var leaf func(depth, i int) schematest.Tags
	leaf = func(depth, i int) schematest.Tags {
		b := schematest.Tags(nil).Text(1, fmt.Sprintf("/path/of/%d/%d", depth, i)).Varint(4, uint64(depth+1))
		if depth > 0 {
			b = b.Text(2, string(leaf(depth-1, i))).Text(2, string(leaf(depth-1, i+1)))
		}
		return b.Text(3, "a file name.go")
	}
	where := func(i int) string {
		return string(schematest.Tags(nil).Text(1, fmt.Sprintf("file%d.go", i)).Varint(2, uint64(i+1)).Varint(3, uint64(2*i+4)).Text(7, "why not"))
	}
	var samples [][]byte
	for i := range 9 {
		samples = append(samples, schematest.Tags(nil).Text(1, string(leaf(3, i))).Text(5, where(i)).Text(6, where(i+3)))
	}
	in := inferAll(t, samples...)
	root := in.Schema.Message("p.Root").Fields()
	tree := root.ByNumber(1).Message()
	if tree.Fields().ByNumber(2).Message() != tree {
		t.Errorf("the tree does not contain itself:\n%s", must(in.Text()))
	}
	if root.ByNumber(5).Message() != root.ByNumber(6).Message() {
		t.Errorf("two types for one:\n%s", must(in.Text()))
	}
}

func TestInferSaysWhatItLeavesOut(t *testing.T) {
	group := protowire.AppendTag(protowire.AppendTag(nil, 3, protowire.StartGroupType), 3, protowire.EndGroupType)
	b := append(schematest.Tags(nil).Varint(1, 5), group...)
	b = schematest.Tags(b).Varint(19_500, 1)
	in := inferCorpus(t, schematest.Corpus{Samples: [][]byte{b, schematest.Tags(nil).Varint(1, 6), schematest.Tags(nil).Text(1, "fivé")}})
	for _, want := range []string{
		"// Field 3 is left out: groups cannot be declared in proto3.",
		"// Field 19500 is left out: the numbers 19000 to 19999 are reserved to protobuf itself.",
		"// 1 occurrence with another wire type, which this declaration cannot decode.",
	} {
		if !strings.Contains(must(in.Text()), want) {
			t.Errorf("no %q in\n%s", want, must(in.Text()))
		}
	}
	if f := fieldEvidence(t, in, "p.Root", 3); f.Kind != wire.KindGroup {
		t.Errorf("%+v", f)
	}
}

// TestInferWellKnown: protobuf's own types are written where every sample fits
// them and the values are like theirs, and nowhere else.
func TestInferWellKnown(t *testing.T) {
	pair := func(a, b uint64) []byte { return schematest.Tags(nil).Varint(1, a).Varint(2, b) }
	value := func(n protowire.Number, text string) []byte {
		if n == 3 {
			return schematest.Tags(nil).Text(3, text)
		}
		return schematest.Tags(nil).Varint(n, 1)
	}
	entry := func(key string, v []byte) string { return string(schematest.Tags(nil).Text(1, key).Text(2, string(v))) }
	for _, c := range []struct {
		name, want string
		make       func(i uint64) []byte
	}{
		{"timestamp", "google.protobuf.Timestamp", func(i uint64) []byte { return pair(1_700_000_000+i, 123_456_789+i*10_000_019) }},
		{"one in milliseconds", "google.protobuf.Timestamp", func(i uint64) []byte { return pair(1_700_000_000+i, 23_000_000*(i+1)) }},
		{"a time and a count", "p.RootField2", func(i uint64) []byte { return pair(1_700_000_000+i, 40+i) }},
		{"zeros written out", "p.RootField2", func(i uint64) []byte { return pair(1_700_000_000+i, 0) }},
		{"duration", "google.protobuf.Duration", func(i uint64) []byte { return pair(3+i, 250_000_000+i*50_000_000) }},
		{"id and size", "p.RootField2", func(i uint64) []byte { return pair(3+i, 1_234_567<<(i%9)+i) }},
		{"any", "google.protobuf.Any", func(i uint64) []byte {
			return schematest.Tags(nil).Text(1, fmt.Sprintf("type.googleapis.com/a.B%d", i)).Text(2, string(pair(i, i)))
		}},
		{"text and text", "p.RootField2", func(i uint64) []byte {
			return schematest.Tags(nil).Text(1, fmt.Sprintf("name %d", i)).Text(2, "value of it")
		}},
		{"struct", "google.protobuf.Struct", func(i uint64) []byte {
			return schematest.Tags(nil).Text(1, entry("a", value(3, "some text"))).Text(1, entry("b", value(4, ""))).Text(1, entry(fmt.Sprintf("key%d", i), value(3, "more")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var samples [][]byte
			for i := range uint64(8) {
				samples = append(samples, schematest.Tags(nil).Text(2, string(c.make(i))).Varint(9, i))
			}
			in := inferAll(t, samples...)
			if f := fieldEvidence(t, in, "p.Root", 2); f.Type != c.want {
				t.Errorf("read as %s, p %.2f\n%s", f.Type, f.TypeP, must(in.Text()))
			}
			if imported := strings.Contains(must(in.Text()), "import \"google/protobuf/"); imported != strings.HasPrefix(c.want, "google.") {
				t.Error(must(in.Text()))
			}
		})
	}
}

// TestInferSaysWhatValuesAre: a form that all values have is noted, and one that
// most have is not.
func TestInferSaysWhatValuesAre(t *testing.T) {
	var samples [][]byte
	for i := range 4 {
		id := fmt.Sprintf("%08x-0000-4000-a000-%012x", i*7919, i)
		b := schematest.Tags(nil).Text(1, id).Text(2, "https://example.org/"+id).Text(3, `{"a":1}`).Text(4, "2025-01-02T03:04:05Z")
		if i > 0 {
			b = b.Text(5, id)
		} else {
			b = b.Text(5, "none")
		}
		samples = append(samples, b)
	}
	in := inferAll(t, samples...)
	for n, want := range map[int32]string{1: "a UUID", 2: "a URL", 3: "JSON by its ends", 4: "a time as in RFC 3339"} {
		if f := fieldEvidence(t, in, "p.Root", n); !strings.HasSuffix(f.Note, "always "+want) || !strings.Contains(must(in.Text()), "// "+UpperFirst(want)+".") {
			t.Errorf("field %d: %q, want %q", n, f.Note, want)
		}
	}
	if f := fieldEvidence(t, in, "p.Root", 5); strings.Contains(f.Note, "always") {
		t.Errorf("%q", f.Note)
	}
}

func TestInferServices(t *testing.T) {
	ev := NewEvidence()
	call := func(service, rpc string, p decode.Protocol, up, down int) {
		ex := &decode.Exchange{Call: decode.Call{Protocol: p, Codec: "proto", Service: service, RPC: rpc}}
		for i := range up + down {
			f := decode.Frame{Dir: captures.Up}
			if i >= up {
				f.Dir = captures.Down
			}
			f.Data = schematest.Tags(nil).Text(1, "some text here")
			ex.Frames = append(ex.Frames, f)
		}
		if err := ev.AddExchange(ex); err != nil {
			t.Fatal(err)
		}
	}
	call("a.v1.One", "Unary", decode.ConnectUnary, 1, 1)
	call("a.v1.One", "Watch", decode.ConnectStream, 1, 1)
	call("a.v1.One", "Talk", decode.ConnectStream, 3, 2)
	call("a.v1.Two", "Unary", decode.GRPC, 1, 1)
	call("b.v2.Three", "Silent", decode.ConnectUnary, 1, 0)
	if err := addMessage(ev, "b.v2.Three/Fed", captures.Down, []byte{8, 1}); err != nil {
		t.Fatal(err)
	}
	in, err := Infer(ev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := in.Files["a/v1/inferred.proto"], in.Files["b/v2/inferred.proto"]
	for _, want := range []string{
		"rpc Unary(.a.v1.OneUnaryRequest) returns (.a.v1.OneUnaryResponse);",
		"rpc Watch(.a.v1.WatchRequest) returns (stream .a.v1.WatchResponse);",
		"rpc Talk(stream .a.v1.TalkRequest) returns (stream .a.v1.TalkResponse);",
		"rpc Unary(.a.v1.TwoUnaryRequest) returns (.a.v1.TwoUnaryResponse);",
	} {
		if !strings.Contains(a, want) {
			t.Errorf("no %q in\n%s", want, a)
		}
	}
	if !strings.Contains(b, "// Never seen.\nmessage SilentResponse {}") {
		t.Error(b)
	}
	if _, err := in.Text(); err == nil || !strings.Contains(err.Error(), "2 packages") {
		t.Errorf("%v", err)
	}
	if in.Schema.FrameType(decode.Call{Service: "a.v1.One", RPC: "Talk"}, captures.Up).FullName() != "a.v1.TalkRequest" || in.Roots["/a.v1.One/Talk:up"] != "a.v1.TalkRequest" {
		t.Error(in.Roots)
	}
	one, err := Infer(ev, Options{Package: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := one.Text(); err != nil || !strings.Contains(text, `On the wire: "a.v1.One"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestInferRoot(t *testing.T) {
	ev := evidenceOf(t, []byte{8, 1})
	in, err := Infer(ev, Options{Package: "x.y", Root: "thread"})
	if err != nil {
		t.Fatal(err)
	}
	if in.Schema.Message("x.y.thread") == nil || in.Fields[0].Message != "x.y.thread" {
		t.Error(must(in.Text()))
	}
	if _, err := Infer(ev, Options{Root: "not a name"}); err == nil {
		t.Error("accepted")
	}
}

func TestEvidenceListHasTheContractsKeys(t *testing.T) {
	var b bytes.Buffer
	if err := inferAll(t, schematest.Tags(nil).Text(3, "hello there")).WriteEvidence(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		V      int              `json:"v"`
		Fields []map[string]any `json:"fields"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.V != 1 || len(got.Fields) != 1 {
		t.Fatalf("%v in %s", err, b.String())
	}
	for _, key := range []string{"message", "number", "samples", "seen", "kind", "type", "label", "oneof", "p", "alternatives", "settle"} {
		if got.Fields[0][key] == nil {
			t.Errorf("no %s in %s", key, b.String())
		}
	}
}

// TestProtocAgrees compiles inferred files with protoc where there is one.
func TestProtocAgrees(t *testing.T) {
	protoc := need.Program(t, "protoc", "protobuf-compiler")
	dir := t.TempDir()
	var names []string
	for seed := range uint64(10) {
		in := inferCorpus(t, schematest.RandomCorpus(t, 500+seed, 20))
		name := filepath.Join(dir, fmt.Sprintf("f%d.proto", seed))
		if err := os.WriteFile(name, []byte(must(in.Text())), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		if out, err := exec.Command(protoc, "-I", dir, "-o", os.DevNull, name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// addMessage enters one message of a method, outside any exchange.
func addMessage(ev *Evidence, method string, dir captures.Direction, data []byte) error {
	if _, err := ev.method(method); err != nil {
		return err
	}
	return ev.Add(methodRoot(method, dir), data)
}

func inferCorpus(t testing.TB, c schematest.Corpus) *Inferred {
	t.Helper()
	ev := NewEvidence()
	for _, s := range c.Samples {
		if err := ev.Add("Root", s); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Infer(ev, Options{Package: "p"})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return in
}

// checkDecodes fails unless every sample parses as md without unknown fields.
func checkDecodes(t testing.TB, name string, md protoreflect.MessageDescriptor, samples [][]byte) {
	t.Helper()
	for i, s := range samples {
		m := dynamicpb.NewMessage(md)
		if err := proto.Unmarshal(s, m); err != nil {
			t.Fatalf("%s: sample %d: %v", name, i, err)
		}
		if path := schema.TypeWithUnknownFields(m); path != "" {
			t.Fatalf("%s: sample %d: unknown fields at %s", name, i, path)
		}
	}
}
