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

// A habit is what the fields of a file show of how all of them are used.
type habit struct {
	single bool // of many fields none was ever seen twice in a message
	zeros  bool // zeros are written as a rule, not only where presence is explicit
	order  bool // fields have an order, so that one out of it says something
}

// habits looks at all fields that are reached.
func (g *graph) habits() habit {
	fields, many, scalars, zeros := 0, 0, 0, 0
	out, of, order := 0, 0, true
	for _, c := range g.reached() {
		late, ok := lateFields(c.numbers, func(n int32) *classField { return c.fields[n] })
		if order = order && ok; len(late) > 0 {
			of += len(c.numbers)
			for _, side := range late {
				out += max(side, 0)
			}
		}
		for _, n := range c.numbers {
			f := c.fields[n]
			fields++
			if f.Most > 1 {
				many++
			}
			if f.verdict.Kind != wire.KindMessage && f.verdict.Kind != wire.KindPacked && !c.entry {
				scalars++
				if zerosOf(f.Field, f.verdict.Kind) > 0 {
					zeros++
				}
			}
		}
	}
	return habit{single: fields >= 20 && many == 0, zeros: scalars >= 10 && 4*zeros > scalars, order: order && 3*out <= 2*of}
}

// mapOdds is the log-odds of a field of entries being a map. The shape alone,
// unique keys with values, is common to maps and to lists of named things. Zeros
// that are written out, and keys in order, are not. Pairs of numbers are mostly
// ranges, but not where the second is the smaller, or where they are unsorted.
func mapOdds(f *kind.Field, key, value *classField, h habit) float64 {
	l := f.Len
	numbers := key.Len == nil && value.Len == nil
	zeros := zerosOf(key.Field, key.verdict.Kind) + zerosOf(value.Field, value.verdict.Kind)
	pairs := float64(l.Ascending + l.Descending)
	unsorted := float64(l.Descending) > 0.2*pairs
	odds := -0.3 + math.Min(0.15*float64(f.Occurs), 1.8)
	switch a, b := key.Varint, value.Varint; {
	case !numbers:
	case a != nil && b != nil && (b.Max < a.Max || b.Min < a.Min || b.Negative > 0) && f.Occurs > 4:
		odds -= 0.7
	default:
		odds -= 2.2
	}
	if zeros > 0 && !h.zeros {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}
	switch {
	case l.Descending == 0:
		odds += math.Min(0.5*pairs, 3)
	case unsorted && numbers && pairs > 4:
		odds += 1.2
	default:
		odds -= 0.2
	}
	return odds
}

// singleMapOdds is mapOdds for a field that had one entry in each message. It is
// told from a message of two fields by how common each is in the definitions of
// genproto, and hardly ever has just one entry each time, unless all lists have.
func singleMapOdds(f *kind.Field, fresh float64, key, value *classField, h habit) float64 {
	odds := -1.0
	if key.verdict.Kind != wire.KindString {
		odds = -3
	} else if value.verdict.Kind == wire.KindString {
		odds = 0.1
	}
	if !h.single {
		odds -= 1 + 0.5*math.Log(max(float64(f.Seen)*fresh, 1))
	}
	if zeros := zerosOf(key.Field, key.verdict.Kind) + zerosOf(value.Field, value.verdict.Kind); zeros > 0 && !h.zeros {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}
	return odds
}

// oneofOdds is the least log-odds at which siblings are said to be a oneof: a
// wrong one would lose fields that do occur together.
const oneofOdds = 1.5

// The prior log-odds of fields being a oneof: one of numbers only is very rare,
// and flags often exclude each other for other reasons.
const (
	priorChoice  = -4.0
	priorNumbers = -9.0
	lateOdds     = 4.0 // for each field that is written where oneofs are
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
func choices(samples int64, all, eligible []int32, get func(int32) *classField, h habit) []choice {
	var late map[int32]int
	if h.order {
		late, _ = lateFields(all, get)
	}
	order := slices.Clone(eligible)
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(late[b], late[a]), cmp.Compare(get(b).Seen, get(a).Seen), cmp.Compare(a, b))
	})
	met := func(a, b int32) bool { return get(a).Before.Has(b) || get(b).Before.Has(a) }
	var groups [][]int32
	for _, n := range order {
		if n >= kind.LowNumbers || get(n).Seen >= samples {
			continue // always there: meets whatever else is
		}
		for i := range groups {
			if late[groups[i][0]]*late[n] < 0 {
				continue // one is written with the oneofs, the other before them
			}
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
		if c, ok := judgeChoice(samples, g, get, late); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b choice) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	return out
}

// lateFields tells by the order on the wire which fields are of oneofs (1),
// which are not (-1), and of which there is nothing to be seen (0). The Go
// runtime writes the oneofs' fields behind all others, each of these by number.
// It reports false where two fields came in either order: there is none.
func lateFields(all []int32, get func(int32) *classField) (map[int32]int, bool) {
	late := map[int32]int{}
	var low []int32
	for _, n := range all {
		if n < kind.LowNumbers {
			low = append(low, n)
		}
	}
	for _, n := range low {
		for _, before := range get(n).Before.List() {
			if o := get(before); o != nil && o.Before.Has(n) {
				return nil, false
			}
			if before > n && get(n).Most == 1 {
				late[n] = 1
			}
		}
	}
	if len(late) == 0 {
		return late, true
	}
	for range low { // what comes behind such a field is one too
		changed := false
		for _, n := range low {
			for _, before := range get(n).Before.List() {
				if late[before] == 1 && late[n] != 1 && get(n).Most == 1 {
					late[n], changed = 1, true
				}
			}
		}
		if !changed {
			break
		}
	}
	for _, n := range slices.Backward(low) { // and what comes before one that is none is none
		if late[n] == 1 {
			continue
		}
		for _, after := range low {
			if get(after).Before.Has(n) && (after < n && late[after] == 1 || after > n && late[after] == -1) {
				late[n] = -1
			}
		}
	}
	return late, true
}

// judgeChoice weighs a set of fields that never met, and drops the members
// that would hardly have met the others anyway.
func judgeChoice(samples int64, g []int32, get func(int32) *classField, late map[int32]int) (choice, bool) {
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
			if late[k] == 1 {
				odds += lateOdds
			}
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
			if late[k] == 1 {
				odds += lateOdds
			}
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
