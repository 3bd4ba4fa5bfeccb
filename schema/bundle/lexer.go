package bundle

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2/js"
)

// A lexer splits a script into tokens. It reads every byte a bounded number of
// times, whatever the bytes are: what begins no token is skipped, and what has
// no end (a template, a comment) is searched for its end once.
//
// Source: ECMA-262, chapter 12
type lexer struct {
	src []byte

	// of the token that was read last
	start int

	// the end of that token
	at int

	// open parentheses and braces
	level int

	// levels at which a } goes on with a template
	templates []int

	// a line terminator stands between the last token and the one before
	newline bool

	// none of the line's tokens was read yet
	lineStart bool

	// from here on no template ends
	openTemplate int

	// from here on no comment of several lines ends
	openComment int
}

func newLexer(src []byte) *lexer {
	l := &lexer{src: src, lineStart: true, openTemplate: len(src), openComment: len(src)}
	if bytes.HasPrefix(src, []byte("#!")) {
		l.at = lineEnd(src)
	}
	return l
}

// peek returns the byte n bytes after the position, 0 after the end.
func (l *lexer) peek(n int) byte {
	if l.at+n >= len(l.src) {
		return 0
	}
	return l.src[l.at+n]
}

// next reads the next token. White space, comments and what is no token are
// skipped. At the end of the script it returns ErrorToken, and after much that
// was skipped WhitespaceToken, so that the caller can end.
//
// A slash is a DivToken or a DivEqToken: only the caller can tell whether it
// begins a regular expression, which regexp then reads.
func (l *lexer) next() js.TokenType {
	const most = 1 << 12 // skips at a time
	for n := 0; l.at < len(l.src); n++ {
		if n == most {
			return js.WhitespaceToken
		}
		if l.space() {
			continue
		}
		l.start = l.at
		typ := l.token()
		if l.at == l.start { // what is no token
			_, size := utf8.DecodeRune(l.src[l.at:])
			l.at += size
		}
		if typ != js.ErrorToken {
			l.newline, l.lineStart = l.lineStart, false
			return typ
		}
	}
	l.start = l.at
	return js.ErrorToken
}

// token reads a token. It returns ErrorToken for what is none, of which it may
// have read some.
func (l *lexer) token() js.TokenType {
	switch c := l.src[l.at]; {
	case isDigit(c), c == '.' && isDigit(l.peek(1)):
		return l.number()
	case isWord(c), c == '\\', c >= utf8.RuneSelf:
		return l.identifier()
	case c == '"' || c == '\'':
		return l.quoted(c)
	case c == '`':
		l.templates = append(l.templates, l.level)
		return l.template(js.TemplateToken, js.TemplateStartToken)
	case c == '#':
		l.at++
		if l.identifier() == js.ErrorToken {
			return js.ErrorToken
		}
		return js.PrivateIdentifierToken
	case c == '}':
		l.level--
		if n := len(l.templates); n > 0 && l.level == l.templates[n-1] {
			return l.template(js.TemplateEndToken, js.TemplateMiddleToken)
		}
	case c == '(' || c == '{':
		l.level++
	case c == ')':
		l.level--
	}
	for _, p := range punctuators[l.src[l.at]&0x7f] {
		if end := l.at + len(p.text); end <= len(l.src) && string(l.src[l.at:end]) == p.text {
			if p.typ == js.OptChainToken && isDigit(l.peek(2)) { // a ?.5 : 1
				continue
			}
			l.at = end
			return p.typ
		}
	}
	return js.ErrorToken
}

// A punctuator is a token that is always written alike.
type punctuator struct {
	text string
	typ  js.TokenType
}

