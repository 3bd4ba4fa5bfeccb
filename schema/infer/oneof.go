package infer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"unwire/decode/kind"
)

// Weights of the evidence, in nats, that a set of fields is a oneof. The main evidence is a ratio of two
// likelihoods of the combinations of fields in messages: at most one field of the set, or each field
// independently. The weights were chosen by hand on the tuning corpora.
const (
	// priorOneof is the prior log-odds that two fields with consecutive numbers are a oneof. With it, half of the sets
	// whose log-odds are about 0 were oneofs in the tuning half of the split of public modules.
	priorOneof = 0.2
	// priorNumbers is added if all members are numbers: flags exclude each other for other reasons.
	priorNumbers = -2.0
	// priorMember is added to the log-odds for each member above two.
	priorMember = -0.3
	// priorBetween is added for each field whose number is between those of the members and that is not a
	// member.
	priorBetween = -0.8
	// maxBetween is the maximum number of fields for which priorBetween is added.
	maxBetween = 4
	// explicitZero is added for each member that had a zero value: members of oneofs have explicit presence.
	explicitZero = 1.5
	// lateOdds is added for each member that is written after fields with greater numbers, where the Go runtime
	// writes oneofs.
	lateOdds = 4.0
	// earlyOdds is added if a member is written before a field with a greater number. Some writers order all
	// fields by number, including oneofs.
	earlyOdds = -2.0
	// notLate replaces earlyOdds if other fields in the file are written after fields with greater numbers, as
	// the Go runtime writes oneofs.
	notLate = -5.0
	// inverseTemperature scales the evidence before the priors are added, because messages of one source
	// resemble each other and are not independent.
	inverseTemperature = 0.8
	// oneofOdds is the log-odds from which on a set is declared as a oneof.
	oneofOdds = 0.0
)

// A oneofFinder finds the oneofs of one message type: sets of fields that never occur in the same message
// although, if they were independent, they should.
type oneofFinder struct {
	// samples is the estimated number of messages that are not copies of others.
	samples float64

	// scale is the factor by which counts of messages are multiplied, because some messages are copies of
	// others.
	scale float64
	// get returns a field by number.
	get func(int32) *classField
	// late is the result of lateFields (which fields are written where Go writes oneofs); nil if the order of
	// fields is no evidence.
	late map[int32]int
	// conventions describe how the programs that wrote the messages encode them.
	conventions conventions

	// own maps each field to its contribution to the evidence for any oneof that contains it, in nats,
	// independent of the other members.
	own map[int32]float64
}

// Parameters of the Dirichlet and beta priors. The Dirichlet prior, with Jeffreys' 0.5, expects that a field is
// in nearly all messages or in few. betaNone expects that nearly all messages set a member of the oneof, or any
// share of them.
const (
	// dirichlet is the parameter of the symmetric Dirichlet prior, Jeffreys' 0.5.
	dirichlet = 0.5
	// betaNone is the first parameter of the beta prior for messages that set no member.
	betaNone = 0.3
)

// findOneofs finds the oneofs among the eligible fields of a message type: those that are neither repeated nor
// maps.
func findOneofs(c *class, eligible []int32, h conventions) []oneof {
	ch := oneofFinder{scale: math.Sqrt(c.distinctShare()), get: func(n int32) *classField { return c.fields[n] }, conventions: h, own: map[int32]float64{}}
	ch.samples = float64(c.samples) * ch.scale
	if h.order {
		ch.late, _ = lateFields(c.numbers, ch.get)
	}
	var order []int32
	for _, n := range eligible {
		// A field that all messages have met every other field.
		if n < kind.LowNumbers && ch.get(n).Seen < c.samples {
			order = append(order, n)
			seen := ch.seen(n)
			ch.own[n] = lgamma(dirichlet+seen) - lgamma(dirichlet) - (lbeta(dirichlet+seen, dirichlet+ch.samples-seen) - lbeta(dirichlet, dirichlet))
		}
	}

	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ch.late[b], ch.late[a]), cmp.Compare(ch.get(b).Seen, ch.get(a).Seen), cmp.Compare(a, b))
	})

	// A greedy search: each field joins the group that it fits best. The most frequent fields begin.
	var groups []*exclusiveGroup
	for _, n := range order {
		ch.addToGroup(n, &groups)
	}

	var out []oneof
	low := c.numbers[:sort.Search(len(c.numbers), func(i int) bool { return c.numbers[i] >= kind.LowNumbers })]
	for _, g := range groups {
		if found, ok := ch.judge(g, low); ok {
			out = append(out, found)
		}
	}
	out = append(out, ch.lateMembers(eligible, out)...)
	ch.sortOneofs(out)
	return out
}

// lateMembers returns a oneof for each single field that the Go runtime wrote where it writes members of
// oneofs, although no other member occurred. found are the oneofs found before.
func (c *oneofFinder) lateMembers(eligible []int32, found []oneof) (list []oneof) {
	for _, n := range eligible {
		grouped := slices.ContainsFunc(found, func(o oneof) bool { return slices.Contains(o.numbers, n) })
		if c.late[n] == 1 && !grouped {
			list = append(list, oneof{numbers: []int32{n}, p: lateAloneP})
		}
	}
	return list
}

