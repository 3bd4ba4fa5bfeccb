package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// Parse returns the bytes that a text describes, in the encoding of the document from which the text was
// printed: the text of a hex document yields hex.
//
// Shape: the flags of a frame may be followed by len:N (the length to claim), a compression to apply, and of:HASH
// raw:`…`. The latter is the sender's own compressed payload, which is used as long as the data still has that
// hash. Lines that begin with #| show the content of the value above them. If they were edited, and the value was
// not, the value is encoded from them.
//
// Limits: time and memory are linear in the size of the text, for any nesting.
//
// Errors: an *Error with line, column, and often a hint.
func Parse(src []byte) ([]byte, error) {
	p := &parser{src: src}
	if err := p.run(); err != nil {
		return nil, err
	}
	return p.from.restore(p.out), nil
}

// Encode parses the text src and writes the bytes that it describes to w while it parses, after each complete top-level
// field. done, if not nil, is called with the offset up to which src is encoded and no longer needed.
//
// Limits: only one piece is in memory, unless the document was hex, base64 or compressed.
//
// Errors: before an error in the text, the bytes of the preceding text may have been written.
func Encode(w io.Writer, src []byte, done func(off int)) error {
	p := &parser{src: src, w: w, done: done}
	if err := p.run(); err != nil {
		return err
	}
	_, err := w.Write(p.from.restore(p.out))
	return err
}

// run parses the comment about the encoding of the input, and then the text.
func (p *parser) run() error {
	if rest, ok := bytes.CutPrefix(p.src, []byte(directive)); ok {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		p.pos = len(directive)
		words := strings.Fields(string(line))
		if len(words) == 0 {
			return p.fail("the directive is empty")
		}
		var err error
		if p.from, err = parseWords(words); err != nil {
			return p.fail("the directive is malformed: %w", err)
		}
		p.pos += len(line)
	}
	return p.parse()
}

// pieceLen is the number of encoded bytes that are collected before they are written: 256 KiB.
const pieceLen = 256 << 10

// drain writes the finished bytes if there are many and no brace is open.
func (p *parser) drain() error {
	if p.w == nil || len(p.levels) > 0 || len(p.body)+len(p.out) < pieceLen || !p.from.plain() {
		return nil
	}
	if p.space(); p.atBlock() {
		// The block may replace a value that was not written yet.
		return nil
	}
	if p.out == nil {
		p.out = make([]byte, 0, pieceLen)
	}
	p.out = p.assemble(p.out)
	if _, err := p.w.Write(p.out); err != nil {
		return err
	}
	p.out = p.out[:0]
	if p.done != nil {
		p.done(p.pos)
	}
	return nil
}

// maxLong is the maximum number of bytes by which the word long-form may lengthen a varint.
const maxLong = 1 << 12

// A lengthPrefix is the length prefix that will be inserted before body[pos:].
type lengthPrefix struct {
	// pos is the offset in body at which the length is inserted.
	pos int

	// length is the length to be encoded.
	length uint64

	// width is the size of the encoded length in bytes; 0 while the brace is open.
	width int
}

// An openBrace is an opening brace that is not closed yet.
type openBrace struct {
	// at is the offset of the brace in the text.
	at int

	// close is the kind of brace: 'l' for a length, 'g' for a group, 'f' for a frame.
	close byte

	// prefix is the index in prefixes of the length that belongs to the brace.
	prefix int

	// extra is the total size of the length prefixes inside the brace, in bytes. They are not in body yet.
	extra int

	// number is the field number of a group.
	number uint64

	// long is the number of bytes by which the length is longer than necessary.
	long int
}

// A parser parses a text in one go. A length precedes its content but depends on it, so lengths are collected
// separately from body and inserted at the end. This avoids moving bytes at every closing brace.
type parser struct {
	// src is the text that is parsed.
	src []byte

	// pos is the current offset in src.
	pos int

	// out are the encoded bytes that are complete.
	out []byte

	// body are the encoded bytes after out, without length prefixes.
	body []byte

	// prefixes are the length prefixes to be inserted into body.
	prefixes []lengthPrefix

	// levels are the braces that are not closed yet, outermost first.
	levels []openBrace

	// frame describes the envelope whose brace is open.
	frame frameForm

	// long is the number of bytes by which the next varint is to be longer than necessary, as the word
	// "long-form:N" before it requested.
	long int

	// pending means that the word "long-form" was read and the varint to which it applies has not followed yet.
	pending bool

	// last is the length-delimited value that was closed most recently.
	last closedValue

	// deep is the number of blocks inside which the text is.
	deep int

	// from is the encoding of the document's bytes.
	from inputEncoding

	// w receives the encoded bytes; nil collects all of them in out.
	w io.Writer

	// done is the callback of Encode.
	done func(off int)
}

// fail returns a syntax error at the current position, without a hint.
func (p *parser) fail(format string, args ...any) error { return p.advise("", format, args...) }

