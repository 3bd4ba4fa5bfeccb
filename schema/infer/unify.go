package infer

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A node is the evidence of a message type at one place.
type node struct {
	m      *kind.Message
	parent *node
	depth  int
	class  *class
}

// A class is a message type: the nodes that are taken for one type, and their
// fields, pooled. The class of a field's payloads is part of the field, so that
// joining two classes joins those below them (congruence).
type class struct {
	into    *class // the class that this one has become part of
	id      int
	root    string // the root's key if one of its nodes is a root
	samples int64
	novel   float64 // samples that are no copies of others
	fields  map[int32]*classField
	numbers []int32 // of fields, ascending
	entry   bool    // a map's entry by its shape
	name    string  // set when it is reached for output
	depth   int     // of its first node
	known   wellKnown
	above   *class // the class of its first node's parent, of whose
	at      int32  // field it is the type
	deep    bool   // at the bound of depth: nothing inside was looked at
}

// A classField is one field of a class.
type classField struct {
	*kind.Field         // pooled; child and group are not set
	messageCost float64 // of the payloads as messages
	verdict     kind.Verdict
	kid, group  *class // payloads as messages, if they may be that

	chosen     *kind.Choice // how somebody says that it is read
	chosenFits bool         // and so it can be
}

// find returns the class that c is part of.
func (c *class) find() *class {
	for c.into != nil {
		if c.into.into != nil {
			c.into = c.into.into
		}
		c = c.into
	}
	return c
}

// fresh is the share of the class's samples that are no copies of others.
func (c *class) fresh() float64 { return c.novel / float64(max(c.samples, 1)) }

// likely reports whether the field's payloads are taken for messages.
func (f *classField) likely() bool { return f.verdict.Kind == wire.KindMessage }

// A graph is the classes of one file.
type graph struct {
	costs kind.Costs
	nodes []*node // by depth, then place
	roots []*class
	made  int

	choices map[string]kind.Choice // about the root that is being built, by path
}

// newGraph makes a class of each message below the roots, nothing joined yet.
func newGraph(e *Evidence, roots []string) *graph {
	g := &graph{costs: kind.Costs{}}
	for _, name := range roots {
		g.choices = e.chosenFor(name)
		c := g.build(e.Root(name), nil, 0, "", true)
		c.root = name
		g.roots = append(g.roots, c)
	}
	slices.SortStableFunc(g.nodes, func(a, b *node) int { return cmp.Compare(a.depth, b.depth) })
	return g
}

// build makes the class of m and of what is below it. Only classes of payloads
// that are taken for messages become nodes, to be compared with others.
func (g *graph) build(m *kind.Message, parent *node, at int32, path string, live bool) *class {
	n := &node{m: m, parent: parent}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	c := &class{id: g.made, samples: m.Samples, novel: float64(m.Samples), fields: map[int32]*classField{}, numbers: m.Numbers(), depth: n.depth}
	c.deep = n.depth >= kind.MaxDepth
	g.made++
	if parent != nil {
		c.above, c.at = parent.class, at
	}
	n.class = c
	if live {
		g.nodes = append(g.nodes, n)
	}
	for _, number := range c.numbers {
		f := m.Field(number)
		cf := &classField{Field: &kind.Field{}}
		cf.MergeFlat(f)
		cf.messageCost = g.costs.Payloads(f)
		here := ""
		if len(g.choices) > 0 {
			here = below(path, number)
			if choice, ok := g.choices[here]; ok {
				cf.chosen = &choice
			}
		}
		cf.judge()
		if f.Child != nil {
			cf.kid = g.build(f.Child, n, number, here, live && (cf.likely() || cf.chosen != nil && cf.chosen.Kind == wire.KindMessage))
			if cf.chosen != nil {
				cf.judge()
			}
			cf.kid.entry = !f.Len.NotMap && f.Most > 1
			cf.kid.novel *= f.Len.Novelty()
		}
		if f.Group != nil {
			cf.group = g.build(f.Group, n, number, here, false)
		}
		c.fields[number] = cf
	}
	return c
}

// Bounds of the search for equal types, beyond which types are left apart.
const (
	// classes that are looked at for one field number
	maxPosting = 256

	// classes that are compared with one class
	maxCandidates = 8

	// evidence, in nats, for two types being one
	minScore = 2.2

	// the same for a type inside itself
	ownScore = 1.2

	// evidence against, in a field that is 1 in one and greater in the other
	apart = 1.8

	// evidence for, in values that are both times, or addresses of types
	sameValues = 2.0

	// evidence against, in a field that one of them has not
	minAbsence = 0.3

	// evidence for, in a field that is of one type in both
	sameKid = 1.0

	// evidence for, in being types of two fields that came together, or against in two that never did
	siblings = 0.6

	// evidence for, in texts or bytes that are as long
	sameLengths = 0.2

	// the most against, where they are not
	otherLengths = 0.6
)

// unify joins the classes that are taken for one type: in the order of nodes, and
// once more from below, when the types of fields tell whether those around them
// are one.
func (g *graph) unify() {
	g.unifyNodes(slices.All(g.nodes), false)
	g.unifyNodes(slices.Backward(g.nodes), true)
}

