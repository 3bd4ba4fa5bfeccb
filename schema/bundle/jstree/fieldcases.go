package jstree

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tdewolff/parse/v2/js"
)

// A FieldCase is the part of a generated decoding function that reads one protobuf field: case 3: … break, or
// if (tag === 3) … else.
type FieldCase struct {
	// Number is the protobuf field number that the case decodes.
	Number int64
	// From and To are the indices of the first token of the case's statements, and of the first token after
	// them.
	From, To int32
}

// A CaseTarget is the member of the decoded object in which a FieldCase stores the value.
type CaseTarget struct {
	// Name is the name of the message's member that is assigned.
	Name string
	// At is the index of the token of the member's name.
	At int32
	// Repeated is set if the value is appended: o.x.push(v).
	Repeated bool
	// Keyed is set if the value is stored under a key: o.x[k] = v, o.x.set(k, v).
	Keyed bool
}

// SwitchCases returns the cases of the switch statements between two token indices. A case extends to the next
// one, or to the default.
func (s *Script) SwitchCases(from, to int32) []FieldCase {
	var list []FieldCase
	if !s.MayScanSpan(from, to) {
		return nil
	}

	open := false
	end := func(at int32) {
		if open {
			list[len(list)-1].To = at
		}
		open = false
	}
	for i := from; i < to; i++ {
		switch s.Typ(i) {
		case js.DefaultToken:
			end(i)
		case js.CaseToken:
			end(i)
			number := (&Reader{Script: s}).Primary(i + 1)
			if n, ok := s.Integer(number); ok && s.Typ(number.End) == js.ColonToken {
				list, open = append(list, FieldCase{Number: n, From: number.End + 1}), true
			}
		}
	}
	end(to)
	return list
}

// ComparedCases returns the statements between two token indices that follow comparisons of the variable tag
// with a number: tag === 3, or 3 === tag. Each case extends to the next comparison.
func (s *Script) ComparedCases(tag string, from, to int32) []FieldCase {
	var list []FieldCase
	if tag == "" || !s.MayScanSpan(from, to) {
		return nil
	}
	for i := from; i < to; i++ {
		if t := s.Typ(i); t != js.EqEqEqToken && t != js.EqEqToken {
			continue
		}
		number := i + 1
		if s.Is(i+1, tag) {
			number = i - 1
		} else if !s.Is(i-1, tag) {
			continue
		}
		n, ok := s.Integer((&Reader{Script: s}).Primary(number))
		if !ok {
			continue
		}
		if len(list) > 0 {
			list[len(list)-1].To = i - 1
		}
		list = append(list, FieldCase{Number: n, From: i + 2, To: to})
	}
	return list
}

// TargetOfCase returns the member in which the case c stores its value. object is the name of the variable that
// has the member. ok is false if there is none.
func (s *Script) TargetOfCase(c FieldCase, object string) (t CaseTarget, ok bool) {
	for i := c.From; i < c.To; i++ {
		if !s.Is(i, object) || s.Typ(i-1) == js.DotToken || s.Typ(i+1) != js.DotToken {
			continue
		}
		t := CaseTarget{Name: s.Text(i + 2), At: i + 2}
		switch after := i + 3; {
		case s.Typ(after) == js.EqToken:
			return t, true
		case s.Typ(after) == js.DotToken && s.Typ(after+2) == js.OpenParenToken && s.Is(after+1, "push"):
			t.Repeated = true
			return t, true
		case s.Typ(after) == js.DotToken && s.Typ(after+2) == js.OpenParenToken && s.Is(after+1, "set"),
			s.Typ(after) == js.OpenBracketToken && s.Typ(s.EnclosingBracket(after).Close+1) == js.EqToken:
			t.Keyed = true
			return t, true
		// A function appends to the list that it is passed: pbf.readPackedVarint(o.x).
		case s.Typ(i-1) == js.OpenParenToken && (s.Typ(after) == js.CloseParenToken || s.Typ(after) == js.CommaToken):
			t.Repeated = true
			return t, true
		}
	}
	return CaseTarget{}, false
}

// NewObject returns the first variable in a function that is initialized with an object literal, and the
// literal. In a decoding function, that object is the result. body is the bracket of the function's body. o is
// nil if there is none.
func (s *Script) NewObject(body int32) (name string, o *Node) {
	b := s.Brackets[body]
	if !s.MayScan(body) {
		return "", nil
	}
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i) == js.EqToken && s.Typ(i+1) == js.OpenBraceToken && js.IsIdentifier(s.Typ(i-1)) && s.Function(s.Tok(i).Bracket) == body {
			return s.Text(i - 1), s.Expr(i + 1)
		}
	}
	return "", nil
}

// A MemberKey identifies the value of a member expression such as a.B.C by the declaration of its first name
// and by the following names. (The first name alone is ambiguous, because it may be declared several times.)
type MemberKey struct {
	// Root is the index of the token that declares the first name.
	Root int32
	// Path are the following names, each preceded by a dot.
	Path string
}

// KeyOf returns the key of an expression such as a or a.B.C. ok is false for other expressions.
func (s *Script) KeyOf(n *Node) (MemberKey, bool) {
	path := ""
	for n != nil && n.Kind == MemberNode {
		path = "." + n.Str + path
		n = n.Kids[0]
	}
	if n == nil || n.Kind != IdentNode {
		return MemberKey{}, false
	}
	b, ok := s.Lookup(n.At, n.Str)
	return MemberKey{b.Tok, path}, ok
}

// MemberValues returns, for each member that is assigned somewhere in the script (a.B.C = value), the index of
// the value's first token.
func (s *Script) MemberValues() map[MemberKey]int32 {
	out := map[MemberKey]int32{}
	if !s.MayScanSpan(0, int32(len(s.Toks))) {
		return out
	}
	for i := range s.Toks {
		at := int32(i)
		if s.Typ(at) != js.EqToken || !js.IsIdentifierName(s.Typ(at-1)) || s.Typ(at-2) != js.DotToken {
			continue
		}
		if key, ok := s.KeyOf(s.ObjectOf(at - 1)); ok {
			key.Path += "." + s.Text(at-1)
			// A namespace begins as an empty object if nothing was assigned before: (v1.Item = {}).
			if _, there := out[key]; !there || s.Typ(at+1) != js.OpenBraceToken {
				out[key] = at + 1
			}
		}
	}
	return out
}

// AssignedMembers returns to which member each value is assigned: a.B = value. The keys are the tokens that
// refer to the value. Only members of the variables in roots count, whose keys are the tokens that declare
// them. If a value is assigned to several members, the first counts.
func (s *Script) AssignedMembers(roots map[int32]int32) map[int32]MemberKey {
	values := s.MemberValues()
	order := func(a, b MemberKey) int { return cmp.Compare(values[a], values[b]) }
	out := map[int32]MemberKey{}
	for _, key := range slices.SortedFunc(maps.Keys(values), order) {
		if _, ok := roots[key.Root]; !ok {
			continue
		}
		for _, id := range s.Follow(s.Expr(values[key])).IDs {
			if _, there := out[id]; !there {
				out[id] = key
			}
		}
	}
	return out
}
