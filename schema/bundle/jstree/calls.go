package jstree

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

// CallOf returns the call of the function whose name is the token with index at, or nil if it is not called
// there.
func (s *Script) CallOf(at int32) *Node {
	open := at + 1
	// The call has the form (0, a.b)(…).
	if s.Typ(open) == js.CloseParenToken {
		open++
	}
	if s.Typ(open) != js.OpenParenToken || s.Typ(at-1) == js.FunctionToken {
		return nil
	}
	// This is the definition of a method.
	if s.Typ(s.EnclosingBracket(open).Close+1) == js.OpenBraceToken {
		return nil
	}
	if n, ok := s.exprs[-open]; ok {
		return n
	}
	r := Reader{Script: s}
	close := s.EnclosingBracket(open).Close
	callee := &Node{Kind: IdentNode, At: at, End: at + 1, Str: s.Text(at)}
	n := &Node{Kind: CallNode, At: open, End: close + 1, Kids: append([]*Node{callee}, r.List(open+1, close)...)}
	s.exprs[-open] = n
	return n
}

// StartOf returns the index of the first token of the member expression (such as a.b.c) that ends at the token
// with index at.
func (s *Script) StartOf(at int32) int32 {
	for (s.Typ(at-1) == js.DotToken || s.Typ(at-1) == js.OptChainToken) && s.Step(at) {
		at -= 2
		for t := s.Typ(at); t == js.CloseParenToken || t == js.CloseBracketToken; t = s.Typ(at) {
			at = s.EnclosingBracket(at).Open - 1
			if t := s.Typ(at); !js.IsIdentifierName(t) && t != js.CloseParenToken && t != js.CloseBracketToken {
				return at + 1
			}
		}
	}
	return at
}

// ObjectOf returns the expression x of a member access x.name; at is the index of the token name.
func (s *Script) ObjectOf(at int32) *Node {
	start := s.StartOf(at)
	n := (&Reader{Script: s}).Primary(start)
	for n.End < at-1 && n.Kind != BadNode && s.Typ(n.End) == js.DotToken {
		n = &Node{Kind: MemberNode, At: n.End + 1, End: n.End + 2, Str: s.Text(n.End + 1), Kids: []*Node{n}}
	}
	return n
}

// AssignedTo returns the value assigned to a static member of a class, or nil. at is the token of the member's
// name in: name = v, x.name = v, or f(x, "name", v).
func (s *Script) AssignedTo(at int32) *Node {
	switch {
	case s.Typ(at) == js.StringToken && s.Typ(at+1) == js.CommaToken:
		return s.Expr(at + 2)
	case s.Typ(at) != js.StringToken && s.Typ(at+1) == js.EqToken:
		return s.Expr(at + 2)
	}
	return nil
}

// Owner returns the indices of tokens that refer to the class that has a static member. at is the member's
// name, the "=" after it, or the comma before the value.
func (s *Script) Owner(at int32) []int32 {
	if s.Typ(at) == js.EqToken || s.Typ(at) == js.CommaToken {
		at--
	}
	switch {
	case at < 0:
	case s.Typ(at-1) == js.DotToken:
		return s.idsOf(s.StartOf(at))
	case s.Typ(at) == js.StringToken:
		if b := s.EnclosingBracket(at); b.Kind == '(' {
			return s.idsOf(b.Open + 1)
		}
	default:
		if class, ok := s.Classes[s.Tok(at).Bracket]; ok {
			return s.ClassIDs(class)
		}
	}
	return nil
}

// idsOf returns the indices of tokens that refer to the same value as the name at the token with index at.
func (s *Script) idsOf(at int32) []int32 {
	if s.Typ(at) == js.ThisToken {
		for br := s.Tok(at).Bracket; br != 0 && s.Step(at); br = s.Brackets[br].Parent {
			if class, ok := s.Classes[br]; ok {
				return s.ClassIDs(class)
			}
		}
		return nil
	}
	t := s.Follow((&Reader{Script: s}).Primary(at))
	if t.End != nil {
		return append(t.IDs, t.End.At)
	}
	return t.IDs
}

