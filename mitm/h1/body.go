package h1

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"unwire/captures"
)

const (
	maxChunkLine  = 4 << 10
	maxTrailers   = 64 << 10
	maxSizeDigits = 15
)

// A bodyKind says how the end of a body is found.
type bodyKind uint8

const (
	bodyLength bodyKind = iota
	bodyChunked
	bodyUntilClose
)

// A body follows the body of a message through the bytes on the wire.
type body struct {
	kind bodyKind

	// done says that the whole body was seen.
	done bool

	// padded allows spaces behind the size of a chunk, as some servers write.
	padded bool

	// left is what is missing of the body, or of a chunk.
	left int64

	// state, digits and line are where in the framing of chunks the last byte was: line
	// counts the bytes of a chunk's line.
	state        chunkState
	digits, line int

	// section is the trailer section so far, and trailers are its fields.
	section  []byte
	trailers captures.Headers
}

// A chunkState says what a byte of a chunked body is.
type chunkState uint8

const (
	chunkSize    chunkState = iota // a digit, or what ends the size
	chunkPad                       // a space behind the size
	chunkExt                       // of an extension
	chunkSizeLF                    // the LF behind the size
	chunkData                      // of the content
	chunkDataCR                    // the CR behind the content
	chunkDataLF                    // the LF behind that
	chunkTrailer                   // of the trailer section
)

// noTrailers are the fields that would change what was read already.
//
// Source: RFC 9110, section 6.5.1
var noTrailers = []string{"connection", "content-length", "host", "transfer-encoding"}

// scan follows the body through p. It returns how many bytes of p belong to the body,
// with its framing, and the content in them. That is a part of p where it is in one
// piece, else a part of scratch, which is as long as p.
//
// Errors: *Malformed. What precedes the error is valid.
func (b *body) scan(p, scratch []byte) (n int, content []byte, err error) {
	switch {
	case b.done:
		return 0, nil, nil
	case b.kind == bodyUntilClose:
		return len(p), p, nil
	case b.kind == bodyLength:
		n = int(min(int64(len(p)), b.left))
		b.left -= int64(n)
		b.done = b.left == 0
		return n, p[:n], nil
	}
	return b.scanChunks(p, scratch)
}

func (b *body) scanChunks(p, scratch []byte) (n int, content []byte, err error) {
	copied := 0
	for n < len(p) && !b.done {
		if b.state != chunkData {
			if err := b.step(p[n]); err != nil {
				return n, content, err
			}
			n++
			continue
		}
		m := int(min(int64(len(p)-n), b.left))
		switch {
		case content == nil:
			content = p[n : n+m]
		default:
			if copied == 0 {
				copied = copy(scratch, content)
			}
			copied += copy(scratch[copied:], p[n:n+m])
			content = scratch[:copied]
		}
		n += m
		if b.left -= int64(m); b.left == 0 {
			b.state = chunkDataCR
		}
	}
	return n, content, nil
}

// step takes a byte that is not content.
//
// Source: RFC 9112, section 7.1
func (b *body) step(c byte) error {
	if b.line++; b.line > maxChunkLine && b.state < chunkData {
		return malformed("the line of a chunk's size is longer than %d bytes", maxChunkLine)
	}
	switch b.state {
	case chunkSize, chunkPad:
		return b.stepSize(c)
	case chunkExt:
		switch {
		case c == '\r':
			b.state = chunkSizeLF
		case c < ' ' && c != '\t' || c == 0x7f:
			return malformed("the extension of a chunk has a control character")
		}
	case chunkSizeLF:
		return b.endSize(c)
	case chunkDataCR:
		if c != '\r' {
			return malformed("a chunk is longer than its size")
		}
		b.state = chunkDataLF
	case chunkDataLF:
		if c != '\n' {
			return malformed("a chunk does not end in CRLF")
		}
		b.state, b.digits, b.line = chunkSize, 0, 0
	case chunkTrailer:
		return b.stepTrailer(c)
	case chunkData: // has no step
	}
	return nil
}

func (b *body) stepSize(c byte) error {
	digit := int64(-1)
	switch lower := c | 0x20; {
	case isDigit(c):
		digit = int64(c - '0')
	case 'a' <= lower && lower <= 'f':
		digit = int64(lower-'a') + 10
	}
	switch {
	case digit >= 0 && b.state == chunkSize:
		if b.digits++; b.digits > maxSizeDigits {
			return malformed("the size of a chunk has more than %d digits", maxSizeDigits)
		}
		b.left = b.left<<4 | digit
	case b.digits == 0:
		return malformed("a chunk has no size")
	case c == '\r':
		b.state = chunkSizeLF
	case c == ';':
		b.state = chunkExt
	case b.padded && (c == ' ' || c == '\t'):
		b.state = chunkPad
	default:
		return malformed("the size of a chunk is not a number in hexadecimal digits")
	}
	return nil
}

func (b *body) endSize(c byte) error {
	switch {
	case c != '\n':
		return malformed("the line of a chunk's size does not end in CRLF")
	case b.left > 0:
		b.state = chunkData
	default:
		b.state = chunkTrailer
	}
	return nil
}

func (b *body) stepTrailer(c byte) error {
	if len(b.section) == maxTrailers {
		return malformed("the trailer section is longer than %d bytes", maxTrailers)
	}
	b.section = append(b.section, c)
	n := len(b.section)
	if c != '\n' {
		if n > 1 && b.section[n-2] == '\r' {
			return malformed("a CR stands alone in the trailer section")
		}
		return nil
	}
	if n < 2 || b.section[n-2] != '\r' {
		return malformed("a line of the trailer section ends in a bare LF")
	}
	if n > 2 && b.section[n-3] != '\n' {
		return nil
	}
	if n > 2 {
		fields, err := parseFields(string(b.section))
		if err != nil {
			return err
		}
		for _, f := range fields {
			if slices.Contains(noTrailers, strings.ToLower(f.Name)) {
				return malformed("the trailer section has the field %s", f.Name)
			}
		}
		b.trailers = fields
	}
	b.done = true
	return nil
}

// incomplete words what is missing of a body that has ended too early.
func (b *body) incomplete() error {
	if b.kind == bodyLength {
		return fmt.Errorf("the body ended %d bytes before its declared length", b.left)
	}
	return errors.New("the body ended before its last chunk")
}
