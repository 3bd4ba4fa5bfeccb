// Package text prints protobuf bytes as text or JSON that people can read and edit, and parses both back. For
// any input, printing and parsing restores the input to the byte. The input may be raw bytes, hex, a hex dump, a
// list of bytes, or base64.
//
//	doc, err := text.Decode(input, text.Options{})
//	err = doc.Text(os.Stdout)         // print
//	output, err := text.Parse(edited) // and back
//
// A Document consists of parts: envelopes, delimited messages, or fields of one message. They are printed with
// comments on ambiguous types and with nested content. Damaged parts are preserved.
//
// The text is a superset of Protoscope (https://github.com/protocolbuffers/protoscope). Parse parses everything
// that Protoscope does, with the same result. Protoscope parses everything that Text prints, except frames.
//
//	1: 150                   a varint; -5, true and 0x10 are varints, too
//	2: {"text"}              a length and the bytes that it counts: "text", `hex`, fields,
//	2: {1: 2}                or numbers (packed)
//	3: 1.5  3: 7i64          64 bits; 1.5i32 and 7i32 have 32
//	4: !{ … }                a group
//	5:VARINT 5:I64 5:LEN 5:SGROUP 5:EGROUP 5:I32    only a tag
//	"text" `0a ff`           bytes
//	{1: 2}                   a message with its length before it: a delimited message
//	long-form:2 …            the next number, tag or length is 2 bytes longer than
//	                         necessary; before the } of a group, its end tag
//	frame 0x00 { … }         an envelope; see Parse for what may follow the flags
//	#| hex of a message, 5d1b4a60:
//	#|   1: {"a"}            the decoded content of the value above; if edited, the value
//	                         is encoded from it; a comment to Protoscope
//	# …                      a comment; `# unwire: …` at the beginning describes the
//	                         encoding of the input (hex, base64), which Parse restores
//
// The commands decode and encode use this package, and show and the workbench print with it.
//
// Source: decode/README.md#text
package text

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxDepth is the maximum nesting of messages. JSON parsers support it.
const maxDepth = 1000

// Options describes an input. The zero value detects everything.
type Options struct {
	// In is the encoding of the input: "auto" (or ""), "raw", "hex" or "base64".
	In string

	// As is the structure of the input: "auto" (or ""), "message", "frames", or "delimited" for messages with
	// their lengths before them.
	As string

	// Type is the definition of the message, or of the messages in all frames. It adds names to comments. It may
	// be nil.
	Type protoreflect.MessageDescriptor

	// Plain makes Text print what is on the wire, without comments on possible types and without content inside values: a
	// payload is text if it consists of printable characters, else a message if it consists of fields, else bytes.
	Plain bool

	// Evidence are statistics of other messages of the same type, which improve type inference. It may be nil.
	Evidence *kind.Pooled

	// Choices are the types that users chose for fields, by path in the message.
	Choices []kind.Choice

	// MaxInflated is the maximum size in bytes of a frame after decompression. Larger ones stay compressed. The
	// default is 64 MiB.
	MaxInflated int64

	// Wire are the options for parsing. MaxDepth is at most 1,000, because JSON parsers limit nesting.
	Wire wire.Options

	// Done, if not nil, is called during printing with the offset up to which the input is no longer needed. The
	// document can then be printed only once.
	Done func(off int)

	// segmentLen is the number of bytes of a message that are parsed at once. The default is 1 MiB, and tests use
	// less.
	segmentLen int

	// within is the number of enclosing messages that are printed as largeField.
	within int
}

// A Document is a decoded input: its bytes, their structure, and how the input encoded them.
type Document struct {
	// As is "message", "frames", "delimited", or "text" for text that is not protobuf.
	As string

	// Data are the document's bytes, without the input's hex, base64 or compression. They must not be changed.
	Data []byte

	// source describes how the input encoded the bytes, for example as hex, so that an edited document is encoded
	// in the same way.
	source inputEncoding

	// o are the options with which the input was decoded, and with which it is printed.
	o Options
}

// Decode detects the encoding and the structure of in.
//
// Errors: options that do not exist, or an input that is not in the form that Options names.
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
		return nil, fmt.Errorf("the framing must be auto, message, frames or delimited, not %q", o.As)
	}
	return d, nil
}

// reader returns a kind.Reader, which infers the types of t's fields, with the evidence and choices of the options. If
// r is not nil, it is a Reader with the same evidence, whose memory is reused.
func (o Options) reader(t *wire.Tree, r *kind.Reader) *kind.Reader {
	if r == nil {
		r = o.Evidence.NewReader(t)
	} else {
		r.Reset(t)
	}
	r.Choose(o.Choices)
	return r
}

