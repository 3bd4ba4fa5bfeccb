package infer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"unwire/decode/kind"
)

// What a oneof is told by, in nats. The evidence is the ratio of two
// likelihoods of which fields the messages had: one field of the set at most, or
// each by itself. What is below was chosen by hand on the tuning corpora.
const (
	// that two neighbours are a oneof
	priorChoice = -2.0
	// the same for one of numbers only, in addition: flags exclude each other for other reasons
	priorNumbers = -2.0
	// for each member more
	priorMember = -0.3
	// for each field that is no member and stands between some
	priorBetween = -0.8
	// of these count
	maxBetween = 4
	// for a member of which a zero was written
	explicitZero = 1.5
	// for each field that is written where oneofs are
	lateOdds = 4.0
	// where one is written before a greater number, in order as some writers have all fields
	earlyOdds = -1.0
	// the same where others are written as Go does, which has oneofs last
	notLate = -5.0
	// scales the evidence: samples of one source resemble each other
	inverseTemperature = 0.8
	// oneofOdds is the least log-odds at which siblings are said to be a oneof: a
	// wrong one would lose fields that do occur together.
	oneofOdds = 0.3
)

// A choice is a set of fields of which a message has at most one.
type choice struct {
	numbers []int32 // ascending
	p       float64
}

// name is the oneof's name in the .proto.
func (c *choice) name() string { return fmt.Sprintf("choice_%d", c.numbers[0]) }

// A chooser finds the oneofs of one message type: sets of fields that never met
// although, were they independent, they should have.
type chooser struct {
	// that are no copies of others
	samples float64

	// of counts
	scale float64
	get   func(int32) *classField
	late  map[int32]int
	habit habit

	// a field's own part of the evidence for any set with it
	own map[int32]float64
}

// The likelihoods are of Dirichlet and beta distributions: a field is mostly in
// nearly all messages or in few, and a oneof is set in nearly all or in any share.
const (
	dirichlet = 0.5
	betaNone  = 0.3
)

// choices finds the oneofs among the fields of a message. Repeated fields are not in eligible.
func choices(c *class, eligible []int32, h habit) []choice {
	ch := chooser{scale: math.Sqrt(c.fresh()), get: func(n int32) *classField { return c.fields[n] }, habit: h, own: map[int32]float64{}}
	ch.samples = float64(c.samples) * ch.scale
	if h.order {
		ch.late, _ = lateFields(c.numbers, ch.get)
	}
	var order []int32
	for _, n := range eligible {
		// what is always there meets whatever else is
		if n < kind.LowNumbers && ch.get(n).Seen < c.samples {
			order = append(order, n)
			seen := ch.seen(n)
			ch.own[n] = lgamma(dirichlet+seen) - lgamma(dirichlet) - (lbeta(dirichlet+seen, dirichlet+ch.samples-seen) - lbeta(dirichlet, dirichlet))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ch.late[b], ch.late[a]), cmp.Compare(ch.get(b).Seen, ch.get(a).Seen), cmp.Compare(a, b))
	})
	var groups []*group
	for _, n := range order {
		ch.addToGroup(n, &groups)
	}
	var out []choice
	low := c.numbers[:sort.Search(len(c.numbers), func(i int) bool { return c.numbers[i] >= kind.LowNumbers })]
	for _, g := range groups {
		if found, ok := ch.judge(g, low); ok {
			out = append(out, found)
		}
	}
	slices.SortFunc(out, func(a, b choice) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	return out
}

// A group is fields of which no two met.
type group struct {
	numbers []int32
	total   float64 // messages with one of them
	own     float64
}

func (g *group) with(n int32, seen, own float64) *group {
	return &group{append(slices.Clone(g.numbers), n), g.total + seen, g.own + own}
}

func (c *chooser) seen(n int32) float64 { return float64(c.get(n).Seen) * c.scale }

func (c *chooser) metTogether(a, b int32) bool {
	return c.get(a).Before.Has(b) || c.get(b).Before.Has(a)
}

// evidence is the log of the ratio of likelihoods, a oneof to fields for themselves.
func (c *chooser) evidence(g *group) float64 {
	k := float64(len(g.numbers)) * dirichlet
	none := max(c.samples-g.total, 0)
	set := lbeta(betaNone+none, 1+g.total) - lbeta(betaNone, 1)
	return inverseTemperature * (set + lgamma(k) - lgamma(k+g.total) + g.own)
}

// addToGroup adds a field to the group that it fits best, or begins one.
func (c *chooser) addToGroup(n int32, groups *[]*group) {
	best, most := -1, 0.0
	for i, g := range *groups {
		if c.late[g.numbers[0]]*c.late[n] < 0 {
			continue // one is written with the oneofs, the other before them
		}
		if slices.ContainsFunc(g.numbers, func(o int32) bool { return c.metTogether(n, o) }) {
			continue
		}
		joined := g.with(n, c.seen(n), c.own[n])
		if joined.total > c.samples*(1+1e-9) {
			continue
		}
		gain := c.evidence(joined) - c.evidence(g)
		near := math.MaxInt32
		for _, o := range g.numbers {
			near = min(near, int(max(n-o, o-n)))
		}
		gain -= 0.1 * min(float64(near-1), 10)
		if gain > most {
			best, most = i, gain
		}
	}
	if best < 0 {
		*groups = append(*groups, (&group{}).with(n, c.seen(n), c.own[n]))
		return
	}
	(*groups)[best] = (*groups)[best].with(n, c.seen(n), c.own[n])
}

