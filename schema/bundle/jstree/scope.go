package jstree

import "github.com/tdewolff/parse/v2/js"

// A bindKind is a kind of declaration of a name, such as a parameter or class.
type bindKind uint8

// The kinds of declarations, with the meaning of the fields Init and Arg of a Binding.
const (
	// BindVar is a variable: Init is the token of its first value, or -1.
	BindVar bindKind = iota
	// bindFunc is a function: Init is the function keyword.
	bindFunc
	// BindClass is a class: Init is the class keyword.
	BindClass
	// BindParam is a parameter: Arg is its index, and Scope is the body of the function.
	BindParam
	// BindProp is a name in a destructuring pattern: Init is the token of the value, and Arg that of the
	// property's name.
	BindProp
	// BindImport is an imported name: Init is the token of the module's name, and Arg that of the imported
	// name.
	BindImport
)

// A Binding is the declaration of a JavaScript name in a scope. Tokens and brackets are given by their indices.
type Binding struct {
	// Tok is the token of the declared name. Init and Arg depend on Kind. Scope is the bracket in which the
	// name is visible.
	Tok, Init, Arg, Scope int32
	// name is the number of the name in scopes.names. next is the index of the next binding in the same scope,
	// or 0.
	name, next int32
	// Kind is the kind of declaration, such as BindParam.
	Kind bindKind
}

// bindings are the declarations of all scopes. Most scopes have few names and most brackets none, so the
// declarations of a scope form a linked list, or a map if there are many.
type bindings struct {
	// all are the declarations. The first is a placeholder, so that index 0 means none.
	all []Binding
	// first has, for each bracket, the index of its first declaration; 0 for none; many if the map is used.
	first []int32
	// maps has the declarations of scopes with many names, by scopeKey.
	maps map[uint64]int32
}

// The representation of scopes in bindings.
const (
	// many marks a scope with so many names that they are indexed by a map.
	many = -1
	// maxListed is the number of names from which on a map is used in place of a list.
	maxListed = 12
)

// newBindings returns empty bindings for a script with this many brackets and tokens.
func newBindings(brackets, tokens int) bindings {
	return bindings{all: make([]Binding, 1, 1+tokens/16), first: make([]int32, brackets), maps: map[uint64]int32{}}
}

// find returns the index of the declaration of a name in one scope, without the enclosing scopes, or 0. name is
// the name's number.
func (b *bindings) find(scope, name int32) int32 {
	// The bracket was added after the names were bound.
	if int(scope) >= len(b.first) {
		return 0
	}
	i := b.first[scope]
	if i == many {
		return b.maps[scopeKey(scope, name)]
	}
	for i != 0 && b.all[i].name != name {
		i = b.all[i].next
	}
	return i
}

// addBinding adds a declaration. Its scope must not have one of that name yet.
func (b *bindings) addBinding(v Binding) {
	at := int32(len(b.all))
	if b.first[v.Scope] != many {
		v.next = b.first[v.Scope]
		b.first[v.Scope] = at
	}
	b.all = append(b.all, v)
	if b.first[v.Scope] == many {
		b.maps[scopeKey(v.Scope, v.name)] = at
		return
	}

	n := 0
	for i := at; i != 0; i = b.all[i].next {
		n++
	}
	if n > maxListed {
		for i := at; i != 0; i = b.all[i].next {
			b.maps[scopeKey(v.Scope, b.all[i].name)] = i
		}
		b.first[v.Scope] = many
	}
}

// scopes has the declarations of a script, and caches derived from them.
type scopes struct {
	// names assigns a number to each distinct JavaScript name.
	names map[string]int32
	// bindings are the declarations, by scope and name.
	bindings bindings

	// assigns maps the number of a name to the tokens at which the name is assigned a value.
	assigns map[int32][]int32

	// Classes maps the bracket of each class body to the token of the class keyword.
	Classes map[int32]int32

	// Spaces are calls that define exports, such as f(name, {Export: () => …}).
	Spaces []namespace

	// spaceOf caches the tokens of the objects that define exports; the key is the declaration of the variable that
	// receives the exports.
	spaceOf map[int32][]int32

	// onNames caches the first token of each value that is assigned to a member, as in foo.name = value, by the
	// declaration of foo and by the member's name.
	onNames map[int32]map[string]int32

	// modules caches the bodies of bundled modules by their key in the bundle.
	modules map[string][]int32
	// exprs caches parsed expressions by their first token.
	exprs map[int32]*Node

	// exports caches the exported expressions of each module by name; the outer key is the body of the module.
	exports map[int32]map[string]*Node

	// defined caches the object literals to which arrays of names and getters (the exports of a webpack module)
	// were converted, by token.
	defined map[int32]*Node

	// assigned caches the tokens of all assignments to each declared name: by the number of the name, and then by
	// the token that declares it.
	assigned map[int32]map[int32][]int32
	// returns caches the token of the returned expression by the body of the function.
	returns map[int32]int32

	// arrows are the brackets that EncodeArrows added for arrow functions without braces.
	arrows []int32
	// deep is the current recursion depth of evaluating constants, which MaxDepth limits.
	deep int
}

