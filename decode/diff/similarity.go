package diff

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"unwire/decode"
	"unwire/decode/transcript/shape"
)

// order compares two nodes by key, kind, value and children, for sorting. Nodes with equal content are equal.
func order(a, b *node) int {
	if a.exact == b.exact {
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.key, b.key), cmp.Compare(a.kind, b.kind), cmp.Compare(a.wire, b.wire), cmp.Compare(a.number, b.number),
		strings.Compare(a.text, b.text), bytes.Compare(a.bytes, b.bytes), slices.CompareFunc(a.children, b.children, order),
	)
}

// similarity returns how much the contents of two nodes have in common, from 0 (nothing) to 1 (equal).
func similarity(a, b *node) float64 {
	switch {
	case a.kind != b.kind || a.wire != b.wire:
		return 0
	case a.exact == b.exact:
		return 1
	case a.alike == b.alike:
		return volatileSimilarity
	}
	switch a.kind {
	case text:
		return scalarFloor + (1-scalarFloor)*commonEnds(a.text, b.text)
	case object, list:
		return objectSimilarity(a, b)
	}
	return scalarFloor
}

// objectSimilarity is the weighted average of the members' similarities, plus a share for equal keys. Elements
// of one key are compared in order.
func objectSimilarity(a, b *node) float64 {
	as, bs := a.children, b.children

	// Both lists of members are sorted by key.
	shared, keys := 0.0, 0.0
	common, all := 0.0, 0.0
	for len(as) > 0 || len(bs) > 0 {
		switch {
		case len(bs) == 0 || len(as) > 0 && less(as[0].key, bs[0].key, a.wire == 0):
			keys++
			all += as[0].weight
			as = as[1:]
		case len(as) == 0 || less(bs[0].key, as[0].key, a.wire == 0):
			keys++
			all += bs[0].weight
			bs = bs[1:]
		default:
			keys++
			shared++
			w := (as[0].weight + bs[0].weight) / 2
			all += w
			common += w * similarity(as[0], bs[0])
			as, bs = as[1:], bs[1:]
		}
	}
	if keys == 0 {
		return 1
	}
	return shapeShare*shared/keys + (1-shapeShare)*common/all
}

// commonEnds returns the length of the common beginning and end, as a share of the longer text.
func commonEnds(a, b string) float64 {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	head := 0
	for head < short && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return float64(head+tail) / float64(long)
}

// Similarity returns how much two frames have in common, from 0 (nothing) to 1 (equal content). Values that differ
// in every run, such as ids and times, count as nearly equal.
func Similarity(a, b *decode.Frame) float64 {
	c := newComparison(Options{})
	var s shape.Shape
	for _, f := range []*decode.Frame{a, b} {
		if f.Tree != nil {
			s.Add(f.Tree)
		}
	}
	return similarity(c.fromFrame(&s, a), c.fromFrame(&s, b))
}