// score is the log-odds of the group being a oneof.
func (c *chooser) score(g *group, all []int32) float64 {
	odds := c.evidence(g) + priorChoice + priorMember*float64(len(g.numbers)-2)
	numbers := true
	for _, n := range g.numbers {
		f := c.get(n)
		numbers = numbers && f.Len == nil
		if c.late[n] == 1 {
			odds += lateOdds
		}
		if !c.habit.zeros && zerosOf(f.Field, f.judgement.Kind) > 0 {
			odds += explicitZero
		}
	}
	if numbers {
		odds += priorNumbers
	}
	if c.habit.order && c.early(g, all) {
		if c.habit.late {
			odds += notLate
		} else {
			odds += earlyOdds
		}
	}
	between, first, last := 0, slices.Min(g.numbers), slices.Max(g.numbers)
	for _, n := range all {
		if slices.Contains(g.numbers, n) {
			continue
		}
		if n > first && n < last {
			between++
		}
		odds -= c.companion(n, g)
	}
	return odds + priorBetween*float64(min(between, maxBetween))
}

// early reports whether a member was written before a field of a greater number
// that is neither a member nor late.
func (c *chooser) early(g *group, all []int32) bool {
	for _, n := range all {
		f := c.get(n)
		if c.late[n] == 1 || slices.Contains(g.numbers, n) {
			continue
		}
		for _, m := range g.numbers {
			if m < n && f.Before.Has(m) {
				return true
			}
		}
	}
	return false
}

// companion is the evidence in a field outside of a group that comes with some of
// its members and, against chance, never with the others: what then excludes each
// other is not single fields.
func (c *chooser) companion(n int32, g *group) float64 {
	met, others := false, 0.0
	for _, o := range g.numbers {
		if c.metTogether(n, o) {
			met = true
		} else {
			others += c.seen(o)
		}
	}
	if !met || others == 0 {
		return 0
	}
	return -inverseTemperature * c.seen(n) * math.Log1p(-math.Min(others/c.samples, 1-0.5/(c.samples+1)))
}

// judge weighs a group, without the members that speak against it.
func (c *chooser) judge(g *group, all []int32) (choice, bool) {
	odds := c.score(g, all)
	for len(g.numbers) > 2 {
		var better *group
		most := odds
		for i, n := range g.numbers {
			less := &group{slices.Delete(slices.Clone(g.numbers), i, i+1), g.total - c.seen(n), g.own - c.own[n]}
			if s := c.score(less, all); s > most {
				better, most = less, s
			}
		}
		if better == nil {
			break
		}
		g, odds = better, most
	}
	if len(g.numbers) < 2 || odds < oneofOdds {
		return choice{}, false
	}
	slices.Sort(g.numbers)
	return choice{g.numbers, round(1 / (1 + math.Exp(-odds)))}, true
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

func lbeta(a, b float64) float64 { return lgamma(a) + lgamma(b) - lgamma(a+b) }

// lateFields tells by the order on the wire which fields are of oneofs (1),
// which are not (-1), and of which there is nothing to be seen (0). The Go
// runtime writes the oneofs' fields behind all others, each of these by number.
// It reports false where two fields came in either order: there is none.
func lateFields(all []int32, get func(int32) *classField) (map[int32]int, bool) {
	var low []int32
	for _, n := range all {
		if n < kind.LowNumbers {
			low = append(low, n)
		}
	}

	late, ordered := outOfOrder(low, get)
	if !ordered {
		return nil, false
	}
	if len(late) > 0 {
		spreadLate(late, low, get)
		markEarly(late, low, get)
	}
	return late, true
}

// outOfOrder marks the fields that came behind one of a greater number. It reports
// false where two fields came in either order.
func outOfOrder(low []int32, get func(int32) *classField) (map[int32]int, bool) {
	late := map[int32]int{}
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
	return late, true
}

// spreadLate marks what comes behind a late field as late, too.
func spreadLate(late map[int32]int, low []int32, get func(int32) *classField) {
	for range low {
		changed := false
		for _, n := range low {
			for _, before := range get(n).Before.List() {
				if late[before] == 1 && late[n] != 1 && get(n).Most == 1 {
					late[n], changed = 1, true
				}
			}
		}
		if !changed {
			return
		}
	}
}

// markEarly marks what comes before a late field of a smaller number, or before one
// that is not late, as not late.
func markEarly(late map[int32]int, low []int32, get func(int32) *classField) {
	for _, n := range slices.Backward(low) {
		if late[n] == 1 {
			continue
		}
		for _, after := range low {
			if get(after).Before.Has(n) && (after < n && late[after] == 1 || after > n && late[after] == -1) {
				late[n] = -1
			}
		}
	}
}
