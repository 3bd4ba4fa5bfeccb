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

// blockMark begins each line of a block: comment lines below a field that show the content of the field's value
// after decoding. Protoscope ignores them. Parse reads them, and if they were edited, it encodes the value from
// them:
//
//	2: {"0a05776f726c641001"}
//	#| hex of a message, 5d1b4a60:
//	#|   1: {"world"}
//	#|   2: 1
//
// The checksum is that of the content when the text was printed. It shows whether the value or the block was
// edited. Editing both is an error.
const blockMark = "#|"

const (
	// maxBlocks is the maximum nesting of blocks inside blocks that are parsed.
	maxBlocks = 16

	// checkLen is the number of hex digits in the checksum.
	checkLen = 8
)

// The last word of a block's first line is the kind of its content. For JSON it is the layer instead.
const (
	blockMessage   = "a message"
	blockEnvelopes = "envelopes"
	blockBytes     = "bytes"
)

// layersOf returns the layers that encode the content c as payload, and the checksum of the content. ok is false
// if payload cannot be restored, so that an edit of the content would have no defined result.
func layersOf(c nested.Content, payload []byte) (layers []nested.Layer, check string, ok bool) {
	if layers, ok = c.Layers(payload); !ok {
		return nil, "", false
	}

	// The checksum of JSON ignores white space, so reformatting is not an edit.
	data := c.Data
	if c.Form == nested.JSON {
		var err error
		if data, err = nested.Unwrap([]nested.Layer{nested.JSONCompact}, data); err != nil {
			return nil, "", false
		}
	}
	return layers, checkOf(data), true
}

// blockHead returns the first line of the block for the content c of a payload. ok is false if Parse could not
// encode the content again. Then the content is shown as plain comments.
func blockHead(c nested.Content, payload []byte) (string, bool) {
	if c.Form == nested.JSON {
		if len(c.Data) > maxInsideJSON {
			return "", false
		}
		var lines bytes.Buffer
		// Comments must not contain line breaks or invisible characters of the document.
		if json.Indent(&lines, c.Data, "", "") != nil || !isPrintable(strings.ReplaceAll(lines.String(), "\n", "")) {
			return "", false
		}
	}
	layers, check, ok := layersOf(c, payload)
	if !ok {
		return "", false
	}

	// The layers from the outside inwards, then the kind of content.
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

// checkOf returns the checksum of data, a CRC-32 in hex.
func checkOf(data []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(data)) }

// parseBlockHead parses the first line of a block of nested data, after its mark.
func parseBlockHead(line string) (layers []nested.Layer, check string, err error) {
	words, check, ok := strings.Cut(strings.TrimSpace(line), ", ")
	check, colon := strings.CutSuffix(check, ":")
	if !ok || !colon || len(check) != checkLen {
		return nil, "", errors.New("the line must name the encoding and a checksum, as in `#| hex of a message, 5d1b4a60:`")
	}

	// The layers, outermost first. The last word is the kind of content or a style of JSON.
	list := strings.Split(words, " of ")
	for i, w := range list {
		l := nested.Layer(w)
		if last := i == len(list)-1; last && (w == blockMessage || w == blockEnvelopes || w == blockBytes) {
			break
		} else if last != l.IsJSON() || !l.Known() {
			return nil, "", fmt.Errorf("%.40q is not an encoding that unwire can undo", w)
		}
		layers = append(layers, l)
	}
	return layers, check, nil
}

// A closedValue describes the length-delimited value whose brace was closed last. A block, i.e. comment lines with
// its decoded content, may follow it.
type closedValue struct {
	// pos is the offset of the value in body, and prefix the index of its length in prefixes.
	pos, prefix int

	// end is the offset in body at which the value ends, and prefixes the number of length prefixes at that time.
	end, prefixes int

	// level is the number of open braces around the value.
	level int

	// extra is the total size of the length prefixes inside the value, in bytes. They are not in body.
	extra int

	// long is the number of bytes by which the value's length prefix is longer than necessary.
	long int

	// ok is false if no value was closed yet.
	ok bool
}

// isCurrent reports whether the parser's current position is directly after the value.
func (c *closedValue) isCurrent(p *parser) bool {
	return c.ok && !p.pending && c.end == len(p.body) && c.prefixes == len(p.prefixes) && c.level == len(p.levels)
}

