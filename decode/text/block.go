package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"unwire/decode/nested"
	"unwire/decode/wire"
)

// A block is a run of lines below a field that say what its value holds in another
// form. To Protoscope they are comments; here they are read, and where they were
// edited the value is made of them:
//
//	2: {"0a05776f726c641001"}
//	#| hex of a message, 5d1b4a60:
//	#|   1: {"world"}
//	#|   2: 1
//
// The check is of what the value held when the text was written. It tells whether
// the value or the block was edited; both cannot be.
const blockMark = "#|"

const (
	maxBlocks = 16 // blocks within blocks that are read
	checkLen  = 8
)

// The last words of a block's head: what the lines below are. JSON's are its layers.
const (
	blockMessage   = "a message"
	blockEnvelopes = "envelopes"
	blockBytes     = "bytes"
)

// again says how a payload is made of what is in it, and the check of that; ok is
// false where that is for people alone.
func again(c nested.Content, payload []byte) (layers []nested.Layer, check string, ok bool) {
	if layers, ok = c.Layers(payload); !ok {
		return nil, "", false
	}
	data := c.Data
	if c.Form == nested.JSON {
		var err error
		if data, err = nested.Unwrap([]nested.Layer{nested.JSONCompact}, data); err != nil {
			return nil, "", false
		}
	}
	return layers, checkOf(data), true
}

// blockHead is the first line of the block for what a payload holds, or false where
// it is for people alone.
func blockHead(c nested.Content, payload []byte) (string, bool) {
	if c.Form == nested.JSON {
		if len(c.Data) > maxInsideJSON {
			return "", false
		}
		var lines bytes.Buffer
		if json.Indent(&lines, c.Data, "", "") != nil || !isShown(strings.ReplaceAll(lines.String(), "\n", "")) {
			return "", false
		}
	}
	layers, check, ok := again(c, payload)
	if !ok {
		return "", false
	}
	words := make([]string, 0, len(layers)+1)
	for _, l := range layers {
		words = append(words, string(l))
	}
	switch c.Form {
	case nested.Message:
		words = append(words, blockMessage)
	case nested.Frames:
		words = append(words, blockEnvelopes)
	case nested.Bytes:
		words = append(words, blockBytes)
	}
	return fmt.Sprintf("%s %s, %s:", blockMark, strings.Join(words, " of "), check), true
}

// checkOf tells whether data was edited.
func checkOf(data []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(data)) }

// parseBlockHead reads a block's first line, without its mark.
func parseBlockHead(line string) (layers []nested.Layer, check string, err error) {
	words, check, ok := strings.Cut(strings.TrimSpace(line), ", ")
	check, colon := strings.CutSuffix(check, ":")
	if !ok || !colon || len(check) != checkLen {
		return nil, "", errors.New("want what it holds and a check, as in `#| hex of a message, 5d1b4a60:`")
	}
	list := strings.Split(words, " of ")
	for i, w := range list {
		l := nested.Layer(w)
		if last := i == len(list)-1; last && (w == blockMessage || w == blockEnvelopes || w == blockBytes) {
			break
		} else if last != l.IsJSON() || !l.Known() {
			return nil, "", fmt.Errorf("%.40q is nothing that a value can be in", w)
		}
		layers = append(layers, l)
	}
	return layers, check, nil
}

// A closed is the value of the length-delimited field that was read last.
type closed struct {
	pos, prefix  int // where it begins in body, and which prefix is its length
	end, nesteds int // where it ends, and how many prefixes there are by then
	level        int // braces that are open around it
	extra        int // bytes that prefixes inside add to body
	long         int // bytes by which its length is longer than need be
	ok           bool
}

// behind reports whether nothing has come after the value.
func (c *closed) behind(p *parser) bool {
	return c.ok && !p.pending && c.end == len(p.body) && c.nesteds == len(p.prefixes) && c.level == len(p.levels)
}

// atBlock reports whether a block begins here.
func (p *parser) atBlock() bool { return bytes.HasPrefix(p.src[p.pos:], []byte(blockMark)) }

