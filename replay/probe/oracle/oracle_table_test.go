package oracle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// The labels and kinds that a field of the table can have. Each is a claim about
// every field of another.
var (
	tableLabels = []string{"singular", "optional", "oneof", "packed", "unpacked", "map"}
	tableKinds  = []string{
		"double", "float", "fixed32", "fixed64", "sfixed32", "sfixed64", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool",
		"string", "bytes", "Color", "Other", "Empty", "Request",
	}
)

// A cell is a label with a kind.
type cell struct{ label, kind string }

func tableCells() (cells []cell) {
	for _, label := range tableLabels {
		for _, kind := range tableKinds {
			if label != "packed" && label != "unpacked" || !slices.Contains([]string{"string", "bytes", "Other", "Empty", "Request"}, kind) {
				cells = append(cells, cell{label, kind})
			}
		}
	}
	for _, kind := range []string{"string", "bytes", "Other", "Empty", "Request"} {
		cells = append(cells, cell{"repeated", kind})
	}
	return cells
}

// tableSource is a request whose field at number 2+i is of the cell i.
func tableSource(cells []cell) string {
	var fields, oneof strings.Builder
	for i, c := range cells {
		n := i + 2
		switch c.label {
		case "singular":
			fmt.Fprintf(&fields, "  %s f%d = %d;\n", c.kind, n, n)
		case "optional", "repeated":
			fmt.Fprintf(&fields, "  %s %s f%d = %d;\n", c.label, c.kind, n, n)
		case "oneof":
			fmt.Fprintf(&oneof, "    %s f%d = %d;\n", c.kind, n, n)
		case "packed", "unpacked":
			fmt.Fprintf(&fields, "  repeated %s f%d = %d [packed = %t];\n", c.kind, n, n, c.label == "packed")
		case "map":
			fmt.Fprintf(&fields, "  map<%s, %s> f%d = %d;\n", []string{"string", "int32", "fixed64", "bool"}[i%4], c.kind, n, n)
		}
	}
	if oneof.Len() > 0 {
		fmt.Fprintf(&fields, "  oneof choice {\n%s  }\n", &oneof)
	}
	return fmt.Sprintf(`
syntax = "proto3";
package probe.v1;
enum Color { RED = 0; }
message Other { string a = 1; uint64 b = 2; bytes c = 700; }
message Empty {}
message Request {
  string name = 1;
%s}
service Service { rpc Call(Request) returns (Empty); }
`, &fields)
}

// disagreements are the questions about a truth that is given, and claims that
// are all wrong: each field is said to be of each cell that differs from its own.
func disagreements(t *testing.T, cells []cell, truth protoreflect.MessageDescriptor) (questions []probe.Question, texts []int32) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range cells {
		_, files := compiled(t, tableSource(slices.Repeat([]cell{c}, len(cells))))
		list, text := probe.QuestionsOfDefinitions("truth", truth, "lie", methods(files)[0].Input())
		texts = text
		for _, q := range list {
			if q.Path != "" || !strings.Contains(q.Claims[0].Text, " f") {
				continue
			}
			if about := fmt.Sprint(q.Number, q.Claims[1].Kind, q.Claims[1].Label); !seen[about] {
				seen[about] = true
				questions = append(questions, q)
			}
		}
	}
	slices.SortStableFunc(questions, func(a, b probe.Question) int { return int(a.Number - b.Number) })
	return questions, []int32{texts[0]}
}

// A tally counts verdicts on what is true and on what is not.
type tally map[string]int

// settled checks what a server said to questions whose first claim is true.
func (sum tally) settled(t *testing.T, questions []probe.Question) {
	t.Helper()
	for _, q := range questions {
		truth, lie := q.Claims[0], q.Claims[1]
		sum[string("truth "+truth.Verdict)]++
		sum[string("lie "+lie.Verdict)]++
		if truth.Verdict == probe.Contradicted || lie.Verdict == probe.Confirmed {
			t.Errorf("%s.%d is %s (%s %s: %s), and not %s (%s %s: %s)", q.Path, q.Number,
				truth.Text, truth.Verdict, truth.Concluded, truth.Open, lie.Text, lie.Verdict, lie.Concluded, lie.Open)
		}
		for _, c := range q.Claims {
			if c.Concluded == "" {
				t.Errorf("%s.%d: no reason for %+v", q.Path, q.Number, c)
			}
		}
	}
}

