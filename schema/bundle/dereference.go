package bundle

import (
	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// maxHops bounds how many names and expressions one reference leads over.
const maxHops = 64

// A trail is where a reference leads: the names and expressions on its way, by
// their tokens, and the value at its end.
type trail struct {
	ids  []int32
	end  *node
	hops int
}

// follow follows an expression to the value that it stands for.
func (s *script) follow(n *node) trail {
	t := trail{}
	t.end = s.deref(n, &t)
	return t
}

// value is follow where only the end matters.
func (s *script) value(n *node) *node { return s.follow(n).end }

func (s *script) deref(n *node, t *trail) *node {
	for {
		if t.hops++; n == nil || t.hops > maxHops || !s.step(n.at) {
			return n
		}
		next := n
		switch n.kind {
		case nIdent:
			next = s.derefName(n, t)
		case nMember:
			next = s.member(n.kids[0], n.str, t)
		case nSeq:
			next = n.kids[len(n.kids)-1]
		case nAssign:
			if n.op == js.EqToken {
				t.ids = append(t.ids, s.targetOf(n.kids[0])...)
				next = n.kids[1]
			}
		case nCond:
			next = n.kids[1]
		case nBinary:
			if n.op == js.OrToken || n.op == js.NullishToken {
				next = n.kids[0]
				if v := s.deref(n.kids[0], t); v == nil || v.kind == nNull || v.kind == nBad || v.kind == nMember {
					next = n.kids[1]
				}
			}
		case nNew:
			t.ids = append(t.ids, n.at)
			if c := s.deref(n.kids[0], t); c != nil && c.kind == nClass {
				return c
			}
			return n
		case nCall:
			t.ids = append(t.ids, n.at)
			if callee := last(n.kids[0]); callee.kind == nFunc {
				next = s.result(callee)
			}
		case nFunc, nClass, nObject:
			t.ids = append(t.ids, n.at)
		}
		if next == n || next == nil {
			return n
		}
		n = next
	}
}

func (s *script) targetOf(n *node) []int32 {
	if n.kind == nIdent {
		if b, ok := s.lookup(n.at, n.str); ok {
			return []int32{b.tok}
		}
	}
	return nil
}

func last(n *node) *node {
	for n.kind == nSeq {
		n = n.kids[len(n.kids)-1]
	}
	return n
}

// derefName takes a name one step on.
func (s *script) derefName(n *node, t *trail) *node {
	b, ok := s.lookup(n.at, n.str)
	if !ok {
		return n
	}
	t.ids = append(t.ids, b.tok)
	switch b.kind {
	case bindFunc, bindClass:
		return s.expr(b.init)
	case bindVar:
		if b.init >= 0 {
			if v := s.expr(b.init); v.kind != nNull || len(s.values(b)) <= 1 {
				return v
			}
		}
		values := s.values(b)
		for i := len(values) - 1; i >= 0; i-- {
			if v := s.expr(values[i] + 2); v.kind != nNull && v.kind != nBad {
				return v
			}
		}
	case bindProp:
		if b.init >= 0 {
			name := s.text(b.arg)
			if s.typ(b.arg) == js.StringToken {
				name = lexer.Unquote(name)
			}
			if v := s.member(s.expr(b.init), name, t); v != nil {
				return v
			}
		}
	case bindParam:
		if arg := s.argument(b); arg != nil {
			return arg
		}
	}
	return n
}

// argument returns what a parameter is given where its function is called at once.
func (s *script) argument(b binding) *node {
	at := s.brs[b.scope].close + 1
	if s.typ(at) == js.CloseParenToken {
		at++
	}
	if s.typ(at) != js.OpenParenToken || s.tok(at).nl {
		return nil
	}
	r := reader{script: s}
	args := r.list(at+1, s.enclosingBracket(at).close)
	if int(b.arg) < len(args) {
		return args[b.arg]
	}
	return nil
}

// result returns what a function returns, or nil.
func (s *script) result(fn *node) *node {
	if fn == nil || fn.kind != nFunc {
		return nil
	}
	if len(fn.kids) > 0 {
		return fn.kids[0]
	}
	at, ok := s.returns[fn.body]
	if !ok {
		at = -1
		close := s.brs[fn.body].close
		for i := s.brs[fn.body].open + 1; i < close; i = s.next(i) {
			if s.typ(i) == js.ReturnToken {
				at = i
			}
		}
		s.returns[fn.body] = at
	}
	if at < 0 {
		return nil
	}
	return s.exprSeq(at + 1)
}

// member returns what obj.name is, or nil.
func (s *script) member(obj *node, name string, t *trail) *node {
	sub := trail{hops: t.hops}
	v := s.deref(obj, &sub)
	t.hops = sub.hops
	if v == nil {
		return nil
	}
	if p := s.property(v, name); p != nil {
		return p
	}
	for _, id := range sub.ids {
		for _, o := range s.namespaces()[id] {
			if p := s.property(s.definition(o), name); p != nil {
				return p
			}
		}
	}
	if body, ok := s.moduleOf(v, t); ok {
		return s.exported(body, name, t)
	}
	if s.isExports(v) {
		if e := s.exported(0, name, t); e != nil {
			return e
		}
	}
	if v.kind == nIdent {
		if b, ok := s.lookup(v.at, v.str); ok && b.kind == bindParam && b.arg <= 1 {
			if e := s.exported(b.scope, name, t); e != nil {
				return e
			}
		}
	}
	for _, id := range sub.ids {
		if at, ok := s.memberAssignments()[id][name]; ok {
			return s.expr(at)
		}
	}
	if v.kind == nCall && len(v.kids) == 1 { // Rollup's requireFoo()
		if fn := s.deref(v.kids[0], t); fn != nil && fn.kind == nFunc {
			if r := s.result(fn); r != nil {
				return s.member(r, name, t)
			}
		}
	}
	// Object.freeze({…})
	if v.kind == nCall && len(v.kids) > 1 && v.kids[1].kind == nObject {
		return s.property(v.kids[1], name)
	}
	return nil
}

func (s *script) property(obj *node, name string) *node {
	p := obj.get(name)
	if p != nil && p.kind == nFunc {
		// A getter, or an export's () => x.
		if r := s.result(p); r != nil && (r.kind == nIdent || r.kind == nMember) {
			return r
		}
	}
	return p
}
