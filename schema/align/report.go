package align

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"unwire/schema/jsonname"
)

// A Report is what pairs tell.
type Report struct {
	// by message and number
	Joins []Join

	// by message
	Doubts []Doubt

	// that were looked at
	Pairs int

	// pairs whose halves are not the same data, by their addresses
	Differ []string

	// pairs that were not looked at, and why
	Skipped []string
}

// A Join is a field with its name.
//
// Shape: JSONName is what was read; Name is made of it, as the .proto file
// most likely spells it. Type is the modest one of those that are left, which
// are Alternatives. P is what the weight of evidence gives by the rule of
// succession from nine of ten, no measured frequency.
type Join struct {
	Message string `json:"message"`
	Number  uint64 `json:"number"`
	Name    string `json:"name"`

	// Name is not spelt as JSONName
	Derived  bool   `json:"name_derived"`
	JSONName string `json:"json_name"`

	// a scalar's, "enum", "map<K, V>", or a message's full name
	Type         string           `json:"type"`
	Label        string           `json:"label"`
	Alternatives []string         `json:"alternatives"`
	Enum         map[string]int32 `json:"enum,omitempty"`
	P            float64          `json:"p"`
	Pairs        int              `json:"pairs"`

	// addresses, proto and JSON by turns; of the first pairs
	Evidence []string `json:"evidence"`

	// of a map
	key, value types
}

// A Doubt is some fields and some names that go together in more than one way.
type Doubt struct {
	Message string   `json:"message"`
	Numbers []uint64 `json:"numbers"`
	Names   []string `json:"json_names"`
	Settle  string   `json:"settle"`
}

func (s *solver) report(r *Report) {
	for _, key := range slices.Sorted(maps.Keys(s.results)) {
		res := s.results[key]
		for _, n := range slices.Sorted(maps.Keys(res.joined)) {
			r.Joins = append(r.Joins, s.join(key, n, res.joined[n]))
		}
		for _, d := range res.doubts {
			d.Message = key
			d.Settle = fmt.Sprintf("a pair in which they differ: %s have the same values, or the same presence, in every pair so far", strings.Join(d.Names, ", "))
			if len(d.Names) == 1 {
				d.Settle = fmt.Sprintf("a pair in which only one of the numbers has a value beside %s", d.Names[0])
			}
			r.Doubts = append(r.Doubts, d)
		}
		if res.unread != "" {
			r.Doubts = append(r.Doubts, Doubt{Message: key, Numbers: []uint64{}, Names: []string{}, Settle: res.unread + ": pairs of answers that are the same data, as by sending a request twice at once"})
		}
	}
}

func (s *solver) join(message string, n uint64, j joined) Join {
	out := Join{
		Message: message, Number: n, JSONName: j.name, Name: snake(j.name), Label: "singular",
		Alternatives: []string{}, Pairs: len(j.pairs), Evidence: []string{},
	}
	out.Derived = out.Name != out.JSONName
	of := j.types
	if of == 0 {
		of, out.Label = j.lists, "repeated"
	}
	name := func(t types) string { return s.typeName(message, n, t, j) }
	out.Type = name(of.first())
	for rest := of &^ of.first(); rest != 0; rest &^= rest.first() {
		out.Alternatives = append(out.Alternatives, name(rest.first()))
	}
	if j.types != 0 && j.lists != 0 {
		out.Alternatives = append(out.Alternatives, "repeated "+j.lists.first().String())
	}
	named := of.first()
	if of.first() == tMap {
		out.Label, out.key, out.value = "map", j.keys.first(), j.values.first()
		named = out.value
	}
	if named == tEnum && len(j.byName) > 0 {
		out.Enum = maps.Clone(j.byName)
	}
	weight := float64(len(j.pairs)) + float64(min(j.sure, 1<<20))/4
	out.P = (weight + 9) / (weight + 10)
	for _, p := range j.pairs[:min(len(j.pairs), maxEvidence/2)] {
		out.Evidence = append(out.Evidence, s.pairs[p].Evidence[:]...)
	}
	return out
}

// typeName is a type as a .proto file has it.
func (s *solver) typeName(message string, n uint64, t types, j joined) string {
	switch t {
	case tMessage, tGroup:
		return s.child(s.positions[message], n).key
	case tMap:
		v := j.values.first()
		name := v.String()
		if v == tMessage {
			name = s.child(s.positions[message], n).key
		}
		return "map<" + j.keys.first().String() + ", " + name + ">"
	}
	return t.String()
}

// snake is the name of a field whose name in JSON is s, as the style guide has
// it. It is s where that would not give s back.
func snake(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	if jsonname.Of(b.String()) != s {
		return s
	}
	return b.String()
}
