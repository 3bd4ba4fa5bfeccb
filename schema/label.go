package schema

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Labels in the contract's words.
const (
	Singular = "singular"
	Optional = "optional"
	Repeated = "repeated"
	Map      = "map"
)

// labelOf judges how often a field occurs in a message, maps aside.
//
// Seen twice in one message is proof of a repeated field. Never seen twice is
// weak proof of the contrary, weaker for messages, of which lists are made.
// A zero that was written proves explicit presence: proto3 leaves zeros out.
func labelOf(f *kind.Field, v kind.Verdict) (label string, p float64) {
	if v.Kind == wire.KindPacked {
		return Repeated, v.P
	}
	if f.Most > 1 {
		return Repeated, 0.998
	}
	prior := 0.08
	switch v.Kind {
	case wire.KindMessage:
		prior = 0.3
	case wire.KindString:
		prior = 0.15
	}
	repeated := prior / (1 + 0.7*float64(f.Seen))
	if zerosOf(f, v.Kind) > 0 {
		return Optional, round((1 - repeated) * 0.93)
	}
	return Singular, round((1 - repeated) * 0.9)
}

// zeros counts the occurrences that a field with implicit presence would have left out.
func zerosOf(f *kind.Field, k Kind) int64 {
	switch {
	case k == wire.KindVarint && f.Varint != nil:
		return f.Varint.Zero
	case k == wire.KindFixed32 && f.Fixed32 != nil:
		return f.Fixed32.Zero
	case k == wire.KindFixed64 && f.Fixed64 != nil:
		return f.Fixed64.Zero
	case (k == wire.KindString || k == wire.KindBytes) && f.Len != nil:
		return f.Len.Empty
	}
	return 0
}

// mapOdds is the log-odds of a repeated field of entries being a map. The
// shape alone, unique keys with values, is common to maps and to lists of named
// things. Zeros that are written out, and keys in order, are not. Pairs of
// numbers are mostly ranges.
func mapOdds(l *kind.Payloads, entries, zeros int64, numbers bool) float64 {
	odds := -0.3 + math.Min(0.15*float64(entries), 1.8)
	if numbers {
		odds -= 2.2
	}
	if zeros > 0 {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}
	if l.Descending == 0 {
		odds += math.Min(0.5*float64(l.Ascending), 3)
	} else {
		odds -= 0.2
	}
	return odds
}

// oneofOdds is the least log-odds at which siblings are said to be a oneof: a
// wrong one would lose fields that do occur together.
const oneofOdds = 3.0

// The prior log-odds of fields being a oneof: one of numbers only is very rare,
// and flags often exclude each other for other reasons.
const (
	priorChoice  = -4.0
	priorNumbers = -9.0
)

// A choice is a set of fields of which a message has at most one.
type choice struct {
	numbers []int32 // ascending
	p       float64
}

// name is the oneof's name in the .proto.
func (c *choice) name() string { return fmt.Sprintf("choice_%d", c.numbers[0]) }

// choices finds the oneofs among the fields of a message with the given count
// of samples: sets of fields that never met although, were they independent,
// they should have. Repeated fields are not in eligible.
func choices(samples int64, eligible []int32, get func(int32) *classField) []choice {
	order := slices.Clone(eligible)
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(get(b).Seen, get(a).Seen), cmp.Compare(a, b))
	})
	met := func(a, b int32) bool { return get(a).Before.Has(b) || get(b).Before.Has(a) }
	var groups [][]int32
	for _, n := range order {
		if n >= kind.LowNumbers || get(n).Seen >= samples {
			continue // always there: meets whatever else is
		}
		for i := range groups {
			if !slices.ContainsFunc(groups[i], func(o int32) bool { return met(n, o) }) {
				groups[i] = append(groups[i], n)
				n = 0
				break
			}
		}
		if n != 0 {
			groups = append(groups, []int32{n})
		}
	}
	var out []choice
	for _, g := range groups {
		if c, ok := judgeChoice(samples, g, get); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b choice) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	return out
}

// judgeChoice weighs a set of fields that never met, and drops the members
// that would hardly have met the others anyway.
func judgeChoice(samples int64, g []int32, get func(int32) *classField) (choice, bool) {
	n := float64(samples)
	for {
		var total int64
		for _, k := range g {
			total += get(k).Seen
		}
		if len(g) < 2 || total > samples {
			return choice{}, false
		}
		weakest, least := -1, math.Inf(1)
		for i, k := range g {
			seen := float64(get(k).Seen)
			others := (float64(total) - seen) / n
			// How surprising it is that none of its messages had one of the others.
			odds := -seen * math.Log1p(-math.Min(others, 1-0.5/(n+1)))
			if odds < least {
				weakest, least = i, odds
			}
		}
		odds, covered := priorNumbers, 0.0
		if slices.ContainsFunc(g, func(k int32) bool { return get(k).Len != nil }) {
			odds = priorChoice
		}
		for _, k := range g {
			share := float64(get(k).Seen) / n
			odds -= n * share * math.Log1p(-math.Min(covered, 1-0.5/(n+1)))
			covered += share
		}
		if least >= 0.6 && odds >= oneofOdds {
			slices.Sort(g)
			return choice{g, round(1 / (1 + math.Exp(-odds*heat)))}, true
		}
		if least >= 0.6 && odds < oneofOdds {
			return choice{}, false
		}
		g = slices.Delete(slices.Clone(g), weakest, weakest+1)
	}
}
