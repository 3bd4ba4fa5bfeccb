package text

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/nested"
	"unwire/decode/text/output"
)

const (
	// maxInside is the maximum nesting of encoded data inside encoded data that is printed.
	maxInside = 3

	// maxInsideJSON is the size in bytes above which a JSON document is not printed.
	maxInsideJSON = 64 << 10
)

// inside prints the decoded content of a payload below its field: as a block (marked lines) if Parse can encode it
// again, else as comments.
func (p *printer) inside(data []byte, depth int) {
	if p.plain || p.deep >= maxInside {
		return
	}
	c, ok := p.find.Find(data)
	if !ok {
		return
	}
	mark := "#"
	head := "# "
	if c.Encoding != "" {
		head += c.Encoding + " of "
	}
	head += insideWord(c) + ":"
	if h, ok := blockHead(c, data); ok {
		mark, head = blockMark, h
	}
	// Every line gets the mark, whatever printer writes it.
	w := commentWriter{w: p.w, prefix: strings.Repeat(" ", min(2*depth, maxIndent)) + mark + "   "}
	p.indent(depth)
	p.w.WriteString(head + "\n")
	if p.sub == nil {
		p.sub = &printer{deep: p.deep + 1}
	}
	s := p.sub
	s.find = p.find
	s.w = output.New(&w)

	// Print the content by its kind.
	switch c.Form {
	case nested.Message:
		s.message(c.Data, Options{segmentLen: defaultSegmentLen}, 0)
	case nested.Frames:
		d := Document{Data: c.Data, o: Options{segmentLen: defaultSegmentLen, MaxInflated: nested.MaxInflated}}
		// The functions called here return no errors.
		_ = d.pieces(func(f envelopePiece) error {
			s.piece(f, d.o)
			return nil
		})
	case nested.JSON:
		s.json(c.Data)
	default:
		if isPlain(c.Data) {
			s.quoted(c.Data, 0)
		} else {
			s.hex(c.Data, 0)
		}
	}
	s.w.Flush() //nolint:errcheck // p.w keeps the error
	p.find = s.find
}

// insideWord returns the words that describe the content in comments, such as "hex of a message".
func insideWord(c nested.Content) string {
	switch c.Form {
	case nested.Message:
		return "a message"
	case nested.Frames:
		return "envelopes"
	case nested.JSON:
		return "JSON"
	}
	if name := envelope.Sniff(c.Data); name != "" {
		return name
	}
	return "bytes"
}

// json prints a JSON document with each member on its own line.
func (p *printer) json(data []byte) {
	var b bytes.Buffer
	if len(data) > maxInsideJSON || json.Indent(&b, data, "", "  ") != nil {
		p.w.WriteString("(a document of " + sizeText(len(data)) + ")\n")
		return
	}
	for line := range strings.Lines(b.String()) {
		p.w.WriteString(escapeInvisible(strings.TrimRight(line, "\r\n")) + "\n")
	}
}

// escapeInvisible escapes characters that a terminal does not display.
func escapeInvisible(s string) string {
	if isPrintable(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// isPrintable reports whether all characters are printable.
func isPrintable(s string) bool {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

// sizeText formats a number of bytes for display.
func sizeText(n int) string { return strconv.Itoa(n) + " bytes" }

// A commentWriter inserts a comment prefix before each line that is written.
type commentWriter struct {
	// w receives the lines. Its Flush returns the error of any write.
	w *output.Output

	// prefix is inserted before each line: the indentation and the characters that begin a comment.
	prefix string

	// inLine means that the comment prefix of the current line was already written.
	inLine bool
}

// Write writes text as comments. It never returns an error, because the underlying writer remembers
// errors.
func (c *commentWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if !c.inLine {
			c.w.WriteString(c.prefix) //nolint:errcheck // Flush has it
		}
		k := bytes.IndexByte(b, '\n') + 1
		c.inLine = k == 0
		if k == 0 {
			k = len(b)
		}
		c.w.Write(b[:k]) //nolint:errcheck // Flush has it
		b = b[k:]
	}
	return n, nil
}
