package align

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"unwire/schema/jsonname"
)

// A Report is the result of matching JSON names with protobuf field numbers.
type Report struct {
	// Joins are the fields whose JSON name was found, sorted by message and number.
	Joins []Join

	// Doubts are the ambiguous matches, sorted by message.
	Doubts []Doubt

	// Pairs is the number of message pairs that were compared.
	Pairs int

	// Differ has the addresses of message pairs whose two messages do not represent the same data.
	Differ []string

	// Skipped lists the message pairs that were not compared, each with the reason.
	Skipped []string
}

// A Join is a field whose name was found by comparing protobuf with JSON. Its JSON is part of the contract with
// users: it changes only compatibly.
//
// Shape: if several types fit, Type is the simplest of them and Alternatives has the others.
type Join struct {
	// Message is the full name of the message type.
	Message string `json:"message"`
	// Number is the field number.
	Number uint64 `json:"number"`
	// Name is the field's name as in a .proto file, derived from JSONName by the protobuf style guide
	// (lower_snake_case).
	Name string `json:"name"`

	// Derived is set if Name differs from JSONName, so that the spelling of Name is a guess.
	Derived bool `json:"name_derived"`
	// JSONName is the field's name in JSON.
	JSONName string `json:"json_name"`

	// Type is the name of a scalar type, "enum", "map<K, V>", or the full name of a message type.
	Type string `json:"type"`
	// Label is "singular", "repeated" or "map".
	Label string `json:"label"`
	// Alternatives are the other types that fit all recorded values.
	Alternatives []string `json:"alternatives"`
	// Enum maps the names of enum values that were seen to their numbers; nil if the field is not an enum.
	Enum map[string]int32 `json:"enum,omitempty"`
	// P is the probability, from 0 to 1, that the name is right. It follows from the amount of evidence by the
	// rule of succession and is not calibrated.
	P float64 `json:"p"`
	// Pairs is the number of message pairs that contain the field.
	Pairs int `json:"pairs"`

	// Evidence has the addresses of the first frames that contain the field, protobuf and JSON alternately.
	Evidence []string `json:"evidence"`

	// key and value are the types of a map's keys and values; 0 if the field is not a map.
	key, value types
}

// A Doubt is a group of field numbers and JSON names that can be matched in several ways. Its JSON is part of
// the contract with users: it changes only compatibly.
type Doubt struct {
	// Message is the full name of the message type that has the field.
	Message string `json:"message"`
	// Numbers are the field numbers that could not be matched.
	Numbers []uint64 `json:"numbers"`
	// Names are the JSON names that could not be matched.
	Names []string `json:"json_names"`
	// Settle describes a recording that would resolve the ambiguity.
	Settle string `json:"settle"`
}

// report adds the results for all message types to r.
func (s *solver) report(r *Report) {
	for _, key := range slices.Sorted(maps.Keys(s.results)) {
		res := s.results[key]
		for _, n := range slices.Sorted(maps.Keys(res.joined)) {
			r.Joins = append(r.Joins, s.join(key, n, res.joined[n]))
		}
		for _, d := range res.doubts {
			d.Message = key
			d.Settle = fmt.Sprintf("record, in protobuf and in JSON, a call in which the values of %s differ (they are equal in all compared calls)", listed(d.Names))
			if len(d.Names) == 1 {
				d.Settle = fmt.Sprintf("record, in protobuf and in JSON, a call in which only one of these field numbers is present together with %s", d.Names[0])
			}
			r.Doubts = append(r.Doubts, d)
		}
		if res.unread != "" {
			r.Doubts = append(r.Doubts, Doubt{Message: key, Numbers: []uint64{}, Names: []string{}, Settle: res.unread + ": record pairs of answers with the same data, for example by sending the same request in both codecs at once"})
		}
	}
}

// listed joins names to a list for a sentence, such as "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// join returns the reported match for field n of a message type.
func (s *solver) join(message string, n uint64, j joined) Join {
	out := Join{
		Message: message, Number: n, JSONName: j.name, Name: snake(j.name), Label: "singular",
		Alternatives: []string{}, Pairs: len(j.pairs), Evidence: []string{},
	}
	out.Derived = out.Name != out.JSONName

	// A field that may be singular or repeated is reported as singular.
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

	// For a map, enum values are its values.
	named := of.first()
	if of.first() == tMap {
		out.Label, out.key, out.value = "map", j.keys.first(), j.values.first()
		named = out.value
	}
	if named == tEnum && len(j.byName) > 0 {
		out.Enum = maps.Clone(j.byName)
	}

	// Each pair counts once, and four significant bits count as much as a pair.

	weight := float64(len(j.pairs)) + float64(min(j.significance, 1<<20))/4
	out.P = (weight + 9) / (weight + 10)
	for _, p := range j.pairs[:min(len(j.pairs), maxEvidence/2)] {
		out.Evidence = append(out.Evidence, s.pairs[p].Evidence[:]...)
	}
	return out
}

// typeName formats the type t of field n as in a .proto file.
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

// snake returns the field name in lower_snake_case whose JSON name is s. It returns s if there is none.
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
