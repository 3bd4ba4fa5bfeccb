package bundle

import (
	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

type nodeKind uint8

const (
	nBad      nodeKind = iota // what is no expression, or too deep
	nIdent                    // str
	nString                   // str
	nNumber                   // str is its text, num its value
	nBool                     // num is 0 or 1
	nNull                     // null, undefined and void 0
	nTemplate                 // kids, where strings and expressions alternate
	nArray                    // kids
	nObject                   // props
	nMember                   // kids[0].str
	nIndex                    // kids[0][kids[1]]
	nCall                     // kids[0](kids[1:])
	nNew                      // new kids[0](kids[1:])
	// body, or kids[0] where the body is an expression; params
	nFunc
	nClass  // body; kids[0] is what it extends, or nil
	nUnary  // op kids[0]
	nBinary // kids[0] op kids[1]
	nCond   // kids[0] ? kids[1] : kids[2]
	nAssign // kids[0] op kids[1]
	nSeq    // kids
	nSpread // ...kids[0]
)

// A node is an expression. at is the token that tells it from any other: where
// it begins, but of a call its parenthesis and of a member its name.
type node struct {
	kind nodeKind
	op   js.TokenType
	at   int32

	// the token after it
	end int32

	// bracket
	body  int32
	str   string
	num   float64
	kids  []*node
	props []prop

	// indices of props, where they are many and were asked for
	byName map[string]int32
}

// A prop is a member of an object literal.
type prop struct {
	name   string
	at     int32
	value  *node
	getter bool
	spread bool
}

// get returns a property's value, nil where there is none.
func (n *node) get(name string) *node {
	if n == nil || n.kind != nObject {
		return nil
	}
	if len(n.props) > maxListed {
		return n.indexed(name)
	}
	for i := len(n.props) - 1; i >= 0; i-- {
		if n.props[i].name == name && !n.props[i].spread {
			return n.props[i].value
		}
	}
	return nil
}

// indexed is get for an object of many properties, which is asked for many.
func (n *node) indexed(name string) *node {
	if n.byName == nil {
		n.byName = make(map[string]int32, len(n.props))
		for i, p := range n.props {
			if !p.spread {
				n.byName[p.name] = int32(i)
			}
		}
	}
	if i, ok := n.byName[name]; ok {
		return n.props[i].value
	}
	return nil
}

// maxDepth bounds how deep expressions nest.
const maxDepth = 400

// A reader reads expressions of a script.
type reader struct {
	*script
	depth int
}

// expr parses the expression that begins at a token, without commas.
func (s *script) expr(at int32) *node {
	if n, ok := s.exprs[at]; ok {
		return n
	}
	n := (&reader{script: s}).assign(at)
	s.exprs[at] = n
	return n
}

// exprSeq is expr with commas.
func (s *script) exprSeq(at int32) *node {
	r := &reader{script: s}
	n := r.assign(at)
	if s.typ(n.end) != js.CommaToken {
		return n
	}
	seq := &node{kind: nSeq, at: at, kids: []*node{n}}
	for s.typ(n.end) == js.CommaToken {
		n = r.assign(n.end + 1)
		seq.kids = append(seq.kids, n)
		if n.kind == nBad {
			break
		}
	}
	seq.end = n.end
	return seq
}

func (r *reader) bad(at int32) *node { return &node{kind: nBad, at: at, end: at} }

func (r *reader) assign(at int32) *node {
	// Expressions are read from many places, so that their number is bounded too.
	if r.depth++; r.depth > maxDepth || !r.mayParse(at) {
		r.depth--
		return r.bad(at)
	}
	defer func() { r.depth-- }()

	if fn := r.arrow(at); fn != nil {
		return fn
	}
	left := r.binary(at, 0)
	if left.kind == nBad {
		return left
	}
	switch op := r.typ(left.end); op {
	case js.QuestionToken:
		yes := r.assign(left.end + 1)
		if r.typ(yes.end) != js.ColonToken {
			return left
		}
		no := r.assign(yes.end + 1)
		return &node{kind: nCond, at: at, end: no.end, kids: []*node{left, yes, no}}
	case js.EqToken, js.AddEqToken, js.SubEqToken, js.MulEqToken, js.DivEqToken, js.ModEqToken, js.ExpEqToken,
		js.LtLtEqToken, js.GtGtEqToken, js.GtGtGtEqToken, js.BitAndEqToken, js.BitOrEqToken, js.BitXorEqToken,
		js.AndEqToken, js.OrEqToken, js.NullishEqToken:
		right := r.assign(left.end + 1)
		return &node{kind: nAssign, op: op, at: at, end: right.end, kids: []*node{left, right}}
	}
	return left
}

// arrow parses an arrow function, and returns nil where none begins.
func (r *reader) arrow(at int32) *node {
	i := at
	if r.typ(i) == js.AsyncToken && !r.nlAt(i+1) && r.typ(i+1) != js.ArrowToken {
		i++
	}
	end := i + 1
	if r.typ(i) == js.OpenParenToken {
		end = r.enclosingBracket(i).close + 1
	} else if !js.IsIdentifier(r.typ(i)) {
		return nil
	}
	if r.typ(end) != js.ArrowToken {
		return nil
	}
	n := &node{kind: nFunc, at: at}
	if r.typ(end+1) == js.OpenBraceToken {
		n.body = r.tok(end + 1).br
		n.end = r.brs[n.body].close + 1
		return n
	}
	body := r.assign(end + 1)
	n.kids, n.end = []*node{body}, body.end
	return n
}

func (r *reader) nlAt(at int32) bool { return r.tok(at).nl }

// precedence of binary operators, 0 for others.
func precedence(op js.TokenType) int {
	switch op {
	case js.NullishToken, js.OrToken:
		return 1
	case js.AndToken:
		return 2
	case js.BitOrToken:
		return 3
	case js.BitXorToken:
		return 4
	case js.BitAndToken:
		return 5
	case js.EqEqToken, js.NotEqToken, js.EqEqEqToken, js.NotEqEqToken:
		return 6
	case js.LtToken, js.GtToken, js.LtEqToken, js.GtEqToken, js.InToken, js.InstanceofToken:
		return 7
	case js.LtLtToken, js.GtGtToken, js.GtGtGtToken:
		return 8
	case js.AddToken, js.SubToken:
		return 9
	case js.MulToken, js.DivToken, js.ModToken:
		return 10
	case js.ExpToken:
		return 11
	}
	return 0
}

func (r *reader) binary(at int32, above int) *node {
	left := r.unary(at)
	for left.kind != nBad && r.mayParse(left.end) {
		op := r.typ(left.end)
		p := precedence(op)
		if p <= above {
			return left
		}
		right := r.binary(left.end+1, p)
		left = &node{kind: nBinary, op: op, at: at, end: right.end, kids: []*node{left, right}}
		if right.kind == nBad {
			return left
		}
	}
	return left
}

func (r *reader) unary(at int32) *node {
	switch op := r.typ(at); op {
	case js.NotToken, js.SubToken, js.AddToken, js.BitNotToken, js.TypeofToken, js.VoidToken, js.DeleteToken,
		js.IncrToken, js.DecrToken, js.AwaitToken, js.YieldToken:
		if r.depth++; r.depth > maxDepth {
			r.depth--
			return r.bad(at)
		}
		kid := r.unary(at + 1)
		r.depth--
		if kid.kind == nBad && (op == js.AwaitToken || op == js.YieldToken) {
			return &node{kind: nIdent, at: at, end: at + 1, str: r.text(at)}
		}
		n := &node{kind: nUnary, op: op, at: at, end: kid.end, kids: []*node{kid}}
		switch {
		case op == js.VoidToken:
			n.kind = nNull
		case op == js.NotToken && kid.kind == nNumber:
			n.kind, n.num = nBool, 1
			if kid.num != 0 {
				n.num = 0
			}
		case op == js.SubToken && kid.kind == nNumber:
			n.kind, n.num, n.str = nNumber, -kid.num, "-"+kid.str
		case op == js.AddToken && kid.kind == nNumber:
			n.kind, n.num, n.str = nNumber, kid.num, kid.str
		}
		return n
	}
	n := r.postfix(r.primary(at))
	if t := r.typ(n.end); (t == js.IncrToken || t == js.DecrToken) && !r.nlAt(n.end) && n.kind != nBad {
		n = &node{kind: nUnary, op: t, at: at, end: n.end + 1, kids: []*node{n}}
	}
	return n
}

// postfix parses what follows a primary expression: members, calls, templates.
func (r *reader) postfix(n *node) *node {
	for n.kind != nBad && r.mayParse(n.end) {
		switch r.typ(n.end) {
		case js.DotToken, js.OptChainToken:
			at := n.end + 1
			if r.typ(n.end) == js.OptChainToken && (r.typ(at) == js.OpenParenToken || r.typ(at) == js.OpenBracketToken) {
				n = r.bracketed(n, at)
				continue
			}
			if t := r.typ(at); !js.IsIdentifierName(t) && t != js.PrivateIdentifierToken {
				return n
			}
			n = &node{kind: nMember, at: at, end: at + 1, str: r.text(at), kids: []*node{n}}
		case js.OpenParenToken, js.OpenBracketToken:
			n = r.bracketed(n, n.end)
		case js.TemplateToken:
			n = &node{kind: nCall, at: n.end, end: n.end + 1, kids: []*node{n}}
		case js.TemplateStartToken:
			n = &node{kind: nCall, at: n.end, end: r.enclosingBracket(n.end).close + 1, kids: []*node{n}}
		default:
			return n
		}
	}
	return n
}

// bracketed parses the arguments of a call or an index that opens at a token.
func (r *reader) bracketed(n *node, at int32) *node {
	close := r.enclosingBracket(at).close
	if r.typ(at) == js.OpenParenToken {
		return &node{kind: nCall, at: at, end: close + 1, kids: append([]*node{n}, r.list(at+1, close)...)}
	}
	index := r.assign(at + 1)
	if index.kind == nString {
		return &node{kind: nMember, at: at + 1, end: close + 1, str: index.str, kids: []*node{n}}
	}
	return &node{kind: nIndex, at: at, end: close + 1, kids: []*node{n, index}}
}

// list parses expressions with commas between them up to a closing token. What
// is no expression is passed over up to the next comma.
func (r *reader) list(at, close int32) []*node {
	var list []*node
	for at < close {
		if r.typ(at) == js.CommaToken { // a hole
			list = append(list, r.bad(at))
			at++
			continue
		}
		var n *node
		if r.typ(at) == js.EllipsisToken {
			kid := r.assign(at + 1)
			n = &node{kind: nSpread, at: at, end: kid.end, kids: []*node{kid}}
		} else {
			n = r.assign(at)
		}
		list = append(list, n)
		at = r.skip(max(n.end, at), close) + 1
	}
	return list
}

// skip returns the next comma at the level of a token, or close.
func (s *script) skip(at, close int32) int32 {
	for at < close && s.typ(at) != js.CommaToken {
		at = s.next(at)
	}
	return min(at, close)
}

// next returns the token after at, past the bracket that at opens.
func (s *script) next(at int32) int32 {
	if b := s.enclosingBracket(at); b.open == at {
		return max(b.close, at) + 1
	}
	return at + 1
}

func (r *reader) primary(at int32) *node {
	n := &node{at: at, end: at + 1}
	switch t := r.typ(at); {
	case t == js.StringToken:
		n.kind, n.str = nString, lexer.Unquote(r.text(at))
	case js.IsNumeric(t):
		n.kind, n.str = nNumber, r.text(at)
		n.num = lexer.Number(n.str)
	case t == js.TrueToken:
		n.kind, n.num = nBool, 1
	case t == js.FalseToken:
		n.kind = nBool
	case t == js.NullToken:
		n.kind = nNull
	case t == js.TemplateToken:
		n.kind, n.str = nString, lexer.Unquote(r.text(at))
	case t == js.TemplateStartToken:
		return r.template(at)
	case t == js.RegExpToken:
		n.kind = nTemplate // a value that is nothing to us
	case t == js.OpenParenToken:
		return r.paren(at)
	case t == js.OpenBracketToken:
		n.kind, n.end = nArray, r.enclosingBracket(at).close+1
		n.kids = r.list(at+1, n.end-1)
	case t == js.OpenBraceToken:
		return r.object(at)
	case t == js.FunctionToken, t == js.AsyncToken && r.typ(at+1) == js.FunctionToken:
		return r.function(at)
	case t == js.ClassToken:
		return r.class(at)
	case t == js.NewToken:
		return r.construct(at)
	case t == js.PrivateIdentifierToken, t == js.ThisToken, t == js.SuperToken, t == js.ImportToken, js.IsIdentifier(t):
		n.kind, n.str = nIdent, r.text(at)
		if n.str == "undefined" {
			n.kind = nNull
		}
	default:
		return r.bad(at)
	}
	return n
}

func (r *reader) paren(at int32) *node {
	close := r.enclosingBracket(at).close
	list := r.list(at+1, close)
	var n *node
	switch len(list) {
	case 0:
		return &node{kind: nBad, at: at, end: close + 1}
	case 1:
		c := *list[0]
		n = &c
	default:
		n = &node{kind: nSeq, at: at, kids: list}
	}
	n.end = close + 1
	return n
}

func (r *reader) function(at int32) *node {
	n := &node{kind: nFunc, at: at, end: at + 1}
	for i := at + 1; i < at+6; i++ {
		if r.typ(i) == js.OpenParenToken {
			i = r.enclosingBracket(i).close + 1
			if r.typ(i) == js.OpenBraceToken {
				n.body = r.tok(i).br
				n.end = r.brs[n.body].close + 1
				return n
			}
			break
		}
	}
	return r.bad(at)
}

func (r *reader) class(at int32) *node {
	if r.depth++; r.depth > maxDepth {
		r.depth--
		return r.bad(at)
	}
	defer func() { r.depth-- }()
	n := &node{kind: nClass, at: at, end: at + 1, kids: []*node{nil}}
	i := at + 1
	if js.IsIdentifier(r.typ(i)) {
		n.str = r.text(i)
		i++
	}
	if r.typ(i) == js.ExtendsToken {
		base := r.postfix(r.primary(i + 1))
		n.kids[0] = base
		i = max(base.end, i+1)
	}
	if r.typ(i) != js.OpenBraceToken {
		return r.bad(at)
	}
	n.body = r.tok(i).br
	n.end = r.brs[n.body].close + 1
	return n
}

func (r *reader) construct(at int32) *node {
	if r.depth++; r.depth > maxDepth {
		r.depth--
		return r.bad(at)
	}
	defer func() { r.depth-- }()
	callee := r.primary(at + 1)
	for callee.kind != nBad && r.mayParse(callee.end) {
		switch r.typ(callee.end) {
		case js.DotToken:
			callee = &node{kind: nMember, at: callee.end + 1, end: callee.end + 2, str: r.text(callee.end + 1), kids: []*node{callee}}
			continue
		case js.OpenBracketToken:
			callee = r.bracketed(callee, callee.end)
			continue
		}
		break
	}
	n := &node{kind: nNew, at: at, end: callee.end, kids: []*node{callee}}
	if r.typ(n.end) == js.OpenParenToken {
		close := r.enclosingBracket(n.end).close
		n.kids = append(n.kids, r.list(n.end+1, close)...)
		n.end = close + 1
	}
	return n
}
