// Package failure finds the error with which an exchange ended. A decode.Exchange goes in, and a Failure comes out, which
// package transcript shows with the conversation.
package failure

import (
	"cmp"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
)

// A Failure is the error with which an exchange ended, as the server or the transport reported it.
type Failure struct {
	// Code is Connect's name of the error.
	Code string `json:"code,omitempty"`

	// Message is the text of the error.
	Message string `json:"message,omitempty"`

	// Details are typed messages about the error.
	Details []envelope.Detail `json:"details,omitempty"`

	// Dir is the direction of the frame that contains the error; "" for trailers and the transport.
	Dir string `json:"dir,omitempty"`

	// Frame is the number of that frame.
	Frame int `json:"frame,omitempty"`
}

// Of returns the error of an exchange, or nil. It searches the end-of-stream frame, the gRPC status in
// trailers and headers, JSON events, and the transport's error, in this order.
func Of(ex *decode.Exchange) *Failure {
	// The end of the stream is the most reliable source, then trailers, then events in the body.
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.End != nil && f.End.Error != nil {
			e := f.End.Error
			return &Failure{Code: e.Code, Message: e.Message, Details: e.Details, Dir: f.Dir.String(), Frame: f.Seq}
		}
	}

	for _, h := range []captures.Headers{ex.ResponseTrailers, ex.ResponseHeaders} {
		if end, _ := envelope.ParseStatus(h.Get); end != nil && end.Error != nil {
			return &Failure{Code: end.Error.Code, Message: end.Error.Message, Details: end.Error.Details}
		}
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir == captures.Down && f.Tree == nil && f.End == nil {
			if e := eventError(f.Data); e != nil {
				e.Dir, e.Frame = f.Dir.String(), f.Seq
				return e
			}
		}
	}

	if ex.Code != "" && ex.Code != "ok" {
		return &Failure{Code: ex.Code, Message: ex.Message}
	}
	if ex.Error != "" {
		return &Failure{Message: ex.Error}
	}
	return nil
}

// eventError parses {"error": …}, which JSON APIs send in the middle of a stream. It returns nil for other data.
func eventError(data []byte) *Failure {
	if len(data) > 1<<16 || !strings.Contains(string(data), `"error"`) {
		return nil
	}
	v, err := jsontree.Parse(data)
	if err != nil || v.Kind() != jsontree.Object {
		return nil
	}

	// APIs report an error as a string, or as an object with a message and a code.
	switch e := event.Open(v).Member("error"); {
	case e == nil:
	case e.Kind == jsontree.String:
		if e.Text != "" {
			return &Failure{Message: e.Text}
		}
	case e.Kind == jsontree.Object:
		out := &Failure{Message: e.String("message"), Code: cmp.Or(e.String("code"), e.String("type"), e.String("status"))}
		if out.Message != "" || out.Code != "" {
			return out
		}
	}
	return nil
}
