package extract

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
)

// source is a source of files in text format.
func source(t *testing.T, files ...string) *Source {
	t.Helper()
	s := &Source{Input: "test"}
	for _, text := range files {
		f := &descriptorpb.FileDescriptorProto{}
		if err := prototext.Unmarshal([]byte(text), f); err != nil {
			t.Fatal(err)
		}
		s.Files = append(s.Files, f)
	}
	return s
}

func field(name string, no int, typ string) string {
	kind := "TYPE_STRING"
	if typ != "" {
		kind = "TYPE_MESSAGE type_name:'" + typ + "'"
	}
	return strings.NewReplacer("NAME", name, "NO", string(rune('0'+no)), "KIND", kind).
		Replace("field{name:'NAME' number:NO label:LABEL_OPTIONAL type:KIND} ")
}

func merged(t *testing.T, sources ...*Source) *Set {
	t.Helper()
	set, err := Merge(t.Context(), sources...)
	if err != nil {
		t.Fatal(err)
	}
	wantCompiles(t, set)
	return set
}

// Packages that refer to each other are fine as long as no message does.
func TestPackagesInACycle(t *testing.T) {
	set := merged(t, source(t,
		`name:'a' package:'a' syntax:'proto3' message_type{name:'A' `+field("b", 1, ".b.B")+`} message_type{name:'Leaf'}`,
		`name:'b' package:'b' syntax:'proto3' message_type{name:'B' `+field("leaf", 1, ".a.Leaf")+`}`))
	if len(set.Unresolved) > 0 || len(set.Files) != 3 {
		t.Errorf("%d files, %v", len(set.Files), set.Unresolved)
	}
}

func TestMessagesInACycleOfPackages(t *testing.T) {
	set := merged(t, source(t,
		`name:'a' package:'a' syntax:'proto3' message_type{name:'A' `+field("b", 1, ".b.B")+`}`,
		`name:'b' package:'b' syntax:'proto3' message_type{name:'B' `+field("a", 1, ".a.A")+`}`))
	if len(set.Unresolved) != 2 || len(facts(set.Files)) != 4 {
		t.Errorf("%v", set.Unresolved)
	}
}

func TestMergeSources(t *testing.T) {
	const first = `name:'x' package:'p' syntax:'proto3' message_type{name:'A' field{name:'b' number:1 label:LABEL_OPTIONAL type:TYPE_MESSAGE type_name:'.p.B'}} `
	a := source(t, first+`message_type{name:'B' `+field("s", 1, "")+`}`)
	again := source(t, first+`message_type{name:'B' `+field("s", 1, "")+`}`)
	other := source(t, `name:'x' package:'p' syntax:'proto3' message_type{name:'C' `+field("b", 1, ".p.B")+`} message_type{name:'B' `+field("other", 2, "")+`}`)
	set := merged(t, a, again, other)
	got := facts(set.Files)
	for _, want := range []string{"message p.A", "message p.B", "message p.C", "message p.B_2"} {
		if _, ok := got[want]; !ok {
			t.Errorf("no %s", want)
		}
	}
	if n := set.Count(); n != (Count{Messages: 4, Fields: 4}) {
		t.Errorf("%+v", n)
	}
	if !strings.Contains(got["field p.C.b"], ".p.B_2 ") || !strings.Contains(got["field p.A.b"], ".p.B ") {
		t.Error(got)
	}
}