// A claim that is true of a server is never contradicted, and one that is not is
// never confirmed, whatever the field is.
func TestSettleTable(t *testing.T) {
	cells := tableCells()
	md, servers := mapServers(t, tableSource(cells))
	questions, texts := disagreements(t, cells, md)
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, executed := start(t)
			settle := func(list []probe.Question) *probe.Result {
				for i := range list {
					list[i].Claims = slices.Clone(list[i].Claims)
				}
				res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Refine: true, Questions: list, Texts: texts, Budget: 5000})
				if err != nil {
					t.Fatal(err)
				}
				if string(res.Runtime) != name || res.Stopped != "" || len(res.Settled) != len(list) {
					t.Errorf("%s: %s: %d of %d", res.Runtime, res.Stopped, len(res.Settled), len(list))
				}
				return res
			}
			sum := tally{}
			sum.settled(t, settle(slices.Clone(questions)).Settled)
			t.Logf("all at once: %v", sum)
			alone := tally{}
			for list := range slices.Values(byNumber(questions)) {
				alone.settled(t, settle(list).Settled)
			}
			t.Logf("one field at a time: %v", alone)
			if n := executed(); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
			checkTold(t, name, sum)
		})
	}
}

// checkTold checks how many true claims of a table are confirmed.
func checkTold(t *testing.T, name string, sum tally) {
	t.Helper()
	all := sum["truth confirmed"] + sum["truth undecided"]
	least := map[string]int{"connect-es 1": 60, "connect-es 2": 80, "connect-go": 20, "grpc-go": 20}[name] // percent
	if sum["truth confirmed"]*100 < all*least {
		t.Errorf("%d of %d are confirmed", sum["truth confirmed"], all)
	}
}

func byNumber(questions []probe.Question) (lists [][]probe.Question) {
	of := map[int32][]probe.Question{}
	for _, q := range questions {
		of[q.Number] = append(of[q.Number], q)
	}
	for _, n := range slices.Sorted(maps.Keys(of)) {
		lists = append(lists, of[n])
	}
	return lists
}

// withFields is a request with further fields.
func withFields(fields ...string) string {
	return strings.Replace(tableSource(nil), "string name = 1;", "string name = 1;\n"+strings.Join(fields, "\n"), 1)
}

