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

// Parse returns the bytes that a text describes, written as the document was
// that the text was made of: a text that was made of hex gives hex.
//
// Shape: behind the flags of a frame may follow len:N (the length to claim),
// a compression to apply, and with it of:HASH raw:`…`: what the sender's own
// compression gave, used as long as the data still has that hash. Lines that begin
// with #| say what the value above them holds in another form; where they were edited,
// and not the value, it is made of them.
// Limits: time and memory are linear in the text, however deep it nests.
// Errors: an *Error, with line, column, and often a hint.
func Parse(src []byte) ([]byte, error) {
	p := &parser{src: src}
	if err := p.run(); err != nil {
		return nil, err
	}
	return p.from.restore(p.out), nil
}

// Encode is Parse that writes as it reads, in pieces of whole fields at the outermost
// level. Done, if it is not nil, is told which beginning of src is not needed any more.
//
// Limits: it holds the piece; all, where the bytes were hex, base64 or compressed.
// Errors: after an error in the text, what precedes it may have been written.
func Encode(w io.Writer, src []byte, done func(off int)) error {
	p := &parser{src: src, w: w, done: done}
	if err := p.run(); err != nil {
		return err
	}
	_, err := w.Write(p.from.restore(p.out))
	return err
}

// run reads the directive and the text.
func (p *parser) run() error {
	if rest, ok := bytes.CutPrefix(p.src, []byte(directive)); ok {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		p.pos = len(directive)
		words := strings.Fields(string(line))
		if len(words) == 0 {
			return p.fail("an empty directive")
		}
		var err error
		if p.from, err = parseWords(words); err != nil {
			return p.fail("directive: %w", err)
		}
		p.pos += len(line)
	}
	return p.parse()
}

// pieceLen is how much is encoded before it is written.
const pieceLen = 256 << 10

// drain writes what is finished, if that is much and no brace is open.
func (p *parser) drain() error {
	if p.w == nil || len(p.levels) > 0 || len(p.body)+len(p.out) < pieceLen || !p.from.plain() {
		return nil
	}
	if p.space(); p.atBlock() {
		return nil // about a value that is still here
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

// maxLong is how many bytes more than it needs a varint may be given.
const maxLong = 1 << 12

// A prefix is a length that stands in front of body[pos:].
type prefix struct {
	pos    int
	length uint64
	width  int // 0 while it is open
}

// A level is an open brace.
type level struct {
	at     int    // in src
	close  byte   // what it is: 'l' a length, 'g' a group, 'f' a frame
	prefix int    // of a length
	extra  int    // bytes that prefixes inside add to body
	number uint64 // of a group
	long   int    // of a length
}

// A parser reads text. Lengths are not known before what they count has been
// read, so they are kept apart from body and put in at the end.
type parser struct {
	src      []byte
	pos      int
	out      []byte // finished
	body     []byte
	prefixes []prefix
	levels   []level
	frame    frameForm
	long     int  // of a long-form that waits for what it belongs to
	pending  bool // there is one
	last     closed
	deep     int // blocks around this text

	from source
	w    io.Writer // nil: all is gathered in out
	done func(off int)
}

// fail is an error at the current position.
func (p *parser) fail(format string, args ...any) error { return p.advise("", format, args...) }

// advise is fail with a hint.
func (p *parser) advise(hint, format string, args ...any) error {
	return errorAt(p.src, int64(p.pos), fmt.Errorf(format, args...), hint)
}

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
		return p.fail("the text ends where a number or a brace is expected behind long-form")
	}
	if k := len(p.levels); k > 0 {
		p.pos = p.levels[k-1].at
		return p.advise(fmt.Sprintf("the text ends with %d braces open: add as many }", k), "this brace is not closed")
	}
	p.out = p.assemble(p.out)
	return nil
}

// assemble appends body with its lengths to dst, and begins anew.
func (p *parser) assemble(dst []byte) []byte {
	if dst == nil && len(p.prefixes) == 0 {
		dst, p.body, p.last = p.body, nil, closed{}
		return dst
	}
	pos := 0
	for _, f := range p.prefixes {
		dst = append(dst, p.body[pos:f.pos]...)
		dst = appendWide(dst, f.length, f.width)
		pos = f.pos
	}
	dst = append(dst, p.body[pos:]...)
	p.body, p.prefixes, p.last = p.body[:0], p.prefixes[:0], closed{}
	return dst
}