// punctuators are the punctuators by their first byte, the longest first.
var punctuators = [utf8.RuneSelf][]punctuator{
	'(': {{"(", js.OpenParenToken}},
	')': {{")", js.CloseParenToken}},
	'{': {{"{", js.OpenBraceToken}},
	'}': {{"}", js.CloseBraceToken}},
	'[': {{"[", js.OpenBracketToken}},
	']': {{"]", js.CloseBracketToken}},
	',': {{",", js.CommaToken}},
	';': {{";", js.SemicolonToken}},
	':': {{":", js.ColonToken}},
	'.': {{"...", js.EllipsisToken}, {".", js.DotToken}},
	'~': {{"~", js.BitNotToken}},
	'=': {{"===", js.EqEqEqToken}, {"==", js.EqEqToken}, {"=>", js.ArrowToken}, {"=", js.EqToken}},
	'!': {{"!==", js.NotEqEqToken}, {"!=", js.NotEqToken}, {"!", js.NotToken}},
	'<': {{"<<=", js.LtLtEqToken}, {"<<", js.LtLtToken}, {"<=", js.LtEqToken}, {"<", js.LtToken}},
	'>': {
		{">>>=", js.GtGtGtEqToken},
		{">>>", js.GtGtGtToken},
		{">>=", js.GtGtEqToken},
		{">>", js.GtGtToken},
		{">=", js.GtEqToken},
		{">", js.GtToken},
	},
	'+': {{"++", js.IncrToken}, {"+=", js.AddEqToken}, {"+", js.AddToken}},
	'-': {{"--", js.DecrToken}, {"-=", js.SubEqToken}, {"-", js.SubToken}},
	'*': {{"**=", js.ExpEqToken}, {"**", js.ExpToken}, {"*=", js.MulEqToken}, {"*", js.MulToken}},
	'/': {{"/=", js.DivEqToken}, {"/", js.DivToken}},
	'%': {{"%=", js.ModEqToken}, {"%", js.ModToken}},
	'&': {{"&&=", js.AndEqToken}, {"&&", js.AndToken}, {"&=", js.BitAndEqToken}, {"&", js.BitAndToken}},
	'|': {{"||=", js.OrEqToken}, {"||", js.OrToken}, {"|=", js.BitOrEqToken}, {"|", js.BitOrToken}},
	'^': {{"^=", js.BitXorEqToken}, {"^", js.BitXorToken}},
	'?': {{"??=", js.NullishEqToken}, {"??", js.NullishToken}, {"?.", js.OptChainToken}, {"?", js.QuestionToken}},
}

// space skips white space, a line terminator or a comment, and reports whether
// there was any.
func (l *lexer) space() bool {
	switch c := l.src[l.at]; {
	case c == ' ' || c == '\t' || c == '\v' || c == '\f':
		l.at++
	case c == '\n' || c == '\r':
		l.at++
		l.lineStart = true
	case c == '/' && l.peek(1) == '/', c == '<' && bytes.HasPrefix(l.src[l.at:], []byte("<!--")),
		c == '-' && l.lineStart && bytes.HasPrefix(l.src[l.at:], []byte("-->")):
		l.at += lineEnd(l.src[l.at:])
	case c == '/' && l.peek(1) == '*':
		return l.comment()
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRune(l.src[l.at:])
		switch {
		case r == '\u2028' || r == '\u2029':
			l.lineStart = true
		case r != '\ufeff' && !unicode.Is(unicode.Zs, r):
			return false
		}
		l.at += size
	default:
		return false
	}
	return true
}

// comment skips a comment of several lines. One that has no end is none.
func (l *lexer) comment() bool {
	if l.at >= l.openComment {
		return false
	}
	body := l.src[l.at+2:]
	n := bytes.Index(body, []byte("*/"))
	if n < 0 {
		l.openComment = l.at
		return false
	}
	if lineEnd(body[:n]) < n {
		l.lineStart = true
	}
	l.at += 2 + n + 2
	return true
}

// lineEnd returns where the first line of text ends.
func lineEnd(text []byte) int {
	for i := range text {
		if isLineEnd(text[i:]) {
			return i
		}
	}
	return len(text)
}

