// Package lexer splits JavaScript into tokens and evaluates literals. It accepts any bytes: a script need not be
// complete, or JavaScript at all. Package bundle uses it.
//
// l := lexer.New(src)
//
//	for typ := l.Next(); typ != js.ErrorToken; typ = l.Next() {
//	    fmt.Printf("%s %q\n", typ, src[l.Start:l.At])
//	}
package lexer

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2/js"
)

// A Lexer splits JavaScript into tokens. It reads each byte a bounded number of times, even in hostile input:
// bytes that begin no token are skipped, and the end of an unterminated template or comment is searched for
// only once.
//
// Source: ECMA-262, chapter 12
type Lexer struct {
	// src is the source text of the script.
	src []byte

	// Start is the byte offset of the current token.
	Start int

	// At is the byte offset after the current token.
	At int

	// level is the number of parentheses and braces that are open at the current token.
	level int

	// templates has, for each template literal being read, the level at which a } continues it.
	templates []int

	// Newline is set if a line break precedes the current token.
	Newline bool

	// lineStart is set if no token of the current line was read yet.
	lineStart bool

	// openTemplate is the offset after which no template literal ends, so that the end is not searched for
	// again.
	openTemplate int

	// openComment is the offset after which no block comment ends, so that the end is not searched for again.
	openComment int
}

// New returns a Lexer at the beginning of a script.
func New(src []byte) *Lexer {
	l := &Lexer{src: src, lineStart: true, openTemplate: len(src), openComment: len(src)}
	if bytes.HasPrefix(src, []byte("#!")) {
		l.At = lineEnd(src)
	}
	return l
}

// peek returns the byte n bytes after the current offset, or 0 after the end.
func (l *Lexer) peek(n int) byte {
	if l.At+n >= len(l.src) {
		return 0
	}
	return l.src[l.At+n]
}

// Next reads the next token. White space, comments and invalid bytes are skipped. At the end of the script it
// returns ErrorToken. After many skipped bytes it returns WhitespaceToken, so that the caller can check its
// context.
//
// A slash is returned as DivToken or DivEqToken. The caller knows from the context whether it begins a regular
// expression, and then calls Regexp.
func (l *Lexer) Next() js.TokenType {
	// most is the number of skipped parts after which Next returns.
	const most = 1 << 12
	for n := 0; l.At < len(l.src); n++ {
		if n == most {
			return js.WhitespaceToken
		}
		if l.space() {
			continue
		}
		l.Start = l.At
		typ := l.token()
		// The byte begins no token.
		if l.At == l.Start {
			_, size := utf8.DecodeRune(l.src[l.At:])
			l.At += size
		}
		if typ != js.ErrorToken {
			l.Newline, l.lineStart = l.lineStart, false
			return typ
		}
	}
	l.Start = l.At
	return js.ErrorToken
}

