package decode

import (
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// An Inner is a message that travels inside a string or bytes field of another
// in some encoding, as BidiAppend and RunPoll carry the stream's messages.
//
// Shape: Tree has Data as its bytes; its offsets are not those of the frame.
type Inner struct {
	Node int32 // of the frame's tree

	// "hex", "base64", "gzip", "zstd", or two of them joined by "+", outermost first.
	Encoding string

	Data []byte
	Tree *wire.Tree // nil where Data is no message
}

const (
	maxInner   = 64 // of a frame
	leastInner = 8  // bytes; of less, chance makes messages
)

// inner looks for encoded messages in the leaves of a frame's tree.
//
// Shape: text that decodes counts only if what comes out is rather a message
// than anything else, except in the fields that are known to carry messages.
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

// carrier is the field that carries messages as text; 0 for none.
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

// IsText reports UTF-8 without control characters that text does not have.
func IsText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}