// A namespace is a call that defines exports: __export(x, {…}) of esbuild, and n.d(x, {…}) or n.d(x, ["a", 0,
// value, "b", () => value]) of webpack. Name and Object are the tokens of its two arguments.
type namespace struct {
	// Name is the index of the token of the first argument: the object that receives the exports.
	Name int32

	// Object is the index of the token at which the second argument begins: the object literal or list that defines
	// the exports.
	Object int32
}

// scopeKey combines a scope and the number of a name to a map key.
func scopeKey(scope, name int32) uint64 { return uint64(scope)<<32 | uint64(uint32(name)) }

// Bind finds all declarations of names in the script, so that Lookup can be used.
func (s *Script) Bind() {
	s.scopes = scopes{
		names:    map[string]int32{},
		bindings: newBindings(len(s.Brackets), len(s.Toks)),
		assigns:  map[int32][]int32{},
		Classes:  map[int32]int32{},
		exprs:    map[int32]*Node{},
		exports:  map[int32]map[string]*Node{},
		defined:  map[int32]*Node{},
		assigned: map[int32]map[int32][]int32{},
		returns:  map[int32]int32{},
	}

	for i := range s.Toks {
		if s.isCanceled() {
			return
		}
		at := int32(i)
		switch s.Typ(int32(i)) {
		case js.VarToken, js.ConstToken, js.LetToken:
			s.declare(at)
		case js.FunctionToken:
			s.bindFunction(at)
		case js.ClassToken:
			s.bindClass(at)
		// An arrow function with a single parameter has no parentheses.
		case js.ArrowToken:
			if s.Typ(at+1) == js.OpenBraceToken && js.IsIdentifier(s.Typ(at-1)) {
				s.addName(s.Tok(at+1).Bracket, at-1, Binding{Kind: BindParam, Init: -1})
			}
		case js.OpenBraceToken:
			if s.EnclosingBracket(at).Fn {
				s.bindParams(at)
			}
		// An assignment to a name, not to a member.
		case js.EqToken:
			if js.IsIdentifier(s.Typ(at-1)) && s.Typ(at-2) != js.DotToken && s.Typ(at-2) != js.OptChainToken {
				name := s.nameID(at - 1)
				s.assigns[name] = append(s.assigns[name], at-1)
			}
		// A call that may define exports: f(name, {…}) or f(name, ["…", …]).
		case js.OpenParenToken:
			if js.IsIdentifier(s.Typ(at+1)) && s.Typ(at+2) == js.CommaToken && js.IsIdentifierName(s.Typ(at-1)) &&
				(s.Typ(at+3) == js.OpenBraceToken || s.Typ(at+3) == js.OpenBracketToken && s.Typ(at+4) == js.StringToken) {
				s.Spaces = append(s.Spaces, namespace{at + 1, at + 3})
			}
		case js.ImportToken:
			s.bindImport(at)
		}
	}
}

// nameID returns the number of the name at token tok, and assigns one if needed.
func (s *Script) nameID(tok int32) int32 {
	t := s.Tok(tok)
	id, ok := s.names[string(s.Src[t.Start:t.end])]
	if !ok {
		id = int32(len(s.names))
		s.names[string(s.Src[t.Start:t.end])] = id
	}
	return id
}

// addName adds the declaration of the name at token tok to a scope. If there are several declarations of one
// name, one with a value is kept.
func (s *Script) addName(scope, tok int32, b Binding) {
	b.Tok, b.Scope, b.name = tok, scope, s.nameID(tok)
	i := s.bindings.find(scope, b.name)
	if i == 0 {
		s.bindings.addBinding(b)
		return
	}
	old := &s.bindings.all[i]
	// A variable without a value does not replace a function or class of its name.
	if b.Kind == BindVar && (b.Init < 0 || old.Kind == bindFunc || old.Kind == BindClass) {
		return
	}
	b.next = old.next
	*old = b
}