// space skips white space and comments, up to a block.
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

// item reads one token and does what it says.
func (p *parser) item() error {
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
		return p.advise("as in 4: !{ 1: 2 }", "!{ is only for groups, behind a field number")
	}
	word := p.word()
	if len(word) == 0 {
		return p.stray()
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
		return p.advise(hintForWord(word), "a value or a field is expected: %w", err)
	}
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

// noLong refuses a long-form in front of what is no varint.
func (p *parser) noLong() error {
	if p.pending {
		return p.advise("it lengthens a varint: a number, a tag, a length, or a group's end", "long-form stands only before a number, a field number or a brace")
	}
	return nil
}

// word is the run of letters, digits and signs at the position.
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

func (p *parser) varint(v uint64) error {
	p.body = appendWide(p.body, v, wire.SizeVarint(v)+p.long)
	p.long, p.pending = 0, false
	return nil
}

// appendWide appends v in width bytes, which may be more than a varint can have.
func appendWide(dst []byte, v uint64, width int) []byte {
	for ; width > 1; width-- {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// longForm reads long-form:N.
func (p *parser) longForm() error {
	if p.pending {
		return p.fail("two long-forms in a row")
	}
	p.pos += len("long-form")
	if p.pos >= len(p.src) || p.src[p.pos] != ':' {
		return p.fail("long-form wants a number, as in long-form:2")
	}
	p.pos++
	w := p.word()
	n, err := strconv.Atoi(string(w))
	if err != nil || n < 0 || n > maxLong {
		return p.fail("long-form:%.20s: want 0 to %d", w, maxLong)
	}
	p.pos += len(w)
	p.long, p.pending = n, true
	return nil
}

// tag reads a field number with its wire type, or finds the type from what follows.
func (p *parser) tag(word []byte) error {
	number, zigzag, err := parseFieldNumber(word)
	if err != nil {
		return p.advise(hintForWord(word), "field number %.40q: %w", word, err)
	}
	p.pos += len(word) + 1
	explicit := p.word()
	typ, named := wireType(explicit)
	switch {
	case named:
		p.pos += len(explicit)
	case len(explicit) > 0:
		return p.advise("VARINT, I64, LEN, SGROUP, EGROUP, I32 or 0 to 7; a value stands behind a space", "%.40q is no wire type", explicit)
	default:
		typ = p.ahead()
	}
	v := number<<3 | uint64(typ)
	if zigzag {
		// The sign is folded into the whole tag, as Protoscope does it.
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
		p.pos++ // the !
		return p.openLevel('g', 1, number)
	}
	return nil
}

// wireType reads a wire type's name or number.
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

// ahead tells the wire type that a tag gets by what follows it: Varint where
// that says nothing.
func (p *parser) ahead() wire.Type {
	at := p.pos
	defer func() { p.pos = at }()
	p.space()
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
		return wire.Varint // the next tag
	}
	return typeOfNumber(word)
}

// openLevel begins a brace of skip bytes.
func (p *parser) openLevel(kind byte, skip int, number uint64) error {
	l := level{at: p.pos, close: kind, number: number, long: p.long, prefix: len(p.prefixes)}
	if kind == 'l' {
		p.prefixes = append(p.prefixes, prefix{pos: len(p.body)})
		p.long, p.pending = 0, false
	}
	p.levels = append(p.levels, l)
	p.pos += skip
	return nil
}

// closeLevel ends the innermost brace.
func (p *parser) closeLevel() error {
	k := len(p.levels) - 1
	if k < 0 {
		return p.advise("take this } out, or add the { that it belongs to", "no brace is open here")
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
		f.length = uint64(len(p.body) - f.pos + l.extra)
		f.width = wire.SizeVarint(f.length) + l.long
		extra += f.width
		p.last = closed{f.pos, l.prefix, len(p.body), len(p.prefixes), k, l.extra, l.long, true}
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
	if k > 0 {
		p.levels[k-1].extra += extra
	}
	p.pos++
	return nil
}