// TestSettleTwo compares two claims about one field: the claims that a runtime can
// decide are decided, and the others stay undecided.
func TestSettleTwo(t *testing.T) {
	const yes, no, open = probe.Confirmed, probe.Contradicted, probe.Undecided
	cases := []struct {
		is, a, b string
		verdicts map[string][2]probe.Verdict // by runtime
	}{
		{"repeated double f = 9;", "repeated double f = 9;", "double f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {yes, no}, "connect-es 2": {yes, no}, "connect-go": {yes, no}, "grpc-go": {yes, no},
		}},
		{"double f = 9;", "repeated double f = 9;", "double f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {no, yes}, "connect-es 2": {no, yes}, "connect-go": {no, open}, "grpc-go": {no, open},
		}},
		{"repeated fixed32 f = 9;", "repeated fixed32 f = 9;", "fixed32 f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {yes, no}, "connect-es 2": {yes, no}, "connect-go": {yes, no}, "grpc-go": {yes, no},
		}},
		{"fixed32 f = 9;", "repeated fixed32 f = 9;", "fixed32 f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {no, yes}, "connect-es 2": {no, yes}, "connect-go": {no, open}, "grpc-go": {no, open},
		}},
		{"repeated Other f = 9;", "repeated Other f = 9;", "Other f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {open, open}, "connect-es 2": {open, open}, "connect-go": {open, open}, "grpc-go": {open, open},
		}},
		{"repeated string f = 9;", "repeated string f = 9;", "string f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {open, open}, "connect-es 2": {open, open}, "connect-go": {open, open}, "grpc-go": {open, open},
		}},
		{"map<string, Other> f = 9;", "map<string, Other> f = 9;", "Other f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {yes, no}, "connect-es 2": {yes, no}, "connect-go": {open, open}, "grpc-go": {open, open},
		}},
		{"Other f = 9;", "map<string, Other> f = 9;", "Other f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {open, open}, "connect-es 2": {no, yes}, "connect-go": {open, open}, "grpc-go": {open, open},
		}},
		{"int32 f = 9;", "repeated int32 f = 9;", "int32 f = 9;", map[string][2]probe.Verdict{
			"connect-es 1": {no, open}, "connect-es 2": {no, yes}, "connect-go": {no, open}, "grpc-go": {no, open},
		}},
	}
	var is, one, other []string
	for i, c := range cases {
		number := func(field string) string {
			return strings.Replace(field, "f = 9", fmt.Sprintf("f%d = %d", 9+i, 9+i), 1)
		}
		is, one, other = append(is, number(c.is)), append(one, number(c.a)), append(other, number(c.b))
	}
	md := func(fields []string) protoreflect.MessageDescriptor {
		_, files := compiled(t, withFields(fields...))
		return methods(files)[0].Input()
	}
	_, servers := mapServers(t, withFields(is...))
	for name, start := range servers {
		to, executed := start(t)
		for i, c := range cases {
			questions, texts := probe.QuestionsOfDefinitions("a", md(one[i:i+1]), "b", md(other[i:i+1]))
			res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Questions: questions, Texts: texts})
			if err != nil || len(res.Settled) != 1 {
				t.Fatalf("%v: %+v", err, res)
			}
			got := [2]probe.Verdict{res.Settled[0].Claims[0].Verdict, res.Settled[0].Claims[1].Verdict}
			if got != c.verdicts[name] {
				t.Errorf("%s: %s; %s, %s: %v, want %v", name, c.is, c.a, c.b, got, c.verdicts[name])
			}
		}
		if n := executed(); n != 0 {
			t.Errorf("handlers ran %d times", n)
		}
	}
}

// What a definition says is in a message is not looked for in a map.
func TestVerifyAMapThatIsNoMessage(t *testing.T) {
	_, files := compiled(t, withFields("Other f = 9; double d = 10; int32 b = 2;"))
	claimed := methods(files)[0].Input()
	for _, value := range []string{"string", "Other"} {
		is, servers := mapServers(t, withFields("map<string, "+value+"> f = 9; double d = 10; int32 b = 2;"))
		for name, start := range servers {
			to, executed := start(t)
			v, sum := verify(t, probe.VerifyOptions{Options: probe.Options{To: to, Method: call, Refine: true, Depth: 2}}, claimed, is)
			if sum.confirmed == 0 || executed() != 0 {
				t.Errorf("%s, a map of %s: %+v", name, value, v)
			}
			for _, c := range v.Claims {
				if c.Path == "9" && name == "connect-es 1" && c.Verdict != probe.Contradicted || strings.HasPrefix(c.Path, "9.") && c.Verdict != probe.Undecided && name == "connect-es 1" {
					t.Errorf("%s, a map of %s: %+v", name, value, c)
				}
			}
		}
	}
}

// TestVerifyTable verifies the true definitions, and definitions that give every field
// the same kind and label.
func TestVerifyTable(t *testing.T) {
	cells := tableCells()
	md, servers := mapServers(t, tableSource(cells))
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, executed := start(t)
			o := probe.VerifyOptions{Options: probe.Options{To: to, Method: call, Refine: true, Depth: 2, Budget: 20_000}}
			v, sum := verify(t, o, md, md)
			t.Logf("%s: the truth: %+v", v.Runtime, sum)
			if v.Contradicted > 0 || string(v.Runtime) != name {
				t.Errorf("%s: its own definition is contradicted %d times", v.Runtime, v.Contradicted)
			}
			for _, c := range []cell{{"singular", "double"}, {"oneof", "int32"}, {"packed", "uint64"}, {"unpacked", "float"}, {"repeated", "bytes"}, {"optional", "string"}, {"singular", "Request"}} {
				_, files := compiled(t, tableSource(slices.Repeat([]cell{c}, len(cells))))
				_, sum := verify(t, o, methods(files)[0].Input(), md)
				t.Logf("all are %s %s: %+v", c.label, c.kind, sum)
			}
			if n := executed(); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}