// A feature is what classes are found by.
type feature struct {
	number int32
	kind   Kind

	// of a message field, where types are compared by those of their fields
	kid int
}

func (g *graph) unifyNodes(nodes iter.Seq2[int, *node], byKids bool) {
	postings := map[feature][]*class{}
	featureOf := func(c *class, n int32) feature {
		f := c.fields[n]
		if byKids && f.kid != nil && f.likely() {
			return feature{n, f.verdict.Kind, f.kid.find().id}
		}
		return feature{n, f.verdict.Kind, 0}
	}
	met := map[*class]bool{}
	for _, n := range nodes {
		c := n.class.find()
		if byKids && met[c] {
			continue
		}
		met[c] = true
		if len(c.fields) < 2 && !(byKids && len(c.fields) == 1 && c.fields[c.numbers[0]].likely()) {
			continue
		}
		if !byKids {
			g.joinAncestor(n)
			c = n.class.find()
		}
		tally := map[*class]int{}
		for _, number := range c.numbers {
			for _, o := range postings[featureOf(c, number)] {
				if o = o.find(); o != c && o.entry == c.entry {
					tally[o]++
				}
			}
		}
		candidates := make([]*class, 0, len(tally))
		for o := range tally {
			candidates = append(candidates, o)
		}
		slices.SortFunc(candidates, func(a, b *class) int { return cmp.Or(cmp.Compare(tally[b], tally[a]), cmp.Compare(a.id, b.id)) })
		for _, o := range candidates[:min(len(candidates), maxCandidates)] {
			c, o = c.find(), o.find()
			if c != o && similarity(c, o) >= minScore {
				tryJoin(o, c)
			}
		}
		c = n.class.find()
		for _, number := range c.numbers {
			k := featureOf(c, number)
			if list := postings[k]; len(list) < maxPosting && !slices.Contains(list, c) {
				postings[k] = append(list, c)
			}
		}
	}
}

// joinAncestor joins n with the nearest message above it that may be of its type.
func (g *graph) joinAncestor(n *node) {
	for a := n.parent; a != nil; a = a.parent {
		c, o := n.class.find(), a.class.find()
		if c == o || c.entry {
			return
		}
		if contained(c, o) && similarity(c, o) >= ownScore+0.3*float64(n.depth-a.depth) && tryJoin(o, c) {
			return
		}
	}
}

// contained reports whether nearly all fields of c are fields of o.
func contained(c, o *class) bool {
	shared := 0
	for _, n := range c.numbers {
		if o.fields[n] != nil {
			shared++
		}
	}
	return shared >= 2 && 4*shared >= 3*len(c.numbers)
}

// similarity is the evidence, in nats, for two classes being one type: fields
// of the same number and kind speak for it, the more the rarer the number;
// fields that are often seen in one and never in the other speak against it.
func similarity(a, b *class) float64 {
	score, shared := 0.0, 0
	switch {
	case isMoment(a) && isMoment(b) || isAny(a) && isAny(b):
		score = sameValues
	case isMoment(a) != isMoment(b) || isAny(a) != isAny(b):
		score = -sameValues
	}
	score += kinship(a, b)
	for _, n := range a.numbers {
		x, y := a.fields[n], b.fields[n]
		if y == nil {
			score -= absence(x, a.samples, b.samples)
			continue
		}
		shared++
		if x.verdict.Kind != y.verdict.Kind && !(x.kid != nil && y.kid != nil) {
			score -= 3
			continue
		}
		score += min(0.8+0.4*math.Log(float64(n)), 2.5) + lengths(x.Len, y.Len)
		if x.kid != nil && y.kid != nil && x.likely() && y.likely() && x.kid.find() == y.kid.find() {
			score += sameKid
		}
		if p, q := x.Varint, y.Varint; p != nil && q != nil && (p.Max <= 1 && q.Min > 1 || q.Max <= 1 && p.Min > 1) {
			score -= apart
		}
	}
	if most := score - minAbsence*float64(len(b.numbers)-shared); most < ownScore {
		return most // no need to look at what may be very many fields
	}
	for _, n := range b.numbers {
		if a.fields[n] == nil {
			score -= absence(b.fields[n], b.samples, a.samples)
		}
	}
	return score
}

// kinship is the evidence in being types of two fields of one message: fields that
// come together are often of one type, and those that exclude each other of
// different ones.
func kinship(a, b *class) float64 {
	if a.above == nil || b.above == nil || a.above.find() != b.above.find() || a.at == b.at {
		return 0
	}
	above := a.above.find()
	x, y := above.fields[a.at], above.fields[b.at]
	switch {
	case a.at >= kind.LowNumbers || b.at >= kind.LowNumbers || x == nil || y == nil:
		return 0
	case x.Before.Has(b.at) || y.Before.Has(a.at):
		return siblings
	case x.Seen > 2 && y.Seen > 2:
		return -siblings
	}
	return 0
}