// advise returns an error with a hint at the current position.
func (p *parser) advise(hint, format string, args ...any) error {
	return errorAt(p.src, int64(p.pos), fmt.Errorf(format, args...), hint)
}

// parse parses the whole text and encodes it to out.
func (p *parser) parse() error {
	for {
		p.space()
		if p.pos >= len(p.src) {
			break
		}
		if err := p.item(); err != nil {
			return err
		}
		if err := p.drain(); err != nil {
			return err
		}
	}
	if p.pending {
		return p.fail("the text ends after long-form, where a number or a brace is expected")
	}
	if k := len(p.levels); k > 0 {
		p.pos = p.levels[k-1].at
		return p.advise(fmt.Sprintf("the text ends with %d braces open: add as many }", k), "the brace { is not closed")
	}
	p.out = p.assemble(p.out)
	return nil
}

// assemble appends body, with its length prefixes inserted, to dst, and empties body.
func (p *parser) assemble(dst []byte) []byte {
	if dst == nil && len(p.prefixes) == 0 {
		dst, p.body, p.last = p.body, nil, closedValue{}
		return dst
	}
	pos := 0
	for _, f := range p.prefixes {
		dst = append(dst, p.body[pos:f.pos]...)
		dst = appendWide(dst, f.length, f.width)
		pos = f.pos
	}
	dst = append(dst, p.body[pos:]...)
	p.body, p.prefixes, p.last = p.body[:0], p.prefixes[:0], closedValue{}
	return dst
}

// space skips white space and comments. It stops at a block.
func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		case '#':
			if p.atBlock() {
				return
			}
			k := bytes.IndexByte(p.src[p.pos:], '\n')
			if k < 0 {
				k = len(p.src) - p.pos
			}
			p.pos += k
		default:
			return
		}
	}
}

// item parses one token (a literal, number, tag, brace or block) and appends its encoding.
func (p *parser) item() error {
	// The first character selects most kinds of items.
	switch c := p.src[p.pos]; c {
	case '"', '\'':
		return p.literal(c)
	case '`':
		return p.hexLiteral()
	case '{':
		return p.openLevel('l', 1, 0)
	case '}':
		return p.closeLevel()
	case '#':
		return p.block()
	case '!':
		return p.advise("write a group as in 4: !{ 1: 2 }", "!{ begins a group, and must follow a field number")
	}

	// Words: a keyword, a field number, or a number.
	word := p.word()
	if len(word) == 0 {
		return p.unexpected()
	}
	if string(word) == "long-form" {
		return p.longForm()
	}
	if p.pos+len(word) < len(p.src) && p.src[p.pos+len(word)] == ':' {
		return p.tag(word)
	}
	if string(word) == "frame" {
		return p.openFrame()
	}
	v, err := parseNumber(word)
	if err != nil {
		return p.advise(hintForWord(word), "%w", err)
	}

	// The number's suffix selects the wire type.
	p.pos += len(word)
	switch v.typ {
	case wire.Varint:
		return p.varint(v.bits)
	case wire.I32:
		p.body = binary.LittleEndian.AppendUint32(p.body, uint32(v.bits))
	case wire.I64:
		p.body = binary.LittleEndian.AppendUint64(p.body, v.bits)
	}
	return p.noLong()
}

// noLong returns an error if a long-form word is pending, because it may only precede a varint.
func (p *parser) noLong() error {
	if p.pending {
		return p.advise("long-form makes the next varint longer than necessary: a number, a tag, a length, or the end of a group", "long-form must be followed by a number, a field number or a brace")
	}
	return nil
}

// word returns the run of letters, digits and signs at the current position, without consuming it.
func (p *parser) word() []byte {
	end := p.pos
	for end < len(p.src) {
		c := p.src[end]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '+' && c != '.' && c != '_' {
			break
		}
		end++
	}
	return p.src[p.pos:end]
}

// varint appends v to body as a varint, lengthened by a pending long-form.
func (p *parser) varint(v uint64) error {
	p.body = appendWide(p.body, v, wire.SizeVarint(v)+p.long)
	p.long, p.pending = 0, false
	return nil
}

