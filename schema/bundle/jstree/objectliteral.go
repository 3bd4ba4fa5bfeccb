package jstree

import (
	"strconv"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// template parses the template literal that begins at the token with index at, with its embedded expressions.
func (r *Reader) template(at int32) *Node {
	close := r.EnclosingBracket(at).Close
	n := &Node{Kind: nTemplate, At: at, End: close + 1}
	n.Kids = append(n.Kids, &Node{Kind: StringNode, At: at, End: at + 1, Str: lexer.Unquote(r.Text(at))})
	for at < close {
		kid := r.Assign(at + 1)
		n.Kids = append(n.Kids, kid)
		for at = max(kid.End, at+1); at < close && r.Typ(at) != js.TemplateMiddleToken; at = r.Next(at) {
		}
		n.Kids = append(n.Kids, &Node{Kind: StringNode, At: at, End: at + 1, Str: lexer.Unquote(r.Text(at))})
	}
	return n
}

// object parses the object literal that begins at the token with index at.
func (r *Reader) object(at int32) *Node {
	close := r.EnclosingBracket(at).Close
	n := &Node{Kind: ObjectNode, At: at, End: close + 1}
	for i := at + 1; i < close; {
		if r.Typ(i) == js.CommaToken {
			i++
			continue
		}
		p, end := r.property(i)
		if p.Value != nil {
			n.Props = append(n.Props, p)
		}
		i = r.Skip(max(end, i), close) + 1
	}
	return n
}

// property parses a member of an object literal. It returns the member and the index of the token after it.
func (r *Reader) property(at int32) (Prop, int32) {
	if r.Typ(at) == js.EllipsisToken {
		v := r.Assign(at + 1)
		return Prop{At: at, Value: v, spread: true}, v.End
	}
	p := Prop{At: at}

	// Skip the modifiers get, set, async and *.
	for j := 0; j < 3; j++ {
		t, after := r.Typ(at), r.Typ(at+1)
		named := js.IsIdentifierName(after) || after == js.StringToken || js.IsNumeric(after) || after == js.OpenBracketToken
		if (t == js.GetToken || t == js.SetToken || t == js.AsyncToken) && (named || after == js.MulToken) || t == js.MulToken {
			p.getter = p.getter || t == js.GetToken
			at++
			continue
		}
		break
	}

	p.At = at
	i := at + 1
	switch t := r.Typ(at); {
	case t == js.StringToken:
		p.Name = lexer.Unquote(r.Text(at))
	case js.IsNumeric(t):
		p.Name = strconv.FormatFloat(lexer.Number(r.Text(at)), 'f', -1, 64)
	case js.IsIdentifierName(t):
		p.Name = r.Text(at)
	case t == js.OpenBracketToken:
		key := r.Assign(at + 1)
		if key.Kind == StringNode {
			p.Name = key.Str
		} else if key.Kind == NumberNode {
			p.Name = strconv.FormatFloat(key.Num, 'f', -1, 64)
		}
		i = r.EnclosingBracket(at).Close + 1
	default:
		return p, at
	}

	switch r.Typ(i) {
	case js.ColonToken:
		p.Value = r.Assign(i + 1)
		return p, p.Value.End

	// A method has parameters and a body.
	case js.OpenParenToken:
		body := r.EnclosingBracket(i).Close + 1
		if r.Typ(body) != js.OpenBraceToken {
			return p, i
		}
		p.Value = &Node{Kind: FuncNode, At: at, Body: r.Tok(body).Bracket, End: r.EnclosingBracket(body).Close + 1}
		return p, p.Value.End
	}

	// The shorthand {a} means {a: a}.
	if js.IsIdentifier(r.Typ(at)) {
		p.Value = &Node{Kind: IdentNode, At: at, End: at + 1, Str: p.Name}
	}
	return p, i
}
