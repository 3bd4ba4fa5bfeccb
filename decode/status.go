package decode

import (
	"net/http"

	"unwire/captures"
	"unwire/decode/envelope"
)

// Status returns how the call ended: "ok" or a code's name, with the message
// of an error. The code is "" while it is not known, and where the answer ended
// without telling, which clients take for a lost connection.
//
// Shape: what the server said, in the order of what decides: the end-of-stream
// or trailer frame or the error body, the gRPC status in trailers or headers;
// and only without these what a client concludes from the HTTP status. Of an exchange
// without HTTP the code is "ok" if it ended well, and "unknown" if a WebSocket was closed
// with the code of an error.
// Source: RESEARCH.md#errors
func (s *Stream) Status() (code, message string) {
	if s.ex.Transport != captures.HTTP {
		return s.connectionStatus()
	}
	if s.end != nil {
		return s.ended(s.end)
	}
	switch s.call.Protocol {
	case GRPC, GRPCWeb, GRPCWebText:
		for _, h := range []captures.Headers{s.ex.ResponseTrailers, s.ex.ResponseHeaders} {
			if end, _ := envelope.ParseStatus(h.Get); end != nil {
				return s.ended(end)
			}
		}
	case ConnectUnary, ConnectGet, HTTP:
		if s.ex.Status >= 200 && s.ex.Status < 400 && s.ex.Outcome == captures.Complete {
			return "ok", ""
		}
	}
	switch {
	case s.ex.Status >= 400:
		return s.codeOfStatus(), http.StatusText(s.ex.Status)
	case s.call.Protocol == SSE && s.ex.Outcome == captures.Complete && !s.dirs[captures.Down].frame:
		return "ok", "" // plain events have no end of their own
	}
	return "", ""
}

// codeOfStatus is the code that an HTTP status of an error stands for.
func (s *Stream) codeOfStatus() string {
	if s.call.Protocol == HTTP && s.call.Service == "" {
		return envelope.CodeOfHTTP(s.ex.Status)
	}
	return envelope.CodeOfStatus(s.ex.Status)
}

// ended is what an End says. A code that does not exist is read as clients read
// it: from the HTTP status where that tells, else as unknown.
func (s *Stream) ended(end *envelope.End) (code, message string) {
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
