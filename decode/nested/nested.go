// Package nested finds data inside data: a message that travels in a string or bytes
// field as hex, base64 or gzip, a run of envelopes, a JSON document. A payload goes in,
// and a Content comes out: its form and the data.
//
// A Layer is one encoding that such data is wrapped in. Layers are unwrapped to read the
// data, and wrapped again, to the same bytes, after it was edited.
//
// Source: decode/README.md#text
package nested

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

const (
	leastMessage = 8 // bytes; of less, chance makes messages
	leastText    = 8 // characters of hex or base64
	leastJSON    = 8

	// MaxInflated is the most bytes that one payload is inflated to.
	MaxInflated = 4 << 20
	defaultLeft = 64 << 20
)

// A Form says what a Content's data is.
type Form string

const (
	Message Form = "message" // Tree is set
	Frames  Form = "frames"  // envelopes, one behind the other
	JSON    Form = "json"
	Bytes   Form = "bytes" // something that was compressed
)

// A Content is what a payload holds in another form.
type Content struct {
	// "hex", "base64", "gzip", "zstd", or two joined by "+", outermost first; "" where
	// the payload is it as it stands.
	Encoding string

	Form Form
	Data []byte
	Tree *wire.Tree // of a message; its offsets are those of Data
}

// A Finder looks into payloads, within a bound for all of them together. The
// zero value has the default bound, of 64 MiB decoded or inflated.
type Finder struct {
	Wire  wire.Options
	spent int64
}

// Find looks into a payload that is no message itself.
//
// Shape: text that decodes counts only if what comes out is rather a message
// than anything else, or is a run of envelopes, compressed, or JSON: words are
// base64, too.
// Limits: a payload is inflated to at most MaxInflated.
func (f *Finder) Find(payload []byte) (Content, bool) {
	if len(payload) < leastText || f.spent > defaultLeft {
		return Content{}, false
	}
	if isJSON(payload) {
		return Content{Form: JSON, Data: payload}, true
	}
	encoding, data := f.Unwrap(payload)
	if encoding == "" {
		if payload[0]&^0x83 == 0 && envelope.IsFrames(payload) {
			return Content{Form: Frames, Data: payload}, true
		}
		return Content{}, false
	}
	c := Content{Encoding: encoding, Data: data, Form: Bytes}
	switch {
	case isJSON(data):
		c.Form = JSON
	case envelope.IsFrames(data):
		c.Form = Frames
	default:
		switch t := message(data, f.Wire); {
		case t != nil:
			c.Form, c.Tree = Message, t
		case !compressed(encoding):
			return Content{}, false
		}
	}
	return c, true
}

// message is the tree of what is rather a message than anything else, or nil.
func message(data []byte, o wire.Options) *wire.Tree {
	if len(data) < leastMessage {
		return nil
	}
	t := wire.Parse(data, o)
	if err := t.Err(); err != nil && !errors.Is(err, wire.ErrDepth) {
		return nil // most words end here
	}
	if is, _, _ := kind.NewReader(t, nil).Best(0); is != wire.KindMessage {
		return nil
	}
	return t
}

func compressed(encoding string) bool {
	return len(encoding) >= 4 && (encoding[len(encoding)-4:] == "gzip" || encoding[len(encoding)-4:] == "zstd")
}

// Unwrap undoes one text encoding and, around or below it, one compression.
// The encoding is "" where there is none, or where it does not hold to the end.
//
// Limits: as Find.
func (f *Finder) Unwrap(b []byte) (encoding string, data []byte) {
	if f.spent > defaultLeft {
		return "", nil
	}
	encoding, data, err := unwrap(b)
	if err != nil {
		f.spent += MaxInflated
		return "", nil
	}
	f.spent += int64(len(data))
	return encoding, data
}

// unwrap is Unwrap; its error says that inflating was given up.
func unwrap(b []byte) (encoding string, data []byte, err error) {
	if name, out, err := inflate(b); err != nil || name != "" {
		return name, out, err
	}
	switch {
	case isHex(b):
		encoding = "hex"
		data = make([]byte, len(b)/2)
		if _, err := hex.Decode(data, b); err != nil {
			return "", nil, nil
		}
	default:
		var ok bool
		if data, ok = fromBase64(b); !ok {
			return "", nil, nil
		}
		encoding = "base64"
	}
	name, out, err := inflate(data)
	if err != nil {
		return "", nil, err
	}
	if name != "" {
		return encoding + "+" + name, out, nil
	}
	return encoding, data, nil
}

// inflate undoes gzip or zstd that holds to the end.
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

// isHex reports pairs of hex digits whose letters are all of one case.
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

// fromBase64 decodes any of the alphabets, padded or not.
func fromBase64(b []byte) ([]byte, bool) {
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
	if end < len(b) && len(b)%4 != 0 {
		return nil, false
	}
	enc := base64.RawStdEncoding.Strict()
	if url {
		enc = base64.RawURLEncoding.Strict()
	}
	out := make([]byte, enc.DecodedLen(end))
	n, err := enc.Decode(out, b[:end])
	return out[:n], err == nil
}

// isJSON reports an object or an array of JSON with something in it.
func isJSON(b []byte) bool {
	s := bytes.TrimSpace(b)
	if len(s) < leastJSON || !(s[0] == '{' && s[len(s)-1] == '}') && !(s[0] == '[' && s[len(s)-1] == ']') {
		return false
	}
	return utf8.Valid(s) && json.Valid(s)
}
