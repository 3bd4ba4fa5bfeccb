package text

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// Parse returns the bytes that a text describes, written as the document was
// that the text was made of: a text that was made of hex gives hex.
//
// Shape: behind the flags of a frame may follow len:N (the length to claim),
// a compression to apply, and with it of:HASH raw:`…`: what the sender's own
// compression gave, used as long as the data still has that hash.
// Limits: time and memory are linear in the text, however deep it nests.
// Errors: with line and column.
func Parse(src []byte) ([]byte, error) {
	p := &parser{src: src}
	var from source
	if rest, ok := bytes.CutPrefix(src, []byte(directive)); ok {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		p.pos = len(directive)
		words := strings.Fields(string(line))
		if len(words) == 0 {
			return nil, p.fail("an empty directive")
		}
		var err error
		if from, err = parseWords(words); err != nil {
			return nil, p.fail("directive: %w", err)
		}
		p.pos += len(line)
	}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return from.restore(p.out), nil
}

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
	frame    frameHead
	long     int // of a long-form that waits for what it belongs to
	tagged   bool
}

// fail is an error at the current position.
func (p *parser) fail(format string, args ...any) error {
	before := p.src[:min(p.pos, len(p.src))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("text: line %d, column %d: %w", line, column, fmt.Errorf(format, args...))
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
	}
	if p.tagged || p.long > 0 {
		return p.fail("the text ends where a value is expected")
	}
	if k := len(p.levels); k > 0 {
		p.pos = p.levels[k-1].at
		return p.fail("this brace is not closed")
	}
	p.out = p.assemble(p.out)
	return nil
}

// assemble appends body with its lengths to dst, and begins anew.
func (p *parser) assemble(dst []byte) []byte {
	if dst == nil && len(p.prefixes) == 0 {
		dst, p.body = p.body, nil
		return dst
	}
	pos := 0
	for _, f := range p.prefixes {
		dst = append(dst, p.body[pos:f.pos]...)
		dst = wire.AppendVarintWidth(dst, f.length, f.width)
		pos = f.pos
	}
	dst = append(dst, p.body[pos:]...)
	p.body, p.prefixes = p.body[:0], p.prefixes[:0]
	return dst
}

// space skips white space and comments.
func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		case '#':
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
	tagged := p.tagged
	p.tagged = false
	switch c := p.src[p.pos]; {
	case c == '"' || c == '\'':
		return p.literal(c)
	case c == '`':
		return p.hexLiteral()
	case c == '{':
		return p.open('l', 1, 0)
	case c == '}':
		if tagged {
			return p.fail("a value is expected behind the field number")
		}
		return p.shut()
	case c == '!':
		return p.fail("!{ is only for groups, behind a field number")
	}
	word := p.word()
	if word == "" {
		return p.fail("%q begins nothing", p.src[p.pos])
	}
	if n, ok := strings.CutPrefix(word, "long-form"); ok && n == "" {
		return p.longForm(tagged)
	}
	if p.pos+len(word) < len(p.src) && p.src[p.pos+len(word)] == ':' {
		if tagged {
			return p.fail("a value is expected behind the field number")
		}
		return p.tag(word)
	}
	if word == "frame" {
		return p.openFrame()
	}
	v, err := parseNumber(word)
	if err != nil {
		return p.fail("%w", err)
	}
	p.pos += len(word)
	switch v.typ {
	case wire.Varint:
		return p.varint(v.bits)
	case wire.I32:
		p.body = append(p.body, byte(v.bits), byte(v.bits>>8), byte(v.bits>>16), byte(v.bits>>24))
	case wire.I64:
		for k := range 8 {
			p.body = append(p.body, byte(v.bits>>(8*k)))
		}
	}
	return p.noLong()
}

// noLong refuses a long-form in front of what is no varint.
func (p *parser) noLong() error {
	if p.long > 0 {
		return p.fail("long-form stands only before a number, a field number or a brace")
	}
	return nil
}

// word is the run of letters, digits and signs at the position.
func (p *parser) word() string {
	end := p.pos
	for end < len(p.src) {
		c := p.src[end]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '+' && c != '.' && c != '_' {
			break
		}
		end++
	}
	return string(p.src[p.pos:end])
}

func (p *parser) varint(v uint64) error {
	width := wire.SizeVarint(v) + p.long
	if width > 10 {
		return p.fail("long-form:%d makes %d bytes of a varint, 10 are the most", p.long, width)
	}
	p.long = 0
	p.body = wire.AppendVarintWidth(p.body, v, width)
	return nil
}

// longForm reads long-form:N.
func (p *parser) longForm(tagged bool) error {
	if p.long > 0 {
		return p.fail("two long-forms in a row")
	}
	p.pos += len("long-form")
	if p.pos >= len(p.src) || p.src[p.pos] != ':' {
		return p.fail("long-form wants a number, as in long-form:2")
	}
	p.pos++
	w := p.word()
	n, err := positive(w)
	if err != nil || n > 9 {
		return p.fail("long-form:%.20s: want 1 to 9", w)
	}
	p.pos += len(w)
	p.long, p.tagged = n, tagged
	return nil
}

// tag reads a field number with its wire type, or finds the type from what
// follows.
func (p *parser) tag(word string) error {
	number, err := parseFieldNumber(word)
	if err != nil {
		return p.fail("field number %.40q: %w", word, err)
	}
	p.pos += len(word) + 1
	explicit := p.word()
	typ, named := wireTypes[explicit]
	switch {
	case named:
		p.pos += len(explicit)
	case explicit != "":
		return p.fail("%.40q is no wire type; put a space before a value", explicit)
	default:
		if typ, err = p.ahead(); err != nil {
			return err
		}
		p.tagged = true
	}
	if err := p.varint(number<<3 | uint64(typ)); err != nil {
		return err
	}
	if typ == wire.StartGroup && !named {
		p.tagged = false
		p.space()
		p.pos++ // the !
		return p.open('g', 1, number)
	}
	return nil
}

