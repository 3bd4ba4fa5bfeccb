package decode

import (
	"bytes"
	"fmt"

	"unwire/captures"
	"unwire/decode/envelope"
)

// Messages decodes the messages of one stream that were transported as fields of messages of other calls (for
// example, one unary call for each client message); see package conversation. The limits of one exchange apply to
// all of them together.
type Messages struct {
	// s parses the messages, and counts their bytes and fields against the limits of one exchange; it belongs to an
	// exchange without metadata.
	s *Stream
}

// NewMessages returns a decoder for carried messages; c is the call (service and method) whose messages they are.
func NewMessages(c Call, o Options) *Messages {
	s := NewStream(&captures.Exchange{}, o)
	s.call = c
	return &Messages{s}
}

// Full reports whether the limit on decompressed bytes, Options.MaxTotal, is reached.
func (m *Messages) Full() bool { return m.s.inflated >= m.s.o.MaxTotal }

// Decode returns the frame of one carried message. carrier is the frame that contained it, data the message
// after decompression, and encoding the compression that was undone, or "". If err is not nil, the message could
// not be decompressed, and data is the message as it was transported.
func (m *Messages) Decode(carrier *Frame, data []byte, encoding string, err error) Frame {
	s := m.s
	f := Frame{Dir: carrier.Dir, Frame: envelope.Frame{Len: len(data), Raw: data, Data: data, Partial: carrier.Partial, Err: carrier.Err}}
	if err != nil {
		f.Err = fmt.Errorf("%s frame %d: %w", carrier.Dir.Sender(), carrier.Seq, err)
		return f
	}
	f.Encoding = encoding

	// Limits: the total size and the number of nodes of all frames of an exchange.
	if s.inflated+int64(len(data)) > s.o.MaxTotal && len(data) > keptOfTooLarge {
		f.Data = bytes.Clone(data[:keptOfTooLarge])
		f.Raw = f.Data
		f.Err = fmt.Errorf("%s frame %d: %w of %d bytes", carrier.Dir.Sender(), carrier.Seq, errTotal, s.o.MaxTotal)
		return f
	}
	s.inflated += int64(len(data))
	if s.nodes >= s.o.MaxNodes {
		f.Err = fmt.Errorf("%s frame %d: %w of %d", carrier.Dir.Sender(), carrier.Seq, errNodes, s.o.MaxNodes)
		return f
	}

	f.Tree = s.parse(data)
	if err := f.Tree.Err(); err != nil && f.Err == nil {
		f.Err = err
	}
	f.Inner = s.inner(&f)
	return f
}
