package compare

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"unwire/schema"
)

// schemaOf compiles the body of one proto3 file of the package p.
func schemaOf(t testing.TB, body string) *schema.Schema {
	t.Helper()
	s, err := schema.Load(t.Context(), fstest.MapFS{"p.proto": {Data: []byte("syntax = \"proto3\";\npackage p;\n" + body)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBreaks: what each change of a field breaks, by the language's rules of
// what may be updated.
func TestBreaks(t *testing.T) {
	const types = `
		enum E { E_ZERO = 0; E_ONE = 1; }
		enum F { F_ZERO = 0; F_ONE = 1; }
		message Point { int32 x = 1; int32 y = 2; }
		message Pair { int32 a = 1; int32 b = 2; }
		message Text { string x = 1; }
		message Entry { string key = 1; int32 value = 2; }`
	for _, c := range []struct {
		old, now string
		want     string
	}{
		{"int32 f = 1;", "int64 f = 1;", "retyped json"},
		{"int32 f = 1;", "uint32 f = 1;", "retyped source"},
		{"int32 f = 1;", "bool f = 1;", "retyped json"},
		{"int32 f = 1;", "sint32 f = 1;", "retyped wire"},
		{"sint32 f = 1;", "sint64 f = 1;", "retyped json"},
		{"fixed32 f = 1;", "sfixed32 f = 1;", "retyped source"},
		{"fixed32 f = 1;", "float f = 1;", "retyped wire"},
		{"fixed64 f = 1;", "double f = 1;", "retyped wire"},
		{"fixed32 f = 1;", "fixed64 f = 1;", "retyped wire"},
		{"string f = 1;", "bytes f = 1;", "retyped json"},
		{"string f = 1;", "int32 f = 1;", "retyped wire"},
		{"bytes f = 1;", "Point f = 1;", "retyped json"},
		{"string f = 1;", "Point f = 1;", "retyped wire"},
		{"E f = 1;", "int32 f = 1;", "retyped json"},
		{"E f = 1;", "F f = 1;", "retyped json"},
		{"Point f = 1;", "Pair f = 1;", "retyped json"},
		{"Point f = 1;", "Text f = 1;", "retyped wire"},
		{"map<string, int32> f = 1;", "map<string, int64> f = 1;", "retyped json"},
		{"map<string, int32> f = 1;", "map<string, sint32> f = 1;", "retyped wire"},
		{"map<string, int32> f = 1;", "repeated Entry f = 1;", "relabelled json"},
		{"string f = 1;", "optional string f = 1;", "relabelled source"},
		{"Point f = 1;", "optional Point f = 1;", "relabelled "},
		{"string f = 1;", "repeated string f = 1;", "relabelled json"},
		{"Point f = 1;", "repeated Point f = 1;", "relabelled json"},
		{"int32 f = 1;", "repeated int32 f = 1;", "relabelled wire"},
		{"int32 f = 1;", "repeated int32 f = 1 [packed = false];", "relabelled json"},
		{"repeated int32 f = 1;", "repeated int32 f = 1 [packed = false];", "relabelled "},
		{"string f = 1;", "oneof o { string f = 1; }", "relabelled source"},
		{"string f = 1; int32 g = 2;", "oneof o { string f = 1; int32 g = 2; }", "relabelled wire, relabelled wire"},
		{"oneof o { string f = 1; int32 g = 2; }", "oneof q { string f = 1; int32 g = 2; }", "renamed source"},
		{"optional string f = 1;", "oneof o { string f = 1; }", "relabelled source"},
		{"string f = 1;", "string g = 1;", "renamed json"},
		{"string f = 1;", `string g = 1 [json_name = "f"];`, "renamed source"},
		{"string f = 1;", `string f = 1 [json_name = "g"];`, "renamed json"},
		{"string f = 1;", "string f = 2;", "renumbered wire"},
		{"string f = 1;", "int32 g = 1;", "added , removed wire"},
		{"string f = 1;", "", "removed source"},
		{"", "string f = 1;", "added "},
		{"string f = 1; string g = 2;", "string f = 2; string g = 1;", "renumbered wire, renumbered wire"},
		{"string f = 1; int32 g = 2;", "string g = 1; int32 f = 2;", "renamed json, renamed json"},
		{"string f = 1; string h = 3;", "string n = 1; string f = 2; string h = 3;", "added , renumbered wire"},
	} {
		old := schemaOf(t, types+"message M { "+c.old+" }")
		now := schemaOf(t, types+"message M { "+c.now+" }")
		var got []string
		for _, ch := range Diff(old, now) {
			got = append(got, fmt.Sprintf("%s %s", ch.Change, ch.Breaks))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q to %q: %q, want %q", c.old, c.now, s, c.want)
		}
	}
}

func TestMethodChanges(t *testing.T) {
	old := schemaOf(t, `message A { string x = 1; } message B { int32 x = 1; } service S { rpc Get(A) returns (A); rpc Put(B) returns (A); rpc Old(B) returns (B); }`)
	now := schemaOf(t, `message A { string x = 1; } message B { int32 x = 1; } service S { rpc Get(B) returns (A); rpc Put(B) returns (stream A); rpc New(B) returns (B); rpc More(A) returns (B); }`)
	var got []string
	for _, c := range Diff(old, now) {
		got = append(got, c.String())
	}
	want := []string{
		"added method p.S.More: p.A -> p.B",
		"renamed method p.S.Old: Old -> New (breaks wire)",
		"retyped method p.S.Get: p.A -> p.B (breaks wire); request: their fields contradict each other",
		"relabelled method p.S.Put: unary -> server stream (breaks wire)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestGenericTypesAreNoRenames: types that look alike because all do were not
// renamed to each other.
func TestGenericTypesAreNoRenames(t *testing.T) {
	body := func(kinds ...string) string {
		var b strings.Builder
		b.WriteString("message Meta { string name = 1; }\n")
		for _, k := range kinds {
			fmt.Fprintf(&b, "message %[1]sSpec { string for_%[1]s = 1; int32 size_of_%[1]s = 2; }\nmessage %[1]s { Meta metadata = 1; %[1]sSpec spec = 2; string status = 3; string kind = 4; }\nmessage %[1]sList { Meta metadata = 1; repeated %[1]s items = 2; }\n", k)
		}
		return b.String()
	}
	changes := Diff(schemaOf(t, body("Pod", "Node", "Job", "Task")), schemaOf(t, body("Pod", "Node", "Job", "Lease")))
	counts := map[ChangeKind]int{}
	for _, c := range changes {
		counts[c.Change]++
	}
	if len(changes) != 6 || counts[Added] != 3 || counts[Removed] != 3 {
		t.Errorf("%v", changes)
	}
	// Renamed as a whole, each is one change: their own fields tell.
	old := body("Pod", "Node", "Job", "Task")
	now := strings.NewReplacer("message TaskSpec", "message DutySpec", "TaskSpec spec", "DutySpec spec", "message TaskList", "message DutyList", "repeated Task", "repeated Duty", "message Task ", "message Duty ").Replace(old)
	for _, c := range Diff(schemaOf(t, old), schemaOf(t, now)) {
		if c.Change != renamed || c.Kind != MessageElement {
			t.Errorf("%s", c)
		}
	}
}