var wireTypes = map[string]wire.Type{
	"VARINT": wire.Varint, "I64": wire.I64, "LEN": wire.Len, "SGROUP": wire.StartGroup, "EGROUP": wire.EndGroup, "I32": wire.I32,
	"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7,
}

// ahead tells the wire type of the value that follows.
func (p *parser) ahead() (wire.Type, error) {
	p.space()
	if p.pos >= len(p.src) {
		return 0, p.fail("the text ends where a value is expected")
	}
	switch c := p.src[p.pos]; c {
	case '{', '"', '\'', '`':
		return wire.Len, nil
	case '!':
		if p.pos+1 < len(p.src) && p.src[p.pos+1] == '{' {
			return wire.StartGroup, nil
		}
		return 0, p.fail("! is followed by {")
	}
	word := p.word()
	if word == "long-form" {
		at := p.pos
		defer func() { p.pos = at }()
		p.pos += len(word) + 1
		p.pos += len(p.word())
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == '{' {
			return wire.Len, nil
		}
		return wire.Varint, nil
	}
	v, err := parseNumber(word)
	if err != nil {
		return 0, p.fail("a value is expected behind the field number: %w", err)
	}
	return v.typ, nil
}

// open begins a brace of skip bytes.
func (p *parser) open(kind byte, skip int, number uint64) error {
	l := level{at: p.pos, close: kind, number: number, long: p.long, prefix: len(p.prefixes)}
	if kind == 'l' {
		p.prefixes = append(p.prefixes, prefix{pos: len(p.body)})
		p.long = 0
	}
	p.levels = append(p.levels, l)
	p.pos += skip
	return nil
}

// shut ends the innermost brace.
func (p *parser) shut() error {
	k := len(p.levels) - 1
	if k < 0 {
		return p.fail("no brace is open here")
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
		if f.width > 10 {
			p.pos = l.at
			return p.fail("long-form:%d makes %d bytes of a length, 10 are the most", l.long, f.width)
		}
		extra += f.width
	case 'g':
		if err := p.varint(l.number<<3 | uint64(wire.EndGroup)); err != nil {
			return err
		}
	case 'f':
		if err := p.noLong(); err != nil {
			return err
		}
		p.pos++
		return p.shutFrame()
	}
	if k > 0 {
		p.levels[k-1].extra += extra
	}
	p.pos++
	return nil
}

// A frameHead is what stands before the brace of a frame.
type frameHead struct {
	flags    uint8
	length   int64 // to claim; -1 for the real one
	encoding string
	of       string
	raw      []byte
}

// openFrame reads `frame FLAGS … {`.
func (p *parser) openFrame() error {
	if len(p.levels) > 0 {
		return p.fail("a frame cannot be inside anything")
	}
	if err := p.noLong(); err != nil {
		return err
	}
	p.out = p.assemble(p.out)
	p.pos += len("frame")
	p.space()
	flags := p.word()
	v, err := parseNumber(flags)
	if err != nil || v.typ != wire.Varint || v.bits > 0xff {
		return p.fail("flags %.20q: want a number up to 0xff", flags)
	}
	p.pos += len(flags)
	p.frame = frameHead{flags: uint8(v.bits), length: -1}
	for {
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == '{' {
			return p.open('f', 1, 0)
		}
		if err := p.frameWord(); err != nil {
			return err
		}
	}
}

// frameWord reads one word of a frame's head.
func (p *parser) frameWord() error {
	word := p.word()
	at := p.pos
	p.pos += len(word)
	valued := p.pos < len(p.src) && p.src[p.pos] == ':'
	if valued {
		p.pos++
	}
	switch {
	case word == "len" && valued:
		w := p.word()
		v, err := parseNumber(w)
		if err != nil || v.typ != wire.Varint || v.bits > 1<<32-1 {
			return p.fail("length %.20q: want a number below 2^32", w)
		}
		p.pos += len(w)
		p.frame.length = int64(v.bits)
	case word == "of" && valued:
		p.frame.of = p.word()
		p.pos += len(p.frame.of)
	case word == "raw" && valued:
		body := p.body
		p.body = nil
		if p.pos >= len(p.src) || p.src[p.pos] != '`' {
			return p.fail("raw: wants `hex`")
		}
		err := p.hexLiteral()
		p.frame.raw, p.body = p.body, body
		return err
	case word != "" && !valued:
		if _, err := envelope.Compress(word, nil); err != nil {
			p.pos = at
			return p.fail("%w", err)
		}
		p.frame.encoding = word
	default:
		p.pos = at
		return p.fail("a frame's brace is expected")
	}
	return nil
}

func (p *parser) shutFrame() error {
	f := p.frame
	payload := p.assemble([]byte{})
	out, err := f.append(p.out, payload)
	if err != nil {
		return p.fail("%w", err)
	}
	p.out = out
	return nil
}

// append appends the envelope around payload, which is not compressed yet.
func (f *frameHead) append(dst, payload []byte) ([]byte, error) {
	if f.encoding != "" {
		sum := sha256.Sum256(payload)
		if f.of != "" && f.of == hex.EncodeToString(sum[:16]) {
			payload = f.raw
		} else {
			var err error
			if payload, err = envelope.Compress(f.encoding, payload); err != nil {
				return dst, err
			}
		}
	}
	at := len(dst)
	dst = envelope.Append(dst, envelope.Flags(f.flags), payload)
	if f.length >= 0 {
		for k := range 4 {
			dst[at+1+k] = byte(f.length >> (24 - 8*k))
		}
	}
	return dst, nil
}
