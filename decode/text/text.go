// Package text writes bytes as text or JSON that people can read and edit, and
// reads both back: for any input, what is read back is the input, to the byte. The
// input may have many forms: raw, hex, a hex dump, a list of bytes, base64.
//
// A Document is divided into parts: frames, delimited messages, or large fields. They
// are printed with remarks on doubts and with nested content; what is damaged is kept.
//
// The text is a superset of Protoscope: whatever that reads, Parse reads with
// the same result; and it reads what Text writes, but for frames.
//
//	1: 150                   a varint; -5, true and 0x10 are ones, too
//	2: {"text"}              a length and what it counts: "text", `hex`, fields,
//	2: {1: 2}                or numbers (packed)
//	3: 1.5  3: 7i64          64 bits; 1.5i32 and 7i32 are 32
//	4: !{ … }                a group
//	5:VARINT 5:I64 5:LEN 5:SGROUP 5:EGROUP 5:I32    a tag alone
//	"text" `0a ff`           bytes as they are
//	{1: 2}                   a message behind its length, as delimited messages are
//	long-form:2 …            the next number, tag or length is 2 bytes longer than need be;
//	                         before the } of a group, its end tag
//	frame 0x00 { … }         an envelope; see Parse for what may follow the flags
//	#| hex of a message, 5d1b4a60:
//	#|   1: {"a"}            below a value, what is in it in another form: edited, it
//	                         gives the value; a comment to Protoscope
//	# …                      a comment; `# unwire: …` before all else tells how the
//	                         input was written (hex, base64), and so how to write it
//
// Source: decode/README.md#text
package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxDepth keeps documents within what encoding/json nests.
const maxDepth = 1000

// Options says how to understand an input. The zero value finds out.
type Options struct {
	// How the bytes are written: "auto" (""), "raw", "hex", "base64".
	In string

	// What they are: "auto" (""), "message", "frames", "delimited" (messages, each
	// behind its length).
	As string

	// Of the message or of all frames, for names in comments; may be nil.
	Type protoreflect.MessageDescriptor

	Evidence *kind.Pooled  // of other messages of the kind; may be nil
	Choices  []kind.Choice // what somebody said of fields, by path in the message

	// Bytes of a frame after decompression; larger ones stay compressed; default 64
	// MiB.
	MaxInflated int64

	// Of its MaxDepth at most 1,000 counts: JSON readers have limits.
	Wire wire.Options

	// Done, if it is not nil, is told while the document is written which beginning
	// of the input is not needed any more. The document can be written once then.
	Done func(off int)

	segmentLen int // for tests; default 1 MiB
	within     int // largeFields around it
}

// A Document is an input with how it was written and what it is.
type Document struct {
	// As is "message", "frames", "delimited", or "text" for what is no protobuf but text.
	As string

	// Data are the document's bytes, however they were written: without hex, base64 or
	// the compression of all of it. They must not be changed.
	Data []byte

	source source
	o      Options
}

// Decode finds out what in is.
//
// Errors: where Options names a form that the input has not, and for options
// that do not exist.
func Decode(in []byte, o Options) (*Document, error) {
	o.Wire.MaxDepth = min(o.Wire.MaxDepth, maxDepth)
	if o.segmentLen <= 0 {
		o.segmentLen = defaultSegmentLen
	}
	d := &Document{o: o}
	var err error
	if d.source, d.Data, err = readSource(in, o); err != nil {
		return nil, err
	}
	switch o.As {
	case "", "auto":
		d.As = shapeOf(d.Data, o, new(wire.Tree))
	case "message", "frames", "delimited":
		d.As = o.As
	default:
		return nil, fmt.Errorf("text: %q is neither auto, message, frames nor delimited", o.As)
	}
	return d, nil
}

// reader reads a tree by what the options say of its kind.
func (o Options) reader(t *wire.Tree) *kind.Reader {
	r := o.Evidence.NewReader(t)
	r.Choose(o.Choices)
	return r
}

// shapeOf tells frames from delimited messages from one message from plain
// text. It parses into scratch.
func shapeOf(data []byte, o Options, scratch *wire.Tree) string {
	if envelope.IsFrames(data) || isCutFrames(data) {
		return "frames"
	}
	if isDelimited(data, o, scratch) {
		return "delimited"
	}
	if len(data) > 0 {
		sample := segment(data, o.segmentLen)
		if len(data) > o.segmentLen && (len(sample) < o.segmentLen || wire.SkipField(data) == 0) {
			sample = data[:min(1<<16, len(data)-1)] // no message; is it text?
			for range utf8.UTFMax - 1 {
				if utf8.RuneStart(data[len(sample)]) || len(sample) == 0 {
					break
				}
				sample = sample[:len(sample)-1]
			}
		}
		if hasControls(sample) {
			// Cut off or damaged, it may be: lengths and tags are such characters.
			return "message"
		}
		scratch.Reset(sample, o.Wire)
		if kind, _, _ := kind.NewReader(scratch, nil).Best(0); kind == wire.KindString {
			return "text"
		}
	}
	return "message"
}

