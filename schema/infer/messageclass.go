package infer

import (
	"fmt"
	"maps"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A node is all recorded messages at one path of field numbers below a root type (a type of whole messages).
type node struct {
	// m has the statistics of the node's messages.
	m *kind.Message
	// parent is the node of the enclosing message, nil for a root.
	parent *node
	// depth is the number of enclosing messages.
	depth int
	// class is the class to which the node was first assigned. class.find returns the current one.
	class *class
}

// A class is a candidate for one message type: the nodes (paths) whose messages were found to be of the same
// type, with the evidence about their fields merged. Classes form a union-find structure (Tarjan 1975):
// mergedInto is the parent link and find follows it. The class of a field's payloads belongs to the field, so
// merging two classes also merges the classes of their common fields. This is congruence closure (Nelson and
// Oppen 1980).
type class struct {
	// mergedInto is the class into which this class was merged, or nil (union-find).
	mergedInto *class
	// id is the number of the class, in the order in which classes were created.
	id int
	// root is the name of the root type if one of the nodes is a root, or "".
	root string
	// samples is the number of recorded messages of the class.
	samples int64
	// distinctSamples is the estimated number of messages that are not copies of others.
	distinctSamples float64
	// fields maps field numbers to the fields of the class.
	fields map[int32]*classField
	// numbers are the field numbers in ascending order.
	numbers []int32
	// candidates are the groups of fields that may be a oneof but are not declared as one.
	candidates []oneof
	// keyed is set if messages of this class contain a list that could be a map.
	keyed bool
	// entry is set if the messages look like map entries.
	entry bool
	// name is the name of the type. It is assigned when the type is written.
	name string
	// depth is the nesting depth of the first node of the class.
	depth int
	// known is the well-known type, such as Timestamp, that the class seems to be, if any.
	known wellKnown
	// parentClass is the class with the field that led to the first node; nil for a root.
	parentClass *class
	// parentField is the number of the field, in parentClass, that led to the first node.
	parentField int32
	// atDepthLimit is set if the messages are at the maximum nesting depth, so that their fields were not
	// examined.
	atDepthLimit bool
}

// A classField is a field of a class (a candidate message type).
type classField struct {
	// Field is the merged evidence of all nodes. Its Child and Group are not set.
	*kind.Field
	// messageCost is the cost in nats of encoding the payloads under the hypothesis that they are messages
	// (minimum description length). See kind.Cost.
	messageCost float64
	// judgement is the inferred kind of the field's values.
	judgement kind.Judgement
	// childClass is the class of the payloads if they may be messages, and groupClass that of groups; otherwise
	// nil.
	childClass, groupClass *class

	// notMessage explains why the field is declared as bytes although its payloads can be parsed as
	// messages; otherwise "".
	notMessage string

	// chosen is the type that a user chose for the field, or nil.
	chosen *kind.Choice
	// chosenFits is set if all values can be read as chosen.
	chosenFits bool
}

// A oneof is a set of fields of which each message contains at most one.
type oneof struct {
	// numbers are the numbers of the fields in ascending order.
	numbers []int32
	// p is the probability that the fields form a oneof.
	p float64
	// candidate is set if the only evidence is that the fields never occurred together. Such a oneof is
	// reported in comments and not declared.
	candidate bool
}

// name returns the name of the oneof in the .proto file.
func (c *oneof) name() string { return fmt.Sprintf("choice_%d", c.numbers[0]) }

// A wellKnown is a well-known type of protobuf, such as Timestamp, that a class seems to be.
type wellKnown struct {
	// name is the full name of the type, and file the path of the file that declares it.
	name, file string
	// p is the probability that the class is of the type, from 0 to 1.
	p float64

	// note is the comment to write instead if p is too low to declare the type.
	note string
}

// find returns the class into which c was merged, directly or indirectly, or c itself. It halves the path on
// the way (union-find).
func (c *class) find() *class {
	for c.mergedInto != nil {
		if c.mergedInto.mergedInto != nil {
			c.mergedInto = c.mergedInto.mergedInto
		}
		c = c.mergedInto
	}
	return c
}

// distinctShare returns the estimated share of messages, from 0 to 1, that are not copies of others.
func (c *class) distinctShare() float64 { return c.distinctSamples / float64(max(c.samples, 1)) }

// isMessage reports whether the payloads of the field are inferred to be messages.
func (f *classField) isMessage() bool { return f.judgement.Kind == wire.KindMessage }

// countZeros returns the number of zero values, which a field without explicit presence would have omitted. k
// is the kind of the field.
func countZeros(f *kind.Field, k wire.Kind) int64 {
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

// A childPair is a pair of classes that must be merged because they are the types of two fields that were
// merged.
type childPair struct {
	// field is the merged field.
	field *classField
	// children are the classes of the payloads of the two fields before they were merged.
	children [2]*class
}

// mergeClasses merges two classes into one. It returns the pairs of classes that must be merged as a
// consequence.
func mergeClasses(a, b *class) []childPair {
	// A root keeps its identity; otherwise the class nearest to a root does.
	if b.root != "" || a.root == "" && (b.depth < a.depth || b.depth == a.depth && b.id < a.id) {
		a, b = b, a
	}
	b.mergedInto = a
	a.samples += b.samples
	a.distinctSamples += b.distinctSamples
	a.atDepthLimit = a.atDepthLimit || b.atDepthLimit
	var pairs []childPair
	for _, n := range b.numbers {
		x, y := a.fields[n], b.fields[n]
		if x == nil {
			a.fields[n] = y
			continue
		}
		kid := y.childClass
		if x.absorb(y); kid != nil && x.childClass != nil {
			pairs = append(pairs, childPair{x, [2]*class{x.childClass, kid}})
		}
	}
	a.numbers = slices.Sorted(maps.Keys(a.fields))
	return pairs
}

// absorb adds the evidence of the field o to f. The payloads are no longer taken for messages unless those of
// both fields may be.
func (f *classField) absorb(o *classField) {
	// A payload that both fields had is encoded once, as under every other hypothesis.
	each := f.costIfDistinct() + o.costIfDistinct()
	f.MergeFlat(o.Field)
	if f.messageCost = each; f.Len != nil {
		f.messageCost *= f.Len.Novelty()
	}
	if f.chosen == nil {
		f.chosen = o.chosen
	}
	f.judge()
	if f.Len != nil && (f.childClass == nil) != (o.childClass == nil) {
		f.forbidMessage()
	}
}

// costIfDistinct returns the cost in nats of the payloads as messages, as if none were a copy of another.
func (f *classField) costIfDistinct() float64 {
	if f.Len == nil {
		return f.messageCost
	}
	return f.messageCost / f.Len.Novelty()
}

// forbidMessage excludes that the field's payloads are messages, and decides its kind again.
func (f *classField) forbidMessage() {
	f.Len.NotMessage = true
	f.childClass, f.messageCost = nil, 0
	f.judge()
}

// cost returns the cost of encoding all messages of the class (minimum description length principle).
func (c *class) cost() kind.Cost {
	sum := kind.NewTally(c.samples)
	for _, n := range c.numbers {
		f := c.fields[n]
		sum.Add(f.Field, n, f.messageCost)
	}
	return sum.Sum()
}
