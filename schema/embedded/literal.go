package embedded

import (
	"bytes"
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxJoint is how many bytes may stand between two literals that belong together.
	maxJoint = 512
	// maxLiteral bounds the literals of one file that are kept at a time.
	maxLiteral = maxDescriptor
)

// ScanSource returns the descriptors in generated source code of any language
// with C's literals: in strings with their escapes, in base64 or in hexadecimal,
// in pieces that are joined by operators, commas or nothing, and in lists of
// numbers. The code is not parsed beyond that, and never run.
//
// Errors: the context's. Text without descriptors is no error.
func ScanSource(ctx context.Context, src []byte) ([]Found, error) {
	if !mayHold(src) {
		return nil, nil
	}
	l := &literals{src: src, is: base64Chars(), open: map[byte]int{}, php: bytes.HasPrefix(src, []byte("<?php"))}
	const every = 4096 // steps between two looks at the context
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

// mayHold says whether source code may hold a descriptor, cheaply: whether the
// name of a .proto file is in it, in one of the spellings.
func mayHold(src []byte) bool {
	words := append(base64Suffixes(), []byte(suffix), []byte("2e70726f746f"), []byte("2E70726F746F"), []byte("0x2e, 0x70"), []byte("0x2e,0x70"),
		[]byte(`\x70\x72\x6f\x74\x6f`), []byte(`\x70\x72\x6F\x74\x6F`), []byte(`x70rot`), []byte(`\056proto`), []byte(`\160\162\157\164\157`))
	for _, w := range words {
		if bytes.Contains(src, w) {
			return true
		}
	}
	// The name may be broken over two literals.
	return bytes.Contains(src, []byte("erializedFile")) || bytes.Contains(src, []byte("escriptor"))
}

// literals collects the bytes of literals that belong together.
type literals struct {
	src []byte
	at  int
	is  [256]bool

	// of the literals that are joined so far
	bytes []byte

	// of the first
	begin int

	// of the last
	end int

	// they are numbers
	numbers bool
	found   []Found

	// strings go on over lines; in single quotes only they and backslashes are escaped
	php bool

	// by quote: up to here no string ends that begins with it
	open map[byte]int
}

// wordBefore says whether the character before is part of a word, so that what
// follows is not a number.
func (l *literals) wordBefore() bool {
	return l.at > 0 && (l.is[l.src[l.at-1]] && l.src[l.at-1] != '+' && l.src[l.at-1] != '-' && l.src[l.at-1] != '/' || l.src[l.at-1] == '.')
}

// start begins a literal at begin: joined to the one before where only joints
// stand between them.
func (l *literals) start(ctx context.Context, begin int, number bool) {
	if len(l.bytes) > 0 && (number != l.numbers || !l.joins(begin, number) || len(l.bytes) > maxLiteral) {
		l.flush(ctx)
	}
	if len(l.bytes) == 0 {
		l.begin, l.numbers = begin, number
	}
}

// joins says whether what stands between the last literal and begin joins them.
func (l *literals) joins(begin int, number bool) bool {
	between := l.src[l.end:begin]
	if len(between) > maxJoint {
		return false
	}
	for i := 0; i < len(between); i++ {
		switch c := between[i]; {
		case strings.IndexByte(" \t\r\n,\\", c) >= 0:
		case !number && strings.IndexByte("+.()", c) >= 0:
		case !number && (c == 'b' || c == 'B') && i == len(between)-1: // b"…"
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

// number takes a hexadecimal byte.
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

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// quoted takes a string. One that does not end on its line is none.
func (l *literals) quoted(ctx context.Context, quote byte) {
	begin := l.at
	if begin < l.open[quote] {
		l.at++
		return
	}
	l.start(ctx, begin, false)
	was := len(l.bytes)
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

// unended goes back to what follows the quote at begin: the string that it begins
// has no end.
func (l *literals) unended(quote byte, begin, was int) {
	l.open[quote] = l.at
	l.bytes, l.at = l.bytes[:was], begin+1
}

// escape takes an escape sequence of C and of the languages after it.
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
	case c == '\n': // a line that goes on; Rust leaves out the next one's indent
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

// digits takes a number of at most so many octal or hexadecimal digits.
func (l *literals) digits(most, base int) uint64 {
	n := 0
	for n < most && l.at+n < len(l.src) && isHex(l.src[l.at+n]) && (base == 16 || l.src[l.at+n] < '8') {
		n++
	}
	v, _ := strconv.ParseUint(string(l.src[l.at:l.at+n]), base, 32)
	l.at += n
	return v
}

// flush looks for descriptors in the literals that were joined.
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
	if l.numbers && len(list) == 0 {
		list = scanGzip(ctx, text)
	}
	for _, f := range list {
		f.Form, f.Offset = formLiteral, l.begin
		l.found = append(l.found, f)
	}
	l.bytes = l.bytes[:0]
}
