package bundle

import (
	"strconv"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

func (r *reader) template(at int32) *node {
	close := r.enclosingBracket(at).close
	n := &node{kind: nTemplate, at: at, end: close + 1}
	n.kids = append(n.kids, &node{kind: nString, at: at, end: at + 1, str: lexer.Unquote(r.text(at))})
	for at < close {
		kid := r.assign(at + 1)
		n.kids = append(n.kids, kid)
		for at = max(kid.end, at+1); at < close && r.typ(at) != js.TemplateMiddleToken; at = r.next(at) {
		}
		n.kids = append(n.kids, &node{kind: nString, at: at, end: at + 1, str: lexer.Unquote(r.text(at))})
	}
	return n
}

func (r *reader) object(at int32) *node {
	close := r.enclosingBracket(at).close
	n := &node{kind: nObject, at: at, end: close + 1}
	for i := at + 1; i < close; {
		if r.typ(i) == js.CommaToken {
			i++
			continue
		}
		p, end := r.property(i)
		if p.value != nil {
			n.props = append(n.props, p)
		}
		i = r.skip(max(end, i), close) + 1
	}
	return n
}

// property parses a member of an object literal.
func (r *reader) property(at int32) (prop, int32) {
	if r.typ(at) == js.EllipsisToken {
		v := r.assign(at + 1)
		return prop{at: at, value: v, spread: true}, v.end
	}
	p := prop{at: at}
	for j := 0; j < 3; j++ { // get, set, async, *
		t, after := r.typ(at), r.typ(at+1)
		named := js.IsIdentifierName(after) || after == js.StringToken || js.IsNumeric(after) || after == js.OpenBracketToken
		if (t == js.GetToken || t == js.SetToken || t == js.AsyncToken) && (named || after == js.MulToken) || t == js.MulToken {
			p.getter = p.getter || t == js.GetToken
			at++
			continue
		}
		break
	}
	p.at = at
	i := at + 1
	switch t := r.typ(at); {
	case t == js.StringToken:
		p.name = lexer.Unquote(r.text(at))
	case js.IsNumeric(t):
		p.name = strconv.FormatFloat(lexer.Number(r.text(at)), 'f', -1, 64)
	case js.IsIdentifierName(t):
		p.name = r.text(at)
	case t == js.OpenBracketToken:
		key := r.assign(at + 1)
		if key.kind == nString {
			p.name = key.str
		} else if key.kind == nNumber {
			p.name = strconv.FormatFloat(key.num, 'f', -1, 64)
		}
		i = r.enclosingBracket(at).close + 1
	default:
		return p, at
	}
	switch r.typ(i) {
	case js.ColonToken:
		p.value = r.assign(i + 1)
		return p, p.value.end
	case js.OpenParenToken:
		body := r.enclosingBracket(i).close + 1
		if r.typ(body) != js.OpenBraceToken {
			return p, i
		}
		p.value = &node{kind: nFunc, at: at, body: r.tok(body).br, end: r.enclosingBracket(body).close + 1}
		return p, p.value.end
	}
	if js.IsIdentifier(r.typ(at)) {
		p.value = &node{kind: nIdent, at: at, end: at + 1, str: p.name}
	}
	return p, i
}
