package decode

import (
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// An Inner is a message that a string or bytes field of another message contains in an encoded form.
//
// Shape: offsets in Tree refer to Data, not to the frame.
type Inner struct {
	// Node is the index of the field in the frame's tree.
	Node int32

	// Encoding is "hex", "base64", "gzip", "zstd", or two of them joined by "+", outermost first.
	Encoding string

	// Data is the decoded content of the field.
	Data []byte

	// Tree is the parsed message; nil if Data is not a message.
	Tree *wire.Tree
}

const (
	// maxInner is the maximum number of inner messages per frame.
	maxInner = 64

	// leastInner is the minimum size in bytes of an inner message. Shorter data parses as a message by accident
	// too often.
	leastInner = 8
)

// inner finds encoded messages in the string and bytes fields of a frame's tree.
//
// Shape: data that can be decoded counts as a message only if that is its most probable interpretation. Fields that
// the profile declares as carriers of messages need no such evidence.
//
// Source: RESEARCH.md#sse-fallback
func (s *Stream) inner(f *Frame) []Inner {
	carrier := s.carrier(f.Dir)
	var out []Inner
	for i := range f.Tree.Nodes {
		n := &f.Tree.Nodes[i]
		known := carrier != 0 && n.Number == carrier && n.Parent == 0
		if n.Type != wire.Len || n.First != wire.None && !known || n.End == n.Val || len(out) == maxInner {
			continue
		}
		payload := f.Tree.Payload(int32(i))
		encoding, data := s.find.Unwrap(payload)
		if encoding == "" {
			continue
		}
		t := wire.Parse(data, s.o.Wire)
		// Compressed data is reported even if it is not a message, because compression is never accidental.
		if !known && (len(data) < leastInner || kind.NewReader(t, nil).Readings(0)[0].Kind != wire.KindMessage) {
			if !strings.HasSuffix(encoding, "gzip") && !strings.HasSuffix(encoding, "zstd") {
				continue
			}
			t = nil
		}
		out = append(out, Inner{Node: int32(i), Encoding: encoding, Data: data, Tree: t})
	}

	return out
}

// carrier returns the number of the field that, according to the service's profile, carries encoded messages as
// text in that direction; 0 if there is none.
func (s *Stream) carrier(dir captures.Direction) uint64 {
	p := s.o.Profile
	switch {
	case dir == captures.Up && p.IsAppend(s.call.Service, s.call.RPC):
		return p.Split.Append.Text
	case dir == captures.Down:
		if h := p.Head(s.call.Service, s.call.RPC); h != nil {
			return h.Data
		}
	}
	return 0
}

// IsText reports whether b is UTF-8 without control characters other than white space and escape.
func IsText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}
