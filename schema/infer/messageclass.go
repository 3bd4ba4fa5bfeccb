package infer

import (
	"maps"
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
	judgement   kind.Judgement
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
func (f *classField) likely() bool { return f.judgement.Kind == wire.KindMessage }

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

// cost is the cost of all messages of the class.
func (c *class) cost() kind.Cost {
	sum := kind.NewTally(c.samples)
	for _, n := range c.numbers {
		f := c.fields[n]
		sum.Add(f.Field, n, f.messageCost)
	}
	return sum.Sum()
}