// maxCutFrame is what the length of an envelope that is not all there is believed to be.
const maxCutFrame = 64 << 20

// isCutFrames reports envelopes of which the last is cut off, if something is in one
// of them. No message begins with the flags that they have.
func isCutFrames(data []byte) bool {
	if len(data) == 0 || data[0] > 3 {
		return false
	}
	for something := false; len(data) > 0; {
		if data[0]&^0x83 != 0 {
			return false
		}
		if len(data) < envelope.PrefixLen {
			return something
		}
		length := int64(envelope.ParsePrefix(data).Length)
		data = data[envelope.PrefixLen:]
		something = something || length > 0 && len(data) > 0
		if length > int64(len(data)) {
			return something && length <= maxCutFrame
		}
		data = data[length:]
	}
	return false // they are all whole
}

// hasControls reports a control character that plain text does not have; terminals'
// colours it may have.
func hasControls(b []byte) bool {
	for i, c := range b {
		switch {
		case c >= ' ' && c != 0x7f, c == '\n', c == '\r', c == '\t':
		case c == 0x1b && i+1 < len(b) && b[i+1] == '[':
		default:
			return true
		}
	}
	return false
}

// defaultSegmentLen is how much of a message is parsed at once. A message of any size
// is written in little memory, as its fields do not depend on each other.
const defaultSegmentLen = 1 << 20

// segment returns the shortest run of whole fields, from the beginning of data,
// that has least bytes or more; where a field cannot be told from the
// next, all that is left with it, unless there were fields before.
func segment(data []byte, least int) []byte {
	if len(data) <= least {
		return data
	}
	pos := 0
	for pos < least {
		n := wire.SkipField(data[pos:])
		if n == 0 && pos == 0 {
			return data
		}
		if n == 0 {
			break
		}
		pos += n
	}
	return data[:pos]
}

// stretch is segment, but a field of more than least bytes is one of its own.
func stretch(data []byte, least int) []byte {
	part := segment(data, least)
	for pos := 0; pos < len(part); {
		n := wire.SkipField(part[pos:])
		if n > least && pos > 0 {
			return part[:pos]
		}
		if n == 0 || n > least {
			break
		}
		pos += n
	}
	return part
}

// A piece is an envelope of a document, or what is left when none fits.
type piece struct {
	framed   bool
	flags    envelope.Flags
	length   uint32 // as the header says
	raw      []byte // the payload as sent; all bytes of what is no envelope
	data     []byte // after decompression
	encoding string // that was undone; "" for none
	exact    bool   // compressing data gives raw again

	// It is still compressed; "" where it is not, or nothing is known.
	why string
}

// pieces calls f for every envelope in data, in order.
func (d *Document) pieces(f func(piece) error) error {
	for rest := d.Data; len(rest) > 0; {
		if len(rest) < envelope.PrefixLen {
			return f(piece{raw: rest})
		}
		prefix := envelope.ParsePrefix(rest)
		p := piece{framed: true, flags: prefix.Flags, length: prefix.Length}
		p.raw = rest[envelope.PrefixLen:]
		whole := uint64(p.length) <= uint64(len(p.raw))
		if whole {
			p.raw = p.raw[:p.length:p.length]
		}
		rest = rest[envelope.PrefixLen+len(p.raw):]
		p.data = p.raw
		if whole && p.flags&envelope.Compressed != 0 {
			d.inflate(&p)
		}
		if err := f(p); err != nil {
			return err
		}
		d.passed(len(d.Data) - len(rest))
	}
	return nil
}

// passed says that the first off bytes have been written.
func (d *Document) passed(off int) {
	if d.o.Done != nil && d.source.plain() {
		d.o.Done(off)
	}
}

// inflate undoes the compression of a piece if its magic number tells which.
func (d *Document) inflate(p *piece) {
	dec := envelope.NewDecoder(envelope.Options{Framed: true, MaxFrame: int64(len(p.raw)) + 1, MaxInflated: d.o.MaxInflated})
	frames, err := dec.Feed(envelope.Append(nil, p.flags, p.raw))
	if err != nil || len(frames) != 1 || frames[0].Err != nil || frames[0].Encoding == "" {
		if _, err := envelope.Decompress(envelope.Sniff(p.raw), p.raw, d.o.MaxInflated); err != nil {
			p.why = strings.TrimPrefix(err.Error(), "envelope: ")
		}
		return
	}
	p.data, p.encoding = frames[0].Data, frames[0].Encoding
	again, err := envelope.Compress(p.encoding, p.data)
	p.exact = err == nil && bytes.Equal(again, p.raw)
}
