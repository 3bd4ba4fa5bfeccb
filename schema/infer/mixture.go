package infer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Mixture reports that the recorded messages of one type seem to be of several types: some fields have values
// of two wire types, or the messages fall into groups that share no fields except those that all messages have.
type Mixture struct {
	// Message is the full name of the message type.
	Message string `json:"message"`
	// Samples is the number of recorded messages of the type.
	Samples int64 `json:"samples"`
	// Conflicts are the fields with values of two wire types.
	Conflicts []conflict `json:"conflicts,omitempty"`
	// Sets are groups of fields that occur together and never with fields of another group. There are none or at
	// least two.
	Sets []fieldSet `json:"sets,omitempty"`

	// P is the probability, from 0 to 1, that the messages belong to several types rather than to variants of
	// one.
	P float64 `json:"p"`
}

// A conflict is a field with values of two wire types.
type conflict struct {
	// Number is the field number.
	Number int32 `json:"number"`
	// Kind is the kind of most values of the field.
	Kind wire.Kind `json:"kind"`
	// Values is the number of values of that kind, and Others that of values with another wire type.
	Values int64 `json:"values"`
	// Others is the number of values with another wire type.
	Others int64 `json:"others"`
}

// A fieldSet is a group of fields that occur together in messages.
type fieldSet struct {
	// Numbers are the field numbers in the set, in ascending order.
	Numbers []int32 `json:"numbers"`
	// Most is the number of messages that contain the most frequent field of the set.
	Most int64 `json:"most"`
}

// Thresholds for reporting that a message type is a mixture of several types.
const (
	// leastConflicts is the share, from 0 to 1, of a field's values with another wire type, from which on the
	// field is a conflict.
	leastConflicts = 0.02

	// leastOfSet is the minimum number of messages with the most frequent field of a set.
	leastOfSet = 3

	// leastAgainst is the minimum evidence, in nats, that two sets do not exclude each other by chance.
	leastAgainst = 8.0
	// maxSets is the maximum number of sets that are reported.
	maxSets = 8
)

// mixture returns a Mixture if the messages of a class seem to be of several types, and nil otherwise.
func (c *class) mixture() *Mixture {
	m := &Mixture{Samples: c.samples}
	for _, n := range c.numbers {
		f := c.fields[n]
		if odd := f.judgement.Odd; odd > 0 && float64(odd) >= leastConflicts*float64(f.Occurs) {
			m.Conflicts = append(m.Conflicts, conflict{n, f.judgement.Kind, f.Occurs - odd, odd})
		}
	}

	// Either sign alone has innocent explanations, so both together count most.
	m.Sets = c.exclusiveSets()
	switch {
	case len(m.Conflicts) > 0 && len(m.Sets) > 0, len(m.Conflicts) > 1:
		m.P = 0.95
	case len(m.Conflicts) > 0:
		m.P = 0.8
	case len(m.Sets) > 0:
		m.P = 0.5
	default:
		return nil
	}
	return m
}

// exclusiveSets finds groups of fields that occur together and, against chance, never with fields of another
// group: the connected components of the graph in which fields that occur in the same message are linked.
// Fields that nearly all messages have are left out, because they would connect everything.
func (c *class) exclusiveSets() []fieldSet {
	var list []int32
	for _, n := range c.numbers {
		if n < kind.LowNumbers && 20*c.fields[n].Seen < 19*c.samples {
			list = append(list, n)
		}
	}

	// A breadth-first search from each field finds its component.
	in := map[int32]int{}
	next := 0
	var sets []fieldSet
	for _, start := range list {
		if in[start] > 0 {
			continue
		}
		next++
		in[start] = next
		set := fieldSet{Numbers: []int32{start}}
		for i := 0; i < len(set.Numbers); i++ {
			a := set.Numbers[i]
			set.Most = max(set.Most, c.fields[a].Seen)
			for _, b := range list {
				if in[b] == 0 && (c.fields[a].Before.Has(b) || c.fields[b].Before.Has(a)) {
					in[b] = next
					set.Numbers = append(set.Numbers, b)
				}
			}
		}
		if len(set.Numbers) > 1 && set.Most >= leastOfSet {
			slices.Sort(set.Numbers)
			sets = append(sets, set)
		}
	}

	slices.SortFunc(sets, func(a, b fieldSet) int {
		return cmp.Or(cmp.Compare(b.Most, a.Most), cmp.Compare(a.Numbers[0], b.Numbers[0]))
	})
	sets = sets[:min(len(sets), maxSets)]
	if len(sets) < 2 {
		return nil
	}

	// If all samples were of one kind, the two largest sets would have met by chance.
	n := float64(c.samples)
	a, b := float64(sets[0].Most), float64(sets[1].Most)
	if -b*math.Log1p(-min(a/n, 1-0.5/(n+1))) < leastAgainst {
		return nil
	}
	return sets
}

// String describes, in one line, why the messages seem to be of several types.
func (m *Mixture) String() string {
	var parts []string
	for _, c := range m.Conflicts[:min(len(m.Conflicts), 5)] {
		parts = append(parts, fmt.Sprintf("field %d is %s in %d messages, and has another wire type in %d", c.Number, wireWord(c.Kind), c.Values, c.Others))
	}
	if len(m.Conflicts) > 5 {
		parts = append(parts, fmt.Sprintf("%d other fields do so, too", len(m.Conflicts)-5))
	}
	if len(m.Sets) > 0 {
		var sets []string
		for _, s := range m.Sets {
			sets = append(sets, fmt.Sprintf("%s (up to %s)", numberList(s.Numbers), Plural(s.Most, "message")))
		}
		parts = append(parts, "these sets of fields never occur together in one message: "+strings.Join(sets, "; "))
	}
	what := "probably messages of more than one type"
	if m.P <= 0.5 {
		what = "messages of several types, or of one type with several variants"
	}
	return fmt.Sprintf("%s (probability %.2f): %s", what, m.P, strings.Join(parts, "; "))
}

// wireWord returns the name of the wire type of values of a kind, for a text.
func wireWord(k wire.Kind) string {
	switch k {
	case wire.KindMessage, wire.KindString, wire.KindBytes, wire.KindPacked:
		return "length-delimited"
	}
	return string(k)
}

// numberList lists up to ten numbers for a text, as in "1, 2, 5".
func numberList(list []int32) string {
	words := make([]string, 0, min(len(list), 10))
	for _, n := range list[:min(len(list), 10)] {
		words = append(words, fmt.Sprint(n))
	}
	if len(list) > 10 {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}