// Function returns the body (index of a bracket) of the innermost function that contains the bracket br, or 0.
func (s *Script) Function(br int32) int32 { return s.Brackets[br].function }

// declare records the names that the var, let or const statement at the token with index at declares.
func (s *Script) declare(at int32) {
	// A member or a key named "let" is no declaration.
	if t := s.Typ(at - 1); t == js.DotToken || s.Typ(at+1) == js.ColonToken {
		return
	}
	scope := s.Tok(at).Bracket

	// var is visible in the whole function, let and const in their block.
	if s.Typ(at) == js.VarToken {
		scope = s.Function(scope)
	}
	own := s.Tok(at).Bracket

	// One declaration can list several variables.
	for i := at + 1; ; {
		init, after := int32(-1), int32(0)
		switch t := s.Typ(i); {
		case js.IsIdentifier(t):
			after = i + 1
		case t == js.OpenBraceToken || t == js.OpenBracketToken:
			after = s.EnclosingBracket(i).Close + 1
		default:
			return
		}
		if s.Typ(after) == js.EqToken {
			init = after + 1
		}
		if after == i+1 {
			s.addName(scope, i, Binding{Kind: BindVar, Init: init})
		} else if s.Typ(i) == js.OpenBraceToken {
			s.bindPattern(scope, i, init)
		}
		if i = s.declarator(after, own); i < 0 {
			return
		}
	}
}

// declarator returns the index of the token after the comma that ends the declaration of one variable, or -1 if
// the statement ends. own is the bracket that contains the statement.
func (s *Script) declarator(at, own int32) int32 {
	for int(at) < len(s.Toks) {
		t := s.Tok(at)
		switch t.typ {
		// A comma inside brackets does not end the declarator.
		case js.CommaToken:
			if t.Bracket == own {
				return at + 1
			}
		case js.SemicolonToken, js.CloseBraceToken, js.CloseParenToken, js.CloseBracketToken, js.OfToken, js.InToken:
			if t.typ != js.InToken && t.typ != js.OfToken || t.Bracket != own {
				return -1
			}
		case js.VarToken, js.ConstToken, js.LetToken:
			return -1
		}

		// A line break ends the statement if the next token cannot continue it (automatic semicolon insertion).
		if t.nl && js.IsIdentifierName(t.typ) && t.typ != js.InToken && t.typ != js.InstanceofToken && s.endsValue(at-1) {
			return -1
		}
		at = s.Next(at)
	}
	return -1
}

// endsValue reports whether the token with index at may be the last one of an expression.
func (s *Script) endsValue(at int32) bool {
	switch t := s.Typ(at); t {
	case js.StringToken, js.TemplateToken, js.TemplateEndToken, js.RegExpToken, js.CloseBraceToken, js.CloseParenToken,
		js.CloseBracketToken, js.TrueToken, js.FalseToken, js.NullToken, js.ThisToken, js.IncrToken, js.DecrToken:
		return true
	default:
		return js.IsNumeric(t) || js.IsIdentifier(t)
	}
}

// bindPattern records the names that a destructuring pattern such as {a, b: c, d = 1} declares. init is the
// token of the destructured value, or -1.
func (s *Script) bindPattern(scope, at, init int32) {
	close := s.EnclosingBracket(at).Close
	for i := at + 1; i < close; i = s.Skip(i, close) + 1 {
		if !js.IsIdentifierName(s.Typ(i)) && s.Typ(i) != js.StringToken {
			continue
		}
		name := i
		if s.Typ(i+1) == js.ColonToken {
			i += 2
		}
		if js.IsIdentifier(s.Typ(i)) {
			s.addName(scope, i, Binding{Kind: BindProp, Init: init, Arg: name})
		}
	}
}

// statementAt reports whether the keyword at the token with index at begins a statement rather than an
// expression.
func (s *Script) statementAt(at int32) bool {
	switch s.Typ(at - 1) {
	case js.ErrorToken, js.SemicolonToken, js.CloseBraceToken, js.ExportToken, js.DefaultToken, js.ElseToken:
		return true
	case js.OpenBraceToken:
		return s.isBlock(at - 1)
	case js.AsyncToken:
		return s.statementAt(at - 1)
	case js.CloseParenToken:
		switch s.Typ(s.EnclosingBracket(at-1).Open - 1) {
		case js.IfToken, js.ForToken, js.WhileToken:
			return true
		}
	}
	return s.Tok(at).nl && s.endsValue(at-1)
}

