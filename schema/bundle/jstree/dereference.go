package jstree

import (
	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// maxHops is the maximum number of names and expressions through which one reference is followed.
const maxHops = 64

// A Trail is the result of following a reference through names and expressions to its value.
type Trail struct {
	// IDs are the indices of the tokens on the way: declarations of names, and expressions.
	IDs []int32
	// End is the expression at which the reference ends: its value, or the last one that could be resolved.
	End *Node
	// hops is the number of steps followed so far, which maxHops limits.
	hops int
}

// Follow resolves an expression, such as a variable or a member access, to its value, and returns the way to
// it.
func (s *Script) Follow(n *Node) Trail {
	t := Trail{}
	t.End = s.Deref(n, &t)
	return t
}

// Value resolves an expression, such as a variable or a member access, and returns its value.
func (s *Script) Value(n *Node) *Node { return s.Follow(n).End }

// Deref resolves an expression step by step until nothing changes or a limit is reached. It adds the steps to
// t.
func (s *Script) Deref(n *Node, t *Trail) *Node {
	for {
		if t.hops++; n == nil || t.hops > maxHops || !s.Step(n.At) {
			return n
		}
		next := n
		switch n.Kind {
		case IdentNode:
			next = s.derefName(n, t)
		case MemberNode:
			next = s.member(n.Kids[0], n.Str, t)
		case nSeq:
			next = n.Kids[len(n.Kids)-1]
		case AssignNode:
			if n.Op == js.EqToken {
				t.IDs = append(t.IDs, s.TargetOf(n.Kids[0])...)
				next = n.Kids[1]
			}
		// A condition such as util.Long ? a : b usually has the full runtime as its first branch.
		case CondNode:
			next = n.Kids[1]
		case BinaryNode:
			if n.Op == js.OrToken || n.Op == js.NullishToken {
				next = n.Kids[0]
				// In a || b, the second part counts if the first is nothing.
				if v := s.Deref(n.Kids[0], t); v == nil || v.Kind == NullNode || v.Kind == BadNode || v.Kind == MemberNode {
					next = n.Kids[1]
				}
			}
		// A new object stands for its class.
		case NewNode:
			t.IDs = append(t.IDs, n.At)
			if c := s.Deref(n.Kids[0], t); c != nil && c.Kind == ClassNode {
				return c
			}
			return n
		// A function that is called immediately stands for its result.
		case CallNode:
			t.IDs = append(t.IDs, n.At)
			if callee := Last(n.Kids[0]); callee.Kind == FuncNode {
				next = s.Result(callee)
			}
		case FuncNode, ClassNode, ObjectNode:
			t.IDs = append(t.IDs, n.At)
		}
		if next == n || next == nil {
			return n
		}
		n = next
	}
}

// TargetOf returns the index of the token that declares the identifier n; nil if n is something else or not
// declared.
func (s *Script) TargetOf(n *Node) []int32 {
	if n.Kind == IdentNode {
		if b, ok := s.Lookup(n.At, n.Str); ok {
			return []int32{b.Tok}
		}
	}
	return nil
}

// Last returns the last operand of a comma expression, which is its value.
func Last(n *Node) *Node {
	for n.Kind == nSeq {
		n = n.Kids[len(n.Kids)-1]
	}
	return n
}

// derefName resolves an identifier by one step, and adds its declaration to t. It returns n if it cannot.
func (s *Script) derefName(n *Node, t *Trail) *Node {
	b, ok := s.Lookup(n.At, n.Str)
	if !ok {
		return n
	}
	t.IDs = append(t.IDs, b.Tok)
	switch b.Kind {
	case bindFunc, BindClass:
		return s.Expr(b.Init)
	case BindVar:
		if b.Init >= 0 {
			// A variable that begins as null gets its value later.
			if v := s.Expr(b.Init); v.Kind != NullNode || len(s.Values(b)) <= 1 {
				return v
			}
		}
		// The last assignment counts.
		values := s.Values(b)
		for i := len(values) - 1; i >= 0; i-- {
			if v := s.Expr(values[i] + 2); v.Kind != NullNode && v.Kind != BadNode {
				return v
			}
		}
	case BindProp:
		if b.Init >= 0 {
			name := s.Text(b.Arg)
			if s.Typ(b.Arg) == js.StringToken {
				name = lexer.Unquote(name)
			}
			if v := s.member(s.Expr(b.Init), name, t); v != nil {
				return v
			}
		}
	case BindParam:
		if arg := s.Argument(b); arg != nil {
			return arg
		}
	}

	return n
}

// Argument returns the argument that is passed for the parameter b, if its function is called immediately;
// otherwise nil.
func (s *Script) Argument(b Binding) *Node {
	at := s.Brackets[b.Scope].Close + 1
	if s.Typ(at) == js.CloseParenToken {
		at++
	}
	if s.Typ(at) != js.OpenParenToken || s.Tok(at).nl {
		return nil
	}
	r := Reader{Script: s}
	args := r.List(at+1, s.EnclosingBracket(at).Close)
	if int(b.Arg) < len(args) {
		return args[b.Arg]
	}
	return nil
}

// Result returns the expression that a function returns (in its last return statement), or nil.
func (s *Script) Result(fn *Node) *Node {
	if fn == nil || fn.Kind != FuncNode {
		return nil
	}
	if len(fn.Kids) > 0 {
		return fn.Kids[0]
	}
	// The last return statement at the top level of the function counts.
	at, ok := s.returns[fn.Body]
	if !ok {
		at = -1
		close := s.Brackets[fn.Body].Close
		for i := s.Brackets[fn.Body].Open + 1; i < close; i = s.Next(i) {
			if s.Typ(i) == js.ReturnToken {
				at = i
			}
		}
		s.returns[fn.Body] = at
	}
	if at < 0 {
		return nil
	}
	return s.exprSeq(at + 1)
}

// member returns the value of obj.name, or nil. It looks in object literals, namespaces, modules, exports and
// assignments, in this order.
func (s *Script) member(obj *Node, name string, t *Trail) *Node {
	sub := Trail{hops: t.hops}
	v := s.Deref(obj, &sub)
	t.hops = sub.hops
	if v == nil {
		return nil
	}
	if p := s.Property(v, name); p != nil {
		return p
	}
	for _, id := range sub.IDs {
		// The object is a namespace whose members are defined by a call.
		for _, o := range s.namespaces()[id] {
			if p := s.Property(s.Definition(o), name); p != nil {
				return p
			}
		}
	}

	// The object is a module.
	if body, ok := s.ModuleOf(v, t); ok {
		return s.exported(body, name, t)
	}

	// The object is the exports of this file.
	if s.IsExports(v) {
		if e := s.exported(0, name, t); e != nil {
			return e
		}
	}
	if v.Kind == IdentNode {
		if b, ok := s.Lookup(v.At, v.Str); ok && b.Kind == BindParam && b.Arg <= 1 {
			if e := s.exported(b.Scope, name, t); e != nil {
				return e
			}
		}
	}
	for _, id := range sub.IDs {
		if at, ok := s.memberAssignments()[id][name]; ok {
			return s.Expr(at)
		}
	}

	// This is requireFoo() of Rollup.
	if v.Kind == CallNode && len(v.Kids) == 1 {
		if fn := s.Deref(v.Kids[0], t); fn != nil && fn.Kind == FuncNode {
			if r := s.Result(fn); r != nil {
				return s.member(r, name, t)
			}
		}
	}

	// This is Object.freeze({…}).
	if v.Kind == CallNode && len(v.Kids) > 1 && v.Kids[1].Kind == ObjectNode {
		return s.Property(v.Kids[1], name)
	}
	return nil
}

// Property returns the property called name of an object literal, or the result of its getter; nil if there is
// none.
func (s *Script) Property(obj *Node, name string) *Node {
	p := obj.Get(name)
	if p != nil && p.Kind == FuncNode {
		// The property is a getter, or an export as () => x.
		if r := s.Result(p); r != nil && (r.Kind == IdentNode || r.Kind == MemberNode) {
			return r
		}
	}
	return p
}
