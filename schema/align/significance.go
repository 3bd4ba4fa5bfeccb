package align

import "unwire/decode/wire"

// Evidence of equal values. A long value is hardly equal to that of another field, or of this field in another
// call, by chance.
const (
	// significantBytes is the length from which on a value counts as evidence: bytes of a text, or digits of a
	// number.
	significantBytes = 8
	// significantBits is the evidence in bits that one such value contributes.
	significantBits = 32
)

// Sets of types.
const (
	// integers is the set of all integer types.
	integers = tInt32 | tUint32 | tSint32 | tInt64 | tUint64 | tSint64 | tFixed32 | tSfixed32 | tFixed64 | tSfixed64
	// packable is the set of the types whose repeated fields may be packed.
	packable = integers | tBool | tEnum | tFloat | tDouble
)

// valueSignificance returns the bits of evidence in one value that is equal in both forms. of are the types
// that fit; 0 if none does.
func valueSignificance(t *wire.Tree, node int32, v *value, of types) int {
	n := t.Node(node)
	switch {
	case of == 0:
	// Long texts and bytes hardly agree by chance.
	case n.Type == wire.Len && v.kind == text && n.End-n.Val >= significantBytes:
		return significantBits
	case v.kind == number && len(v.text) >= significantBytes, v.kind == text && n.Type != wire.Len && of&^tEnum != 0 && len(v.text) >= significantBytes:
		return significantBits
	}
	return 0
}

// significanceOf returns the bits of evidence that a protobuf message and a JSON object are the same data. It
// sums up the fields whose value agrees with exactly one JSON member.
func (b *body) significanceOf(p messagePair) (bits int) {
	if bits, ok := b.significance[p]; ok {
		return bits
	}
	defer func() { b.significance[p] = bits }()
	fields, _ := fieldsOf(p.tree, p.node)
	for _, nodes := range fields {
		found, times := 0, 0
		for _, v := range p.obj.elems {
			if c := b.cell(p.tree, nodes, v); c.ok() {
				found, times = c.significance, times+1
			}
		}
		// A value that agrees with several members proves nothing about any.
		if times == 1 {
			bits += found
		}
	}
	return bits
}

// overlap is significanceOf for a message and an object that are not the same data. It also counts nested
// messages that only resemble each other.
func (b *body) overlap(p messagePair) (bits int) {
	fields, ok := fieldsOf(p.tree, p.node)
	if !ok || p.obj.kind != object {
		return 0
	}
	bits = b.significanceOf(p)
	for _, nodes := range fields {
		if len(nodes) != 1 || !p.tree.IsMessage(nodes[0]) {
			continue
		}
		for _, v := range p.obj.elems {
			if b.comparisonsLeft--; b.comparisonsLeft < 0 {
				return bits
			}
			if in := (messagePair{p.tree, nodes[0], v}); v.kind == object && b.agree(in) == differs {
				bits += b.overlap(in)
			}
		}
	}
	return bits
}