// PathOf returns the names, joined by dots from the outside, to which the functions around the token with index
// at are assigned: "pkg.Foo" in $root.pkg = (function () { … pkg.Foo = (function () {. Minifiers turn such
// functions into parentheses: $root.pkg = (a = {}, a.Foo = ….
func (s *Script) PathOf(at int32) string {
	var parts []string
	for br, n := s.Tok(at).Bracket, 0; br != 0 && n < MaxNesting && s.Step(at); br, n = s.Brackets[br].Parent, n+1 {
		if s.isInlined(br) {
			parts = append(parts, s.Text(s.Brackets[br].Open-2))
		}
		if !s.Brackets[br].Fn {
			continue
		}

		// A function: find the assignment before it.
		i := s.Brackets[br].Open - 1
		if s.Typ(i) == js.ArrowToken {
			i--
		}
		if s.Typ(i) == js.CloseParenToken {
			i = s.EnclosingBracket(i).Open
		}
		for i--; s.Typ(i) == js.FunctionToken || s.Typ(i) == js.OpenParenToken || s.Typ(i) == js.NotToken; i-- {
		}
		if s.Typ(i) == js.EqToken && js.IsIdentifierName(s.Typ(i-1)) && s.Typ(i-2) == js.DotToken && (s.Typ(s.Brackets[br].Close+1) == js.CloseParenToken || s.Typ(s.Brackets[br].Close+1) == js.OpenParenToken) {
			parts = append(parts, s.Text(i-1))
		}
	}

	// This is module.exports = (…).
	if n := len(parts); n > 0 && parts[n-1] == "exports" {
		parts = parts[:n-1]
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// EndOf returns the index of a token that identifies the value of an expression, or -1 if it is unknown.
func (s *Script) EndOf(n *Node) int32 {
	t := s.Follow(n)
	if len(t.IDs) > 0 {
		return t.IDs[len(t.IDs)-1]
	}
	if t.End != nil && t.End.Kind == MemberNode {
		if base := s.Follow(t.End.Kids[0]); len(base.IDs) > 0 {
			return base.IDs[0]
		}
	}
	return -1
}

// AssignedMember returns the value that is assigned to the member called name of some object in a function
// (o.name = v), or nil. body is the bracket of the function's body.
func (s *Script) AssignedMember(body int32, name string) *Node {
	if !s.MayScan(body) {
		return nil
	}
	for i := s.Brackets[body].Open; i < s.Brackets[body].Close; i++ {
		if s.Typ(i) == js.EqToken && s.Is(i-1, name) && s.Typ(i-2) == js.DotToken {
			n := *s.Expr(i + 1)
			// If the expression is a call, n.At is its parenthesis; callers need the beginning of the expression.
			n.At = i + 1
			return &n
		}
	}
	return nil
}

// BoundNames returns the names that are assigned the value at the token with index at, as in exports.Foo = Foo
// = {…}: the tokens that declare variables in ids, and the names of members in words.
func (s *Script) BoundNames(at int32) (ids []int32, words []string) {
	for at--; s.Typ(at) == js.EqToken && js.IsIdentifierName(s.Typ(at-1)); at-- {
		if s.Typ(at-2) == js.DotToken {
			words = append(words, s.Text(at-1))
		} else if b, ok := s.Lookup(at-1, s.Text(at-1)); ok {
			ids = append(ids, b.Tok)
		}
		at = s.StartOf(at - 1)
	}
	return ids, words
}

// ReferencedNames returns the names in an expression: the tokens that declare variables in ids, and the names
// of members in words. depth is the nesting so far.
func (s *Script) ReferencedNames(n *Node, depth int) (ids []int32, words []string) {
	if n == nil || depth > MaxSkew {
		return nil, nil
	}
	if n.Kind == MemberNode {
		return nil, []string{n.Str}
	}
	if n.Kind == IdentNode {
		if b, ok := s.Lookup(n.At, n.Str); ok {
			return []int32{b.Tok}, nil
		}
		return nil, nil
	}
	for _, k := range n.Kids {
		more, further := s.ReferencedNames(k, depth+1)
		ids, words = append(ids, more...), append(words, further...)
	}
	return ids, words
}