// token reads one token. It returns ErrorToken if the next bytes are not a token; it may have skipped some.
func (l *Lexer) token() js.TokenType {
	switch c := l.src[l.At]; {
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
		l.At++
		if l.identifier() == js.ErrorToken {
			return js.ErrorToken
		}
		return js.PrivateIdentifierToken

	// A } may end an expression inside a template.
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

	// Everything else is a punctuator; the longest match wins.
	for _, p := range punctuators[l.src[l.At]&0x7f] {
		if end := l.At + len(p.text); end <= len(l.src) && string(l.src[l.At:end]) == p.text {
			// In a ?.5 : 1 the question mark is an operator of its own.
			if p.typ == js.OptChainToken && isDigit(l.peek(2)) {
				continue
			}
			l.At = end
			return p.typ
		}
	}
	return js.ErrorToken
}

// A punctuator is a token with a fixed text, such as "=>".
type punctuator struct {
	// text is the source text of the token.
	text string
	// typ is the token's type.
	typ js.TokenType
}

// punctuators are the tokens with a fixed text, by their first byte and longest first.
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

// space skips one run of white space, a line break or a comment. It reports whether there was one.
func (l *Lexer) space() bool {
	switch c := l.src[l.At]; {
	case c == ' ' || c == '\t' || c == '\v' || c == '\f':
		l.At++
	case c == '\n' || c == '\r':
		l.At++
		l.lineStart = true
	case c == '/' && l.peek(1) == '/', c == '<' && bytes.HasPrefix(l.src[l.At:], []byte("<!--")),
		c == '-' && l.lineStart && bytes.HasPrefix(l.src[l.At:], []byte("-->")):
		l.At += lineEnd(l.src[l.At:])
	case c == '/' && l.peek(1) == '*':
		return l.comment()
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRune(l.src[l.At:])
		switch {
		case r == '\u2028' || r == '\u2029':
			l.lineStart = true
		case r != '\ufeff' && !unicode.Is(unicode.Zs, r):
			return false
		}
		l.At += size
	default:
		return false
	}
	return true
}

// comment skips a block comment and reports whether there was one. The beginning of a comment without an end is
// not one.
func (l *Lexer) comment() bool {
	if l.At >= l.openComment {
		return false
	}
	body := l.src[l.At+2:]
	n := bytes.Index(body, []byte("*/"))
	if n < 0 {
		l.openComment = l.At
		return false
	}
	if lineEnd(body[:n]) < n {
		l.lineStart = true
	}
	l.At += 2 + n + 2
	return true
}

// lineEnd returns the offset of the end of the first line of text.
func lineEnd(text []byte) int {
	for i := range text {
		if isLineEnd(text[i:]) {
			return i
		}
	}
	return len(text)
}

// isLineEnd reports whether text begins with a line terminator of JavaScript.
func isLineEnd(text []byte) bool {
	switch text[0] {
	case '\n', '\r':
		return true
	// This may be U+2028 or U+2029 in UTF-8.
	case 0xe2:
		return len(text) > 2 && text[1] == 0x80 && text[2]&^1 == 0xa8
	}
	return false
}

// isDigit reports whether c is a decimal digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isIdentStart reports whether r may begin an identifier.
func isIdentStart(r rune) bool {
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
}

// isIdentPart reports whether r may continue an identifier.
func isIdentPart(r rune) bool {
	return isIdentStart(r) || r == '\u200c' || r == '\u200d' ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// identifier reads an identifier or a keyword. If the next bytes are none, it returns ErrorToken and reads
// nothing.
func (l *Lexer) identifier() js.TokenType {
	begin := l.At
	for l.At < len(l.src) {
		c := l.src[l.At]
		switch {
		// ASCII is the frequent case.
		case isWord(c) && (l.At > begin || !isDigit(c)):
			l.At++
			continue
		case c == '\\':
			if n := unicodeEscape(l.src[l.At:]); n > 0 {
				l.At += n
				continue
			}
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(l.src[l.At:])
			if isIdentStart(r) || l.At > begin && isIdentPart(r) {
				l.At += size
				continue
			}
		}
		break
	}
	if l.At == begin {
		return js.ErrorToken
	}
	if typ, ok := js.Keywords[string(l.src[begin:l.At])]; ok {
		return typ
	}

	return js.IdentifierToken
}

// unicodeEscape returns the length in bytes of an escape \uXXXX or \u{X…} at the beginning of text, or 0.
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

// isHexDigit reports whether c is a hexadecimal digit.
func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// number reads a numeric literal.
func (l *Lexer) number() js.TokenType {
	if l.src[l.At] == '0' {
		// A leading zero may be the prefix of another base.
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
			l.At += 2
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
		l.At++
		l.digits(isDigit)
		typ = js.DecimalToken
	}
	if l.peek(0)|0x20 == 'e' {
		n := 1
		// The exponent may have a sign, but needs a digit.
		if c := l.peek(1); c == '+' || c == '-' {
			n++
		}
		if isDigit(l.peek(n)) {
			l.At += n
			l.digits(isDigit)
			typ = js.DecimalToken
		}
	}

	return typ
}

// digits skips digits, for which the function is returns true, and underscores between them.
func (l *Lexer) digits(is func(byte) bool) {
	for is(l.peek(0)) || l.peek(0) == '_' && is(l.peek(1)) {
		l.At++
	}
}

// suffix skips the suffix n of a BigInt literal. It reports whether there was one.
func (l *Lexer) suffix() bool {
	if l.peek(0) != 'n' {
		return false
	}
	l.At++
	return true
}

// quoted reads a string literal that begins with the given quote. If it does not end on its line, the rest of
// the line is skipped.
func (l *Lexer) quoted(quote byte) js.TokenType {
	for l.At++; l.At < len(l.src); l.At++ {
		switch c := l.src[l.At]; c {
		case quote:
			l.At++
			return js.StringToken
		case '\n', '\r':
			return js.ErrorToken
		case '\\':
			// A backslash before a line break continues the string.
			if l.peek(1) == '\r' && l.peek(2) == '\n' {
				l.At++
			}
			l.At++
		}
	}
	l.At = len(l.src)
	return js.ErrorToken
}

// template reads one piece of a template literal, beginning with ` or }. It returns end if the template ends
// there, and more if ${ follows. A template without an end is ignored.
func (l *Lexer) template(end, more js.TokenType) js.TokenType {
	ended := len(l.templates) - 1
	for i := l.At + 1; i < len(l.src) && l.At < l.openTemplate; i++ {
		switch c := l.src[i]; {
		case c == '\\':
			i++
		case c == '`':
			l.templates, l.At = l.templates[:ended], i+1
			return end
		// An expression begins inside the template.
		case c == '$' && i+1 < len(l.src) && l.src[i+1] == '{':
			l.level++
			l.At = i + 2
			return more
		}
	}
	l.openTemplate = min(l.openTemplate, l.At)
	l.templates = l.templates[:ended]
	return js.ErrorToken
}

// Regexp reads the regular expression that begins at the current token, a slash. If it does not end on its
// line, ok is false and only the slash is read. stopped is the offset at which the search for the end stopped.
func (l *Lexer) Regexp() (ok bool, stopped int) {
	// A slash inside a class such as [/] does not end the expression.
	class := false
	for i := l.Start + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case isLineEnd(l.src[i:]):
			l.At = l.Start + 1
			return false, i
		case c == '\\' && i+1 < len(l.src) && !isLineEnd(l.src[i+1:]):
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.At = i + 1
			// Flags follow.
			l.identifier()
			return true, l.At
		}
	}
	l.At = l.Start + 1
	return false, len(l.src)
}