// appendWide appends v as a varint of width bytes, which may exceed the 10 bytes of a valid varint.
func appendWide(dst []byte, v uint64, width int) []byte {
	for ; width > 1; width-- {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// longForm parses the word long-form:N, which lengthens the next varint by N bytes.
func (p *parser) longForm() error {
	if p.pending {
		return p.fail("long-form is given twice")
	}
	p.pos += len("long-form")
	if p.pos >= len(p.src) || p.src[p.pos] != ':' {
		return p.fail("long-form needs a number, as in long-form:2")
	}
	p.pos++
	w := p.word()
	n, err := strconv.Atoi(string(w))
	if err != nil || n < 0 || n > maxLong {
		return p.fail("long-form:%.20s must have a number from 0 to %d", w, maxLong)
	}
	p.pos += len(w)
	p.long, p.pending = n, true
	return nil
}

// tag parses a field number with an optional wire type. Without one, the following value determines the type.
func (p *parser) tag(word []byte) error {
	number, zigzag, err := parseFieldNumber(word)
	if err != nil {
		return p.advise(hintForWord(word), "field number %.40q: %w", word, err)
	}
	p.pos += len(word) + 1

	// An explicit wire type follows the colon directly.
	explicit := p.word()
	typ, named := wireType(explicit)
	switch {
	case named:
		p.pos += len(explicit)
	case len(explicit) > 0:
		return p.advise("the wire types are VARINT, I64, LEN, SGROUP, EGROUP, I32 or 0 to 7; write a value after a space", "%.40q is not a wire type", explicit)
	default:
		typ = p.typeAhead()
	}
	v := number<<3 | uint64(typ)
	if zigzag {
		// The sign applies to the whole tag, as in Protoscope.
		v = number << 3
		if named {
			v |= uint64(typ)
		}
		v = v<<1 ^ uint64(int64(v)>>63)
		if !named {
			v |= uint64(typ)
		}
	}
	if err := p.varint(v); err != nil {
		return err
	}
	if typ == wire.StartGroup && !named {
		p.space()
		// Skip the exclamation mark.
		p.pos++
		return p.openLevel('g', 1, number)
	}
	return nil
}

// wireType parses the name or the number of a wire type.
func wireType(word []byte) (wire.Type, bool) {
	switch string(word) {
	case "VARINT":
		return wire.Varint, true
	case "I64":
		return wire.I64, true
	case "LEN":
		return wire.Len, true
	case "SGROUP":
		return wire.StartGroup, true
	case "EGROUP":
		return wire.EndGroup, true
	case "I32":
		return wire.I32, true
	}
	if len(word) == 0 || word[0] < '0' || word[0] > '9' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(word), 10, 8)
	return wire.Type(v), err == nil && v < 8
}

// typeAhead returns the wire type that the following value implies for a tag, or Varint if it implies none. It
// does not consume anything.
func (p *parser) typeAhead() wire.Type {
	at := p.pos
	defer func() { p.pos = at }()
	p.space()

	// The prefix long-form: changes the length of a varint, and the number or the brace behind it has
	// the type.
	if string(p.word()) == "long-form" {
		p.pos += len("long-form:")
		p.pos += len(p.word())
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == '{' {
			return wire.Len
		}
		return wire.Varint
	}

	if p.pos >= len(p.src) {
		return wire.Varint
	}

	// An opening brace starts a length-delimited value, and !{ starts a group.
	switch p.src[p.pos] {
	case '{':
		return wire.Len
	case '!':
		if p.pos+1 < len(p.src) && p.src[p.pos+1] == '{' {
			return wire.StartGroup
		}
		return wire.Varint
	}

	word := p.word()
	if end := p.pos + len(word); end < len(p.src) && p.src[end] == ':' {
		// The next tag.
		return wire.Varint
	}
	return typeOfNumber(word)
}

// openLevel enters the nested level of an opening brace that is skip bytes long. kind is
// 'l' for a length-delimited field, 'g' for a group and 'f' for a frame; number is the
// field number of a group.
func (p *parser) openLevel(kind byte, skip int, number uint64) error {
	l := openBrace{at: p.pos, close: kind, number: number, long: p.long, prefix: len(p.prefixes)}
	if kind == 'l' {
		p.prefixes = append(p.prefixes, lengthPrefix{pos: len(p.body)})
		p.long, p.pending = 0, false
	}
	p.levels = append(p.levels, l)
	p.pos += skip
	return nil
}

// closeLevel processes the brace that closes the innermost level.
func (p *parser) closeLevel() error {
	k := len(p.levels) - 1
	if k < 0 {
		return p.advise("delete the brace }, or add its {", "the brace } has no { before it")
	}
	l := p.levels[k]
	p.levels = p.levels[:k]
	extra := l.extra
	switch l.close {
	case 'l':
		if err := p.noLong(); err != nil {
			return err
		}
		f := &p.prefixes[l.prefix]
		// The lengths inside the brace are not in body yet.
		f.length = uint64(len(p.body) - f.pos + l.extra)
		f.width = wire.SizeVarint(f.length) + l.long
		extra += f.width
		p.last = closedValue{f.pos, l.prefix, len(p.body), len(p.prefixes), k, l.extra, l.long, true}
	// The end tag of a group belongs to its contents.
	case 'g':
		if err := p.varint(l.number<<3 | uint64(wire.EndGroup)); err != nil {
			return err
		}
	case 'f':
		if err := p.noLong(); err != nil {
			return err
		}
		p.pos++
		return p.closeFrame()
	}

	// The enclosing brace contains the lengths of this one.
	if k > 0 {
		p.levels[k-1].extra += extra
	}
	p.pos++
	return nil
}
