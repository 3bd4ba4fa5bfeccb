package conversation

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// maxRequestID is the maximum length in bytes of a request id.
const maxRequestID = 256

// headOf returns the profile's description of c's method if that is a head, i.e. its response carries the server's
// messages of a split stream. Otherwise it returns nil.
func headOf(p *profile.Profile, c decode.Call) *profile.Head { return p.Head(c.Service, c.RPC) }

// isAppend reports whether c is an append, i.e. a call that carries one client message of a split stream.
func isAppend(p *profile.Profile, c decode.Call) bool { return p.IsAppend(c.Service, c.RPC) }

// IsPiece reports whether c, judged by its method and the profile, belongs to a split stream: as a head, whose
// response carries the server's messages, or as an append, which carries one client message.
func IsPiece(p *profile.Profile, c decode.Call) bool { return headOf(p, c) != nil || isAppend(p, c) }

// pathOf returns the field path for a list of field numbers.
func pathOf(numbers []uint64) fieldpath.Path {
	path := make(fieldpath.Path, len(numbers))
	for i, n := range numbers {
		path[i] = fieldpath.Field(n)
	}
	return path
}

// textAt returns the text of the field with that path of field numbers. It returns "" if the path selects no field
// or several, or if the value is longer than maxRequestID or not text.
func textAt(f *decode.Frame, numbers []uint64) string {
	if f == nil || f.Tree == nil {
		return ""
	}
	at := f.Tree.Find(pathOf(numbers))
	if len(at) != 1 || f.Tree.Node(at[0]).Type != wire.Len {
		return ""
	}
	b := f.Tree.Payload(at[0])
	if len(b) > maxRequestID || !utf8.Valid(b) {
		return ""
	}
	return string(b)
}

// numberAt returns the varint in a top-level field of a message, or 0 if the field is missing. Of repeated fields
// the last counts, as protobuf requires.
func numberAt(t *wire.Tree, field uint64) int64 {
	at := t.Find(fieldpath.Path{fieldpath.Field(field)})
	if field == 0 || len(at) == 0 || t.Node(at[len(at)-1]).Type != wire.Varint {
		return 0
	}
	return int64(t.Uint(at[len(at)-1]))
}

// carried returns the value of a top-level length-delimited field, the last one if it is repeated, or nil if it is
// missing.
func carried(t *wire.Tree, field uint64) []byte {
	at := t.Find(fieldpath.Path{fieldpath.Field(field)})
	if len(at) == 0 || t.Node(at[len(at)-1]).Type != wire.Len {
		return nil
	}
	return t.Payload(at[len(at)-1])
}

// A carriedMessage is an encoded message that was transported as a field of another message.
type carriedMessage struct {
	// number is the message's sequence number in the stream.
	number int64

	// data is the encoded message.
	data []byte

	// form describes how the message was wrapped in the field.
	form wrapping

	// err is the reason why data could not be unwrapped completely, or nil.
	err error
}

// A wrapping describes how a call carries a message of the stream inside its own message.
type wrapping struct {
	// Hex means that the message is a hex string, instead of bytes.
	Hex bool

	// Gzip means that the message is compressed with gzip.
	Gzip bool

	// Enveloped means that the message has an envelope with flags and length.
	Enveloped bool
}

// appended extracts the client's message from f, the request of an append (a call with one client message).
// Redaction may have put placeholders into hex; they are kept. If full is true, the message is neither decompressed
// nor taken out of its envelope, because the limit on decompressed bytes is reached.
func appended(by *profile.Append, f *decode.Frame, full bool) carriedMessage {
	p := carriedMessage{number: numberAt(f.Tree, by.Seq)}
	data := carried(f.Tree, by.Binary)
	// Clients send the message as bytes, or as hex in a string.
	if text := carried(f.Tree, by.Text); len(data) == 0 && len(text) > 0 {
		p.form.Hex = true
		if data, p.err = unhex(text); p.err != nil {
			p.data, p.err = text, fmt.Errorf("field %d cannot be read: %w", by.Text, p.err)
			return p
		}
	}
	if p.data = data; !full {
		p.data, p.form.Gzip, p.form.Enveloped = unwrap(data)
	}
	return p
}

