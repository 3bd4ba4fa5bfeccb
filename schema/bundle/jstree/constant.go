package jstree

import (
	"math"
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

// Str returns the string that an expression evaluates to. ok is false if it is not a constant string.
func (s *Script) Str(n *Node) (string, bool) {
	if s.deep++; n == nil || s.deep > MaxDepth {
		s.deep--
		return "", false
	}
	defer func() { s.deep-- }()
	switch v := s.Value(n); v.Kind {
	case StringNode:
		return v.Str, true

	// Every second part of a template is an expression.
	case nTemplate:
		var b strings.Builder
		for i, k := range v.Kids {
			part, ok := k.Str, true
			if i%2 == 1 {
				part, ok = s.Str(k)
			}
			if !ok || !s.compose(&b, v.At, part) {
				return "", false
			}
		}
		return b.String(), len(v.Kids) > 0
	case BinaryNode:
		if v.Op != js.AddToken {
			return "", false
		}
		return s.concat(v)
	case CallNode:
		// This is ["a", "b"].join("").
		if f := v.Kids[0]; f.Kind == MemberNode && (f.Str == "join" || f.Str == "concat") {
			return s.joined(f, v.Kids[1:])
		}
	}
	return "", false
}

// concat evaluates a chain of + on constant strings. It uses no recursion for left operands, because chains may
// be long.
func (s *Script) concat(n *Node) (string, bool) {
	var parts []string
	for n.Kind == BinaryNode && n.Op == js.AddToken {
		right, ok := s.Str(n.Kids[1])
		if !ok || !s.ClaimMemory(n.At, partMemory) {
			return "", false
		}
		parts = append(parts, right)
		n = n.Kids[0]
	}
	first, ok := s.Str(n)
	if !ok {
		return "", false
	}
	var b strings.Builder
	// The parts were collected from right to left.
	for _, part := range slices.Backward(append(parts, first)) {
		if !s.compose(&b, n.At, part) {
			return "", false
		}
	}
	return b.String(), true
}

// joined evaluates a call of join or concat on constant strings. f is the called expression.
func (s *Script) joined(f *Node, args []*Node) (string, bool) {
	list, sep := args, ""
	var b strings.Builder
	if f.Str == "join" {
		arr := s.Value(f.Kids[0])
		if arr == nil || arr.Kind != ArrayNode || len(args) != 1 {
			return "", false
		}
		var ok bool
		if sep, ok = s.Str(args[0]); !ok {
			return "", false
		}
		list = arr.Kids
	} else {
		list = append([]*Node{f.Kids[0]}, args...)
	}
	for i, k := range list {
		part, ok := s.Str(k)
		if !ok || i > 0 && !s.compose(&b, k.At, sep) || !s.compose(&b, k.At, part) {
			return "", false
		}
	}
	return b.String(), true
}

// Integer returns the integer that an expression evaluates to. ok is false if it is not a constant integer.
func (s *Script) Integer(n *Node) (int64, bool) {
	if s.deep++; n == nil || s.deep > MaxDepth {
		s.deep--
		return 0, false
	}
	defer func() { s.deep-- }()
	v := s.Value(n)
	if v == nil || v.Kind == BadNode {
		return 0, false
	}
	if v.Kind == UnaryNode && (v.Op == js.SubToken || v.Op == js.BitNotToken || v.Op == js.AddToken) {
		x, ok := s.Integer(v.Kids[0])
		switch v.Op {
		case js.SubToken:
			return -x, ok
		case js.BitNotToken:
			return ^x, ok
		}
		return x, ok
	}

	// Flags are often written as 1 << n.
	if v.Kind == BinaryNode && v.Op == js.LtLtToken {
		a, ok1 := s.Integer(v.Kids[0])
		b, ok2 := s.Integer(v.Kids[1])
		return a << (uint64(b) & 31), ok1 && ok2
	}
	if v.Kind != NumberNode || v.Num != math.Trunc(v.Num) || math.Abs(v.Num) > 1<<53 {
		return 0, false
	}
	return int64(v.Num), true
}

// Boolean returns the truth value that an expression evaluates to; false if it is not constant.
func (s *Script) Boolean(n *Node) bool {
	if s.deep++; n == nil || s.deep > MaxDepth {
		s.deep--
		return false
	}
	defer func() { s.deep-- }()
	switch v := s.Value(n); v.Kind {
	case nBool, NumberNode:
		return v.Num != 0
	case UnaryNode:
		return v.Op == js.NotToken && !s.Boolean(v.Kids[0])
	}
	return false
}

// Elements returns the elements of an array expression, or of the array that a function returns. ...spread
// elements are expanded. ok is false if n is no such expression.
func (s *Script) Elements(n *Node) (list []*Node, ok bool) {
	if s.deep++; n == nil || s.deep > MaxDepth {
		s.deep--
		return nil, false
	}
	defer func() { s.deep-- }()
	v := s.Value(n)
	if v != nil && v.Kind == FuncNode {
		v = s.Result(v)
		if v != nil {
			v = s.Value(v)
		}
	}
	if v == nil || v.Kind != ArrayNode {
		return nil, false
	}

	// Spread elements are expanded, within the memory limit.
	for _, k := range v.Kids {
		more := []*Node{k}
		if k.Kind == nSpread {
			more, _ = s.Elements(k.Kids[0])
		}
		if !s.ClaimMemory(k.At, elementMemory*len(more)) {
			return nil, false
		}
		list = append(list, more...)
	}

	return list, true
}

// Object returns the object literal that an expression evaluates to, or nil. ...spread properties are expanded.
func (s *Script) Object(n *Node) *Node {
	if s.deep++; n == nil || s.deep > MaxDepth {
		s.deep--
		return nil
	}
	defer func() { s.deep-- }()
	v := s.Value(n)
	if v == nil {
		return nil
	}

	// The call is Object.freeze or Object.assign({}, …).
	if v.Kind == CallNode && len(v.Kids) > 1 {
		v = v.Kids[1]
	}
	if v.Kind != ObjectNode {
		return nil
	}

	// An object without ...others is returned as it is, which is the usual case.
	flat := true
	for _, p := range v.Props {
		flat = flat && !p.spread
	}
	if flat {
		return v
	}

	whole := *v
	whole.Props = nil
	for _, p := range v.Props {
		more := []Prop{p}
		if p.spread {
			more = nil
			if o := s.Object(p.Value); o != nil {
				more = o.Props
			}
		}
		if !s.ClaimMemory(p.At, PropertyMemory*len(more)) {
			return nil
		}
		whole.Props = append(whole.Props, more...)
	}
	return &whole
}