// bindFunction records the name of the function whose keyword is at the token with index at. The name of a
// function expression is visible inside the function only.
func (s *Script) bindFunction(at int32) {
	if s.Typ(at-1) == js.DotToken {
		return
	}
	name := at + 1
	if s.Typ(name) == js.MulToken {
		name++
	}
	if !js.IsIdentifier(s.Typ(name)) || s.Typ(name+1) != js.OpenParenToken {
		return
	}
	body := s.EnclosingBracket(name+1).Close + 1
	if s.Typ(body) != js.OpenBraceToken {
		return
	}
	scope := s.Tok(body).Bracket
	if s.statementAt(at) {
		scope = s.Tok(at).Bracket
	}
	s.addName(scope, name, Binding{Kind: bindFunc, Init: at})
}

// bindClass records the name and the body of the class whose keyword is at the token with index at.
func (s *Script) bindClass(at int32) {
	if s.Typ(at-1) == js.DotToken || s.Typ(at+1) == js.ColonToken {
		return
	}

	own := s.Tok(at).Bracket
	body := at + 1
	for int(body) < min(len(s.Toks), int(at)+MaxSkew*MaxSkew) && s.Typ(body) != js.OpenBraceToken {
		if s.Tok(body).Bracket == own && s.Brackets[own].Close == body || s.Typ(body) == js.SemicolonToken {
			return
		}
		body = s.Next(body)
	}
	if s.Typ(body) != js.OpenBraceToken {
		return
	}
	s.Classes[s.Tok(body).Bracket] = at
	if !js.IsIdentifier(s.Typ(at + 1)) {
		return
	}
	scope := own
	if !s.statementAt(at) {
		scope = s.Tok(body).Bracket
	}
	s.addName(scope, at+1, Binding{Kind: BindClass, Init: at})
}

// bindParams records the parameters of the function whose body opens at the token with index at.
func (s *Script) bindParams(at int32) {
	i := at - 1
	if s.Typ(i) == js.ArrowToken {
		i--
	}
	if s.Typ(i) != js.CloseParenToken {
		return
	}
	open := s.EnclosingBracket(i).Open

	n := int32(0)
	for j := open + 1; j < i; j = s.Skip(j, i) + 1 {
		k := j
		if s.Typ(k) == js.EllipsisToken {
			k++
		}
		switch t := s.Typ(k); {
		case js.IsIdentifier(t):
			s.addName(s.Tok(at).Bracket, k, Binding{Kind: BindParam, Init: -1, Arg: n})
		case t == js.OpenBraceToken:
			s.bindPattern(s.Tok(at).Bracket, k, -1)
		}
		n++
	}
}

// bindImport records the names of the import statement at the token with index at.
func (s *Script) bindImport(at int32) {
	if s.Typ(at-1) == js.DotToken || s.Typ(at+1) == js.OpenParenToken || s.Typ(at+1) == js.DotToken {
		return
	}
	from := at + 1
	for n := 0; n < 8 && int(from) < len(s.Toks) && s.Typ(from) != js.FromToken; n++ {
		from = s.Next(from)
	}
	if s.Typ(from+1) != js.StringToken {
		return
	}

	for i := at + 1; i < from; i++ {
		if !js.IsIdentifierName(s.Typ(i)) {
			continue
		}
		name := i
		if s.Typ(i+1) == js.AsToken && i+2 < from {
			i += 2
		}
		s.addName(0, i, Binding{Kind: BindImport, Init: from + 1, Arg: name})
	}
}

// Lookup returns the declaration of name that is visible at the token with index at. ok is false if there is
// none.
func (s *Script) Lookup(at int32, name string) (Binding, bool) {
	id, ok := s.names[name]
	if !ok || at < 0 || int(at) >= len(s.Toks) {
		return Binding{}, false
	}
	br := s.Tok(at).Bracket
	for n := 0; ; n++ {
		if i := s.bindings.find(br, id); i != 0 {
			return s.bindings.all[i], true
		}
		if br == 0 {
			return Binding{}, false
		}
		// Deeply nested brackets are skipped, up to the script itself.
		if br = s.Brackets[br].Parent; n > MaxNesting {
			br = 0
		}
	}
}

// Values returns the tokens of all assignments to a declared name.
func (s *Script) Values(b Binding) []int32 {
	name := s.Text(b.Tok)
	id := s.names[name]
	by, ok := s.assigned[id]
	if !ok {
		by = map[int32][]int32{}
		for _, at := range s.assigns[id] {
			if to, ok := s.Lookup(at, name); ok {
				by[to.Tok] = append(by[to.Tok], at)
			}
		}
		s.assigned[id] = by
	}
	return by[b.Tok]
}