// lengths is the evidence in how long the payloads of two fields are.
func lengths(x, y *kind.Payloads) float64 {
	if x == nil || y == nil || x.N == 0 || y.N == 0 {
		return 0
	}
	ratio := math.Abs(math.Log(float64(x.Bytes+x.N) / float64(x.N) * float64(y.N) / float64(y.Bytes+y.N)))
	return max(sameLengths-0.4*ratio, -otherLengths)
}

// absence is the evidence in a field of one class, of samples messages, being
// unseen in another's.
func absence(f *classField, samples, others int64) float64 {
	expected := float64(f.Seen) / float64(max(samples, 1)) * float64(others)
	return minAbsence + min(expected, 3)
}

// maxPending bounds the pairs that are tried again while a join is under way.
const maxPending = 64

// tryJoin makes b part of a, and the types of their common message fields one,
// if that contradicts nothing.
//
// Pooling can make a message of what was something else in both, whose payloads
// were no part of the trial: they are tried together with what is still to be
// joined, and are no messages if they fail.
func tryJoin(a, b *class) bool {
	ts, ok := compatible(false, [2]*class{a, b})
	if !ok {
		return false
	}
	for work := [][2]*class{{a, b}}; len(work) > 0; {
		a, b := work[len(work)-1][0].find(), work[len(work)-1][1].find()
		work = work[:len(work)-1]
		if a == b {
			continue
		}
		for _, pair := range merge(a, b) {
			if ts.approve(pair.kids) {
				work = append(work, pair.kids)
				continue
			}
			if len(work) < maxPending {
				if more, ok := compatible(true, append(slices.Clone(work), pair.kids)...); ok {
					ts, work = more, append(work, pair.kids)
					continue
				}
			}
			pair.field.forbidMessage()
		}
	}
	return true
}

// A kidPair is two types that must be one because their field is.
type kidPair struct {
	field *classField
	kids  [2]*class
}

// merge makes one of a and b part of the other, and returns what else must be one.
func merge(a, b *class) []kidPair {
	if b.root != "" || a.root == "" && (b.depth < a.depth || b.depth == a.depth && b.id < a.id) {
		a, b = b, a
	}
	b.into = a
	a.samples += b.samples
	a.novel += b.novel
	a.deep = a.deep || b.deep
	var pairs []kidPair
	for _, n := range b.numbers {
		x, y := a.fields[n], b.fields[n]
		if x == nil {
			a.fields[n] = y
			continue
		}
		kid := y.kid
		if x.absorb(y); kid != nil && x.kid != nil {
			pairs = append(pairs, kidPair{x, [2]*class{x.kid, kid}})
		}
	}
	a.numbers = slices.Sorted(maps.Keys(a.fields))
	return pairs
}

// absorb pools the evidence of two fields that are one. Their payloads may be
// messages only if both have always been read as such.
func (f *classField) absorb(o *classField) {
	// Payloads that both have seen are told once, as under any other hypothesis.
	each := f.eachCost() + o.eachCost()
	f.MergeFlat(o.Field)
	if f.messageCost = each; f.Len != nil {
		f.messageCost *= f.Len.Novelty()
	}
	if f.chosen == nil {
		f.chosen = o.chosen
	}
	f.judge()
	if f.Len != nil && (f.kid == nil) != (o.kid == nil) {
		f.forbidMessage()
	}
}

// eachCost is the cost of the payloads as messages if each were a new one.
func (f *classField) eachCost() float64 {
	if f.Len == nil {
		return f.messageCost
	}
	return f.messageCost / f.Len.Novelty()
}

// forbidMessage takes the message hypothesis away.
func (f *classField) forbidMessage() {
	f.Len.NotMessage = true
	f.kid, f.messageCost = nil, 0
	f.judge()
}

// settleRounds is how often costs are passed upwards by settle.
const settleRounds = 3

// settle judges the payloads again that may be messages: the classes below
// have been pooled since, and what describes a pooled type is paid only once.
func (g *graph) settle() {
	reached := g.reached()
	for range settleRounds {
		for _, c := range slices.Backward(reached) {
			for _, n := range c.numbers {
				f := c.fields[n]
				if f.kid == nil || f.Len == nil {
					continue
				}
				kid := f.kid.find()
				cost := kid.cost().Of(f.Len.Novelty()) * float64(f.Len.N) / float64(max(kid.samples, 1))
				if cost < f.messageCost {
					f.messageCost = cost
					f.judge()
				}
			}
		}
	}
}

// cost is the cost of all messages of the class.
func (c *class) cost() kind.Cost {
	sum := kind.NewTally(c.samples)
	for _, n := range c.numbers {
		f := c.fields[n]
		sum.Add(f.Field, n, f.messageCost)
	}
	return sum.Sum()
}

// reached returns the classes that the roots lead to, over payloads that are
// or might be messages, nearest first.
func (g *graph) reached() []*class {
	var list []*class
	met := map[*class]bool{}
	add := func(c *class) {
		if c = c.find(); !met[c] {
			met[c] = true
			list = append(list, c)
		}
	}
	for _, c := range g.roots {
		add(c)
	}
	for i := 0; i < len(list); i++ {
		for _, n := range list[i].numbers {
			if kid := list[i].fields[n].kid; kid != nil {
				add(kid)
			}
		}
	}
	return list
}
