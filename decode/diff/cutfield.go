package diff

import (
	"unicode/utf8"

	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

// maxTruncatedNesting is the maximum number of truncated fields inside each other that are compared.
const maxTruncatedNesting = 100

// truncated returns a node for the available part of a truncated field, i.e. one whose declared length exceeds the
// data. It returns nil if node i is not such a field.
//
// Shape: a message if the part begins with a field and is sound apart from its missing end. Text if it is text
// up to its last whole character. Bytes otherwise. Text and bytes have the wire type Garbage, so that a
// truncated field differs from a whole one with the same value.
func (c *comparison) truncated(t *wire.Tree, i int32) *node {
	f := &t.Nodes[i]
	number, length, head, ok := truncatedHead(t, i)
	if !ok || c.truncations >= maxTruncatedNesting {
		return nil
	}
	data := t.Payload(i)
	available := data[head:]
	n := &node{key: c.fieldKey(number), wire: wire.Garbage, tree: t, at: i}
	// The kinds are those of package decode, but text takes precedence, because nothing declares a message here.
	content := wholeRunes(available)
	switch sub := wire.Parse(available, wire.Options{}); {
	case shape.FitOf(content) == shape.Clean && len(content) > 0:
		n.kind, n.text = text, string(content)
	case sub.OnlyTruncated() && beginsWithField(sub):
		var s shape.Shape
		s.Add(sub)
		c.truncations++
		inner := c.fromTree(&s, sub)
		c.truncations--
		n.kind, n.wire, n.children = object, wire.Len, inner.children
		for _, child := range n.children {
			child.shift(f.Off + head)
		}
		// If the part ends between two fields, mark the truncation by a node of its own.
		if last := len(sub.Nodes) - 1; sub.Nodes[last].Type != wire.Garbage {
			end := &node{wire: wire.Garbage, kind: garbage, bytes: data[:head]}
			c.hash(end)
			n.children = append([]*node{end}, n.children...)
		}
		c.hash(n)
		return n
	default:
		n.kind, n.bytes = blob, available
	}

	c.hash(n)
	// The declared length is part of the content.
	n.exact = c.mix(n.exact, length)
	n.member = c.mix(c.hashString(n.key), n.exact)
	return n
}

// truncatedHead parses the tag and length of node i, if it is a field that extends beyond the data; otherwise ok is
// false. number is the field's number, length its declared length, and head the size of tag and length, both in
// bytes.
func truncatedHead(t *wire.Tree, i int32) (number, length uint64, head int, ok bool) {
	// A type assertion, since errors.As is slow and a message may have a million errors.
	if e, ok := t.Fault(t.Node(i)).(*wire.Error); !ok || e.Reason != wire.LengthRange {
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

// beginsWithField reports whether a tree begins with a field: a complete one, or one that is cut off at the end of the
// data.
func beginsWithField(t *wire.Tree) bool {
	if len(t.Nodes) < 2 {
		return false
	}
	_, _, _, ok := truncatedHead(t, 1)
	return ok || t.Nodes[1].Type != wire.Garbage
}

// shift adds by to the offsets of n and all nodes below it. It converts offsets in a part of the message to offsets
// in the whole message.
func (n *node) shift(by int) {
	n.base += by
	for _, child := range n.children {
		child.shift(by)
	}
}

// wholeRunes returns b without an incomplete UTF-8 character at its end.
func wholeRunes(b []byte) []byte {
	for k := len(b) - 1; k >= 0 && k > len(b)-utf8.UTFMax; k-- {
		if utf8.RuneStart(b[k]) && !utf8.FullRune(b[k:]) {
			return b[:k]
		}
	}
	return b
}
