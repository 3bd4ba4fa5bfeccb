package jstree

import (
	"slices"

	"github.com/tdewolff/parse/v2/js"
)

// FunctionAt returns the index of the first token of the function whose body is the bracket br. If the bracket
// is not a function body, it returns the bracket's first token.
func (s *Script) FunctionAt(br int32) int32 {
	at := s.Brackets[br].Open
	if s.Brackets[br].Kind != '{' || s.Typ(at-1) != js.CloseParenToken {
		return at
	}
	at = s.EnclosingBracket(at-1).Open - 1
	if s.Typ(at) != js.FunctionToken {
		at--
	}
	return at
}

// NameOf returns the index of the token that names the function whose body is the bracket body, or -1: f in
// f(…) {…}, f: function (…) {…} and x.f = function g(…) {…}.
func (s *Script) NameOf(body int32) int32 {
	at := s.Brackets[body].Open - 1
	if s.Typ(at) == js.ArrowToken {
		at--
	}
	if s.Typ(at) == js.CloseParenToken {
		at = s.EnclosingBracket(at).Open
	}
	at--
	if js.IsIdentifier(s.Typ(at)) && s.Typ(at-1) == js.FunctionToken {
		at--
	} else if js.IsIdentifier(s.Typ(at)) {
		return at
	}
	if s.Typ(at) == js.FunctionToken {
		at--
	}
	if s.Typ(at) == js.EqToken || s.Typ(at) == js.ColonToken {
		return at - 1
	}
	return -1
}

// Param returns the name of a function's parameter with the given index, or "". body is the bracket of the
// function's body.
func (s *Script) Param(body int32, index int32) string {
	at := s.Brackets[body].Open - 1
	if s.Typ(at) == js.ArrowToken {
		at--
	}
	if s.Typ(at) != js.CloseParenToken {
		return s.Text(at)
	}
	open := s.EnclosingBracket(at).Open
	for i := open + 1; i < at; i = s.Skip(i, at) + 1 {
		if index == 0 {
			return s.Text(i)
		}
		index--
	}
	return ""
}

// ParamsOf returns the number of parameters of the function that begins at the token with index at, or -1 if
// none does.
func (s *Script) ParamsOf(at int32) int {
	if s.Typ(at) == js.FunctionToken {
		if at++; js.IsIdentifier(s.Typ(at)) {
			at++
		}
	}
	if s.Typ(at) != js.OpenParenToken {
		return -1
	}
	n, end := 0, s.EnclosingBracket(at).Close
	for i := at + 1; i < end; i = s.Skip(i, end) + 1 {
		n++
	}
	return n
}

// IsParam reports whether an expression cannot be resolved beyond a parameter, an undeclared name or a member.
// The code of protobuf runtimes has such expressions where generated code has constants.
func (s *Script) IsParam(n *Node) bool {
	v := s.Value(n)
	if v == nil || v.Kind != IdentNode {
		return v != nil && v.Kind == MemberNode
	}
	b, ok := s.Lookup(v.At, v.Str)
	return !ok || b.Kind == BindParam
}

// ClassIDs returns the indices of the tokens that refer to a class: the class keyword and the names that the
// class is given. class is the index of the keyword.
func (s *Script) ClassIDs(class int32) []int32 {
	ids := []int32{class}
	if js.IsIdentifier(s.Typ(class + 1)) {
		ids = append(ids, class+1)
	}
	for at := class - 1; s.Typ(at) == js.EqToken && js.IsIdentifier(s.Typ(at-1)); at -= 2 {
		if s.Typ(at-2) == js.DotToken {
			break
		}
		if b, ok := s.Lookup(at-1, s.Text(at-1)); ok {
			ids = append(ids, b.Tok)
		}
	}
	return ids
}

// NameIDs returns the tokens that declare the names to which the result of a call is assigned: const Foo =
// call. at is the token of the called function.
func (s *Script) NameIDs(at int32) []int32 {
	var ids []int32
	for at = s.StartOf(at) - 1; ; at -= 2 {
		// The call has the form (0, a.b)(…).
		if s.Typ(at) == js.CommaToken && s.Typ(at-2) == js.OpenParenToken {
			at -= 3
		}
		if s.Typ(at) != js.EqToken || !js.IsIdentifier(s.Typ(at-1)) || s.Typ(at-2) == js.DotToken {
			return ids
		}
		if b, ok := s.Lookup(at-1, s.Text(at-1)); ok {
			ids = append(ids, b.Tok)
		}
	}
}

// isInlined reports whether the bracket br is the parenthesis of x.name = (…), into which minifiers convert a
// function that is called immediately.
func (s *Script) isInlined(br int32) bool {
	open := s.Brackets[br].Open
	return s.Brackets[br].Kind == '(' && s.Typ(open-1) == js.EqToken && js.IsIdentifierName(s.Typ(open-2)) && s.Typ(open-3) == js.DotToken &&
		s.Typ(s.Brackets[br].Close+1) != js.OpenParenToken
}

// EnclosingNamespace returns the bracket of the innermost function, or inlined function (see isInlined), around
// the bracket br; br itself if it is one, and 0 if there is none.
func (s *Script) EnclosingNamespace(br int32) int32 {
	for n := 0; br != 0 && !s.Brackets[br].Fn && !s.isInlined(br) && n < MaxNesting; n++ {
		br = s.Brackets[br].Parent
	}
	return br
}

// EnclosingEncode returns the body (a bracket) of the function called encode around the token with index at,
// and the token of its name. Both are 0 if there is none.
func (s *Script) EnclosingEncode(at int32) (body, word int32) {
	for br, n := s.Tok(at).Bracket, 0; br != 0 && n < MaxNesting && s.Step(at); br, n = s.Brackets[br].Parent, n+1 {
		if !s.Brackets[br].Fn {
			continue
		}
		word = s.NameOf(br)
		if s.Is(word, "encode") {
			return br, word
		}
	}

	// Arrow functions without braces have brackets that were added at the end.
	i, found := slices.BinarySearchFunc(s.arrows, at, func(br, at int32) int { return int(s.Brackets[br].Open - at) })
	if !found {
		i--
	}
	if i >= 0 && s.Brackets[s.arrows[i]].Open <= at && at < s.Brackets[s.arrows[i]].Close {
		return s.arrows[i], s.NameOf(s.arrows[i])
	}
	return 0, 0
}

// EncodeArrows adds an artificial bracket for the body of encode: (m, w) => expression and of Foo.encode = (m,
// w) => expression, as if it were in braces.
func (s *Script) EncodeArrows() {
	for _, at := range s.Anchors[AnchorEncode] {
		if s.Typ(at+1) != js.ColonToken && (s.Typ(at+1) != js.EqToken || s.Typ(at-1) != js.DotToken) {
			continue
		}
		if fn := s.Expr(at + 2); fn.Kind == FuncNode && len(fn.Kids) == 1 {
			br := int32(len(s.Brackets))
			s.arrows = append(s.arrows, br)
			open := at + 3
			for s.Typ(open-1) != js.ArrowToken && open < fn.End {
				open = s.Next(open)
			}
			s.Brackets = append(s.Brackets, Bracket{Open: open, Close: fn.End, Parent: s.Tok(at).Bracket, function: br, Kind: '{', Fn: true})
		}
	}
}

// Switches reports whether the function body in bracket body begins with a switch statement.
func (s *Script) Switches(body int32) bool {
	return s.Typ(s.Brackets[body].Open+1) == js.SwitchToken
}
