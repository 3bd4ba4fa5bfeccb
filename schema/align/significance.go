package align

import "unwire/decode/wire"

// A value of sureBytes that agrees is worth sureBits: it is hardly another
// field's, nor this field's in another call.
const (
	sureBytes = 8
	sureBits  = 32
)

const (
	integers = tInt32 | tUint32 | tSint32 | tInt64 | tUint64 | tSint64 | tFixed32 | tSfixed32 | tFixed64 | tSfixed64
	packable = integers | tBool | tEnum | tFloat | tDouble
)

// sureness are the bits of evidence in one value that agrees.
func sureness(t *wire.Tree, node int32, v *value, of types) int {
	n := t.Node(node)
	switch {
	case of == 0:
	case n.Type == wire.Len && v.kind == text && n.End-n.Val >= sureBytes:
		return sureBits
	case v.kind == number && len(v.text) >= sureBytes, v.kind == text && n.Type != wire.Len && of&^tEnum != 0 && len(v.text) >= sureBytes:
		return sureBits
	}
	return 0
}

// sureOf is the evidence in the fields of a message that can be no others.
func (b *body) sureOf(p at) (bits int) {
	if bits, ok := b.sure[p]; ok {
		return bits
	}
	defer func() { b.sure[p] = bits }()
	fields, _ := fieldsOf(p.tree, p.node)
	for _, nodes := range fields {
		found, times := 0, 0
		for _, v := range p.obj.elems {
			if c := b.cell(p.tree, nodes, v); c.ok() {
				found, times = c.sure, times+1
			}
		}
		if times == 1 {
			bits += found
		}
	}
	return bits
}

// overlap is sureOf for a message that is not the same data in both halves: of
// what in it is.
func (b *body) overlap(p at) (bits int) {
	fields, ok := fieldsOf(p.tree, p.node)
	if !ok || p.obj.kind != object {
		return 0
	}
	bits = b.sureOf(p)
	for _, nodes := range fields {
		if len(nodes) != 1 || !p.tree.IsMessage(nodes[0]) {
			continue
		}
		for _, v := range p.obj.elems {
			if b.left--; b.left < 0 {
				return bits
			}
			if in := (at{p.tree, nodes[0], v}); v.kind == object && b.agree(in) == differs {
				bits += b.overlap(in)
			}
		}
	}
	return bits
}
