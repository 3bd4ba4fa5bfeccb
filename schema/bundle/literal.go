package bundle

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2/js"
)

func (r *reader) template(at int32) *node {
	close := r.around(at).close
	n := &node{kind: nTemplate, at: at, end: close + 1}
	n.kids = append(n.kids, &node{kind: nString, at: at, end: at + 1, str: unquote(r.text(at))})
	for at < close {
		kid := r.assign(at + 1)
		n.kids = append(n.kids, kid)
		for at = max(kid.end, at+1); at < close && r.typ(at) != js.TemplateMiddleToken; at = r.next(at) {
		}
		n.kids = append(n.kids, &node{kind: nString, at: at, end: at + 1, str: unquote(r.text(at))})
	}
	return n
}

func (r *reader) object(at int32) *node {
	close := r.around(at).close
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
		p.name = unquote(r.text(at))
	case js.IsNumeric(t):
		p.name = strconv.FormatFloat(number(r.text(at)), 'f', -1, 64)
	case js.IsIdentifierName(t):
		p.name = r.text(at)
	case t == js.OpenBracketToken:
		key := r.assign(at + 1)
		if key.kind == nString {
			p.name = key.str
		} else if key.kind == nNumber {
			p.name = strconv.FormatFloat(key.num, 'f', -1, 64)
		}
		i = r.around(at).close + 1
	default:
		return p, at
	}
	switch r.typ(i) {
	case js.ColonToken:
		p.value = r.assign(i + 1)
		return p, p.value.end
	case js.OpenParenToken:
		body := r.around(i).close + 1
		if r.typ(body) != js.OpenBraceToken {
			return p, i
		}
		p.value = &node{kind: nFunc, at: at, body: r.tok(body).br, end: r.around(body).close + 1}
		return p, p.value.end
	}
	if js.IsIdentifier(r.typ(at)) {
		p.value = &node{kind: nIdent, at: at, end: at + 1, str: p.name}
	}
	return p, i
}

// number returns the value of a numeric literal.
func number(text string) float64 {
	text = strings.TrimSuffix(strings.ReplaceAll(text, "_", ""), "n")
	if len(text) > 1 && text[0] == '0' && text[1] != '.' {
		if v, err := strconv.ParseUint(text, 0, 64); err == nil {
			return float64(v)
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// unquote returns what a string or a part of a template stands for.
func unquote(text string) string {
	if len(text) > 0 {
		text = text[1:]
	}
	switch {
	case strings.HasSuffix(text, "${"):
		text = text[:len(text)-2]
	case len(text) > 0:
		text = text[:len(text)-1]
	}
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'v':
			out = append(out, '\v')
		case '\r', '\n':
			if c == '\r' && i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
		case 'x', 'u':
			r, n := escape(text[i:])
			out = utf8.AppendRune(out, r)
			i += n - 1
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 1
			for n < 3 && i+n < len(text) && '0' <= text[i+n] && text[i+n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(text[i:i+n], 8, 16)
			out = utf8.AppendRune(out, rune(v))
			i += n - 1
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// escape returns the character of an escape that begins with x or u, and its
// length without the backslash.
func escape(text string) (rune, int) {
	hex, n := "", 0
	switch {
	case text[0] == 'x' && len(text) >= 3:
		hex, n = text[1:3], 3
	case strings.HasPrefix(text, "u{"):
		if end := strings.IndexByte(text, '}'); end > 0 {
			hex, n = text[2:end], end+1
		}
	case text[0] == 'u' && len(text) >= 5:
		hex, n = text[1:5], 5
	}
	v, err := strconv.ParseUint(hex, 16, 21)
	if err != nil {
		return rune(text[0]), 1
	}
	if 0xd800 <= v && v < 0xdc00 && n == 5 && len(text) >= 11 && text[5] == '\\' && text[6] == 'u' {
		if low, err := strconv.ParseUint(text[7:11], 16, 16); err == nil && 0xdc00 <= low && low < 0xe000 {
			return rune((v-0xd800)<<10 + (low - 0xdc00) + 0x10000), 11
		}
	}
	return rune(v), n
}
