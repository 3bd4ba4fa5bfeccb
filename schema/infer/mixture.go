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

// A Mixture is a message type under whose name messages of more than one type
// seem to come: some of its fields are of two wire types, or its messages fall
// into kinds that share no field but those that all have.
type Mixture struct {
	Message string `json:"message"`
	Samples int64  `json:"samples"`
	// Conflicts are the fields that were seen with two wire types.
	Conflicts []conflict `json:"conflicts,omitempty"`
	// Sets are fields that come together in some messages, and never with those
	// of another set; at least two, or none.
	Sets []fieldSet `json:"sets,omitempty"`

	// of there being several types, and not variants of one
	P float64 `json:"p"`
}

// A conflict is a field with values of two wire types.
type conflict struct {
	Number int32     `json:"number"`
	Kind   wire.Kind `json:"kind"`
	Values int64     `json:"values"` // of the kind
	Others int64     `json:"others"`
}

// A fieldSet is fields that come together.
type fieldSet struct {
	Numbers []int32 `json:"numbers"`
	Most    int64   `json:"most"` // messages with the one of them that most have
}

// Bounds and weights of mixtures.
const (
	// share of a field's values that are of another wire type
	leastConflicts = 0.02

	// messages with a set's most usual field
	leastOfSet = 3

	// nats by which sets should have met
	leastAgainst = 8.0
	maxSets      = 8
)

// mixture looks for more than one type in a class; nil where there is none.
func (c *class) mixture() *Mixture {
	m := &Mixture{Samples: c.samples}
	for _, n := range c.numbers {
		f := c.fields[n]
		if odd := f.judgement.Odd; odd > 0 && float64(odd) >= leastConflicts*float64(f.Occurs) {
			m.Conflicts = append(m.Conflicts, conflict{n, f.judgement.Kind, f.Occurs - odd, odd})
		}
	}
	m.Sets = c.sets()
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

// sets finds fields that come together and, against chance, never with those of
// another set. Fields that nearly all messages have are of none.
func (c *class) sets() []fieldSet {
	var list []int32
	for _, n := range c.numbers {
		if n < kind.LowNumbers && 20*c.fields[n].Seen < 19*c.samples {
			list = append(list, n)
		}
	}
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
	// Were they of one kind of message, the two largest would have met.
	n := float64(c.samples)
	a, b := float64(sets[0].Most), float64(sets[1].Most)
	if -b*math.Log1p(-min(a/n, 1-0.5/(n+1))) < leastAgainst {
		return nil
	}
	return sets
}

// String says it in one line.
func (m *Mixture) String() string {
	var parts []string
	for _, c := range m.Conflicts[:min(len(m.Conflicts), 5)] {
		parts = append(parts, fmt.Sprintf("field %d is %s %d times and of another wire type %d times", c.Number, wireWord(c.Kind), c.Values, c.Others))
	}
	if len(m.Conflicts) > 5 {
		parts = append(parts, fmt.Sprintf("so are %d other fields", len(m.Conflicts)-5))
	}
	if len(m.Sets) > 0 {
		var sets []string
		for _, s := range m.Sets {
			sets = append(sets, fmt.Sprintf("%s (up to %s)", numberList(s.Numbers), Plural(s.Most, "message")))
		}
		parts = append(parts, "fields that come together never come with those of another set: "+strings.Join(sets, "; "))
	}
	what := "messages of more than one type, it seems"
	if m.P <= 0.5 {
		what = "messages of several types, or several kinds of one"
	}
	return fmt.Sprintf("%s; p %.2f: %s", what, m.P, strings.Join(parts, "; "))
}

func wireWord(k wire.Kind) string {
	switch k {
	case wire.KindMessage, wire.KindString, wire.KindBytes, wire.KindPacked:
		return "length-delimited"
	}
	return string(k)
}

// numberList writes 1, 2, 5.
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
