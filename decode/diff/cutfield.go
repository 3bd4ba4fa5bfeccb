package diff

import (
	"errors"
	"unicode/utf8"

	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

// maxCuts bounds fields that are cut off within each other.
const maxCuts = 100

// cut makes a node of what is there of a field that is longer than the bytes that are
// left, or returns nil where node i is something else.
//
// Shape: a message where it begins with a field and nothing is wrong with it but that it
// ends; text where that is all it is, up to its last whole character; else bytes. Of text and bytes the wire
// type is Garbage: a whole field is not the same, though its value may be.
func (c *comparison) cut(t *wire.Tree, i int32) *node {
	f := &t.Nodes[i]
	number, length, head, ok := cutHead(t, i)
	if !ok || c.cuts >= maxCuts {
		return nil
	}
	data := t.Payload(i)
	there := data[head:]
	n := &node{key: c.key(number), wire: wire.Garbage, tree: t, at: i}
	words := wholeRunes(there)
	switch sub := wire.Parse(there, wire.Options{}); {
	case shape.FitOf(words) == shape.Clean && len(words) > 0:
		n.kind, n.text = text, string(words)
	case sub.OnlyCut() && beginsWithField(sub):
		var s shape.Shape
		s.Add(sub)
		c.cuts++
		inner := c.fromTree(&s, sub)
		c.cuts--
		n.kind, n.wire, n.children = object, wire.Len, inner.children
		for _, child := range n.children {
			child.shift(f.Off + head)
		}
		// It ends between two fields.
		if last := len(sub.Nodes) - 1; sub.Nodes[last].Type != wire.Garbage {
			end := &node{wire: wire.Garbage, kind: garbage, bytes: data[:head]}
			c.hash(end)
			n.children = append([]*node{end}, n.children...)
		}
		c.hash(n)
		return n
	default:
		n.kind, n.bytes = blob, there
	}
	c.hash(n)
	n.exact = c.mix(n.exact, length)
	n.member = c.mix(c.sum(n.key), n.exact)
	return n
}

// cutHead returns the number and the length of a field that is longer than the bytes
// that are left of it, and how long its tag and length are.
func cutHead(t *wire.Tree, i int32) (number, length uint64, head int, ok bool) {
	var e *wire.Error
	if !errors.As(t.Nodes[i].Err, &e) || e.Reason != wire.LengthRange {
		return 0, 0, 0, false
	}
	data := t.Payload(i)
	tag, tagLen := wire.ConsumeVarint(data)
	if tagLen <= 0 {
		return 0, 0, 0, false
	}
	length, lengthLen := wire.ConsumeVarint(data[tagLen:])
	head = tagLen + lengthLen
	return tag >> 3, length, head, lengthLen > 0 && tag>>3 > 0 && head < len(data)
}

// beginsWithField reports whether a whole field stands first, or one that is cut off.
func beginsWithField(t *wire.Tree) bool {
	if len(t.Nodes) < 2 {
		return false
	}
	_, _, _, ok := cutHead(t, 1)
	return ok || t.Nodes[1].Type != wire.Garbage
}

// shift moves the places of a node's bytes, which were told of a part of the message.
func (n *node) shift(by int) {
	n.base += by
	for _, child := range n.children {
		child.shift(by)
	}
}

// wholeRunes is b without a character at its end that is cut off.
func wholeRunes(b []byte) []byte {
	for k := len(b) - 1; k >= 0 && k > len(b)-utf8.UTFMax; k-- {
		if utf8.RuneStart(b[k]) && !utf8.FullRune(b[k:]) {
			return b[:k]
		}
	}
	return b
}
