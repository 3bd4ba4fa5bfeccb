package transcript

import (
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/jsontree"
)

// A Failure is the error that an exchange ended in, as the server worded it, or
// as the transport did.
type Failure struct {
	Code    string            `json:"code,omitempty"` // Connect's name of it
	Message string            `json:"message,omitempty"`
	Details []envelope.Detail `json:"details,omitempty"`

	// And frame: where it stands; "" for trailers and the transport.
	Dir   string `json:"dir,omitempty"`
	Frame int    `json:"frame,omitempty"`
}

// failure is the error of an exchange, or nil: of the end-of-stream frame, of the
// gRPC status in trailers or headers, of an event of JSON, or of the transport.
func failure(ex *decode.Exchange) *Failure {
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

// eventError reads {"error": …}, as JSON APIs say it in the middle of a stream.
func eventError(data []byte) *Failure {
	if len(data) > 1<<16 || !strings.Contains(string(data), `"error"`) {
		return nil
	}
	o, ok := parseObject(data)
	if !ok {
		return nil
	}
	switch e := o["error"]; e.Kind() {
	case jsontree.String:
		if text := e.Text(); text != "" {
			return &Failure{Message: text}
		}
	case jsontree.Object:
		members := e.members()
		out := &Failure{}
		out.Message, _ = members["message"].string()
		for _, name := range [...]string{"code", "type", "status"} {
			if s, ok := members[name].string(); ok && out.Code == "" {
				out.Code = s
			}
		}
		if out.Message != "" || out.Code != "" {
			return out
		}
	}
	return nil
}