// Wrap encodes a message in this form and returns the value of the field.
func (f wrapping) Wrap(data []byte) ([]byte, error) {
	var flags envelope.Flags
	if f.Gzip {
		out, err := envelope.Compress("gzip", data)
		if err != nil {
			return nil, err
		}
		data, flags = out, envelope.Compressed
	}
	if f.Enveloped {
		data = envelope.Append(nil, flags, data)
	}
	if f.Hex {
		return hex.AppendEncode(nil, data), nil
	}
	return data, nil
}

// polled extracts the server's message from f, a frame of a response to a poll (a head whose profile wraps messages
// in field h.Data). If full is true, the message is not decompressed, because the limit on decompressed bytes is
// reached. ok is false if f only reports that nothing follows.
func polled(h *profile.Head, f *decode.Frame, full bool) (p carriedMessage, ok bool) {
	p.number = numberAt(f.Tree, h.Seq)
	text := carried(f.Tree, h.Data)
	if len(text) == 0 {
		return p, numberAt(f.Tree, h.EOF) == 0
	}

	// Polled messages are base64.
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		p.data, p.err = text, fmt.Errorf("field %d cannot be read: %w", h.Data, err)
		return p, true
	}
	if p.data = data; !full {
		p.data, p.form.Gzip, p.form.Enveloped = unwrap(data)
	}
	return p, true
}

// unwrap removes an envelope and gzip around a message. Both are unambiguous: the first byte of an envelope
// would be a tag of field 0 in protobuf, and that of gzip the end of a group.
func unwrap(data []byte) (out []byte, zipped, enveloped bool) {
	if len(data) >= envelopeHead && data[0] <= byte(envelope.Compressed|envelope.EndStream) {
		d := envelope.NewDecoder(envelope.Options{Framed: true, Encoding: "gzip", MaxInflated: nested.MaxInflated})
		frames, err := d.Feed(data)
		rest, cerr := d.Close()
		if err == nil && cerr == nil && len(rest) == 0 && len(frames) == 1 && frames[0].Err == nil && frames[0].Flags <= envelope.Compressed {
			return frames[0].Data, frames[0].Encoding != "", true
		}
	}
	if out, ok := gunzip(data); ok {
		return out, true, false
	}
	return data, false, false
}

// envelopeHead is the length of an envelope's prefix in bytes.
const envelopeHead = 5

// placeholder matches the text that replaces a secret in a body.
//
// Source: captures/README.md#redaction
var placeholder = regexp.MustCompile(`redacted-[0-9a-f]{8}\.*`)

// unhex decodes hex in which redaction may have replaced secrets by placeholders; these are kept as text, see
// halfPlaceholder.
func unhex(text []byte) ([]byte, error) {
	var out []byte
	for {
		end := len(text)
		at := placeholder.FindIndex(text)
		// Decode the hex before the placeholder, then the placeholder.
		if at != nil {
			end = at[0]
		}
		part, err := hex.DecodeString(string(text[:end]))
		out = append(out, part...)
		if err != nil {
			return nil, err
		}
		if at == nil {
			return out, nil
		}
		if (at[1]-at[0])%2 != 0 {
			return nil, errors.New("the placeholder of a redacted hex value has an odd length")
		}
		out = append(out, halfPlaceholder(text[at[0]:at[1]])...)
		text = text[at[1]:]
	}
}

// halfPlaceholder returns placeholder p shortened to half of its length, so that in decoded hex it is as long as
// the decoded secret was.
func halfPlaceholder(p []byte) []byte {
	half := len(p) / 2
	name := bytes.TrimRight(p, ".")
	if len(name) > half {
		return name[:half]
	}
	return append(bytes.Clone(name), bytes.Repeat([]byte("."), half-len(name))...)
}

// gunzip decompresses b; ok is false unless all of b is gzip data.
func gunzip(b []byte) ([]byte, bool) {
	if len(b) < 18 || b[0] != 0x1f || b[1] != 0x8b {
		return nil, false
	}
	out, err := envelope.Decompress("gzip", b, nested.MaxInflated)
	return out, err == nil
}
