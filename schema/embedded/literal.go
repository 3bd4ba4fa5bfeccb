package embedded

import (
	"bytes"
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits for joining literals in source code.
const (
	// maxJoint is the maximum number of bytes between two literals that are joined.
	maxJoint = 512
	// maxLiteral is the maximum size of joined literals in bytes.
	maxLiteral = maxDescriptor
)

// ScanSource returns the file descriptors in generated source code of any language with literals like those of
// C. Descriptors may be strings with escapes, in base64 or hexadecimal, split into pieces that are joined by
// operators, commas or nothing, or lists of numbers. The code is searched for literals, but neither parsed nor
// executed.
//
// Errors: the context's. Finding nothing is not an error.
func ScanSource(ctx context.Context, src []byte) ([]Found, error) {
	if !mayHold(src) {
		return nil, nil
	}
	l := &literals{src: src, is: base64Chars(), open: map[byte]int{}, php: bytes.HasPrefix(src, []byte("<?php"))}
	// every is the number of steps between two checks of the context.
	const every = 4096
	for n := 0; l.at < len(src); n++ {
		if n%every == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch c := src[l.at]; {
		case c == '"' || c == '\'':
			l.quoted(ctx, c)
		case c == '0' && l.at+1 < len(src) && src[l.at+1]|0x20 == 'x' && !l.wordBefore():
			l.number(ctx)
		default:
			l.at++
		}
	}
	l.flush(ctx)
	return l.found, nil
}

// mayHold is a fast check whether source code may contain a descriptor: whether it contains ".proto" in one of
// the encodings.
func mayHold(src []byte) bool {
	words := append(base64Suffixes(), []byte(suffix), []byte("2e70726f746f"), []byte("2E70726F746F"), []byte("0x2e, 0x70"), []byte("0x2e,0x70"),
		[]byte(`\x70\x72\x6f\x74\x6f`), []byte(`\x70\x72\x6F\x74\x6F`), []byte(`x70rot`), []byte(`\056proto`), []byte(`\160\162\157\164\157`))

	for _, w := range words {
		if bytes.Contains(src, w) {
			return true
		}
	}
	// The name may be split over two literals, so the words of generated code count too.
	return bytes.Contains(src, []byte("erializedFile")) || bytes.Contains(src, []byte("escriptor"))
}

// literals is the state of ScanSource: it joins consecutive literals, which together may form a descriptor.
type literals struct {
	// src is the source code.
	src []byte
	// at is the current offset in src.
	at int
	// is marks the characters of the base64 alphabets.
	is [256]bool

	// bytes are the bytes of the literals joined so far.
	bytes []byte

	// begin is the offset in src of the first joined literal.
	begin int

	// end is the offset in src after the last joined literal.
	end int

	// numbers is set if the joined literals are numbers; otherwise they are strings.
	numbers bool
	// found are the descriptors found so far.
	found []Found

	// php is set if the source is PHP: strings may extend over lines, and only two escapes are allowed in
	// single quotes.
	php bool

	// open has, for each kind of quote, the offset before which no string with that quote ends. It prevents
	// quadratic time for hostile input.
	open map[byte]int
}

// wordBefore reports whether the character before the current one belongs to a word, so that no number begins
// here.
func (l *literals) wordBefore() bool {
	return l.at > 0 && (l.is[l.src[l.at-1]] && l.src[l.at-1] != '+' && l.src[l.at-1] != '-' && l.src[l.at-1] != '/' || l.src[l.at-1] == '.')
}

// start begins a literal at offset begin. The literals before it are searched for a descriptor, unless this one
// is joined to them.
func (l *literals) start(ctx context.Context, begin int, number bool) {
	if len(l.bytes) > 0 && (number != l.numbers || !l.joins(begin, number) || len(l.bytes) > maxLiteral) {
		l.flush(ctx)
	}
	if len(l.bytes) == 0 {
		l.begin, l.numbers = begin, number
	}
}

// joins reports whether the text between the last literal and offset begin consists only of spaces, operators
// and comments that join literals.
func (l *literals) joins(begin int, number bool) bool {
	between := l.src[l.end:begin]
	if len(between) > maxJoint {
		return false
	}
	for i := 0; i < len(between); i++ {
		switch c := between[i]; {
		case strings.IndexByte(" \t\r\n,\\", c) >= 0:
		case !number && strings.IndexByte("+.()", c) >= 0:
		// This is the prefix of a byte string, b"…".
		case !number && (c == 'b' || c == 'B') && i == len(between)-1:
		case bytes.HasPrefix(between[i:], []byte("//")), c == '#' && !number:
			for i < len(between) && between[i] != '\n' {
				i++
			}
		default:
			return false
		}
	}
	return true
}

// number reads a hexadecimal byte such as 0x0a and adds it to the joined literals.
func (l *literals) number(ctx context.Context) {
	begin := l.at
	l.at += 2
	digits := l.at
	for l.at < len(l.src) && isHex(l.src[l.at]) {
		l.at++
	}
	v, err := strconv.ParseUint(string(l.src[digits:min(l.at, digits+16)]), 16, 8)
	if err != nil || l.at-digits > 2 {
		return
	}
	l.start(ctx, begin, true)
	l.bytes, l.end = append(l.bytes, byte(v)), l.at
}

// isHex reports whether c is a hexadecimal digit.
func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// quoted reads a string literal and adds it to the joined literals. A string that does not end on its line is
// ignored.
func (l *literals) quoted(ctx context.Context, quote byte) {
	begin := l.at
	if begin < l.open[quote] {
		l.at++
		return
	}
	l.start(ctx, begin, false)
	was := len(l.bytes)

	// Python and others have strings in triple quotes, which extend over lines.
	triple := bytes.HasPrefix(l.src[begin:], []byte{quote, quote, quote})
	l.at++
	if triple {
		l.at += 2
	}

	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == quote && (!triple || bytes.HasPrefix(l.src[l.at:], []byte{quote, quote, quote})):
			l.at++
			if triple {
				l.at += 2
			}
			l.end = l.at
			return
		case c == '\\' && l.at+1 < len(l.src):
			// In PHP's single quotes, other backslashes are literal.
			if l.php && quote == '\'' && l.src[l.at+1] != '\'' && l.src[l.at+1] != '\\' {
				l.bytes = append(l.bytes, c)
				l.at++
				break
			}
			l.escape()
		case c == '\n' && !triple && !l.php:
			l.unended(quote, begin, was)
			return
		default:
			l.bytes = append(l.bytes, c)
			l.at++
		}
	}
	l.unended(quote, begin, was)
}

