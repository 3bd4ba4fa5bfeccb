package proto_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/proto"
)

// evidence is a line of evidence.jsonl.
type evidence struct {
	Element   string   `json:"element"`
	Kind      string   `json:"kind"`
	Number    *int32   `json:"number"`
	Sources   []string `json:"sources"`
	Certainty string   `json:"certainty"`
	Version   string   `json:"version"` // of the client that the source is of
	Date      string   `json:"date"`
	Note      string   `json:"note"`
}

// sources are the origins that a comment or a line may name; RESEARCH.md
// explains them.
var sources = []string{"ext", "later", "clients", "unwire", "seed 000", "seed 001", "seed 002", "seed 003", "seed 004"}

// isTool reports whether a source is one that `unwire schema update` names:
// what it adds has its origin in evidence.jsonl alone.
func isTool(source string) bool {
	return slices.Contains([]string{"definitions", "extraction", "traffic", "probe"}, source)
}

// origin matches the comment that every element carries.
var origin = regexp.MustCompile(`(?m)^\s*(?:Only the name is known\. |The message has no fields\. )?(Found in|Inferred from|Assumed because of|Assumed by): ([^:\n]+)$`)

// sourceNames are the names of the sources in comments.
var sourceNames = map[string]string{
	"ext":      "official client (March 2026)",
	"later":    "official client (later versions)",
	"clients":  "open-source clients",
	"unwire":   "unwire",
	"seed 000": "research note 000",
	"seed 001": "research note 001",
	"seed 002": "research note 002",
	"seed 003": "research note 003",
	"seed 004": "research note 004",
}

// certainties are the values of certainty by the words that begin a comment.
var certainties = map[string]string{
	"Found in": "reported", "Inferred from": "inferred", "Assumed because of": "assumed", "Assumed by": "assumed",
}

// named returns the names of sources in a comment.
func named(sources []string) string {
	var names []string
	for _, s := range sources {
		names = append(names, sourceNames[s])
	}
	return strings.Join(names, ", ")
}

func readEvidence(t *testing.T) map[string]evidence {
	t.Helper()
	data, err := proto.Files.ReadFile("evidence.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]evidence{}
	line := 0
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		line++
		dec := json.NewDecoder(bytes.NewReader(sc.Bytes()))
		dec.DisallowUnknownFields()
		var e evidence
		if err := dec.Decode(&e); err != nil {
			t.Fatalf("evidence.jsonl:%d: %v", line, err)
		}
		if _, twice := all[e.Element]; twice {
			t.Errorf("evidence.jsonl:%d: %s is listed twice", line, e.Element)
		}
		if len(e.Sources) == 0 {
			t.Errorf("evidence.jsonl:%d: %s has no source", line, e.Element)
		}
		for _, s := range e.Sources {
			if !slices.Contains(sources, s) && !isTool(s) {
				t.Errorf("evidence.jsonl:%d: %s: source %q", line, e.Element, s)
			}
		}
		all[e.Element] = e
	}
	return all
}

// element is something of a .proto file that needs an origin.
type element struct {
	name, kind string
	number     *int32
	comment    string // leading and trailing
}

func number(n int32) *int32 { return &n }

// elements walks the compiled files in the way that readEvidence lists them.
func elements(t *testing.T) []element {
	t.Helper()
	var all []element
	for _, f := range compile(t) {
		w := walker{locations: f.SourceLocations()}
		w.enums(f.Enums())
		w.messages(f.Messages())
		w.services(f.Services())
		all = append(all, w.found...)
	}
	return all
}

type walker struct {
	locations protoreflect.SourceLocations
	found     []element
}

func (w *walker) add(d protoreflect.Descriptor, kind string, n *int32, more string) {
	loc := w.locations.ByDescriptor(d)
	name := string(d.FullName())
	if v, ok := d.(protoreflect.EnumValueDescriptor); ok { // its scope is the enum's parent
		name = string(v.Parent().FullName()) + "." + string(v.Name())
	}
	w.found = append(w.found, element{name: name, kind: kind, number: n, comment: loc.LeadingComments + "\n" + loc.TrailingComments + "\n" + more})
}

func (w *walker) enums(list protoreflect.EnumDescriptors) {
	for i := range list.Len() {
		values := list.Get(i).Values()
		for j := range values.Len() {
			w.add(values.Get(j), "value", number(int32(values.Get(j).Number())), "")
		}
	}
}

func (w *walker) messages(list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		m := list.Get(i)
		if m.IsMapEntry() {
			continue
		}
		fields := m.Fields()
		if fields.Len() == 0 && m.Messages().Len() == 0 && m.Enums().Len() == 0 {
			w.add(m, "message", nil, "")
		}
		for j := range fields.Len() {
			w.add(fields.Get(j), "field", number(int32(fields.Get(j).Number())), "")
		}
		w.enums(m.Enums())
		w.messages(m.Messages())
	}
}

func (w *walker) services(list protoreflect.ServiceDescriptors) {
	for i := range list.Len() {
		methods := list.Get(i).Methods()
		if methods.Len() == 0 {
			w.add(list.Get(i), "service", nil, "")
		}
		for j := range methods.Len() {
			w.add(methods.Get(j), "method", nil, "")
		}
	}
}

// TestEvidence holds the files and evidence.jsonl to each other: every element
// once, with the same number, sources and certainty, and nothing stale.
func TestEvidence(t *testing.T) {
	listed := readEvidence(t)
	all := elements(t)
	if len(all) < 1000 {
		t.Fatalf("only %d elements were looked at", len(all))
	}
	for _, e := range all {
		line, ok := listed[e.name]
		if !ok {
			t.Errorf("%s is not in evidence.jsonl", e.name)
			continue
		}
		delete(listed, e.name)
		if line.Kind != e.kind || fmt.Sprint(deref(line.Number)) != fmt.Sprint(deref(e.number)) {
			t.Errorf("%s: %s %v in the file, %s %v in evidence.jsonl", e.name, e.kind, deref(e.number), line.Kind, deref(line.Number))
		}
		stated := slices.DeleteFunc(slices.Clone(line.Sources), isTool)
		want := named(stated) + ": " + line.Certainty
		m := origin.FindStringSubmatch(e.comment)
		got := ""
		if m != nil {
			got = strings.TrimSpace(m[2]) + ": " + certainties[m[1]]
		}
		if m != nil && len(stated) < len(line.Sources) {
			want = named(stated) + ": " + certainties[m[1]] // which an update does not write again
		}
		switch {
		case m == nil && len(stated) == 0: // added by an update
		case m == nil:
			t.Errorf("%s has no comment that tells its origin: %q", e.name, e.comment)
		case got != want:
			t.Errorf("%s: %q in the file, %q in evidence.jsonl", e.name, m[0], want)
		}
	}
	for name, line := range listed {
		if line.Kind == "source" && slices.ContainsFunc(line.Sources, isTool) {
			continue // a version that an update saw whole
		}
		t.Errorf("evidence.jsonl lists %s, which no file has", name)
	}
}

func deref(n *int32) any {
	if n == nil {
		return nil
	}
	return *n
}

// TestAssumedSaysWhy: what nobody states needs a note on why it is there.
func TestAssumedSaysWhy(t *testing.T) {
	for name, e := range readEvidence(t) {
		if e.Certainty == "assumed" && e.Note == "" {
			t.Errorf("%s is assumed, without a note", name)
		}
		if e.Certainty != "assumed" && slices.Equal(e.Sources, []string{"unwire"}) {
			t.Errorf("%s is our own choice, but %s", name, e.Certainty)
		}
	}
}
