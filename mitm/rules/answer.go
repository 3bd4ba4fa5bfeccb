package rules

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// statuses are the HTTP statuses of Connect's codes, by the number of gRPC.
//
// Source: https://connectrpc.com/docs/protocol#error-codes
var statuses = [...]int{200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401}

// end returns the verdict that ends the exchange as a rule's action requires: with an answer, an error or a reset.
func (x *exchange) end(r *rule) rewrite.Verdict {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := rewrite.Verdict{Action: rewrite.Answer, Rule: r.Name}
	switch {
	case r.reset:
		v.Action = rewrite.Reset
	case r.fail != nil:
		v.Answer = failureOf(x.recorded(), *x.classified(), r.fail.Error)
	default:
		v.Answer = x.answer(r.answer)
	}
	return v
}

// failureOf encodes an error as a response in the protocol of a call (Connect, gRPC or gRPC-Web).
func failureOf(ex *captures.Exchange, call decode.Call, e envelope.Error) *rewrite.Response {
	number, _ := envelope.CodeNumber(e.Code)
	text, _ := json.Marshal(e)
	status := captures.Headers{{Name: "grpc-status", Value: strconv.Itoa(number)}}
	if e.Message != "" {
		status = append(status, captures.Header{Name: "grpc-message", Value: percentEncode(e.Message)})
	}
	media := contentType(ex)
	switch call.Protocol {
	case decode.ConnectStream:
		tail := envelope.Append(nil, envelope.EndStream, append(append([]byte(`{"error":`), text...), '}'))
		return &rewrite.Response{Status: 200, Header: media, Body: tail, Tail: tail}
	case decode.GRPC:
		return &rewrite.Response{Status: 200, Header: media, Trailers: status}
	case decode.GRPCWeb, decode.GRPCWebText:
		tail := trailerFrame(status)
		return &rewrite.Response{Status: 200, Header: media, Body: tail, Tail: tail}
	}
	return &rewrite.Response{
		Status: statuses[number], Body: text,
		Header: captures.Headers{{Name: "content-type", Value: "application/json"}},
	}
}

// answer encodes the response that a rule gives in place of the server's, in the protocol of the call: the rule's
// body becomes the only message, and the call succeeds.
func (x *exchange) answer(a *answer) *rewrite.Response {
	out := &rewrite.Response{Status: a.status, Header: a.headers, Body: a.body}
	if a.headers.Get("content-type") == "" && a.status == 200 {
		out.Header = append(contentType(x.recorded()), out.Header...)
	}
	ok := captures.Headers{{Name: "grpc-status", Value: "0"}}
	if a.status != 200 {
		return out
	}
	switch x.classified().Protocol {
	case decode.ConnectStream:
		out.Tail = envelope.Append(envelope.Append(nil, 0, a.body), envelope.EndStream, []byte("{}"))
		out.Body = out.Tail
	case decode.GRPC:
		out.Body, out.Tail, out.Trailers = envelope.Append(nil, 0, a.body), envelope.Append(nil, 0, a.body), ok
	case decode.GRPCWeb:
		out.Tail = append(envelope.Append(nil, 0, a.body), trailerFrame(ok)...)
		out.Body = out.Tail
	}
	return out
}

// contentType returns a Content-Type header for an answer, with the value of the request's.
func contentType(ex *captures.Exchange) captures.Headers {
	if v := ex.RequestHeaders.Get("content-type"); v != "" {
		return captures.Headers{{Name: "content-type", Value: v}}
	}
	if u, err := url.Parse(ex.URL); err == nil && u.Query().Get("connect") == "v1" {
		return captures.Headers{{Name: "content-type", Value: "application/" + u.Query().Get("encoding")}}
	}
	return nil
}

// trailerFrame encodes trailers as the final envelope of a gRPC-Web response.
func trailerFrame(h captures.Headers) []byte {
	var b strings.Builder
	for _, f := range h {
		b.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
	return envelope.Append(nil, envelope.Trailer, []byte(b.String()))
}

// percentEncode encodes a message for grpc-message.
//
// Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses
func percentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
