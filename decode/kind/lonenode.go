package kind

import (
	"bytes"

	"unwire/decode/kind/bytecost"
	"unwire/decode/kind/stablehash"
	"unwire/decode/value"
	"unwire/decode/wire"
)

// A lone node is the only occurrence of its field in the message, and so are the nodes around it. The statistics of its
// field are those of its own value. A Reader of small messages therefore collects them when they are needed, and needs
// none if its memo has the value.
const (
	// maxLoneNodes is the maximum number of nodes of a message whose lone nodes are judged one by one.
	maxLoneNodes = 64

	// maxLoneNumber is the maximum field number of a lone node.
	maxLoneNumber = 63

	// maxLoneDepth is the maximum depth of a lone node. The types of deeper nodes depend on the limits on nesting as well.
	maxLoneDepth = MaxDepth - maxRemembered/2
)

// findLone adds the lone nodes among the children of node i, and in these, to r.lone. depth is that of the
// children.
func (r *Reader) findLone(i int32, depth int) {
	var seen, twice uint64
	nodes := r.t.Nodes
	for c := nodes[i].First; c != wire.None; c = nodes[c].Next {
		if n := &nodes[c]; n.Number <= maxLoneNumber {
			twice |= seen & (1 << n.Number)
			seen |= 1 << n.Number
		}
	}

	// Malformed fields are no evidence, and those with a violation are judged by more than their value.
	for c := nodes[i].First; c != wire.None; c = nodes[c].Next {
		n := &nodes[c]
		if n.Number == 0 || n.Number > maxLoneNumber || twice&(1<<n.Number) != 0 || !n.Sound() || n.Type == wire.Garbage {
			continue
		}
		r.lone |= 1 << c
		if n.First != wire.None && depth < maxLoneDepth {
			r.findLone(c, depth+1)
		}
	}
}

// isLone reports whether i is a lone node.
func (r *Reader) isLone(i int32) bool { return i < maxLoneNodes && r.lone&(1<<i) != 0 }

// FollowsFromValue reports whether all that the Reader infers about node i, and about the nodes in it, follows from the
// bytes of its value. Then it infers the same from the same bytes in other messages. This is not known of all nodes.
func (r *Reader) FollowsFromValue(i int32) bool { return r.isLone(i) && len(r.chosen) == 0 }

// isDeferred reports whether the statistics of the whole message have not been collected because it has lone nodes.
func (r *Reader) isDeferred() bool { return r.own == nil && r.pooled == nil }

// loneAround returns the innermost lone node around node i that has no statistics yet, or 0.
func (r *Reader) loneAround(i int32) int32 {
	for i = r.t.Nodes[i].Parent; i > 0 && (!r.isLone(i) || r.fields[i] != nil); {
		i = r.t.Nodes[i].Parent
	}
	return i
}

// loneField collects the statistics of lone node i and of the nodes in it.
func (r *Reader) loneField(i int32) *Field {
	e, depth := &r.evidence, 0
	for c := i; c != 0; c = r.t.Nodes[c].Parent {
		depth++
	}
	f := r.memory.newField()
	f.Seen, f.Most, r.fields[i] = 1, 1, f
	f.addNode(e, r.t, i, e.scratch.path[:depth])
	return f
}

// IsClearlyText reports whether the payload of node i is a string with a probability of 0.95 or more, judged by bounds
// that are much faster to compute than the probability. False means that Best decides.
func (r *Reader) IsClearlyText(i int32) bool {
	n := &r.t.Nodes[i]
	if n.Type != wire.Len || n.First != wire.None || !r.FollowsFromValue(i) {
		return false
	}
	p := r.t.Data[n.Val:n.End]
	return bytecost.ClearlyText(p) && value.FileFormat(p) == ""
}

// remembered returns the most probable type of lone node i, or nil if the memo does not have it.
func (r *Reader) remembered(i int32) *Reading {
	m := &r.memory.memo
	if !r.FollowsFromValue(i) {
		return nil
	}
	var known []Reading
	switch n := &r.t.Nodes[i]; n.Type {
	case wire.Varint:
		known = m.numbers[numberClass(r.t.Uint(i))]
	case wire.Len:
		p := r.t.Data[n.Val:n.End]
		if len(p) == 0 || len(p) > maxRemembered {
			return nil
		}
		if k := &m.payloads[stablehash.Bytes(p)%memoPlaces]; bytes.Equal(k.payload, p) {
			known = k.readings
		}
	}
	if len(known) > 0 {
		return &known[0]
	}
	return nil
}
