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

// cut assigns the bytes of the recorded response body to its frames. Bytes between two frames, such as comments in an
// event stream, belong to the later one.
func (p *player) cut() {
	p.spans = map[int][]byte{}

	// Frames may share bytes, as envelopes in one event do: the first one has them.
	body := p.x.tape.body
	at := int64(0)
	for i := range p.ex.Frames {
		f := &p.ex.Frames[i]
		if f.Dir != captures.Up || f.Opcode.Kind() >= captures.OpClose {
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

// encode returns the bytes to send for a frame with data as its message. If changed is false, these are the recorded
// bytes.
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
	if p.x.socket != nil && len(span) > 0 && span[0] == 0 && f.Framed && !envelope.IsFrames(span) {
		// Peers of grpc-websocket put a zero byte before the envelopes.
		data = append([]byte{0}, data...)
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

// An eventSink is a rewrite.Sink that collects the rewritten body in memory.
type eventSink struct {
	// Buffer collects the bytes.
	bytes.Buffer
}

// Begin does nothing: the length of a body of events is not declared.
func (*eventSink) Begin(int64) error { return nil }

// A newEvent is a rewrite.Exchange that replaces the data of each server-sent event.
type newEvent struct {
	// Exchange is nil; it only makes newEvent implement the methods that are never called.
	rewrite.Exchange
	// data is the new data of the event.
	data []byte
}

// Framing declares the body to be server-sent events.
func (*newEvent) Framing(captures.Direction) rewrite.Framing {
	return rewrite.Framing{Kind: rewrite.Events}
}

// Frame replaces the data.
func (e *newEvent) Frame(context.Context, *rewrite.Frame) rewrite.Verdict {
	return rewrite.Verdict{Action: rewrite.Replace, Messages: [][]byte{e.data}}
}

// Pace does not wait.
func (*newEvent) Pace(context.Context, captures.Direction, int) {}

// Passed does nothing.
func (*newEvent) Passed(captures.Direction, string) {}
