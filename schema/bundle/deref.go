package bundle

import (
	"math"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

const (
	maxHops  = 64       // of one reference
	maxSteps = 20 << 20 // of a script
)

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
		s.steps++
		if t.hops++; n == nil || t.hops > maxHops || s.steps > maxSteps {
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
				name = unquote(name)
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

// argument returns what a parameter is given where its function is called at
// once.
func (s *script) argument(b binding) *node {
	at := s.brs[b.scope].close + 1
	if s.typ(at) == js.CloseParenToken {
		at++
	}
	if s.typ(at) != js.OpenParenToken || s.toks[at].nl {
		return nil
	}
	r := reader{script: s}
	args := r.list(at+1, s.around(at).close)
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
		if at, ok := s.membersGiven()[id][name]; ok {
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
	if v.kind == nCall && len(v.kids) > 1 && v.kids[1].kind == nObject { // Object.freeze({…})
		return s.property(v.kids[1], name)
	}
	return nil
}

// membersGiven are the values of foo.name = value, by what foo stands for and by
// name: also where foo is handed to a function that is called at once.
func (s *script) membersGiven() map[int32]map[string]int32 {
	if s.onNames != nil {
		return s.onNames
	}
	s.onNames = map[int32]map[string]int32{}
	for i := range s.toks {
		at := int32(i)
		if s.toks[i].typ != js.EqToken || !js.IsIdentifierName(s.typ(at-1)) || s.typ(at-2) != js.DotToken || !js.IsIdentifier(s.typ(at-3)) ||
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

// definition returns the object of a namespace.
func (s *script) definition(at int32) *node {
	n := s.expr(at)
	if n.kind != nArray {
		return n
	}
	o := &node{kind: nObject, at: n.at, end: n.end}
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
	return 0, false
}

// nearest returns the body that shares most brackets with a token.
func (s *script) nearest(bodies []int32, at int32) int32 {
	if len(bodies) == 1 {
		return bodies[0]
	}
	around := map[int32]bool{}
	for br := s.toks[at].br; br != 0; br = s.brs[br].parent {
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
			at = s.around(at).open
		}
		if s.typ(at-1) == js.FunctionToken {
			at--
		}
		if before := s.typ(at - 1); before == js.CommaToken || before == js.OpenBracketToken {
			if list := s.toks[at-1].br; s.brs[list].kind == '[' {
				if indices[list] == nil {
					indices[list] = s.indices(list)
				}
				k := strconv.Itoa(indices[list][at])
				s.modules[k] = append(s.modules[k], int32(i))
				continue
			}
		}
		key := at - 1
		if s.typ(key) == js.OpenParenToken && s.typ(key-1) == js.ColonToken { // "./a.js": ((e, t, n) => {
			key--
		}
		if s.typ(key) == js.ColonToken {
			key--
		}
		switch t := s.typ(key); {
		case t == js.StringToken:
			k := unquote(s.text(key))
			s.modules[k] = append(s.modules[k], int32(i))
		case js.IsNumeric(t):
			k := strconv.FormatFloat(number(s.text(key)), 'f', -1, 64)
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
				table[unquote(s.text(base+2))] = r
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
			if !ok {
				return "", false
			}
			b.WriteString(part)
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
		if !ok {
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
	b.WriteString(first)
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
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
		if i > 0 {
			b.WriteString(sep)
		}
		part, ok := s.str(k)
		if !ok {
			return "", false
		}
		b.WriteString(part)
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
		if k.kind != nSpread {
			list = append(list, k)
			continue
		}
		more, _ := s.elements(k.kids[0])
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
		if !p.spread {
			whole.props = append(whole.props, p)
		} else if o := s.object(p.value); o != nil {
			whole.props = append(whole.props, o.props...)
		}
	}
	return &whole
}
