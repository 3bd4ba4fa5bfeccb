package infer

import (
	"cmp"
	"iter"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

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
	kind   wire.Kind

	// of a message field, where types are compared by those of their fields
	kid int
}

// A classIndex finds the classes that have features in common with another.
type classIndex struct {
	postings map[feature][]*class

	// types of message fields are features too
	byKids bool
}

// feature is the feature of c that its field n is.
func (x *classIndex) feature(c *class, n int32) feature {
	f := c.fields[n]
	if x.byKids && f.kid != nil && f.likely() {
		return feature{n, f.judgement.Kind, f.kid.find().id}
	}
	return feature{n, f.judgement.Kind, 0}
}

// hasEnough reports whether c has enough fields to be compared with others.
func (x *classIndex) hasEnough(c *class) bool {
	return len(c.fields) >= 2 || x.byKids && len(c.fields) == 1 && c.fields[c.numbers[0]].likely()
}

// candidates returns the classes that have most features in common with c.
func (x *classIndex) candidates(c *class) []*class {
	shared := map[*class]int{}
	for _, number := range c.numbers {
		for _, o := range x.postings[x.feature(c, number)] {
			if o = o.find(); o != c && o.entry == c.entry {
				shared[o]++
			}
		}
	}

	list := make([]*class, 0, len(shared))
	for o := range shared {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *class) int {
		return cmp.Or(cmp.Compare(shared[b], shared[a]), cmp.Compare(a.id, b.id))
	})
	return list[:min(len(list), maxCandidates)]
}

// addClass enters c by its features.
func (x *classIndex) addClass(c *class) {
	for _, number := range c.numbers {
		k := x.feature(c, number)
		if list := x.postings[k]; len(list) < maxPosting && !slices.Contains(list, c) {
			x.postings[k] = append(list, c)
		}
	}
}

// unifyNodes compares each node's class with those of the nodes before it, and
// joins it with the similar ones.
func (g *graph) unifyNodes(nodes iter.Seq2[int, *node], byKids bool) {
	index := classIndex{postings: map[feature][]*class{}, byKids: byKids}
	met := map[*class]bool{}
	for _, n := range nodes {
		c := n.class.find()
		if byKids && met[c] {
			continue
		}
		met[c] = true
		if !index.hasEnough(c) {
			continue
		}

		if !byKids {
			g.joinAncestor(n)
			c = n.class.find()
		}
		for _, o := range index.candidates(c) {
			c, o = c.find(), o.find()
			if c != o && similarity(c, o) >= minScore {
				tryJoin(o, c)
			}
		}
		index.addClass(n.class.find())
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
			if ts.includes(pair.kids) {
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

// repricingRounds is how often costs are carried upwards by reprice.
const repricingRounds = 3

// reprice judges the payloads again that may be messages: the classes below
// have been pooled since, and what describes a pooled type is paid only once.
func (g *graph) reprice() {
	reached := g.reached()
	for range repricingRounds {
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
