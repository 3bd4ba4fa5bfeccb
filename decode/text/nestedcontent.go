package text

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"unwire/decode/envelope"
	"unwire/decode/nested"
)

const (
	maxInside     = 3        // levels of data inside data
	maxInsideJSON = 64 << 10 // bytes of a JSON document that are shown
)

// inside writes what a payload holds in another form below its field: as a block,
// which is read back, where the payload can be made again, else as comments.
func (p *printer) inside(data []byte, depth int) {
	if p.deep >= maxInside {
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
	w := commentWriter{w: p.w, prefix: strings.Repeat(" ", min(2*depth, maxIndent)) + mark + "   "}
	p.indent(depth)
	p.w.WriteString(head + "\n")
	if p.sub == nil {
		p.sub = &printer{deep: p.deep + 1}
	}
	s := p.sub
	s.find = p.find
	s.w = bufio.NewWriter(&w)
	switch c.Form {
	case nested.Message:
		s.message(c.Data, Options{segmentLen: defaultSegmentLen}, 0)
	case nested.Frames:
		d := Document{Data: c.Data, o: Options{segmentLen: defaultSegmentLen, MaxInflated: nested.MaxInflated}}
		_ = d.pieces(func(f piece) error { // what it calls has no errors
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

// json writes a JSON document with its members on lines of their own.
func (p *printer) json(data []byte) {
	var b bytes.Buffer
	if len(data) > maxInsideJSON || json.Indent(&b, data, "", "  ") != nil {
		p.w.WriteString("(a document of " + sizeText(len(data)) + ")\n")
		return
	}
	for line := range strings.Lines(b.String()) {
		p.w.WriteString(shown(strings.TrimRight(line, "\r\n")) + "\n")
	}
}

// shown keeps characters that a terminal does not show out of a comment.
func shown(s string) string {
	if isShown(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

func isShown(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func sizeText(n int) string { return strconv.Itoa(n) + " bytes" }

// A commentWriter puts a prefix before every line.
type commentWriter struct {
	w      *bufio.Writer
	prefix string
	inLine bool
}

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