// isLineEnd reports whether text begins with a line terminator.
func isLineEnd(text []byte) bool {
	switch text[0] {
	case '\n', '\r':
		return true
	case 0xe2: // U+2028 and U+2029
		return len(text) > 2 && text[1] == 0x80 && text[2]&^1 == 0xa8
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentStart(r rune) bool {
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
}

func isIdentPart(r rune) bool {
	return isIdentStart(r) || r == '\u200c' || r == '\u200d' ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// identifier reads an identifier or a keyword. Where none begins it reads
// nothing.
func (l *lexer) identifier() js.TokenType {
	begin := l.at
	for l.at < len(l.src) {
		c := l.src[l.at]
		switch {
		case isWord(c) && (l.at > begin || !isDigit(c)):
			l.at++
			continue
		case c == '\\':
			if n := unicodeEscape(l.src[l.at:]); n > 0 {
				l.at += n
				continue
			}
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(l.src[l.at:])
			if isIdentStart(r) || l.at > begin && isIdentPart(r) {
				l.at += size
				continue
			}
		}
		break
	}
	if l.at == begin {
		return js.ErrorToken
	}
	if typ, ok := js.Keywords[string(l.src[begin:l.at])]; ok {
		return typ
	}
	return js.IdentifierToken
}

// unicodeEscape returns the length of the escape \uXXXX or \u{X…} that text
// begins with, or 0.
func unicodeEscape(text []byte) int {
	const digits = 4
	if len(text) < 2 || text[1] != 'u' {
		return 0
	}
	braced := len(text) > 2 && text[2] == '{'
	n := 2
	if braced {
		n++
	}
	begin := n
	for n < len(text) && isHexDigit(text[n]) && (braced || n < begin+digits) {
		n++
	}
	switch {
	case braced && n > begin && n < len(text) && text[n] == '}':
		return n + 1
	case !braced && n == begin+digits:
		return n
	}
	return 0
}

func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// number reads a numeric literal.
func (l *lexer) number() js.TokenType {
	if l.src[l.at] == '0' {
		typ, is := js.ErrorToken, isHexDigit
		switch l.peek(1) | 0x20 {
		case 'x':
			typ = js.HexadecimalToken
		case 'b':
			typ, is = js.BinaryToken, func(c byte) bool { return c == '0' || c == '1' }
		case 'o':
			typ, is = js.OctalToken, func(c byte) bool { return '0' <= c && c <= '7' }
		}
		if typ != js.ErrorToken && is(l.peek(2)) {
			l.at += 2
			l.digits(is)
			l.suffix()
			return typ
		}
	}
	typ := js.IntegerToken
	l.digits(isDigit)
	if l.suffix() {
		return typ
	}
	if l.peek(0) == '.' {
		l.at++
		l.digits(isDigit)
		typ = js.DecimalToken
	}
	if l.peek(0)|0x20 == 'e' {
		n := 1
		if c := l.peek(1); c == '+' || c == '-' {
			n++
		}
		if isDigit(l.peek(n)) {
			l.at += n
			l.digits(isDigit)
			typ = js.DecimalToken
		}
	}
	return typ
}

// digits skips digits, and _ between two of them.
func (l *lexer) digits(is func(byte) bool) {
	for is(l.peek(0)) || l.peek(0) == '_' && is(l.peek(1)) {
		l.at++
	}
}

// suffix skips the n of a big integer.
func (l *lexer) suffix() bool {
	if l.peek(0) != 'n' {
		return false
	}
	l.at++
	return true
}

// quoted reads a string. One that does not end on its line is no token: what
// follows it on the line is skipped with it.
func (l *lexer) quoted(quote byte) js.TokenType {
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; c {
		case quote:
			l.at++
			return js.StringToken
		case '\n', '\r':
			return js.ErrorToken
		case '\\':
			if l.peek(1) == '\r' && l.peek(2) == '\n' {
				l.at++
			}
			l.at++
		}
	}
	l.at = len(l.src)
	return js.ErrorToken
}

// template reads a part of a template: from ` or } to the ` that ends it, which
// is a token of type end, or to a ${, which is one of type more. A template
// without an end is none.
func (l *lexer) template(end, more js.TokenType) js.TokenType {
	ended := len(l.templates) - 1
	for i := l.at + 1; i < len(l.src) && l.at < l.openTemplate; i++ {
		switch c := l.src[i]; {
		case c == '\\':
			i++
		case c == '`':
			l.templates, l.at = l.templates[:ended], i+1
			return end
		case c == '$' && i+1 < len(l.src) && l.src[i+1] == '{':
			l.level++
			l.at = i + 2
			return more
		}
	}
	l.openTemplate = min(l.openTemplate, l.at)
	l.templates = l.templates[:ended]
	return js.ErrorToken
}

// regexp reads the regular expression that begins at the slash that was read
// last, if it ends on its line; else it reads the slash alone. It returns where
// it stopped.
func (l *lexer) regexp() (ok bool, stopped int) {
	class := false
	for i := l.start + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case isLineEnd(l.src[i:]):
			l.at = l.start + 1
			return false, i
		case c == '\\' && i+1 < len(l.src) && !isLineEnd(l.src[i+1:]):
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.at = i + 1
			l.identifier() // flags
			return true, l.at
		}
	}
	l.at = l.start + 1
	return false, len(l.src)
}
