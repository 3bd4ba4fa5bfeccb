package bundle

import (
	"strconv"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// memberAssignments are the values of foo.name = value, by what foo stands for and by
// name: also where foo is handed to a function that is called at once.
func (s *script) memberAssignments() map[int32]map[string]int32 {
	if s.onNames != nil {
		return s.onNames
	}
	s.onNames = map[int32]map[string]int32{}
	for i := range s.toks {
		at := int32(i)
		if s.typ(int32(i)) != js.EqToken || !js.IsIdentifierName(s.typ(at-1)) || s.typ(at-2) != js.DotToken || !js.IsIdentifier(s.typ(at-3)) ||
			s.typ(at-4) == js.DotToken || s.typ(at+1) == js.VoidToken {
			continue
		}
		b, ok := s.lookup(at-3, s.text(at-3))
		if ok && b.kind == bindParam {
			arg := s.argument(b)
			if ok = arg != nil && arg.kind == nIdent; ok {
				b, ok = s.lookup(arg.at, arg.str)
			}
		}
		if !ok || b.kind != bindVar {
			continue
		}
		if s.onNames[b.tok] == nil {
			s.onNames[b.tok] = map[string]int32{}
		}
		s.onNames[b.tok][s.text(at-1)] = at + 1
	}
	return s.onNames
}

// isExports says whether an expression is what a file of CommonJS exports:
// exports or module.exports, where no function declares these.
func (s *script) isExports(v *node) bool {
	word := "exports"
	if v.kind == nMember && v.str == word {
		v, word = v.kids[0], "module"
	}
	if v.kind != nIdent || v.str != word {
		return false
	}
	_, bound := s.lookup(v.at, v.str)
	return !bound
}

// definition returns the object of a namespace.
func (s *script) definition(at int32) *node {
	n := s.expr(at)
	if n.kind != nArray {
		return n
	}
	if o := s.defined[at]; o != nil {
		return o
	}
	o := &node{kind: nObject, at: n.at, end: n.end}
	s.defined[at] = o
	for i := 0; i+1 < len(n.kids); i += 2 {
		name, value := n.kids[i], n.kids[i+1]
		if value.kind == nNumber && i+2 < len(n.kids) {
			value = n.kids[i+2]
			i++
		}
		if name.kind == nString {
			o.props = append(o.props, prop{name: name.str, at: name.at, value: value})
		}
	}
	return o
}

// namespaces are the objects that define exports, by what they define them on.
func (s *script) namespaces() map[int32][]int32 {
	if s.spaceOf == nil {
		s.spaceOf = map[int32][]int32{}
		for _, ns := range s.spaces {
			if b, ok := s.lookup(ns.name, s.text(ns.name)); ok {
				s.spaceOf[b.tok] = append(s.spaceOf[b.tok], ns.object)
			}
		}
	}
	return s.spaceOf
}

// moduleOf returns the body of the module that a call loads: webpack's n(123)
// and esbuild's require_x(), also within a helper as __toESM(require_x()).
func (s *script) moduleOf(call *node, t *trail) (int32, bool) {
	if t.hops++; call == nil || call.kind != nCall || t.hops > maxHops {
		return 0, false
	}
	if len(call.kids) > 1 {
		switch arg := call.kids[1]; arg.kind {
		case nNumber, nString:
			key := arg.str
			if arg.kind == nNumber {
				key = strconv.FormatFloat(arg.num, 'f', -1, 64)
			}
			if bodies := s.moduleTable()[key]; len(bodies) > 0 {
				return s.nearest(bodies, call.at), true
			}
		case nCall, nIdent:
			v := arg
			if arg.kind == nIdent {
				v = s.deref(arg, t)
			}
			if body, ok := s.moduleOf(v, t); ok {
				return body, true
			}
		}
	}
	loader := s.deref(call.kids[0], t)
	if loader != nil && loader.kind == nCall && len(loader.kids) > 1 {
		fn := loader.kids[1]
		if fn.kind == nObject && len(fn.props) == 1 {
			fn = fn.props[0].value
		}
		if fn.kind == nFunc && len(fn.kids) == 0 {
			return fn.body, true
		}
	}
	// webpack's f = () => n(123), called as f()
	if loader != nil && loader.kind == nFunc && len(call.kids) == 1 {
		if r := s.result(loader); r != nil && r.kind == nCall && r.at != call.at {
			return s.moduleOf(r, t)
		}
	}
	return 0, false
}

// nearest returns the body that shares most brackets with a token.
func (s *script) nearest(bodies []int32, at int32) int32 {
	if len(bodies) == 1 {
		return bodies[0]
	}
	around := map[int32]bool{}
	if !s.mayScanSpan(0, int32(len(bodies))) {
		return bodies[0]
	}
	for br := s.tok(at).br; br != 0 && s.step(at); br = s.brs[br].parent {
		around[br] = true
	}
	for _, b := range bodies {
		if p := s.brs[b].parent; p != 0 && around[p] {
			return b
		}
	}
	return bodies[0]
}

// moduleTable are the functions that are members of an object, or elements of
// an array, by key.
func (s *script) moduleTable() map[string][]int32 {
	if s.modules != nil {
		return s.modules
	}
	s.modules = map[string][]int32{}
	indices := map[int32]map[int32]int{}
	for i, b := range s.brs {
		if !b.fn || b.kind != '{' || b.open < 2 {
			continue
		}
		at := b.open - 1
		if s.typ(at) == js.ArrowToken {
			at--
		}
		if s.typ(at) == js.CloseParenToken {
			at = s.enclosingBracket(at).open
		}
		if s.typ(at-1) == js.FunctionToken {
			at--
		}
		if before := s.typ(at - 1); before == js.CommaToken || before == js.OpenBracketToken {
			if list := s.tok(at - 1).br; s.brs[list].kind == '[' {
				if indices[list] == nil {
					indices[list] = s.indices(list)
				}
				k := strconv.Itoa(indices[list][at])
				s.modules[k] = append(s.modules[k], int32(i))
				continue
			}
		}
		key := at - 1
		// "./a.js": ((e, t, n) => {
		if s.typ(key) == js.OpenParenToken && s.typ(key-1) == js.ColonToken {
			key--
		}
		if s.typ(key) == js.ColonToken {
			key--
		}
		switch t := s.typ(key); {
		case t == js.StringToken:
			k := lexer.Unquote(s.text(key))
			s.modules[k] = append(s.modules[k], int32(i))
		case js.IsNumeric(t):
			k := strconv.FormatFloat(lexer.Number(s.text(key)), 'f', -1, 64)
			s.modules[k] = append(s.modules[k], int32(i))
		case js.IsIdentifier(t) && key != at-1:
			s.modules[s.text(key)] = append(s.modules[s.text(key)], int32(i))
		}
	}
	return s.modules
}

// indices numbers the elements of an array by their first tokens.
func (s *script) indices(br int32) map[int32]int {
	by := map[int32]int{}
	for at, n := s.brs[br].open+1, 0; at < s.brs[br].close; at, n = s.skip(at, s.brs[br].close)+1, n+1 {
		by[at] = n
	}
	return by
}

// exported returns what the module with a body exports under a name, or nil.
func (s *script) exported(body int32, name string, t *trail) *node {
	if t.hops++; t.hops > maxHops {
		return nil
	}
	table, ok := s.exports[body]
	if !ok {
		table = s.exportTable(body)
		s.exports[body] = table
	}
	if e := table[name]; e != nil {
		return e
	}
	if whole := table[""]; whole != nil { // module.exports = …
		return s.member(whole, name, t)
	}
	return nil
}

func (s *script) exportTable(body int32) map[string]*node {
	table := map[string]*node{}
	var params []binding
	b := s.brs[body]
	if !s.mayScan(body) {
		return table
	}
	for i := range b.close - b.open {
		at := b.open + i
		if t := s.typ(at); t != js.DotToken && t != js.OpenParenToken {
			continue
		}
		base := at - 1
		if s.typ(at) == js.OpenParenToken {
			base = at + 1
		}
		if !js.IsIdentifier(s.typ(base)) {
			continue
		}
		on, ok := s.lookup(base, s.text(base))
		switch {
		case ok && on.kind == bindParam && on.scope == body && on.arg <= 1:
			params = append(params, on)
		case !ok && body == 0 && (s.is(base, "exports") || s.is(base, "module")):
		default:
			continue
		}
		switch {
		case s.typ(at) == js.DotToken && s.typ(at+2) == js.EqToken:
			name := s.text(at + 1)
			v := s.expr(at + 3)
			for v.kind == nAssign {
				v = v.kids[1]
			}
			if name == "exports" {
				name = ""
			}
			if v.kind != nNull {
				table[name] = v
			}
		case s.typ(at) == js.OpenParenToken && s.typ(base+1) == js.CommaToken && s.typ(base+2) == js.StringToken && s.typ(base+3) == js.CommaToken:
			// webpack 4: n.d(t, "Foo", function () { return a }), and
			// Object.defineProperty(exports, "Foo", { get: … }).
			v := s.expr(base + 4)
			if v.kind == nObject {
				v = v.get("get")
			}
			if r := s.result(v); r != nil {
				table[lexer.Unquote(s.text(base+2))] = r
			}
		}
	}
	for _, p := range params {
		for _, o := range s.namespaces()[p.tok] {
			obj := s.definition(o)
			for _, p := range obj.props {
				if v := s.property(obj, p.name); v != nil && table[p.name] == nil {
					table[p.name] = v
				}
			}
		}
	}
	return table
}
