// Package nested detects data inside data: a message in a string or bytes field as hex, base64 or gzip, a
// sequence of envelopes, or a JSON document. A payload goes into a Finder, and a Content with its form and data
// comes out:
//
//	var f nested.Finder
//	if c, ok := f.Find(payload); ok {
//		fmt.Println(c.Encoding, c.Form, c.Data)
//	}
//
// A Layer is one encoding around such data. Unwrap removes layers, and Wrap applies them again after an edit.
// Packages decode, text and replay use both.
//
// Source: decode/README.md#text
package nested

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

const (
	// leastMessage is the minimum size of a message in bytes. Shorter data parses as a message by accident too
	// often.
	leastMessage = 8

	// leastText is the minimum number of characters of hex or base64 that are decoded.
	leastText = 8

	// leastJSON is the minimum size of a JSON document in bytes.
	leastJSON = 8

	// MaxInflated is the maximum size to which one payload is decompressed: 4 MiB.
	MaxInflated = 4 << 20

	// defaultLeft is how many bytes a Finder decodes in total: 64 MiB.
	defaultLeft = 64 << 20
)

// A Form is the kind of data that was found: a message, envelopes or JSON.
type Form string

const (
	// Message is a protobuf message.
	Message Form = "message"

	// Frames are consecutive envelopes.
	Frames Form = "frames"

	// JSON is a JSON object or array.
	JSON Form = "json"

	// Bytes is other data that was compressed.
	Bytes Form = "bytes"
)

// A Content is data that was found in a payload in encoded form.
type Content struct {
	// Encoding is "hex", "base64", "gzip", "zstd", or two of them joined by "+", outermost first. It is "" if
	// the payload itself is JSON or envelopes.
	Encoding string

	// Form is the kind of the data found.
	Form Form

	// Data is the payload after removing all encodings.
	Data []byte

	// Tree is set for a Message. Its offsets refer to Data.
	Tree *wire.Tree
}

// A Finder detects encoded data in payloads, for example protobuf in base64. All payloads together may use 64 MiB
// of decoded data, and further payloads are not examined. The zero value is ready to use.
type Finder struct {
	// Wire are the options for parsing found messages.
	Wire wire.Options

	// spent is the number of bytes decoded so far, for the limit.
	spent int64

	// text is reused memory for the bytes that a text encoded.
	text []byte

	// tree and reader are reused memory for judging decoded bytes. reader is nil before the first bytes.
	tree   wire.Tree
	reader *kind.Reader
}

// Spent returns the number of bytes that were decoded.
func (f *Finder) Spent() int64 { return f.spent }

// Spend counts n bytes as decoded, because the caller has the content of an earlier payload with the same bytes. It
// returns false and does not count them if the payloads would then exceed the limit.
func (f *Finder) Spend(n int64) bool {
	if f.spent+n > defaultLeft {
		return false
	}
	f.spent += n
	return true
}

// maxReused is the maximum number of bytes of the memory that a Finder reuses.
const maxReused = 64 << 10

// Find detects the content of a payload that is not a message itself.
//
// Shape: ordinary words are valid base64, too. So decoded text counts only if it is most probably a message, or if
// it is a sequence of envelopes, compressed, or JSON.
//
// Limits: a payload is decompressed to at most MaxInflated bytes.
func (f *Finder) Find(payload []byte) (Content, bool) {
	if len(payload) < leastText || f.spent > defaultLeft {
		return Content{}, false
	}
	if isJSON(payload) {
		return Content{Form: JSON, Data: payload}, true
	}

	// Most decoded data is not kept, so it is decoded into reused memory.
	if cap(f.text) > maxReused {
		f.text = nil
	}
	encoding, data := f.unwrap(payload, &f.text)

	// Without an encoding, only envelopes remain.
	if encoding == "" {
		// Reject other first bytes before IsFrames examines the payload: envelopes begin with flags.
		if payload[0]&^0x83 == 0 && envelope.IsFrames(payload) {
			return Content{Form: Frames, Data: payload}, true
		}
		return Content{}, false
	}

	// Something was decoded. It is discarded unless it is clearly data.
	c := Content{Encoding: encoding, Form: Bytes}
	switch {
	case isJSON(data):
		c.Form = JSON
	case envelope.IsFrames(data):
		c.Form = Frames
	case f.isMessage(data):
		c.Form = Message
	case !compressed(encoding):
		return Content{}, false
	}
	c.Data = bytes.Clone(data)
	if c.Form == Message {
		c.Tree = wire.Parse(c.Data, f.Wire)
	}
	return c, true
}

// isMessage reports whether data is most probably a message.
func (f *Finder) isMessage(data []byte) bool {
	if len(data) < leastMessage || !maybeMessage(data) {
		return false
	}
	if cap(f.tree.Nodes) > maxReused/8 {
		f.tree, f.reader = wire.Tree{}, nil
	}
	t := &f.tree
	t.Reset(data, f.Wire)
	if err := t.Err(); err != nil && !errors.Is(err, wire.ErrDepth) {
		return false
	}
	if f.reader == nil {
		f.reader = kind.NewReader(t, nil)
	} else {
		f.reader.Reset(t)
	}
	is, _, _ := f.reader.Best(0)
	return is == wire.KindMessage
}