// block reads a block, and puts what it says in place of the value before it if it
// was edited.
func (p *parser) block() error {
	start := p.pos
	if !p.last.behind(p) {
		return p.advise("a block says what the value right above it holds; a comment begins with # and a space", "#| stands behind no value in braces")
	}
	if p.deep >= maxBlocks {
		return p.fail("more than %d blocks within each other", maxBlocks)
	}
	lines := p.blockLines()
	layers, check, err := parseBlockHead(lines[0].text)
	if err != nil {
		at := p.pos
		p.pos = start
		err = p.advise("take the block out if you do not need it: without it, the value counts", "the head of a block: %w", err)
		p.pos = at
		return err
	}
	data, err := p.blockData(lines[1:], layers)
	if err != nil {
		return err
	}
	end := p.pos
	p.pos = start
	out, edited, err := rewrap(p.lastValue(), data, layers, check)
	switch {
	case errors.Is(err, errBothEdited):
		return p.advise("take the block out, and the value counts; or undo the change of the value, and the block does", "%w", err)
	case err != nil:
		return p.fail("%w", err)
	case edited && len(lines) == 1:
		return p.advise("take its head out, too; or write {} for the value above", "a block with nothing in it")
	case edited:
		p.replaceLast(out)
	}
	p.pos = end
	return nil
}

var errBothEdited = errors.New("both what is inside and the value itself were edited")

// rewrap returns the value that holds data in layers, if data was edited, and value,
// which held what check is of, was not.
func rewrap(value, data []byte, layers []nested.Layer, check string) (out []byte, edited bool, err error) {
	held, err := nested.Unwrap(layers, value)
	switch {
	case err == nil && bytes.Equal(held, data), checkOf(data) == check:
		return nil, false, nil
	case err != nil || checkOf(held) != check:
		return nil, false, errBothEdited
	}
	out, err = nested.Wrap(layers, data)
	return out, true, err
}

// A blockLine is a line of a block without its mark, with its place in src.
type blockLine struct {
	text string
	at   int
}

// blockLines reads the lines of the block that begins here.
func (p *parser) blockLines() []blockLine {
	var lines []blockLine
	for p.atBlock() {
		at := p.pos + len(blockMark)
		end := len(p.src)
		if k := bytes.IndexByte(p.src[at:], '\n'); k >= 0 {
			end = at + k + 1
		}
		lines = append(lines, blockLine{string(p.src[at:end]), at})
		p.pos = end
		for p.pos < len(p.src) && (p.src[p.pos] == ' ' || p.src[p.pos] == '\t') {
			p.pos++
		}
	}
	return lines
}

// blockData is what the lines below a block's head stand for.
func (p *parser) blockData(lines []blockLine, layers []nested.Layer) ([]byte, error) {
	var src bytes.Buffer
	for _, l := range lines {
		src.WriteString(l.text)
	}
	placed := func(off int, err error, hint string) error {
		for _, l := range lines {
			if off <= len(l.text) {
				return errorAt(p.src, int64(l.at+off), err, hint)
			}
			off -= len(l.text)
		}
		return errorAt(p.src, int64(p.pos), err, hint)
	}
	if len(layers) > 0 && layers[len(layers)-1].IsJSON() {
		var syntax *json.SyntaxError
		if err := json.Unmarshal(src.Bytes(), new(json.RawMessage)); errors.As(err, &syntax) {
			return nil, placed(max(int(syntax.Offset)-1, 0), fmt.Errorf("this is no JSON: %w", syntax), "")
		}
		return nested.Unwrap([]nested.Layer{nested.JSONCompact}, src.Bytes())
	}
	q := &parser{src: src.Bytes(), deep: p.deep + 1}
	if err := q.parse(); err != nil {
		var e *Error
		if errors.As(err, &e) {
			return nil, placed(e.offset(q.src), e.Err, e.Hint)
		}
		return nil, err
	}
	return q.out, nil
}

// lastValue is the value that was read last.
func (p *parser) lastValue() []byte {
	var out []byte
	pos := p.last.pos
	for _, f := range p.prefixes[p.last.prefix+1:] {
		out = append(out, p.body[pos:f.pos]...)
		out = appendWide(out, f.length, f.width)
		pos = f.pos
	}
	return append(out, p.body[pos:]...)
}

// replaceLast puts another value in place of the one that was read last.
func (p *parser) replaceLast(value []byte) {
	c := &p.last
	f := &p.prefixes[c.prefix]
	before := c.extra + f.width
	p.body = append(p.body[:c.pos], value...)
	p.prefixes = p.prefixes[:c.prefix+1]
	f.length = uint64(len(value))
	f.width = wire.SizeVarint(f.length) + c.long
	if k := len(p.levels); k > 0 {
		p.levels[k-1].extra += f.width - before
	}
	c.ok = false
}
