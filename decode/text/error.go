package text

import (
	"bytes"
	"fmt"
)

// An Error is a syntax error in a text or a JSON document.
type Error struct {
	// Line and Column are the position of the error, from 1. Columns count bytes.
	Line, Column int

	// Err describes the expected and the found text.
	Err error

	// Hint is advice on how to correct the text, or "".
	Hint string
}

// Error formats the error, as in `text: line 2, column 4: this string is not closed`.
func (e *Error) Error() string {
	return fmt.Sprintf("text: line %d, column %d: %v", e.Line, e.Column, e.Err)
}

// Unwrap returns Err, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// errorAt returns an Error for the offset off in src.
func errorAt(src []byte, off int64, err error, hint string) *Error {
	before := src[:max(min(off, int64(len(src))), 0)]
	return &Error{
		Line: bytes.Count(before, []byte("\n")) + 1, Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Err: err, Hint: hint,
	}
}

// offset returns the byte offset of the error in src.
func (e *Error) offset(src []byte) int {
	off := 0
	for range e.Line - 1 {
		off += bytes.IndexByte(src[off:], '\n') + 1
	}
	return off + e.Column - 1
}

// unexpected returns the syntax error for a character that begins no token. Its hint explains the usual syntax in
// place of that character.
func (p *parser) unexpected() error {
	c := p.src[p.pos]
	hint := ""
	switch c {
	case ',', ';':
		hint = "separate values and fields by white space"
	case '=', ':':
		hint = "write a field as NUMBER: VALUE, as in 1: 150"
	case '[', ']':
		hint = "write packed numbers in braces: 2: {1 2 3}"
	case '(', ')', '<', '>':
		hint = "write messages in braces: 2: {1: 150}"
	default:
		if c < ' ' || c >= 0x7f {
			hint = "encode reads the text that 'unwire decode' writes, not bytes"
		}
	}
	return p.advise(hint, "unexpected %q: expected a field, a value or a brace", c)
}

// hintForWord returns the hint for an error about a word where a number is expected.
func hintForWord(word []byte) string {
	switch string(word) {
	case "nan", "NaN", "nan32", "nan64":
		return "NaN has many encodings: write its bits, as in 0x7ff8000000000000i64"
	case "inf", "+inf", "-inf":
		return "write inf32 or inf64"
	case "null", "none", "nil":
		return "leave out a field without a value, or write {} for an empty one"
	case "True", "TRUE", "False", "FALSE":
		return "write true and false in lower case"
	}
	if c := word[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		return "write a number as in 150, -5, 0x10, 5z (sint), 7i32, 7i64, 1.5, 1.5i32"
	}
	return "write a field as its number, as in 1: 5, and a text in quotes; names of fields are only comments, after #"
}
