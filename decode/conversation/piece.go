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

// maxRequestID is the length in bytes of the longest id that is taken for one.
const maxRequestID = 256

func headOf(p *profile.Profile, c decode.Call) *profile.Head { return p.Head(c.Service, c.RPC) }

func isAppend(p *profile.Profile, c decode.Call) bool { return p.IsAppend(c.Service, c.RPC) }

// IsPiece reports whether a call, by its name and a profile, carries a piece of a
// conversation: the server's half, or a message of the client's.
func IsPiece(p *profile.Profile, c decode.Call) bool { return headOf(p, c) != nil || isAppend(p, c) }

// pathOf is the path of field numbers.
func pathOf(numbers []uint64) fieldpath.Path {
	path := make(fieldpath.Path, len(numbers))
	for i, n := range numbers {
		path[i] = fieldpath.Field(n)
	}
	return path
}

// textAt is the one text in a field of a frame's message, to which numbers lead;
// "" if there is none.
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

// numberAt is the number in a field of a frame's message; 0 where it is not
// there. The last one counts, as for every reader of protobuf.
func numberAt(t *wire.Tree, field uint64) int64 {
	at := t.Find(fieldpath.Path{fieldpath.Field(field)})
	if field == 0 || len(at) == 0 || t.Node(at[len(at)-1]).Type != wire.Varint {
		return 0
	}
	return int64(t.Uint(at[len(at)-1]))
}

// carried is the last value of a length-delimited field; nil where there is none.
func carried(t *wire.Tree, field uint64) []byte {
	at := t.Find(fieldpath.Path{fieldpath.Field(field)})
	if len(at) == 0 || t.Node(at[len(at)-1]).Type != wire.Len {
		return nil
	}
	return t.Payload(at[len(at)-1])
}

// A piece is a message that travelled inside another.
type piece struct {
	number int64
	data   []byte
	form   wrapping
	err    error // why data is as it was carried
}

// A wrapping is how an append carries its message.
type wrapping struct {
	Hex       bool // as text, else as bytes
	Gzip      bool
	Enveloped bool
}

// appended reads the message of an append. Redaction may have put placeholders
// into hex: they are put into the message. With full the message's own
// compression is left on.
func appended(by *profile.Append, f *decode.Frame, full bool) piece {
	p := piece{number: numberAt(f.Tree, by.Number)}
	data := carried(f.Tree, by.Binary)
	if text := carried(f.Tree, by.Text); len(data) == 0 && len(text) > 0 {
		p.form.Hex = true
		if data, p.err = unhex(text); p.err != nil {
			p.data, p.err = text, fmt.Errorf("field %d: %w", by.Text, p.err)
			return p
		}
	}
	if p.data = data; !full {
		p.data, p.form.Gzip, p.form.Enveloped = open(data)
	}
	return p
}

// Wrap is the inverse of what a Form says was undone: the field's value.
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

// polled reads the server's message out of one of a polled answer. A message
// that only says that nothing follows carries none.
func polled(h *profile.Head, f *decode.Frame, full bool) (p piece, ok bool) {
	p.number = numberAt(f.Tree, h.Number)
	text := carried(f.Tree, h.Data)
	if len(text) == 0 {
		return p, numberAt(f.Tree, h.EOF) == 0
	}
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		p.data, p.err = text, fmt.Errorf("field %d: %w", h.Data, err)
		return p, true
	}
	if p.data = data; !full {
		p.data, p.form.Gzip, p.form.Enveloped = open(data)
	}
	return p, true
}

// open undoes an envelope and gzip around a message. Neither can be taken for
// protobuf: an envelope's first byte names field 0, and gzip's a group's end.
func open(data []byte) (out []byte, zipped, enveloped bool) {
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

// envelopeHead is the length of an envelope's header.
const envelopeHead = 5

// placeholder is what a secret in a body was replaced with.
//
// Source: captures/README.md#redaction
var placeholder = regexp.MustCompile(`redacted-[0-9a-f]{8}\.*`)

// unhex decodes hex in which placeholders may stand for the hex of secrets.
func unhex(text []byte) ([]byte, error) {
	var out []byte
	for {
		end := len(text)
		at := placeholder.FindIndex(text)
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
			return nil, errors.New("hex: a placeholder of odd length")
		}
		out = append(out, halfPlaceholder(text[at[0]:at[1]])...)
		text = text[at[1]:]
	}
}

// halfPlaceholder is a placeholder cut to half of its length, which is that of
// the secret itself.
func halfPlaceholder(p []byte) []byte {
	half := len(p) / 2
	name := bytes.TrimRight(p, ".")
	if len(name) > half {
		return name[:half]
	}
	return append(bytes.Clone(name), bytes.Repeat([]byte("."), half-len(name))...)
}

// gunzip undoes gzip that holds to the end.
func gunzip(b []byte) ([]byte, bool) {
	if len(b) < 18 || b[0] != 0x1f || b[1] != 0x8b {
		return nil, false
	}
	out, err := envelope.Decompress("gzip", b, nested.MaxInflated)
	return out, err == nil
}