// maybeMessage reports whether data consists of whole fields up to its end or to the first group. Most decoded words do
// not, and need not be parsed.
func maybeMessage(data []byte) bool {
	n, isGroup := wire.SkipFields(data)
	return n == len(data) || isGroup
}

// compressed reports whether the last part of an encoding is a compression.
func compressed(encoding string) bool {
	return len(encoding) >= 4 && (encoding[len(encoding)-4:] == "gzip" || encoding[len(encoding)-4:] == "zstd")
}

// Unwrap decodes one text encoding (hex or base64), and a compression outside or inside it. encoding is
// "" if there is none, or if the payload is not entirely encoded.
//
// Limits: those of Find.
func (f *Finder) Unwrap(b []byte) (encoding string, data []byte) {
	if f.spent > defaultLeft {
		return "", nil
	}
	return f.unwrap(b, new([]byte))
}

// unwrap is Unwrap for a Finder that may decode further data. The bytes that a text encodes are written to *text, which
// is enlarged if necessary.
func (f *Finder) unwrap(b []byte, text *[]byte) (encoding string, data []byte) {
	encoding, data, err := unwrap(b, text)
	if err != nil {
		// A payload that exceeds the limit costs as much as the largest allowed one.
		f.spent += MaxInflated
		return "", nil
	}
	f.spent += int64(len(data))
	return encoding, data
}

// unwrap is Unwrap without the limit for all payloads. It returns an error if decompression exceeded its limit. text is
// as in Finder.unwrap.
func unwrap(b []byte, text *[]byte) (encoding string, data []byte, err error) {
	// The payload itself may be compressed.
	if name, out, err := inflate(b); err != nil || name != "" {
		return name, out, err
	}
	switch {
	case isHex(b):
		encoding = "hex"
		data = enlarged(text, len(b)/2)
		if _, err := hex.Decode(data, b); err != nil {
			return "", nil, nil
		}
	default:
		var ok bool
		if data, ok = fromBase64(b, text); !ok {
			return "", nil, nil
		}
		encoding = "base64"
	}

	// Compressed data may be inside the text encoding.
	name, out, err := inflate(data)
	if err != nil {
		return "", nil, err
	}
	if name != "" {
		return encoding + "+" + name, out, nil
	}
	return encoding, data, nil
}

// enlarged returns n bytes of *memory, which it enlarges if necessary.
func enlarged(memory *[]byte, n int) []byte {
	*memory = slices.Grow((*memory)[:0], n)[:n]
	return *memory
}

// inflate decompresses b if all of it is one gzip or zstd stream.
func inflate(b []byte) (name string, data []byte, err error) {
	name = envelope.Sniff(b)
	if name == "" || len(b) < 9 {
		return "", nil, nil
	}
	data, err = envelope.Decompress(name, b, MaxInflated)
	switch {
	case errors.Is(err, envelope.ErrInflated):
		return "", nil, err
	case err != nil:
		return "", nil, nil
	}
	return name, data, nil
}

// isHex reports whether b consists of pairs of hex digits, with letters of one case only.
func isHex(b []byte) bool {
	if len(b)%2 != 0 || len(b) == 0 {
		return false
	}
	lower, upper := false, false
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
		case c >= 'a' && c <= 'f':
			lower = true
		case c >= 'A' && c <= 'F':
			upper = true
		default:
			return false
		}
	}
	return !lower || !upper
}

// The encodings of base64 without padding. Strict decoding rejects unused bits that are not zero, which base64 of real
// data never has.
var (
	strictStd = base64.RawStdEncoding.Strict()
	strictURL = base64.RawURLEncoding.Strict()
)

// fromBase64 decodes base64 of either alphabet, padded or not. text is as in Finder.unwrap.
func fromBase64(b []byte, text *[]byte) ([]byte, bool) {
	// Up to two padding characters end the text.
	url := false
	end := len(b)
	for end > 0 && b[end-1] == '=' && len(b)-end < 2 {
		end--
	}
	for _, c := range b[:end] {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '-' || c == '_':
			url = true
		default:
			return nil, false
		}
	}

	// With padding, the length must be a multiple of four. A single last character encodes no whole byte.
	if end < len(b) && len(b)%4 != 0 || end%4 == 1 {
		return nil, false
	}
	enc := strictStd
	if url {
		enc = strictURL
	}
	out := enlarged(text, enc.DecodedLen(end))
	n, err := enc.Decode(out, b[:end])
	return out[:n], err == nil
}

// isJSON reports whether b is a JSON object or array of at least leastJSON bytes.
func isJSON(b []byte) bool {
	s := bytes.TrimSpace(b)
	if len(s) < leastJSON || !(s[0] == '{' && s[len(s)-1] == '}') && !(s[0] == '[' && s[len(s)-1] == ']') {
		return false
	}
	return utf8.Valid(s) && json.Valid(s)
}
