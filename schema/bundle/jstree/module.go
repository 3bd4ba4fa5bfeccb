package jstree

import (
	"strconv"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// memberAssignments returns the first tokens of all values assigned to members, as in foo.name = value, by the
// declaration of foo and by name. Immediate calls are looked through: foo may be the argument of a function
// that assigns to its parameter.
func (s *Script) memberAssignments() map[int32]map[string]int32 {
	if s.onNames != nil {
		return s.onNames
	}
	s.onNames = map[int32]map[string]int32{}
	for i := range s.Toks {
		at := int32(i)
		if s.Typ(int32(i)) != js.EqToken || !js.IsIdentifierName(s.Typ(at-1)) || s.Typ(at-2) != js.DotToken || !js.IsIdentifier(s.Typ(at-3)) ||
			s.Typ(at-4) == js.DotToken || s.Typ(at+1) == js.VoidToken {
			continue
		}

		b, ok := s.Lookup(at-3, s.Text(at-3))
		if ok && b.Kind == BindParam {
			arg := s.Argument(b)
			if ok = arg != nil && arg.Kind == IdentNode; ok {
				b, ok = s.Lookup(arg.At, arg.Str)
			}
		}
		if !ok || b.Kind != BindVar {
			continue
		}
		if s.onNames[b.Tok] == nil {
			s.onNames[b.Tok] = map[string]int32{}
		}
		s.onNames[b.Tok][s.Text(at-1)] = at + 1
	}
	return s.onNames
}

// IsExports reports whether an expression is the exports object of a CommonJS file: exports or module.exports,
// unless a function declares these names.
func (s *Script) IsExports(v *Node) bool {
	word := "exports"
	if v.Kind == MemberNode && v.Str == word {
		v, word = v.Kids[0], "module"
	}
	if v.Kind != IdentNode || v.Str != word {
		return false
	}
	_, bound := s.Lookup(v.At, v.Str)
	return !bound
}

// Definition returns the object literal at the token with index at, which defines a namespace. An array of
// names and getters, as webpack writes it, is converted to an object.
func (s *Script) Definition(at int32) *Node {
	n := s.Expr(at)
	if n.Kind != ArrayNode {
		return n
	}
	if o := s.defined[at]; o != nil {
		return o
	}
	o := &Node{Kind: ObjectNode, At: n.At, End: n.End}
	s.defined[at] = o
	for i := 0; i+1 < len(n.Kids); i += 2 {
		name, value := n.Kids[i], n.Kids[i+1]
		if value.Kind == NumberNode && i+2 < len(n.Kids) {
			value = n.Kids[i+2]
			i++
		}
		if name.Kind == StringNode {
			o.Props = append(o.Props, Prop{Name: name.Str, At: name.At, Value: value})
		}
	}
	return o
}

// namespaces returns the tokens of the objects that define exports. The key is the declaration of the variable
// on which the exports are defined.
func (s *Script) namespaces() map[int32][]int32 {
	if s.spaceOf == nil {
		s.spaceOf = map[int32][]int32{}
		for _, ns := range s.Spaces {
			if b, ok := s.Lookup(ns.Name, s.Text(ns.Name)); ok {
				s.spaceOf[b.Tok] = append(s.spaceOf[b.Tok], ns.Object)
			}
		}
	}
	return s.spaceOf
}

// ModuleOf returns the body (a bracket) of the module that a call loads: n(123) of webpack or require_x() of
// esbuild, also inside a helper such as __toESM(require_x()). ok is false if it loads none.
func (s *Script) ModuleOf(call *Node, t *Trail) (int32, bool) {
	if t.hops++; call == nil || call.Kind != CallNode || t.hops > maxHops {
		return 0, false
	}

	if len(call.Kids) > 1 {
		switch arg := call.Kids[1]; arg.Kind {
		// The argument is the key of a module.
		case NumberNode, StringNode:
			key := arg.Str
			if arg.Kind == NumberNode {
				key = strconv.FormatFloat(arg.Num, 'f', -1, 64)
			}
			if bodies := s.ModuleTable()[key]; len(bodies) > 0 {
				return s.nearest(bodies, call.At), true
			}
		// The argument is a call that loads the module, or a name for it.
		case CallNode, IdentNode:
			v := arg
			if arg.Kind == IdentNode {
				v = s.Deref(arg, t)
			}
			if body, ok := s.ModuleOf(v, t); ok {
				return body, true
			}
		}
	}

	// esbuild wraps each module in a function that runs once.
	loader := s.Deref(call.Kids[0], t)
	if loader != nil && loader.Kind == CallNode && len(loader.Kids) > 1 {
		fn := loader.Kids[1]
		if fn.Kind == ObjectNode && len(fn.Props) == 1 {
			fn = fn.Props[0].Value
		}
		if fn.Kind == FuncNode && len(fn.Kids) == 0 {
			return fn.Body, true
		}
	}

	// This is webpack's f = () => n(123), called as f().
	if loader != nil && loader.Kind == FuncNode && len(call.Kids) == 1 {
		if r := s.Result(loader); r != nil && r.Kind == CallNode && r.At != call.At {
			return s.ModuleOf(r, t)
		}
	}
	return 0, false
}

// nearest returns the module body that is closest to the token with index at, i.e. whose enclosing bracket
// contains the token. A script may contain several builds with the same module keys.
func (s *Script) nearest(bodies []int32, at int32) int32 {
	if len(bodies) == 1 {
		return bodies[0]
	}
	// The brackets that enclose the token.
	around := map[int32]bool{}
	if !s.MayScanSpan(0, int32(len(bodies))) {
		return bodies[0]
	}
	for br := s.Tok(at).Bracket; br != 0 && s.Step(at); br = s.Brackets[br].Parent {
		around[br] = true
	}
	for _, b := range bodies {
		if p := s.Brackets[b].Parent; p != 0 && around[p] {
			return b
		}
	}
	return bodies[0]
}

// ModuleTable returns the bodies (brackets) of functions that are members of an object or elements of an array,
// by key or index. Bundlers store modules in this form.
func (s *Script) ModuleTable() map[string][]int32 {
	if s.modules != nil {
		return s.modules
	}
	s.modules = map[string][]int32{}
	indices := map[int32]map[int32]int{}
	for i, b := range s.Brackets {
		if !b.Fn || b.Kind != '{' || b.Open < 2 {
			continue
		}

		at := b.Open - 1
		if s.Typ(at) == js.ArrowToken {
			at--
		}
		if s.Typ(at) == js.CloseParenToken {
			at = s.EnclosingBracket(at).Open
		}
		if s.Typ(at-1) == js.FunctionToken {
			at--
		}

		// An element of an array: its index is the key.
		if before := s.Typ(at - 1); before == js.CommaToken || before == js.OpenBracketToken {
			if list := s.Tok(at - 1).Bracket; s.Brackets[list].Kind == '[' {
				if indices[list] == nil {
					indices[list] = s.indices(list)
				}
				k := strconv.Itoa(indices[list][at])
				s.modules[k] = append(s.modules[k], int32(i))
				continue
			}
		}

		key := at - 1
		// The function may be in parentheses: "./a.js": ((e, t, n) => {
		if s.Typ(key) == js.OpenParenToken && s.Typ(key-1) == js.ColonToken {
			key--
		}
		if s.Typ(key) == js.ColonToken {
			key--
		}
		// The key of a property is a string, a number or a name.
		switch t := s.Typ(key); {
		case t == js.StringToken:
			k := lexer.Unquote(s.Text(key))
			s.modules[k] = append(s.modules[k], int32(i))
		case js.IsNumeric(t):
			k := strconv.FormatFloat(lexer.Number(s.Text(key)), 'f', -1, 64)
			s.modules[k] = append(s.modules[k], int32(i))
		case js.IsIdentifier(t) && key != at-1:
			s.modules[s.Text(key)] = append(s.modules[s.Text(key)], int32(i))
		}
	}
	return s.modules
}

// indices returns the index of each element of the array in bracket br. The key is the element's first token.
func (s *Script) indices(br int32) map[int32]int {
	by := map[int32]int{}
	for at, n := s.Brackets[br].Open+1, 0; at < s.Brackets[br].Close; at, n = s.Skip(at, s.Brackets[br].Close)+1, n+1 {
		by[at] = n
	}
	return by
}

// exported returns the expression that a module exports under a name, or nil. body is the module's body.
func (s *Script) exported(body int32, name string, t *Trail) *Node {
	if t.hops++; t.hops > maxHops {
		return nil
	}
	table, ok := s.exports[body]
	if !ok {
		table = s.ExportTable(body)
		s.exports[body] = table
	}
	if e := table[name]; e != nil {
		return e
	}
	// This is module.exports = value.
	if whole := table[""]; whole != nil {
		return s.member(whole, name, t)
	}
	return nil
}

// ExportTable returns the exported expressions of a module by name. It scans the module's body for assignments
// to the exports object and for calls that define exports.
func (s *Script) ExportTable(body int32) map[string]*Node {
	table := map[string]*Node{}
	var params []Binding
	b := s.Brackets[body]
	if !s.MayScan(body) {
		return table
	}
	for i := range b.Close - b.Open {
		at := b.Open + i
		if t := s.Typ(at); t != js.DotToken && t != js.OpenParenToken {
			continue
		}

		base := at - 1
		if s.Typ(at) == js.OpenParenToken {
			base = at + 1
		}
		if !js.IsIdentifier(s.Typ(base)) {
			continue
		}
		// The object must be one of the module's parameters, or the exports of a CommonJS file.
		on, ok := s.Lookup(base, s.Text(base))
		switch {
		case ok && on.Kind == BindParam && on.Scope == body && on.Arg <= 1:
			params = append(params, on)
		case !ok && body == 0 && (s.Is(base, "exports") || s.Is(base, "module")):
		default:
			continue
		}

		switch {
		case s.Typ(at) == js.DotToken && s.Typ(at+2) == js.EqToken:
			name := s.Text(at + 1)
			v := s.Expr(at + 3)
			for v.Kind == AssignNode {
				v = v.Kids[1]
			}
			if name == "exports" {
				name = ""
			}
			if v.Kind != NullNode {
				table[name] = v
			}
		case s.Typ(at) == js.OpenParenToken && s.Typ(base+1) == js.CommaToken && s.Typ(base+2) == js.StringToken && s.Typ(base+3) == js.CommaToken:
			// webpack 4 writes n.d(t, "Foo", function () { return a }), and TypeScript writes
			// Object.defineProperty(exports, "Foo", { get: … }).
			v := s.Expr(base + 4)
			if v.Kind == ObjectNode {
				v = v.Get("get")
			}
			if r := s.Result(v); r != nil {
				table[lexer.Unquote(s.Text(base+2))] = r
			}
		}
	}

	// Newer webpack defines all exports with a single call on a parameter.
	for _, p := range params {
		for _, o := range s.namespaces()[p.Tok] {
			obj := s.Definition(o)
			for _, p := range obj.Props {
				if v := s.Property(obj, p.Name); v != nil && table[p.Name] == nil {
					table[p.Name] = v
				}
			}
		}
	}
	return table
}