// atBlock reports whether a block begins at the current position.
func (p *parser) atBlock() bool { return bytes.HasPrefix(p.src[p.pos:], []byte(blockMark)) }

// block parses a block (comment lines with the decoded content of the value above). If it was edited, its content
// replaces the value.
func (p *parser) block() error {
	start := p.pos
	if !p.last.isCurrent(p) {
		return p.advise("a line with #| describes the decoded content of the value above it; a comment begins with # and a space", "a line with #| must follow a value in braces")
	}
	if p.deep >= maxBlocks {
		return p.fail("#| lines are nested more than %d deep", maxBlocks)
	}
	lines := p.blockLines()
	layers, check, err := parseBlockHead(lines[0].text)
	if err != nil {
		at := p.pos
		p.pos = start
		err = p.advise("delete the #| lines if you do not need them: then encode uses the value above them", "the first #| line is malformed: %w", err)
		p.pos = at
		return err
	}

	// Decode the content that the block describes, and compare its checksum.
	data, err := p.blockData(lines[1:], layers)
	if err != nil {
		return err
	}
	// Errors belong to the head of the block.
	end := p.pos
	p.pos = start
	out, edited, err := rewrap(p.lastValue(), data, layers, check)
	switch {
	case errors.Is(err, errBothEdited):
		return p.advise("to use the edited value, delete the #| lines; to use the edited #| lines, restore the value", "%w", err)
	case err != nil:
		return p.fail("%w", err)
	case edited && len(lines) == 1:
		return p.advise("also delete the first #| line, or write {} for the value above", "the decoded list in the #| lines is empty")
	case edited:
		p.replaceLast(out)
	}
	p.pos = end
	return nil
}

// errBothEdited is returned if a value and its block were both edited.
var errBothEdited = errors.New("the value and its decoded content were both edited: edit only one of them")

// rewrap encodes data, the content of a block, in layers if it was edited. check is the checksum of the unedited
// content. value is the encoded value above the block; if it was edited, too, the result is errBothEdited.
func rewrap(value, data []byte, layers []nested.Layer, check string) (out []byte, edited bool, err error) {
	content, err := nested.Unwrap(layers, value)
	// Equal contents are accepted whatever the checksum, since then no edit is lost.
	switch {
	case err == nil && bytes.Equal(content, data), checkOf(data) == check:
		return nil, false, nil
	case err != nil || checkOf(content) != check:
		return nil, false, errBothEdited
	}
	out, err = nested.Wrap(layers, data)
	return out, true, err
}

// A blockLine is a line of a block without its mark. at is its offset in the text.
type blockLine struct {
	// text is the line without the mark at its beginning.
	text string

	// at is the offset of text in the parsed document, in bytes.
	at int
}

// blockLines reads the lines of the block at the current position.
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

// blockData encodes the content that the lines below a block's head describe.
func (p *parser) blockData(lines []blockLine, layers []nested.Layer) ([]byte, error) {
	var src bytes.Buffer
	for _, l := range lines {
		src.WriteString(l.text)
	}

	// Errors are found in the joined lines, so convert their offsets to positions in src.
	errorAtLine := func(off int, err error, hint string) error {
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
			return nil, errorAtLine(max(int(syntax.Offset)-1, 0), fmt.Errorf("the content is not valid JSON: %w", syntax), "")
		}
		return nested.Unwrap([]nested.Layer{nested.JSONCompact}, src.Bytes())
	}

	// Not JSON: the lines are a text themselves.
	q := &parser{src: src.Bytes(), deep: p.deep + 1}
	if err := q.parse(); err != nil {
		var e *Error
		if errors.As(err, &e) {
			return nil, errorAtLine(e.offset(q.src), e.Err, e.Hint)
		}
		return nil, err
	}
	return q.out, nil
}

// lastValue returns the encoded value that was closed last, with the length prefixes inside it.
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

// replaceLast replaces the value that was closed last by another encoded value.
func (p *parser) replaceLast(value []byte) {
	c := &p.last
	f := &p.prefixes[c.prefix]
	before := c.extra + f.width
	p.body = append(p.body[:c.pos], value...)
	p.prefixes = p.prefixes[:c.prefix+1]
	f.length = uint64(len(value))
	// The new length may need more or fewer bytes, which counts for the enclosing braces.
	f.width = wire.SizeVarint(f.length) + c.long
	if k := len(p.levels); k > 0 {
		p.levels[k-1].extra += f.width - before
	}
	c.ok = false
}
