package decode

import (
	"bytes"
	"fmt"

	"unwire/captures"
	"unwire/decode/envelope"
)

// Messages decodes the messages of a call that other messages carried, within
// the bounds of one exchange.
type Messages struct{ s *Stream }

// NewMessages returns a decoder of the messages of a call.
func NewMessages(c Call, o Options) *Messages {
	s := NewStream(&captures.Exchange{}, o)
	s.call = c
	return &Messages{s}
}

// Full reports whether no more is to be decompressed.
func (m *Messages) Full() bool { return m.s.inflated >= m.s.o.MaxTotal }

// Decode returns the frame of a message that the frame carrier carried: data,
// which was compressed with encoding, if that is not "". Where err is set, data
// is as it was carried.
func (m *Messages) Decode(carrier *Frame, data []byte, encoding string, err error) Frame {
	s := m.s
	f := Frame{Dir: carrier.Dir, Frame: envelope.Frame{Len: len(data), Raw: data, Data: data, Partial: carrier.Partial, Err: carrier.Err}}
	if err != nil {
		f.Err = fmt.Errorf("%s frame %d: %w", carrier.Dir, carrier.Seq, err)
		return f
	}
	f.Encoding = encoding

	if s.inflated+int64(len(data)) > s.o.MaxTotal && len(data) > keptOfTooLarge {
		f.Data = bytes.Clone(data[:keptOfTooLarge])
		f.Raw = f.Data
		f.Err = fmt.Errorf("%s frame %d: %w of %d bytes", carrier.Dir, carrier.Seq, errTotal, s.o.MaxTotal)
		return f
	}
	s.inflated += int64(len(data))
	if s.nodes >= s.o.MaxNodes {
		f.Err = fmt.Errorf("%s frame %d: %w of %d", carrier.Dir, carrier.Seq, errNodes, s.o.MaxNodes)
		return f
	}

	f.Tree = s.parse(data)
	if err := f.Tree.Err(); err != nil && f.Err == nil {
		f.Err = err
	}
	f.Inner = s.inner(&f)
	return f
}
