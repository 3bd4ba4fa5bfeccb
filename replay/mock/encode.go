package mock

import (
	"bytes"
	"context"
	"encoding/base64"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// cut finds the bytes of each frame in the recorded body. What is between two frames, such as the comments of an
// event stream, belongs to the one behind it.
func (p *player) cut() {
	p.spans = map[int][]byte{}

	// Frames may share bytes, as envelopes in one event do: the first one has them.
	body := p.x.tape.body
	at := int64(0)
	for i := range p.ex.Frames {
		f := &p.ex.Frames[i]
		if f.Dir != captures.Up {
			continue
		}
		end := f.Offset + int64(f.Len)
		switch {
		case p.x.tape.ex.Protocol == decode.GRPCWebText:
			// Offsets count from the decoded bytes.
			p.spans[f.Seq] = base64.StdEncoding.AppendEncode(nil, envelope.Append(nil, f.Flags, f.Raw))
		case !p.streams():
			p.spans[f.Seq], at = body, int64(len(body))
		case end > at && end <= int64(len(body)):
			p.spans[f.Seq] = body[at:end]
			at = end
		}
	}
	if p.x.tape.ex.Protocol != decode.GRPCWebText && at < int64(len(body)) {
		p.tail = body[at:]
	}
}

// encode returns the bytes of a frame with data as its message. An unchanged frame is sent as it was recorded.
func (p *player) encode(f *decode.Frame, data []byte, changed bool) ([]byte, error) {
	span := p.spans[f.Seq]
	if !changed || f.Err != nil {
		return span, nil
	}
	if f.Encoding != "" {
		packed, err := envelope.Compress(f.Encoding, data)
		if err != nil {
			return nil, err
		}
		data = packed
	}
	if f.Framed {
		data = envelope.Append(nil, f.Flags, data)
	}
	switch p.x.tape.ex.Protocol {
	case decode.GRPCWebText:
		return base64.StdEncoding.AppendEncode(nil, data), nil
	case decode.SSE:
		if f.Framed {
			data = base64.StdEncoding.AppendEncode(nil, data)
		}
		return encodeEvent(span, data)
	}
	return data, nil
}

// encodeEvent returns a server-sent event with other data. Its other lines stay.
func encodeEvent(event, data []byte) ([]byte, error) {
	var out eventSink
	body := rewrite.Body{Dir: captures.Down, Declared: -1, Exchange: &newEvent{data: data}}
	err := body.Run(context.Background(), bytes.NewReader(event), &out)
	return out.Bytes(), err
}

// An eventSink collects a rewritten body.
type eventSink struct{ bytes.Buffer }

// Begin does nothing: the length of a body of events is not declared.
func (*eventSink) Begin(int64) error { return nil }

// A newEvent replaces the data of an event.
type newEvent struct {
	rewrite.Exchange
	data []byte
}

// Framing returns that of server-sent events.
func (*newEvent) Framing(captures.Direction) rewrite.Framing {
	return rewrite.Framing{Kind: rewrite.Events}
}

// Frame replaces the data.
func (e *newEvent) Frame(context.Context, *rewrite.Frame) rewrite.Verdict {
	return rewrite.Verdict{Action: rewrite.Replace, Messages: [][]byte{e.data}}
}

// Pace does not wait.
func (*newEvent) Pace(context.Context, captures.Direction, int) {}

// Passed is not called: an event that is larger than the limit of the package stays as it is.
func (*newEvent) Passed(captures.Direction, string) {}