// What is missing or not valid costs nothing else.
func TestMergeKeepsTheRest(t *testing.T) {
	set := merged(t, source(t, `name:'x' package:'p' syntax:'proto3'
		message_type{name:'A' `+field("gone", 1, ".q.Gone")+field("at", 2, ".google.protobuf.Timestamp")+`}
		message_type{name:'Bad' `+field("a", 1, "")+field("b", 1, "")+`}
		message_type{name:'UsesBad' `+field("bad", 1, ".p.Bad")+`}
		enum_type{name:'E' value{name:'X' number:0}} enum_type{name:'F' value{name:'X' number:0}}
		service{name:'S' method{name:'Get' input_type:'.q.Gone' output_type:'.p.A'}}`))
	got := facts(set.Files)
	for fact, want := range map[string]string{
		"field p.A.gone":      "1 LABEL_OPTIONAL TYPE_BYTES  json=gone",
		"field p.A.at":        "2 LABEL_OPTIONAL TYPE_MESSAGE .google.protobuf.Timestamp json=at",
		"field p.UsesBad.bad": "1 LABEL_OPTIONAL TYPE_BYTES  json=bad",
		"value p.F.F_X":       "0",
		"method p.S.Get":      ".google.protobuf.Empty .p.A client=false server=false IDEMPOTENCY_UNKNOWN",
	} {
		if got[fact] != want {
			t.Errorf("%s: %q, want %q", fact, got[fact], want)
		}
	}
	if len(set.Unresolved) != 5 {
		t.Errorf("%v", set.Unresolved)
	}
	if !strings.Contains(set.Print()["p/p.proto"], "// Its type, q.Gone, was not found; bytes has the same wire format.\n  bytes gone = 1;") {
		t.Error(set.Print()["p/p.proto"])
	}
}

// A descriptor set of many features comes back as it went in.
func TestDescriptorSet(t *testing.T) {
	in := protocSet(t, "testdata/proto", "acme/base/v1/base.proto", "acme/kitchen/v1/kitchen.proto", "acme/legacy/legacy.proto")
	data, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "set.bin") // told by its content
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	set := extracted(t, file)
	truth := facts(in.File)
	if n := compare(t, truth, facts(set.Files), nil); n != len(truth) {
		t.Errorf("%d of %d facts", n, len(truth))
	}
	wantCompiles(t, set)
	names := []string{}
	for _, f := range set.Files {
		names = append(names, f.GetName())
	}
	if want := []string{"acme/base/v1/base.proto", "acme/kitchen/v1/kitchen.proto", "acme/legacy/legacy.proto"}; !slices.Equal(names, want) {
		t.Error(names)
	}
}

// A file of 2 GB is refused before it is read.
func TestHugeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "huge.js")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 2<<30); err != nil {
		t.Fatal(err)
	}
	err := newCollector("x", formats()).addPath(t.Context(), file)
	if !errors.Is(err, bundle.ErrTooLarge) {
		t.Error(err)
	}
}

// A name that is a package's, too, cannot be declared: a type is kept under
// another one, and so is a value of an enum.
func TestNamesOfPackages(t *testing.T) {
	set := merged(t, source(t,
		`name:'a' package:'a' syntax:'proto3' message_type{name:'radio' `+field("s", 1, "")+`} message_type{name:'User' `+field("radio", 1, ".a.radio")+`}
			enum_type{name:'Kind' value{name:'NONE' number:0} value{name:'tv' number:1}}`,
		`name:'b' package:'a.radio.v1' syntax:'proto3' message_type{name:'B' `+field("r", 1, ".a.radio")+`}`,
		`name:'c' package:'a.tv' syntax:'proto3' message_type{name:'C'}`))
	got := facts(set.Files)
	for fact, want := range map[string]string{
		"message a.radio_2":    "syntax=proto3",
		"value a.Kind.Kind_tv": "1",
		"field a.User.radio":   "1 LABEL_OPTIONAL TYPE_MESSAGE .a.radio_2 json=radio",
		"field a.radio.v1.B.r": "1 LABEL_OPTIONAL TYPE_MESSAGE .a.radio_2 json=r",
		"message a.tv.C":       "syntax=proto3",
	} {
		if got[fact] != want {
			t.Errorf("%s: %q, want %q", fact, got[fact], want)
		}
	}
	if len(set.Unresolved) != 2 {
		t.Errorf("%v", set.Unresolved)
	}
}

// What still has a name of another's costs itself, and nothing else.
func TestNamesThatClash(t *testing.T) {
	set := merged(t, source(t,
		`name:'a' package:'a' syntax:'proto3' message_type{name:'A' `+field("b", 1, "")+` nested_type{name:'b'}} message_type{name:'C'}
			service{name:'C'} message_type{name:'D' `+field("a", 1, ".a.A")+`}`))
	got := facts(set.Files)
	if got["message a.C"] == "" || got["message a.D"] == "" {
		t.Errorf("%v", got)
	}
	if len(set.Unresolved) == 0 {
		t.Error("nothing is said of what is left out")
	}
}