// unended ignores the string that begins at offset begin, because it has no end: was is the number of joined
// bytes before it. Reading continues after its quote.
func (l *literals) unended(quote byte, begin, was int) {
	l.open[quote] = l.at
	l.bytes, l.at = l.bytes[:was], begin+1
}

// escape reads an escape sequence in the syntax of C and related languages, and adds its bytes to the joined
// literals.
func (l *literals) escape() {
	c := l.src[l.at+1]
	l.at += 2
	switch {
	case c == 'x' || c == 'X':
		l.bytes = append(l.bytes, byte(l.digits(2, 16)))
	case c == 'u' && l.at < len(l.src) && l.src[l.at] == '{':
		l.at++
		l.bytes = utf8.AppendRune(l.bytes, rune(l.digits(6, 16)))
		if l.at < len(l.src) && l.src[l.at] == '}' {
			l.at++
		}
	case c == 'u':
		l.bytes = utf8.AppendRune(l.bytes, rune(l.digits(4, 16)))
	case '0' <= c && c < '8':
		l.at--
		l.bytes = append(l.bytes, byte(l.digits(3, 8)))

	// The string continues on the next line. Rust ignores the indentation of that line.
	case c == '\n':
		for l.at < len(l.src) && (l.src[l.at] == ' ' || l.src[l.at] == '\t') {
			l.at++
		}
	default:
		if i := strings.IndexByte("ntrabfve", c); i >= 0 {
			c = "\n\t\r\a\b\f\v\x1b"[i]
		}
		l.bytes = append(l.bytes, c)
	}
}

// digits reads a number in base 8 or 16 of at most most digits.
func (l *literals) digits(most, base int) uint64 {
	n := 0
	for n < most && l.at+n < len(l.src) && isHex(l.src[l.at+n]) && (base == 16 || l.src[l.at+n] < '8') {
		n++
	}
	v, _ := strconv.ParseUint(string(l.src[l.at:l.at+n]), base, 32)
	l.at += n
	return v
}

// flush searches the joined literals for descriptors in each encoding, and begins anew.
func (l *literals) flush(ctx context.Context) {
	text := l.bytes
	list := scanRaw(ctx, text)
	if len(list) == 0 {
		list = scanBase64(ctx, text)
	}
	if plain := make([]byte, len(text)/2); len(list) == 0 && len(text) > 0 {
		if n, _ := hex.Decode(plain, text); n > 0 {
			list = scanRaw(ctx, plain[:n])
		}
	}
	// Old Go code has a compressed descriptor as a list of numbers.
	if l.numbers && len(list) == 0 {
		list = scanGzip(ctx, text)
	}
	for _, f := range list {
		f.Form, f.Offset = formLiteral, l.begin
		l.found = append(l.found, f)
	}
	l.bytes = l.bytes[:0]
}
