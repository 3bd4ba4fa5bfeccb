package bundle

import "github.com/tdewolff/parse/v2/js"

type bindKind uint8

const (
	bindVar   bindKind = iota // init is the token of its first value, or -1
	bindFunc                  // init is the function keyword
	bindClass                 // init is the class keyword
	// arg is the parameter's index; the scope is the body
	bindParam
	// init is the token of what is taken apart, arg of the property's name
	bindProp
	// init is the token of the module's name, arg of the imported name
	bindImport
)

// A binding is what a name stands for in a scope.
type binding struct {
	tok, init, arg, scope int32
	name, next            int32
	kind                  bindKind
}

// bindings are the bindings of all scopes. Most scopes have few names, and most
// brackets none: those of a scope are a list, and only where it is long a map.
type bindings struct {
	all   []binding        // the first stands for none
	first []int32          // by bracket: of its list, 0 for none, many for a map
	maps  map[uint64]int32 // by scope and name
}

const (
	many      = -1
	maxListed = 12 // names of a scope that are looked through
)

func newBindings(brackets, tokens int) bindings {
	return bindings{all: make([]binding, 1, 1+tokens/16), first: make([]int32, brackets), maps: map[uint64]int32{}}
}

// find returns the index of a name's binding in one scope, 0 for none.
func (b *bindings) find(scope, name int32) int32 {
	if int(scope) >= len(b.first) { // made up after the names were bound
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

// addBinding enters the binding of a name that its scope does not have yet.
func (b *bindings) addBinding(v binding) {
	at := int32(len(b.all))
	if b.first[v.scope] != many {
		v.next = b.first[v.scope]
		b.first[v.scope] = at
	}
	b.all = append(b.all, v)
	if b.first[v.scope] == many {
		b.maps[scopeKey(v.scope, v.name)] = at
		return
	}
	n := 0
	for i := at; i != 0; i = b.all[i].next {
		n++
	}
	if n > maxListed {
		for i := at; i != 0; i = b.all[i].next {
			b.maps[scopeKey(v.scope, b.all[i].name)] = i
		}
		b.first[v.scope] = many
	}
}

type scopes struct {
	names    map[string]int32
	bindings bindings

	// by name: tokens that a value is assigned to
	assigns map[int32][]int32

	// body bracket: class keyword
	classes map[int32]int32

	// f(name, {Export: () => …})
	spaces []namespace

	// by binding: objects of spaces
	spaceOf map[int32][]int32
	onNames map[int32]map[string]int32
	modules map[string][]int32
	exprs   map[int32]*node
	exports map[int32]map[string]*node

	// objects that arrays of exports stand for, by their tokens
	defined map[int32]*node

	// by name, by binding
	assigned map[int32]map[int32][]int32
	returns  map[int32]int32

	// brackets that were made up, of functions without braces
	arrows []int32
	deep   int
}

// A namespace is a call that defines exports: esbuild's __export(x, {…}) and
// webpack's n.d(x, {…}) or n.d(x, ["a", 0, value, "b", () => value]).
type namespace struct{ name, object int32 }

func scopeKey(scope, name int32) uint64 { return uint64(scope)<<32 | uint64(uint32(name)) }

// bind collects what is declared where.
func (s *script) bind() {
	s.scopes = scopes{
		names:    map[string]int32{},
		bindings: newBindings(len(s.brs), len(s.toks)),
		assigns:  map[int32][]int32{},
		classes:  map[int32]int32{},
		exprs:    map[int32]*node{},
		exports:  map[int32]map[string]*node{},
		defined:  map[int32]*node{},
		assigned: map[int32]map[int32][]int32{},
		returns:  map[int32]int32{},
	}
	for i := range s.toks {
		if s.isCanceled() {
			return
		}
		at := int32(i)
		switch s.typ(int32(i)) {
		case js.VarToken, js.ConstToken, js.LetToken:
			s.declare(at)
		case js.FunctionToken:
			s.bindFunction(at)
		case js.ClassToken:
			s.bindClass(at)
		case js.ArrowToken:
			if s.typ(at+1) == js.OpenBraceToken && js.IsIdentifier(s.typ(at-1)) {
				s.addName(s.tok(at+1).br, at-1, binding{kind: bindParam, init: -1})
			}
		case js.OpenBraceToken:
			if s.enclosingBracket(at).fn {
				s.bindParams(at)
			}
		case js.EqToken:
			if js.IsIdentifier(s.typ(at-1)) && s.typ(at-2) != js.DotToken && s.typ(at-2) != js.OptChainToken {
				name := s.nameID(at - 1)
				s.assigns[name] = append(s.assigns[name], at-1)
			}
		case js.OpenParenToken:
			if js.IsIdentifier(s.typ(at+1)) && s.typ(at+2) == js.CommaToken && js.IsIdentifierName(s.typ(at-1)) &&
				(s.typ(at+3) == js.OpenBraceToken || s.typ(at+3) == js.OpenBracketToken && s.typ(at+4) == js.StringToken) {
				s.spaces = append(s.spaces, namespace{at + 1, at + 3})
			}
		case js.ImportToken:
			s.bindImport(at)
		}
	}
}

func (s *script) nameID(tok int32) int32 {
	t := s.tok(tok)
	id, ok := s.names[string(s.src[t.start:t.end])]
	if !ok {
		id = int32(len(s.names))
		s.names[string(s.src[t.start:t.end])] = id
	}
	return id
}

func (s *script) addName(scope, tok int32, b binding) {
	b.tok, b.scope, b.name = tok, scope, s.nameID(tok)
	i := s.bindings.find(scope, b.name)
	if i == 0 {
		s.bindings.addBinding(b)
		return
	}
	old := &s.bindings.all[i]
	if b.kind == bindVar && (b.init < 0 || old.kind == bindFunc || old.kind == bindClass) {
		return
	}
	b.next = old.next
	*old = b
}

// function returns the body bracket of the function around a bracket.
func (s *script) function(br int32) int32 { return s.brs[br].function }

// declare binds the names of a var, let or const statement.
func (s *script) declare(at int32) {
	if t := s.typ(at - 1); t == js.DotToken || s.typ(at+1) == js.ColonToken {
		return
	}
	scope := s.tok(at).br
	if s.typ(at) == js.VarToken {
		scope = s.function(scope)
	}
	own := s.tok(at).br
	for i := at + 1; ; {
		init, after := int32(-1), int32(0)
		switch t := s.typ(i); {
		case js.IsIdentifier(t):
			after = i + 1
		case t == js.OpenBraceToken || t == js.OpenBracketToken:
			after = s.enclosingBracket(i).close + 1
		default:
			return
		}
		if s.typ(after) == js.EqToken {
			init = after + 1
		}
		if after == i+1 {
			s.addName(scope, i, binding{kind: bindVar, init: init})
		} else if s.typ(i) == js.OpenBraceToken {
			s.bindPattern(scope, i, init)
		}
		if i = s.declarator(after, own); i < 0 {
			return
		}
	}
}

// declarator returns the token after the comma that ends a declarator, or -1
// where the statement ends.
func (s *script) declarator(at, own int32) int32 {
	for int(at) < len(s.toks) {
		t := s.tok(at)
		switch t.typ {
		case js.CommaToken:
			if t.br == own {
				return at + 1
			}
		case js.SemicolonToken, js.CloseBraceToken, js.CloseParenToken, js.CloseBracketToken, js.OfToken, js.InToken:
			if t.typ != js.InToken && t.typ != js.OfToken || t.br != own {
				return -1
			}
		case js.VarToken, js.ConstToken, js.LetToken:
			return -1
		}
		if t.nl && js.IsIdentifierName(t.typ) && t.typ != js.InToken && t.typ != js.InstanceofToken && s.endsValue(at-1) {
			return -1
		}
		at = s.next(at)
	}
	return -1
}

// endsValue says whether an expression may end with a token.
func (s *script) endsValue(at int32) bool {
	switch t := s.typ(at); t {
	case js.StringToken, js.TemplateToken, js.TemplateEndToken, js.RegExpToken, js.CloseBraceToken, js.CloseParenToken,
		js.CloseBracketToken, js.TrueToken, js.FalseToken, js.NullToken, js.ThisToken, js.IncrToken, js.DecrToken:
		return true
	default:
		return js.IsNumeric(t) || js.IsIdentifier(t)
	}
}

// bindPattern binds the names of {a, b: c, d = 1}.
func (s *script) bindPattern(scope, at, init int32) {
	close := s.enclosingBracket(at).close
	for i := at + 1; i < close; i = s.skip(i, close) + 1 {
		if !js.IsIdentifierName(s.typ(i)) && s.typ(i) != js.StringToken {
			continue
		}
		name := i
		if s.typ(i+1) == js.ColonToken {
			i += 2
		}
		if js.IsIdentifier(s.typ(i)) {
			s.addName(scope, i, binding{kind: bindProp, init: init, arg: name})
		}
	}
}

// statementAt says whether a keyword begins a statement.
func (s *script) statementAt(at int32) bool {
	switch s.typ(at - 1) {
	case js.ErrorToken, js.SemicolonToken, js.CloseBraceToken, js.ExportToken, js.DefaultToken, js.ElseToken:
		return true
	case js.OpenBraceToken:
		return s.isBlock(at - 1)
	case js.AsyncToken:
		return s.statementAt(at - 1)
	case js.CloseParenToken:
		switch s.typ(s.enclosingBracket(at-1).open - 1) {
		case js.IfToken, js.ForToken, js.WhileToken:
			return true
		}
	}
	return s.tok(at).nl && s.endsValue(at-1)
}

func (s *script) bindFunction(at int32) {
	if s.typ(at-1) == js.DotToken {
		return
	}
	name := at + 1
	if s.typ(name) == js.MulToken {
		name++
	}
	if !js.IsIdentifier(s.typ(name)) || s.typ(name+1) != js.OpenParenToken {
		return
	}
	body := s.enclosingBracket(name+1).close + 1
	if s.typ(body) != js.OpenBraceToken {
		return
	}
	scope := s.tok(body).br
	if s.statementAt(at) {
		scope = s.tok(at).br
	}
	s.addName(scope, name, binding{kind: bindFunc, init: at})
}

func (s *script) bindClass(at int32) {
	if s.typ(at-1) == js.DotToken || s.typ(at+1) == js.ColonToken {
		return
	}
	own := s.tok(at).br
	body := at + 1
	for int(body) < min(len(s.toks), int(at)+maxSkew*maxSkew) && s.typ(body) != js.OpenBraceToken {
		if s.tok(body).br == own && s.brs[own].close == body || s.typ(body) == js.SemicolonToken {
			return
		}
		body = s.next(body)
	}
	if s.typ(body) != js.OpenBraceToken {
		return
	}
	s.classes[s.tok(body).br] = at
	if !js.IsIdentifier(s.typ(at + 1)) {
		return
	}
	scope := own
	if !s.statementAt(at) {
		scope = s.tok(body).br
	}
	s.addName(scope, at+1, binding{kind: bindClass, init: at})
}

// bindParams binds the parameters of the function whose body opens at a token.
func (s *script) bindParams(at int32) {
	i := at - 1
	if s.typ(i) == js.ArrowToken {
		i--
	}
	if s.typ(i) != js.CloseParenToken {
		return
	}
	open := s.enclosingBracket(i).open
	n := int32(0)
	for j := open + 1; j < i; j = s.skip(j, i) + 1 {
		k := j
		if s.typ(k) == js.EllipsisToken {
			k++
		}
		switch t := s.typ(k); {
		case js.IsIdentifier(t):
			s.addName(s.tok(at).br, k, binding{kind: bindParam, init: -1, arg: n})
		case t == js.OpenBraceToken:
			s.bindPattern(s.tok(at).br, k, -1)
		}
		n++
	}
}

// bindImport binds the names of an import statement.
func (s *script) bindImport(at int32) {
	if s.typ(at-1) == js.DotToken || s.typ(at+1) == js.OpenParenToken || s.typ(at+1) == js.DotToken {
		return
	}
	from := at + 1
	for n := 0; n < 8 && int(from) < len(s.toks) && s.typ(from) != js.FromToken; n++ {
		from = s.next(from)
	}
	if s.typ(from+1) != js.StringToken {
		return
	}
	for i := at + 1; i < from; i++ {
		if !js.IsIdentifierName(s.typ(i)) {
			continue
		}
		name := i
		if s.typ(i+1) == js.AsToken && i+2 < from {
			i += 2
		}
		s.addName(0, i, binding{kind: bindImport, init: from + 1, arg: name})
	}
}

// lookup returns what a name stands for at a token.
func (s *script) lookup(at int32, name string) (binding, bool) {
	id, ok := s.names[name]
	if !ok || at < 0 || int(at) >= len(s.toks) {
		return binding{}, false
	}
	br := s.tok(at).br
	for n := 0; ; n++ {
		if i := s.bindings.find(br, id); i != 0 {
			return s.bindings.all[i], true
		}
		if br == 0 {
			return binding{}, false
		}
		if br = s.brs[br].parent; n > maxNesting {
			br = 0
		}
	}
}

// values returns the tokens of names through which a binding is assigned to.
func (s *script) values(b binding) []int32 {
	name := s.text(b.tok)
	id := s.names[name]
	by, ok := s.assigned[id]
	if !ok {
		by = map[int32][]int32{}
		for _, at := range s.assigns[id] {
			if to, ok := s.lookup(at, name); ok {
				by[to.tok] = append(by[to.tok], at)
			}
		}
		s.assigned[id] = by
	}
	return by[b.tok]
}
