package decode

import (
	"net/http"

	"unwire/captures"
	"unwire/decode/envelope"
)

// Status returns the status code of the call, "ok" or the name of an error's code, and the error's
// message. The code is "" while the status is unknown, and if the response ended without a status,
// which clients treat as a lost connection.
//
// Shape: a status from the server takes precedence: the end-of-stream or trailer frame, the error body,
// or the gRPC status in trailers or headers. Without one, the code is derived from the HTTP status, as
// clients do. Without HTTP, the code is "ok" after an orderly end, and "unknown" if a WebSocket was
// closed with an error code.
//
// Source: RESEARCH.md#errors
func (s *Stream) Status() (code, message string) {
	if s.ex.Transport != captures.HTTP {
		return s.connectionStatus()
	}
	if s.end != nil {
		return s.statusOfEnd(s.end)
	}
	switch s.call.Protocol {
	case GRPC, GRPCWeb, GRPCWebText:
		if end := grpcStatus(&s.ex); end != nil {
			return s.statusOfEnd(end)
		}
	case ConnectUnary, ConnectGet, ConnectStream, HTTP, ndjson, awsEvents:
		// A server of gRPC rejects a Connect request with a gRPC status, also if the HTTP status is 200.
		if end := grpcStatus(&s.ex); s.call.Protocol.isConnect() && end != nil && end.Error != nil {
			return s.statusOfEnd(end)
		}
		if s.call.Protocol == ConnectStream {
			break // has its status in the end-of-stream message
		}
		if s.ex.Status >= 200 && s.ex.Status < 400 && s.ex.Outcome == captures.Complete {
			return "ok", ""
		}
	}

	// The server gave no status of its own.
	switch {
	case s.ex.Status >= 400:
		return s.codeOfStatus(), http.StatusText(s.ex.Status)
	case s.call.Protocol == SSE && s.ex.Outcome == captures.Complete && !s.dirs[captures.Down].hasEnvelope:
		// Plain events have no end marker, so a complete body means success.
		return "ok", ""
	}
	return "", ""
}

// grpcStatus returns the gRPC status in the trailers or headers of a response; nil if there is none.
func grpcStatus(ex *captures.Exchange) *envelope.End {
	for _, h := range []captures.Headers{ex.ResponseTrailers, ex.ResponseHeaders} {
		if end, _ := envelope.ParseStatus(h.Get); end != nil {
			return end
		}
	}
	return nil
}

// isConnect reports whether p is a variant of Connect.
func (p Protocol) isConnect() bool {
	return p == ConnectUnary || p == ConnectGet || p == ConnectStream
}

// AnsweredInGRPC reports whether the server answered a Connect request in gRPC, which clients of Connect cannot
// read: the response has the content type or the status of gRPC.
func AnsweredInGRPC(ex *captures.Exchange) bool {
	if ex.Transport != captures.HTTP || !Classify(ex).Protocol.isConnect() {
		return false
	}
	return mediaOf(ex.ResponseHeaders.Get("content-type")).protocol == GRPC || grpcStatus(ex) != nil
}

// GRPCInsteadOfConnect explains, to people, an exchange for which AnsweredInGRPC is true.
const GRPCInsteadOfConnect = "the request is Connect, but the server answered in gRPC: it serves gRPC at this path, not Connect"

// codeOfStatus returns the status code to which clients map the HTTP status of the response.
func (s *Stream) codeOfStatus() string {
	if s.call.Protocol == HTTP || s.call.Protocol == ndjson || s.call.Protocol == awsEvents {
		return envelope.CodeOfHTTP(s.ex.Status)
	}
	return envelope.CodeOfStatus(s.ex.Status)
}

// statusOfEnd returns the status in end, the server's end-of-call status. A code that does not exist is replaced as
// clients do: by the code for the HTTP status if that is an error, else by "unknown".
func (s *Stream) statusOfEnd(end *envelope.End) (code, message string) {
	if end.Error == nil {
		return "ok", ""
	}
	if _, known := envelope.CodeNumber(end.Error.Code); known {
		return end.Error.Code, end.Error.Message
	}
	if s.ex.Status >= 400 {
		return envelope.CodeOfStatus(s.ex.Status), end.Error.Message
	}
	return "unknown", end.Error.Message
}
