package bundle

import (
	"math"
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

// str returns the string that an expression is.
func (s *script) str(n *node) (string, bool) {
	if s.deep++; n == nil || s.deep > maxDepth {
		s.deep--
		return "", false
	}
	defer func() { s.deep-- }()
	switch v := s.value(n); v.kind {
	case nString:
		return v.str, true
	case nTemplate:
		var b strings.Builder
		for i, k := range v.kids {
			part, ok := k.str, true
			if i%2 == 1 {
				part, ok = s.str(k)
			}
			if !ok || !s.compose(&b, v.at, part) {
				return "", false
			}
		}
		return b.String(), len(v.kids) > 0
	case nBinary:
		if v.op != js.AddToken {
			return "", false
		}
		return s.concat(v)
	case nCall:
		// ["a", "b"].join("")
		if f := v.kids[0]; f.kind == nMember && (f.str == "join" || f.str == "concat") {
			return s.joined(f, v.kids[1:])
		}
	}
	return "", false
}

// concat returns a chain of +, which may be long, without recursion to its left.
func (s *script) concat(n *node) (string, bool) {
	var parts []string
	for n.kind == nBinary && n.op == js.AddToken {
		right, ok := s.str(n.kids[1])
		if !ok || !s.claimMemory(n.at, partMemory) {
			return "", false
		}
		parts = append(parts, right)
		n = n.kids[0]
	}
	first, ok := s.str(n)
	if !ok {
		return "", false
	}
	var b strings.Builder
	for _, part := range slices.Backward(append(parts, first)) {
		if !s.compose(&b, n.at, part) {
			return "", false
		}
	}
	return b.String(), true
}

func (s *script) joined(f *node, args []*node) (string, bool) {
	list, sep := args, ""
	var b strings.Builder
	if f.str == "join" {
		arr := s.value(f.kids[0])
		if arr == nil || arr.kind != nArray || len(args) != 1 {
			return "", false
		}
		var ok bool
		if sep, ok = s.str(args[0]); !ok {
			return "", false
		}
		list = arr.kids
	} else {
		list = append([]*node{f.kids[0]}, args...)
	}
	for i, k := range list {
		part, ok := s.str(k)
		if !ok || i > 0 && !s.compose(&b, k.at, sep) || !s.compose(&b, k.at, part) {
			return "", false
		}
	}
	return b.String(), true
}

// integer returns the whole number that an expression is.
func (s *script) integer(n *node) (int64, bool) {
	if s.deep++; n == nil || s.deep > maxDepth {
		s.deep--
		return 0, false
	}
	defer func() { s.deep-- }()
	v := s.value(n)
	if v == nil || v.kind == nBad {
		return 0, false
	}
	if v.kind == nUnary && (v.op == js.SubToken || v.op == js.BitNotToken || v.op == js.AddToken) {
		x, ok := s.integer(v.kids[0])
		switch v.op {
		case js.SubToken:
			return -x, ok
		case js.BitNotToken:
			return ^x, ok
		}
		return x, ok
	}
	if v.kind == nBinary && v.op == js.LtLtToken {
		a, ok1 := s.integer(v.kids[0])
		b, ok2 := s.integer(v.kids[1])
		return a << (uint64(b) & 31), ok1 && ok2
	}
	if v.kind != nNumber || v.num != math.Trunc(v.num) || math.Abs(v.num) > 1<<53 {
		return 0, false
	}
	return int64(v.num), true
}

// boolean returns the truth of an expression.
func (s *script) boolean(n *node) bool {
	if s.deep++; n == nil || s.deep > maxDepth {
		s.deep--
		return false
	}
	defer func() { s.deep-- }()
	switch v := s.value(n); v.kind {
	case nBool, nNumber:
		return v.num != 0
	case nUnary:
		return v.op == js.NotToken && !s.boolean(v.kids[0])
	}
	return false
}

// elements are the expressions of an array, or of a function that returns one,
// with ...others in place. ok is false where it is no array.
func (s *script) elements(n *node) (list []*node, ok bool) {
	if s.deep++; n == nil || s.deep > maxDepth {
		s.deep--
		return nil, false
	}
	defer func() { s.deep-- }()
	v := s.value(n)
	if v != nil && v.kind == nFunc {
		v = s.result(v)
		if v != nil {
			v = s.value(v)
		}
	}
	if v == nil || v.kind != nArray {
		return nil, false
	}
	for _, k := range v.kids {
		more := []*node{k}
		if k.kind == nSpread {
			more, _ = s.elements(k.kids[0])
		}
		if !s.claimMemory(k.at, elementMemory*len(more)) {
			return nil, false
		}
		list = append(list, more...)
	}
	return list, true
}

// object returns the object literal that an expression stands for, with
// ...others in place, or nil.
func (s *script) object(n *node) *node {
	if s.deep++; n == nil || s.deep > maxDepth {
		s.deep--
		return nil
	}
	defer func() { s.deep-- }()
	v := s.value(n)
	if v == nil {
		return nil
	}
	if v.kind == nCall && len(v.kids) > 1 { // Object.freeze, Object.assign({}, …)
		v = v.kids[1]
	}
	if v.kind != nObject {
		return nil
	}
	flat := true
	for _, p := range v.props {
		flat = flat && !p.spread
	}
	if flat {
		return v
	}
	whole := *v
	whole.props = nil
	for _, p := range v.props {
		more := []prop{p}
		if p.spread {
			more = nil
			if o := s.object(p.value); o != nil {
				more = o.props
			}
		}
		if !s.claimMemory(p.at, propertyMemory*len(more)) {
			return nil
		}
		whole.props = append(whole.props, more...)
	}
	return &whole
}