// shapeOf detects the structure of data: "frames", "delimited", "message" or "text". scratch is reused memory for
// parsing.
func shapeOf(data []byte, o Options, scratch *wire.Tree) string {
	if envelope.IsFrames(data) || isTruncatedFrames(data) {
		return "frames"
	}
	if isDelimited(data, o, scratch) {
		return "delimited"
	}
	if len(data) > 0 {
		sample := segment(data, o.segmentLen)
		if len(data) > o.segmentLen && (len(sample) < o.segmentLen || wire.SkipField(data) == 0) {
			// The sample is not a message. Check whether it is text, cut at a whole character.
			sample = data[:min(1<<16, len(data)-1)]
			for range utf8.UTFMax - 1 {
				if utf8.RuneStart(data[len(sample)]) || len(sample) == 0 {
					break
				}
				sample = sample[:len(sample)-1]
			}
		}
		if hasControls(sample) {
			// The data may be a truncated or damaged message: lengths and tags are control characters.
			return "message"
		}
		scratch.Reset(sample, o.Wire)
		if kind, _, _ := kind.NewReader(scratch, nil).Best(0); kind == wire.KindString {
			return "text"
		}
	}

	return "message"
}

// maxTruncatedFrame is the maximum length in bytes of a truncated envelope that is still plausible.
const maxTruncatedFrame = 64 << 20

// isTruncatedFrames reports whether data consists of envelopes of which only the last is truncated. At least one
// must have a payload. A message never begins with the flags of an envelope.
func isTruncatedFrames(data []byte) bool {
	if len(data) == 0 || data[0] > 3 {
		return false
	}
	for hasPayload := false; len(data) > 0; {
		if data[0]&^0x83 != 0 {
			return false
		}
		if len(data) < envelope.PrefixLen {
			return hasPayload
		}
		length := int64(envelope.ParsePrefix(data).Length)
		data = data[envelope.PrefixLen:]
		hasPayload = hasPayload || length > 0 && len(data) > 0
		if length > int64(len(data)) {
			return hasPayload && length <= maxTruncatedFrame
		}
		data = data[length:]
	}
	// All envelopes are complete, which IsFrames detects.
	return false
}

// hasControls reports whether b has control characters other than white space and the escape sequences of
// terminals.
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

// defaultSegmentLen is the default number of bytes of a message that are parsed at once. Fields do not depend on
// each other, so messages of any size can be printed in little memory.
const defaultSegmentLen = 1 << 20

// plainSegmentLen is the maximum of Options.segmentLen if Options.Plain is set.
const plainSegmentLen = 64 << 10

// segment returns the shortest sequence of whole fields at the beginning of data that has at least minLen bytes. If
// data does not begin with a whole field, it returns all of data.
func segment(data []byte, minLen int) []byte {
	if len(data) <= minLen {
		return data
	}
	pos := 0
	for pos < minLen {
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

// segmentOrLargeField is like segment, except that a field of more than minLen bytes becomes a separate
// segment.
func segmentOrLargeField(data []byte, minLen int) []byte {
	part := segment(data, minLen)
	if len(part) <= minLen {
		return part
	}
	for pos := 0; pos < len(part); {
		n := wire.SkipField(part[pos:])
		if n > minLen && pos > 0 {
			return part[:pos]
		}
		if n == 0 || n > minLen {
			break
		}
		pos += n
	}
	return part
}

// An envelopePiece is an envelope of a document, or the rest of the data if no envelope fits.
type envelopePiece struct {
	// framed is false for the rest after the last valid envelope.
	framed bool

	// flags are the flags of the envelope.
	flags envelope.Flags

	// length is the length in the envelope's prefix. It exceeds len(raw) if the envelope is truncated.
	length uint32

	// raw is the payload before decompression, or all bytes of the rest.
	raw []byte

	// data is the payload after decompression.
	data []byte

	// encoding is the compression that was undone, or "".
	encoding string

	// exact means that compressing data again yields exactly raw.
	exact bool

	// inflateError is the reason why the payload could not be decompressed, or "".
	inflateError string
}

// pieces calls f for each envelope in data, in order.
func (d *Document) pieces(f func(envelopePiece) error) error {
	for rest := d.Data; len(rest) > 0; {
		if len(rest) < envelope.PrefixLen {
			return f(envelopePiece{raw: rest})
		}
		prefix := envelope.ParsePrefix(rest)
		p := envelopePiece{framed: true, flags: prefix.Flags, length: prefix.Length}
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
		d.reportProgress(len(d.Data) - len(rest))
	}
	return nil
}

// reportProgress calls Options.Done: the first off bytes have been printed.
func (d *Document) reportProgress(off int) {
	if d.o.Done != nil && d.source.plain() {
		d.o.Done(off)
	}
}

// inflate decompresses p.raw if it begins with the magic number of gzip or zstd.
func (d *Document) inflate(p *envelopePiece) {
	dec := envelope.NewDecoder(envelope.Options{Framed: true, MaxFrame: int64(len(p.raw)) + 1, MaxInflated: d.o.MaxInflated})
	frames, err := dec.Feed(envelope.Append(nil, p.flags, p.raw))
	if err != nil || len(frames) != 1 || frames[0].Err != nil || frames[0].Encoding == "" {
		if _, err := envelope.Decompress(envelope.Sniff(p.raw), p.raw, d.o.MaxInflated); err != nil {
			p.inflateError = err.Error()
		}
		return
	}
	p.data, p.encoding = frames[0].Data, frames[0].Encoding
	// Compressors differ, so check whether ours restores the payload.
	again, err := envelope.Compress(p.encoding, p.data)
	p.exact = err == nil && bytes.Equal(again, p.raw)
}