// lateAloneP is the probability that a field that is written after fields with greater numbers is a member of a
// oneof, although no other member occurred.
const lateAloneP = 0.93

// sortOneofs sorts oneofs by the order in which their members are written or, if they never occur
// together, by number. The Go runtime writes oneofs in the order of their declarations.
func (c *oneofFinder) sortOneofs(list []oneof) {
	precedes := func(a, b oneof) bool {
		for _, n := range b.numbers {
			for _, m := range a.numbers {
				if c.get(n).Before.Has(m) {
					return true
				}
			}
		}
		return false
	}
	slices.SortFunc(list, func(a, b oneof) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	// An insertion sort, since "precedes" is no total order.
	for i := range list {
		for k := i; k > 0 && precedes(list[k], list[k-1]) && !precedes(list[k-1], list[k]); k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

// An exclusiveGroup is a set of fields of which no two occur in the same message.
type exclusiveGroup struct {
	// numbers are the field numbers in the group.
	numbers []int32
	// total is the number of messages with one of the fields, corrected for copies.
	total float64
	// own is the sum of the values of oneofFinder.own for these fields.
	own float64
}

// with returns a copy of the group with the additional field n. seen is the number of its messages, corrected
// for copies, and own its value of oneofFinder.own.
func (g *exclusiveGroup) with(n int32, seen, own float64) *exclusiveGroup {
	return &exclusiveGroup{append(slices.Clone(g.numbers), n), g.total + seen, g.own + own}
}

// seen returns the number of messages with field n, corrected for copies.
func (c *oneofFinder) seen(n int32) float64 { return float64(c.get(n).Seen) * c.scale }

// metTogether reports whether any message contained both fields.
func (c *oneofFinder) metTogether(a, b int32) bool {
	return c.get(a).Before.Has(b) || c.get(b).Before.Has(a)
}

// evidence returns the scaled log-likelihood ratio, in nats, of the group being a oneof against independent
// fields.
func (c *oneofFinder) evidence(g *exclusiveGroup) float64 {
	k := float64(len(g.numbers)) * dirichlet
	none := max(c.samples-g.total, 0)
	set := lbeta(betaNone+none, 1+g.total) - lbeta(betaNone, 1)
	return inverseTemperature * (set + lgamma(k) - lgamma(k+g.total) + g.own)
}

// addToGroup adds a field to the group that gains most from it, or begins a new group.
func (c *oneofFinder) addToGroup(n int32, groups *[]*exclusiveGroup) {
	best, most := -1, 0.0
	for i, g := range *groups {
		if c.late[g.numbers[0]]*c.late[n] < 0 {
			// One of them is written where oneofs are, the other before them.
			continue
		}
		// Fields that met in a message are in no common oneof.
		if slices.ContainsFunc(g.numbers, func(o int32) bool { return c.metTogether(n, o) }) {
			continue
		}
		joined := g.with(n, c.seen(n), c.own[n])
		// A oneof cannot be set more often than there are messages.
		if joined.total > c.samples*(1+1e-9) {
			continue
		}
		gain := c.evidence(joined) - c.evidence(g)
		// Members of a oneof mostly have neighbouring numbers, so distance costs evidence.
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
		*groups = append(*groups, (&exclusiveGroup{}).with(n, c.seen(n), c.own[n]))
		return
	}
	(*groups)[best] = (*groups)[best].with(n, c.seen(n), c.own[n])
}

// score returns the log-odds, in nats, that the group is a oneof. all are the fields of the message.
func (c *oneofFinder) score(g *exclusiveGroup, all []int32) float64 {
	odds := c.evidence(g) + priorOneof + priorMember*float64(len(g.numbers)-2)
	numbers := true
	for _, n := range g.numbers {
		f := c.get(n)
		numbers = numbers && f.Len == nil
		if c.late[n] == 1 {
			odds += lateOdds
		}
		if !c.conventions.zeros && countZeros(f.Field, f.judgement.Kind) > 0 {
			odds += explicitZero
		}
	}

	if numbers {
		odds += priorNumbers
	}
	if c.conventions.order && c.early(g, all) {
		if c.conventions.late {
			odds += notLate
		} else {
			odds += earlyOdds
		}
	}

	// Fields that lie between the members, and fields that met some members but not others, count against the
	// group.
	between, first, last := 0, slices.Min(g.numbers), slices.Max(g.numbers)
	for _, n := range all {
		if slices.Contains(g.numbers, n) {
			continue
		}
		if n > first && n < last {
			between++
		}
		odds -= c.companionEvidence(n, g)
	}
	return odds + priorBetween*float64(min(between, maxBetween))
}

// early reports whether a member of the group was written before a field with a greater number that is neither
// a member nor itself written late.
func (c *oneofFinder) early(g *exclusiveGroup, all []int32) bool {
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

// companionEvidence returns the evidence, in nats, against a group from the field n outside it that occurs
// together with some members but, more than by chance, never with the others. In that case whole sets of fields
// exclude each other, not single fields.
func (c *oneofFinder) companionEvidence(n int32, g *exclusiveGroup) float64 {
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

// judge decides whether a group is a oneof; ok is false if it is not. It first removes members without which
// the rest is more likely to be one. all are the fields of the message.
func (c *oneofFinder) judge(g *exclusiveGroup, all []int32) (oneof, bool) {
	odds := c.score(g, all)
	for len(g.numbers) > 2 {
		var better *exclusiveGroup
		// Find the member whose removal improves the group most.
		most := odds
		for i, n := range g.numbers {
			less := &exclusiveGroup{slices.Delete(slices.Clone(g.numbers), i, i+1), g.total - c.seen(n), g.own - c.own[n]}
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
		return oneof{}, false
	}
	slices.Sort(g.numbers)
	return oneof{g.numbers, round(1 / (1 + math.Exp(-odds))), !c.beyondAbsence(g, all)}, true
}

// beyondAbsence reports whether there is more evidence for a oneof than that the fields never occurred
// together, which is also true for rare fields: its members are written where the Go runtime writes oneofs, or
// most messages have one of them. all are the fields of the message.
//
// It returns false for a group whose members are written before other fields in messages that are written in a
// fixed order: an encoder that writes oneofs last would change the order.
func (c *oneofFinder) beyondAbsence(g *exclusiveGroup, all []int32) bool {
	for _, n := range g.numbers {
		if c.late[n] == 1 {
			return true
		}
	}
	return g.total >= leastCovered*c.samples && !(c.conventions.order && c.early(g, all))
}

// leastCovered is the share of messages, from 0 to 1, that must have one of the fields of a oneof for which
// there is no other evidence.
const leastCovered = 0.5

// lgamma returns the natural logarithm of the gamma function.
func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// lbeta returns the natural logarithm of the beta function.
func lbeta(a, b float64) float64 { return lgamma(a) + lgamma(b) - lgamma(a+b) }

// lateFields derives from the order on the wire which fields are members of oneofs (1), which are not (-1), and
// for which the order shows nothing (0 or absent). The Go runtime writes the members of oneofs after all other
// fields, and orders both groups by number. ok is false if two fields were written in either order, so that the
// order means nothing.
//
// Source: google.golang.org/protobuf/internal/order, LegacyFieldOrder.
func lateFields(all []int32, get func(int32) *classField) (map[int32]int, bool) {
	var low []int32
	for _, n := range all {
		if n < kind.LowNumbers {
			low = append(low, n)
		}
	}

	// Extensions and other high numbers are written elsewhere.
	late, ordered := outOfOrder(low, get)
	if !ordered {
		return nil, false
	}
	if len(late) > 0 {
		if !spreadLate(late, low, get) || manyTogether(late, get) {
			return nil, false
		}
		markEarly(late, low, get)
	}
	return late, true
}

// outOfOrder returns the fields that were written after a field with a greater number (value 1). low are the
// fields to examine. ok is false if two fields were written in either order.
func outOfOrder(low []int32, get func(int32) *classField) (map[int32]int, bool) {
	late := map[int32]int{}
	for _, n := range low {
		for _, before := range get(n).Before.List() {
			if o := get(before); o != nil && o.Before.Has(n) {
				return nil, false
			}
			if before > n {
				if get(n).Most > 1 {
					// A list is in no oneof, so this is not Go's order.
					return nil, false
				}
				late[n] = 1
			}
		}
	}
	return late, true
}

// spreadLate extends the result of outOfOrder: a field that is written after a late one is late, too. It
// repeats until nothing changes. It returns false if a repeated field is late, which contradicts Go's order.
func spreadLate(late map[int32]int, low []int32, get func(int32) *classField) bool {
	for range low {
		changed := false
		for _, n := range low {
			for _, before := range get(n).Before.List() {
				if late[before] != 1 || late[n] == 1 {
					continue
				}
				if get(n).Most > 1 {
					return false
				}
				late[n], changed = 1, true
			}
		}
		if !changed {
			break
		}
	}
	return true
}

// mostOneofs is the maximum number of oneofs of a message type that are derived from the order of fields. If
// there would be more, the writer probably uses the order of declarations.
const mostOneofs = 4

// manyTogether reports whether more than mostOneofs late fields occur in the same messages, so that each would
// need a separate oneof.
func manyTogether(late map[int32]int, get func(int32) *classField) bool {
	var met []int32
	for _, n := range slices.Sorted(maps.Keys(late)) {
		all := late[n] == 1
		for _, o := range met {
			all = all && (get(n).Before.Has(o) || get(o).Before.Has(n))
		}
		if all {
			met = append(met, n)
		}
	}
	return len(met) > mostOneofs
}

// markEarly sets fields to -1 in late (not members of oneofs) if they are written before a late field with a
// smaller number, or before a field with a greater number that is marked -1.
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
