package jstree

import (
	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// A nodeKind is a kind of JavaScript expression, such as a call.
type nodeKind uint8

// The kinds of expressions, with the fields of Node that they use.
const (
	// BadNode is text that is not an expression, or that is nested too deeply.
	BadNode nodeKind = iota
	// IdentNode is an identifier, whose name is in Str.
	IdentNode
	// StringNode is a string literal, whose value is in Str.
	StringNode
	// NumberNode is a number: Str is its text, Num its value.
	NumberNode
	// nBool is a boolean: Num is 0 or 1.
	nBool
	// NullNode is null, undefined or void 0.
	NullNode
	// nTemplate is a template literal: in Kids, strings and embedded expressions alternate.
	nTemplate
	// ArrayNode is an array literal with the elements Kids.
	ArrayNode
	// ObjectNode is an object literal with the members Props.
	ObjectNode
	// MemberNode is a member access: Kids[0].Str.
	MemberNode
	// IndexNode is an index expression: Kids[0][Kids[1]].
	IndexNode
	// CallNode is a call: Kids[0](Kids[1:]).
	CallNode
	// NewNode is the creation of an object: new Kids[0](Kids[1:]).
	NewNode
	// FuncNode is a function with the bracket Body, or Kids[0] if its body is an expression.
	FuncNode
	// ClassNode is a class with the bracket Body; Kids[0] is its base class, or nil.
	ClassNode
	// UnaryNode is a unary operation: Op Kids[0].
	UnaryNode
	// BinaryNode is a binary operation: Kids[0] Op Kids[1].
	BinaryNode
	// CondNode is a conditional expression: Kids[0] ? Kids[1] : Kids[2].
	CondNode
	// AssignNode is an assignment: Kids[0] Op Kids[1].
	AssignNode
	// nSeq is a comma expression with the operands Kids.
	nSeq
	// nSpread is a spread element: ...Kids[0].
	nSpread
)

// A Node is a parsed JavaScript expression.
type Node struct {
	// Kind is the kind of the expression. It decides which other fields are used.
	Kind nodeKind
	// Op is the operator of a unary, binary or assignment expression.
	Op js.TokenType
	// At is the index of the token that identifies the expression: its first token, except that a call has its
	// parenthesis and a member access the member's name.
	At int32

	// End is the index of the first token after the expression.
	End int32

	// Body is the index of the bracket around the body of a function or class.
	Body int32
	// Str is the name of an identifier, the value of a string, or the text of a number.
	Str string
	// Num is the value of a number or boolean literal.
	Num float64
	// Kids are the operands, elements or arguments of the expression, depending on Kind.
	Kids []*Node
	// Props are the members of an object literal.
	Props []Prop

	// byName maps names to indices of Props. It is built on first use, and only if there are many.
	byName map[string]int32
}

// A Prop is a member of an object literal.
type Prop struct {
	// Name is the name of the member; "" if it is computed.
	Name string
	// At is the index of the token of the member's name.
	At int32
	// Value is the expression assigned to the member.
	Value *Node
	// getter is set if the member is defined by a getter.
	getter bool
	// spread is set for ...value, which inserts the members of another object.
	spread bool
}

// Get returns the value of the property called name of an object literal, or nil.
func (n *Node) Get(name string) *Node {
	if n == nil || n.Kind != ObjectNode {
		return nil
	}
	if len(n.Props) > maxListed {
		return n.indexed(name)
	}
	for i := len(n.Props) - 1; i >= 0; i-- {
		if n.Props[i].Name == name && !n.Props[i].spread {
			return n.Props[i].Value
		}
	}
	return nil
}

// indexed is Get for an object with many properties. It builds an index on first use.
func (n *Node) indexed(name string) *Node {
	if n.byName == nil {
		n.byName = make(map[string]int32, len(n.Props))
		for i, p := range n.Props {
			if !p.spread {
				n.byName[p.Name] = int32(i)
			}
		}
	}
	if i, ok := n.byName[name]; ok {
		return n.Props[i].Value
	}
	return nil
}

// MaxDepth is the maximum nesting of expressions. Deeper ones are not parsed.
const MaxDepth = 400

// A Reader parses expressions of a script by recursive descent. Its methods get the index of an expression's
// first token.
type Reader struct {
	// Script is the script that is parsed, split into tokens.
	*Script
	// depth is the current nesting depth of expressions.
	depth int
}

// Expr parses the expression that begins at the token with index at, up to a comma. Results are cached.
func (s *Script) Expr(at int32) *Node {
	if n, ok := s.exprs[at]; ok {
		return n
	}
	n := (&Reader{Script: s}).Assign(at)
	s.exprs[at] = n
	return n
}

// exprSeq parses the expression that begins at the token with index at, including the comma operator.
func (s *Script) exprSeq(at int32) *Node {
	r := &Reader{Script: s}
	n := r.Assign(at)
	if s.Typ(n.End) != js.CommaToken {
		return n
	}
	seq := &Node{Kind: nSeq, At: at, Kids: []*Node{n}}
	for s.Typ(n.End) == js.CommaToken {
		n = r.Assign(n.End + 1)
		seq.Kids = append(seq.Kids, n)
		if n.Kind == BadNode {
			break
		}
	}
	seq.End = n.End
	return seq
}

// bad returns the node for an expression at the token with index at that cannot be parsed.
func (r *Reader) bad(at int32) *Node { return &Node{Kind: BadNode, At: at, End: at} }

// Assign parses an assignment, a conditional or an arrow function that begins at the token with index at.
func (r *Reader) Assign(at int32) *Node {
	// The parts of expressions are limited in number as well, because expressions are parsed from many places.
	if r.depth++; r.depth > MaxDepth || !r.mayParse(at) {
		r.depth--
		return r.bad(at)
	}
	defer func() { r.depth-- }()

	// An arrow function begins like an expression in parentheses, so it is tried first.
	if fn := r.arrow(at); fn != nil {
		return fn
	}
	left := r.Binary(at, 0)
	if left.Kind == BadNode {
		return left
	}
	switch op := r.Typ(left.End); op {

	// A conditional: both branches are needed, but an incomplete one leaves its condition.
	case js.QuestionToken:
		yes := r.Assign(left.End + 1)
		if r.Typ(yes.End) != js.ColonToken {
			return left
		}
		no := r.Assign(yes.End + 1)
		return &Node{Kind: CondNode, At: at, End: no.End, Kids: []*Node{left, yes, no}}
	case js.EqToken, js.AddEqToken, js.SubEqToken, js.MulEqToken, js.DivEqToken, js.ModEqToken, js.ExpEqToken,
		js.LtLtEqToken, js.GtGtEqToken, js.GtGtGtEqToken, js.BitAndEqToken, js.BitOrEqToken, js.BitXorEqToken,
		js.AndEqToken, js.OrEqToken, js.NullishEqToken:
		right := r.Assign(left.End + 1)
		return &Node{Kind: AssignNode, Op: op, At: at, End: right.End, Kids: []*Node{left, right}}
	}
	return left
}

// arrow parses an arrow function. It returns nil if none begins at the token with index at.
func (r *Reader) arrow(at int32) *Node {
	i := at
	if r.Typ(i) == js.AsyncToken && !r.nlAt(i+1) && r.Typ(i+1) != js.ArrowToken {
		i++
	}
	end := i + 1
	if r.Typ(i) == js.OpenParenToken {
		end = r.EnclosingBracket(i).Close + 1
	} else if !js.IsIdentifier(r.Typ(i)) {
		return nil
	}
	if r.Typ(end) != js.ArrowToken {
		return nil
	}
	n := &Node{Kind: FuncNode, At: at}
	if r.Typ(end+1) == js.OpenBraceToken {
		n.Body = r.Tok(end + 1).Bracket
		n.End = r.Brackets[n.Body].Close + 1
		return n
	}
	body := r.Assign(end + 1)
	n.Kids, n.End = []*Node{body}, body.End
	return n
}

// nlAt reports whether a line break precedes the token with index at.
func (r *Reader) nlAt(at int32) bool { return r.Tok(at).nl }

// precedence returns the precedence of a binary operator (higher binds more tightly), or 0 for other tokens.
func precedence(op js.TokenType) int {
	// The levels of the ECMAScript grammar, from the weakest to the strongest.
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

// Binary parses an expression of binary operators whose precedence is above a limit (precedence climbing).
func (r *Reader) Binary(at int32, above int) *Node {
	left := r.unary(at)
	for left.Kind != BadNode && r.mayParse(left.End) {
		op := r.Typ(left.End)
		// A stronger operator takes the right operand first.
		p := precedence(op)
		if p <= above {
			return left
		}
		right := r.Binary(left.End+1, p)
		left = &Node{Kind: BinaryNode, Op: op, At: at, End: right.End, Kids: []*Node{left, right}}
		if right.Kind == BadNode {
			return left
		}
	}
	return left
}

// unary parses an expression with prefix and postfix operators.
func (r *Reader) unary(at int32) *Node {
	switch op := r.Typ(at); op {
	case js.NotToken, js.SubToken, js.AddToken, js.BitNotToken, js.TypeofToken, js.VoidToken, js.DeleteToken,
		js.IncrToken, js.DecrToken, js.AwaitToken, js.YieldToken:
		if r.depth++; r.depth > MaxDepth {
			r.depth--
			return r.bad(at)
		}
		kid := r.unary(at + 1)
		r.depth--
		// Outside of async functions and generators, await and yield are names.
		if kid.Kind == BadNode && (op == js.AwaitToken || op == js.YieldToken) {
			return &Node{Kind: IdentNode, At: at, End: at + 1, Str: r.Text(at)}
		}
		n := &Node{Kind: UnaryNode, Op: op, At: at, End: kid.End, Kids: []*Node{kid}}
		switch {
		// void 0 is undefined in minified code, and !0 is true.
		case op == js.VoidToken:
			n.Kind = NullNode
		case op == js.NotToken && kid.Kind == NumberNode:
			n.Kind, n.Num = nBool, 1
			if kid.Num != 0 {
				n.Num = 0
			}
		case op == js.SubToken && kid.Kind == NumberNode:
			n.Kind, n.Num, n.Str = NumberNode, -kid.Num, "-"+kid.Str
		case op == js.AddToken && kid.Kind == NumberNode:
			n.Kind, n.Num, n.Str = NumberNode, kid.Num, kid.Str
		}
		return n
	}

	n := r.postfix(r.Primary(at))
	if t := r.Typ(n.End); (t == js.IncrToken || t == js.DecrToken) && !r.nlAt(n.End) && n.Kind != BadNode {
		n = &Node{Kind: UnaryNode, Op: t, At: at, End: n.End + 1, Kids: []*Node{n}}
	}
	return n
}

// postfix parses what follows the primary expression n: member accesses, calls and template literals.
func (r *Reader) postfix(n *Node) *Node {
	for n.Kind != BadNode && r.mayParse(n.End) {
		switch r.Typ(n.End) {
		case js.DotToken, js.OptChainToken:
			at := n.End + 1
			if r.Typ(n.End) == js.OptChainToken && (r.Typ(at) == js.OpenParenToken || r.Typ(at) == js.OpenBracketToken) {
				n = r.bracketed(n, at)
				continue
			}
			if t := r.Typ(at); !js.IsIdentifierName(t) && t != js.PrivateIdentifierToken {
				return n
			}
			n = &Node{Kind: MemberNode, At: at, End: at + 1, Str: r.Text(at), Kids: []*Node{n}}
		case js.OpenParenToken, js.OpenBracketToken:
			n = r.bracketed(n, n.End)
		case js.TemplateToken:
			n = &Node{Kind: CallNode, At: n.End, End: n.End + 1, Kids: []*Node{n}}
		case js.TemplateStartToken:
			n = &Node{Kind: CallNode, At: n.End, End: r.EnclosingBracket(n.End).Close + 1, Kids: []*Node{n}}
		default:
			return n
		}
	}
	return n
}

// bracketed parses the arguments of a call of n, or an index into n. at is the opening bracket.
func (r *Reader) bracketed(n *Node, at int32) *Node {
	close := r.EnclosingBracket(at).Close
	if r.Typ(at) == js.OpenParenToken {
		return &Node{Kind: CallNode, At: at, End: close + 1, Kids: append([]*Node{n}, r.List(at+1, close)...)}
	}
	index := r.Assign(at + 1)
	// a["b"] is the same as a.b.
	if index.Kind == StringNode {
		return &Node{Kind: MemberNode, At: at + 1, End: close + 1, Str: index.Str, Kids: []*Node{n}}
	}
	return &Node{Kind: IndexNode, At: at, End: close + 1, Kids: []*Node{n, index}}
}

// List parses expressions that are separated by commas, from the token with index at up to the closing token
// close. Text that is not an expression is skipped up to the next comma.
func (r *Reader) List(at, close int32) []*Node {
	var list []*Node
	for at < close {
		// This is a hole in an array.
		if r.Typ(at) == js.CommaToken {
			list = append(list, r.bad(at))
			at++
			continue
		}
		var n *Node
		if r.Typ(at) == js.EllipsisToken {
			kid := r.Assign(at + 1)
			n = &Node{Kind: nSpread, At: at, End: kid.End, Kids: []*Node{kid}}
		} else {
			n = r.Assign(at)
		}
		list = append(list, n)
		at = r.Skip(max(n.End, at), close) + 1
	}
	return list
}

// Skip returns the index of the next comma outside of nested brackets from the token with index at on, or
// close.
func (s *Script) Skip(at, close int32) int32 {
	for at < close && s.Typ(at) != js.CommaToken {
		at = s.Next(at)
	}
	return min(at, close)
}

// Next returns the index of the token after the token with index at. If at opens a bracket, it is the token
// after the bracket.
func (s *Script) Next(at int32) int32 {
	if b := s.EnclosingBracket(at); b.Open == at {
		return max(b.Close, at) + 1
	}
	return at + 1
}

// Primary parses an expression without operators that begins at the token with index at: a literal, a name, or
// something in brackets.
func (r *Reader) Primary(at int32) *Node {
	n := &Node{At: at, End: at + 1}
	switch t := r.Typ(at); {
	case t == js.StringToken:
		n.Kind, n.Str = StringNode, lexer.Unquote(r.Text(at))
	case js.IsNumeric(t):
		n.Kind, n.Str = NumberNode, r.Text(at)
		n.Num = lexer.Number(n.Str)
	case t == js.TrueToken:
		n.Kind, n.Num = nBool, 1
	case t == js.FalseToken:
		n.Kind = nBool
	case t == js.NullToken:
		n.Kind = NullNode
	case t == js.TemplateToken:
		n.Kind, n.Str = StringNode, lexer.Unquote(r.Text(at))
	case t == js.TemplateStartToken:
		return r.template(at)
	case t == js.RegExpToken:
		// The value of a regular expression is of no use here.
		n.Kind = nTemplate
	case t == js.OpenParenToken:
		return r.paren(at)
	case t == js.OpenBracketToken:
		n.Kind, n.End = ArrayNode, r.EnclosingBracket(at).Close+1
		n.Kids = r.List(at+1, n.End-1)
	case t == js.OpenBraceToken:
		return r.object(at)
	case t == js.FunctionToken, t == js.AsyncToken && r.Typ(at+1) == js.FunctionToken:
		return r.function(at)
	case t == js.ClassToken:
		return r.class(at)
	case t == js.NewToken:
		return r.Construct(at)
	// These words are kept as names; their meaning is found later, in the scope.
	case t == js.PrivateIdentifierToken, t == js.ThisToken, t == js.SuperToken, t == js.ImportToken, js.IsIdentifier(t):
		n.Kind, n.Str = IdentNode, r.Text(at)
		if n.Str == "undefined" {
			n.Kind = NullNode
		}
	default:
		return r.bad(at)
	}

	return n
}

// paren parses an expression in parentheses, whose opening token is at.
func (r *Reader) paren(at int32) *Node {
	close := r.EnclosingBracket(at).Close
	list := r.List(at+1, close)
	var n *Node
	switch len(list) {
	case 0:
		return &Node{Kind: BadNode, At: at, End: close + 1}
	case 1:
		c := *list[0]
		n = &c
	default:
		n = &Node{Kind: nSeq, At: at, Kids: list}
	}
	n.End = close + 1
	return n
}

// function parses a function expression that begins at the token with index at. The body is not parsed.
func (r *Reader) function(at int32) *Node {
	n := &Node{Kind: FuncNode, At: at, End: at + 1}
	for i := at + 1; i < at+6; i++ {
		if r.Typ(i) == js.OpenParenToken {
			i = r.EnclosingBracket(i).Close + 1
			if r.Typ(i) == js.OpenBraceToken {
				n.Body = r.Tok(i).Bracket
				n.End = r.Brackets[n.Body].Close + 1
				return n
			}
			break
		}
	}
	return r.bad(at)
}

// class parses a class expression that begins at the token with index at. The body is not parsed.
func (r *Reader) class(at int32) *Node {
	if r.depth++; r.depth > MaxDepth {
		r.depth--
		return r.bad(at)
	}
	defer func() { r.depth-- }()
	n := &Node{Kind: ClassNode, At: at, End: at + 1, Kids: []*Node{nil}}
	i := at + 1
	if js.IsIdentifier(r.Typ(i)) {
		n.Str = r.Text(i)
		i++
	}
	if r.Typ(i) == js.ExtendsToken {
		base := r.postfix(r.Primary(i + 1))
		n.Kids[0] = base
		i = max(base.End, i+1)
	}
	if r.Typ(i) != js.OpenBraceToken {
		return r.bad(at)
	}
	n.Body = r.Tok(i).Bracket
	n.End = r.Brackets[n.Body].Close + 1
	return n
}

// Construct parses an expression that begins with the operator new at the token with index at.
func (r *Reader) Construct(at int32) *Node {
	if r.depth++; r.depth > MaxDepth {
		r.depth--
		return r.bad(at)
	}
	defer func() { r.depth-- }()
	callee := r.Primary(at + 1)
	for callee.Kind != BadNode && r.mayParse(callee.End) {
		switch r.Typ(callee.End) {
		case js.DotToken:
			callee = &Node{Kind: MemberNode, At: callee.End + 1, End: callee.End + 2, Str: r.Text(callee.End + 1), Kids: []*Node{callee}}
			continue
		case js.OpenBracketToken:
			callee = r.bracketed(callee, callee.End)
			continue
		}
		break
	}
	n := &Node{Kind: NewNode, At: at, End: callee.End, Kids: []*Node{callee}}
	if r.Typ(n.End) == js.OpenParenToken {
		close := r.EnclosingBracket(n.End).Close
		n.Kids = append(n.Kids, r.List(n.End+1, close)...)
		n.End = close + 1
	}
	return n
}
