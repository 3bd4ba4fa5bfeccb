package infer

import (
	"cmp"
	"iter"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A graph has the classes (candidate message types) of one inferred file.
type graph struct {
	// costs caches the description lengths of messages.
	costs kind.Costs
	// nodes are the recorded messages by path of field numbers, sorted by depth.
	nodes []*node
	// roots are the classes of the root types (types of whole messages).
	roots []*class
	// nextID is the id of the next class that is created.
	nextID int
	// joins is the number of merges so far.
	joins int
	// deep is set if messages were nested too deeply to be examined.
	deep bool

	// choices are the types that users chose for fields of the root type that is being built, by field path.
	choices map[string]kind.Choice
}

// newGraph creates a separate class for each path at which messages occur below the root types.
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

// build creates the class of m and, recursively, those of its fields. Only payloads that are inferred to be
// messages become nodes, which unify compares; live is false below all other payloads. at is the field number
// in parent, and path the path of field numbers from the root.
func (g *graph) build(m *kind.Message, parent *node, at int32, path string, live bool) *class {
	n := &node{m: m, parent: parent}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	c := &class{id: g.nextID, samples: m.Samples, distinctSamples: float64(m.Samples), fields: map[int32]*classField{}, numbers: m.Numbers(), depth: n.depth}
	c.atDepthLimit = n.depth >= kind.MaxDepth
	g.nextID++
	if parent != nil {
		c.parentClass, c.parentField = parent.class, at
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
		// Without choices the path is not needed, and it is costly to build.
		here := ""
		if len(g.choices) > 0 {
			here = childPath(path, number)
			if choice, ok := g.choices[here]; ok {
				cf.chosen = &choice
			}
		}
		cf.judge()

		// The classes of possible messages are needed even if the payloads are read as something else now:
		// reprice may change that.
		if f.Child != nil {
			cf.childClass = g.build(f.Child, n, number, here, live && (cf.isMessage() || cf.chosen != nil && cf.chosen.Kind == wire.KindMessage))
			if cf.chosen != nil {
				cf.judge()
			}
			cf.childClass.entry = !f.Len.NotMap && f.Most > 1
			cf.childClass.distinctSamples *= f.Len.Novelty()
		}
		if f.Group != nil {
			cf.groupClass = g.build(f.Group, n, number, here, false)
		}
		c.fields[number] = cf
	}
	return c
}

// Limits of the search for classes of the same type. Beyond them, classes stay separate.
const (
	// maxPosting is the maximum number of classes in the index for one feature.
	maxPosting = 256

	// maxCandidates is the maximum number of classes with which one class is compared.
	maxCandidates = 8

	// minScore is the minimum evidence, in nats, for merging two classes.
	minScore = 2.2
)

// unifyRounds is the maximum number of rounds of unify. Most graphs need two.
const unifyRounds = 3

// unify merges the classes that are one type. Each round goes from the roots to the leaves, and then back,
// because the types of fields help to decide whether the messages around them are of one type. It ends when a
// round merges nothing.
func (g *graph) unify() {
	g.joinStructs()
	for range unifyRounds {
		before := g.joins
		g.unifyNodes(slices.All(g.nodes), false)
		g.unifyNodes(slices.Backward(g.nodes), true)
		if g.joins == before {
			return
		}
	}
}

// A feature is a property of a class by which the index finds similar classes: a field with a kind of values.
type feature struct {
	// number is the number of the field.
	number int32
	// kind is the inferred kind of the field.
	kind wire.Kind

	// childID is the class of the payloads of a message field, or 0 if it is not compared.
	childID int
}

// A classIndex is an inverted index from features to classes. It finds the classes that have features in common
// with another.
type classIndex struct {
	// postings maps each feature to the classes that have it.
	postings map[feature][]*class

	// byChildren is set if features include the class of a field's payloads.
	byChildren bool
}

// feature returns field n of c as a key of the index.
func (x *classIndex) feature(c *class, n int32) feature {
	f := c.fields[n]
	if x.byChildren && f.childClass != nil && f.isMessage() {
		return feature{n, f.judgement.Kind, f.childClass.find().id}
	}
	return feature{n, f.judgement.Kind, 0}
}

// candidates returns at most maxCandidates classes, those that have most features in common with c.
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

// addClass adds the class c to the index under each of its fields.
func (x *classIndex) addClass(c *class) {
	for _, number := range c.numbers {
		k := x.feature(c, number)
		if list := x.postings[k]; len(list) < maxPosting && !slices.Contains(list, c) {
			x.postings[k] = append(list, c)
		}
	}
}

// unifyNodes compares the class of each node with the classes of earlier nodes, and merges similar ones. byKids
// is classIndex.byChildren.
func (g *graph) unifyNodes(nodes iter.Seq2[int, *node], byKids bool) {
	index := classIndex{postings: map[feature][]*class{}, byChildren: byKids}
	met := map[*class]bool{}
	for _, n := range nodes {
		c := n.class.find()
		if byKids && met[c] {
			continue
		}
		met[c] = true
		if len(c.fields) == 0 {
			continue
		}

		// Recursive types are found along the path to the root, before the index is asked.
		if !byKids {
			g.joinAncestor(n)
			c = n.class.find()
		}
		for _, o := range index.candidates(c) {
			c, o = c.find(), o.find()
			if c != o {
				g.tryJoin(o, c, minScore)
			}
		}
		index.addClass(n.class.find())
	}
}

// joinAncestor merges the class of n with that of the nearest enclosing message that may be of the same type,
// as in recursive types.
func (g *graph) joinAncestor(n *node) {
	for a := n.parent; a != nil; a = a.parent {
		c, o := n.class.find(), a.class.find()
		if c == o || c.entry {
			return
		}
		if contained(c, o) && g.tryJoin(o, c, ownScore+0.3*float64(n.depth-a.depth)) {
			return
		}
	}
}

// maxPending is the maximum number of pairs that a merge in progress tries again together.
const maxPending = 64

// Limits, in nats, of the evidence for merging two classes from the classes of their common message fields,
// which must be merged as a consequence (the pairs below).
const (
	// leastOwn is the minimum evidence for merging from the two classes themselves.
	leastOwn = 0.3
	// shareBelow scales positive evidence from each pair below, because messages resemble each other for other
	// reasons as well. mostBelow is its maximum for each pair.
	shareBelow, mostBelow = 0.5, 0.8
	// leastBelow is the minimum of (negative) evidence from each pair below.
	leastBelow = -3.0
	// mostFromBelow is how much of the required evidence may come from the pairs below.
	mostFromBelow = 1.6
)

// onlyNests reports whether a contains b through messages that have one field only, and b has only that field,
// too. A type that contains nothing but itself would have no end.
func onlyNests(a, b *class) bool {
	for range kind.MaxDepth {
		if len(a.numbers) != 1 || len(b.numbers) != 1 || a.numbers[0] != b.numbers[0] || a.fields[a.numbers[0]].childClass == nil {
			return false
		}
		if a = a.fields[a.numbers[0]].childClass.find(); a == b {
			return true
		}
	}
	return false
}

// sharedMessages returns the number of fields that are messages of different classes in a and b.
func sharedMessages(a, b *class) (n int) {
	for _, number := range a.numbers {
		x, y := a.fields[number], b.fields[number]
		if y != nil && x.childClass != nil && y.childClass != nil && x.childClass.find() != y.childClass.find() {
			n++
		}
	}
	return n
}

// tryJoin merges class b into a, and the classes of their common message fields, if nothing contradicts that
// and the evidence from all of them is at least least, in nats. It reports whether it did.
func (g *graph) tryJoin(a, b *class, least float64) bool {
	if onlyNests(a, b) || onlyNests(b, a) {
		return false
	}
	evidence := similarity(a, b)
	if evidence < leastOwn || evidence < least-min(mostBelow*float64(sharedMessages(a, b)), mostFromBelow) {
		return false
	}
	// A merge cannot be undone, so it is tried on copies first.
	ts, below, ok := compatible(false, [2]*class{a, b})
	if !ok {
		return false
	}
	for _, pair := range below[1:min(len(below), maxPending)] {
		s := similarity(pair[0], pair[1])
		if s > 0 {
			s = min(s*shareBelow, mostBelow)
		}
		evidence += max(s, leastBelow)
	}
	if evidence < least {
		return false
	}
	g.join(a, b, ts)
	return true
}

// joinCompatible merges class b into a, and the classes of their common message fields, if nothing contradicts that.
func (g *graph) joinCompatible(a, b *class) {
	if a == b {
		return
	}
	if ts, _, ok := compatible(false, [2]*class{a, b}); ok {
		g.join(a, b, ts)
	}
}

// join merges class b into a, and the classes of their common message fields. ts is the result of the trial.
//
// With the evidence of both classes, a field may be inferred to be a message that was not one in either
// class. Such payloads were not part of the trial, so they are tried together with the remaining pairs.
// If that fails, the field is not declared as a message.
func (g *graph) join(a, b *class, ts trials) {
	g.joins++
	for work := [][2]*class{{a, b}}; len(work) > 0; {
		a, b := work[len(work)-1][0].find(), work[len(work)-1][1].find()
		work = work[:len(work)-1]
		if a == b {
			continue
		}
		for _, pair := range mergeClasses(a, b) {
			if ts.includes(pair.children) {
				work = append(work, pair.children)
				continue
			}
			// Everything that remains must still fit together with the new pair.
			if len(work) < maxPending {
				if more, _, ok := compatible(true, append(slices.Clone(work), pair.children)...); ok {
					ts, work = more, append(work, pair.children)
					continue
				}
			}
			pair.field.forbidMessage()
		}
	}
}

// repricingRounds is the number of times that reprice propagates costs from the leaves to the roots.
const repricingRounds = 3

// reprice decides again which payloads are messages, because classes were merged since the first decision, and
// the description of a merged type is counted only once (minimum description length).
func (g *graph) reprice() {
	reached := g.reachable()
	for range repricingRounds {
		for _, c := range slices.Backward(reached) {
			for _, n := range c.numbers {
				f := c.fields[n]
				if f.childClass == nil || f.Len == nil {
					continue
				}
				kid := f.childClass.find()
				// The cost of the class is shared by all its fields, in proportion to their payloads.
				cost := kid.cost().Of(f.Len.Novelty()) * float64(f.Len.N) / float64(max(kid.samples, 1))
				if cost < f.messageCost {
					f.messageCost = cost
					f.judge()
				}
			}
		}
	}
}

// reachable returns the classes that are reachable from the root types through payloads that are or may be
// messages, in breadth-first order.
func (g *graph) reachable() []*class {
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
			if kid := list[i].fields[n].childClass; kid != nil {
				add(kid)
			}
		}
	}
	return list
}
