package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// An Answer is the server's response to one request of a probe.
type Answer struct {
	// Status is the HTTP status; 0 if no response arrived.
	Status int `json:"status"`
	// Code is the name of the RPC error code, as Connect spells it; "" if the response has no error.
	Code string `json:"code"`
	// Message is the server's error message, unchanged.
	Message string `json:"message"`
	// Server is the value of the response's Server header.
	Server string `json:"server,omitempty"`
	// Accepted means that the response has no error, so that the RPC handler may have run.
	Accepted bool `json:"accepted,omitempty"`
	// Type is the Content-Type of the response.
	Type string `json:"content_type,omitempty"`
	// Allow is the Accept-Post header, which lists the content types that the server accepts.
	Allow string `json:"allow,omitempty"`
	// Fail describes for the user why no response arrived.
	Fail string `json:"fail,omitempty"`

	// Reason is the kind of failure for programs, if no response arrived.
	Reason outbound.Reason `json:"reason,omitempty"`

	// Text is Message with its white space normalised.
	Text string
	// FromParser means that the error message has the form of a parser's error, and not of an error
	// from the RPC handler.
	FromParser bool
	// retryAt is the time until which the server asked clients to wait, also if that time is in the past;
	// zero if it did not ask.
	retryAt time.Time
}

// wantsNoMore reports whether the server refused further requests, at least for some time.
func (a *Answer) wantsNoMore() bool {
	return outbound.WantsNoMore(a.Status, a.Code) || a.Status == http.StatusServiceUnavailable && !a.retryAt.IsZero()
}

// firstBackoff is half of the pause before the second repetition of a request.
const firstBackoff = 100 * time.Millisecond

// pause returns how long to wait before a request is repeated after this answer, which the server gave at
// the time now. try counts the earlier repetitions. If the server names a time that is over, repetitions
// after the first one wait longer and longer.
func (a *Answer) pause(try int, now time.Time) time.Duration {
	switch d := a.retryAt.Sub(now); {
	case d > 0:
		return d
	case try == 0:
		return 0
	}
	return firstBackoff << try
}

// Brief returns the response in a short phrase: the error, or the HTTP status.
func (a *Answer) Brief() string {
	if a.Fail != "" {
		return a.Fail
	}
	s := fmt.Sprintf("HTTP %d", a.Status)
	switch {
	case a.Code != "":
		s += " " + a.Code
	case a.Type != "":
		s += " with " + a.Type
	}
	if a.Message != "" {
		s += " " + quote(a.Message)
	}
	return s
}

// Quoted returns the server's message in quotes, shortened, with its white space normalised.
func (a *Answer) Quoted() string { return quote(a.Text) }

// quote returns a text in quotes, shortened to about 200 bytes.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// leastSize is a message size in bytes that every server accepts.
const leastSize = 1 << 10

var (
	// Patterns for error messages about the size of a message.
	sizeRefused = regexp.MustCompile(`(?i)larger than|too large|exceeds|message size`)
	lastNumber  = regexp.MustCompile(`(\d{1,9})\D*$`)
)

// sizeLimit returns the server's limit for the size of messages in bytes, if it rejected a message of
// this size because of the limit; otherwise 0. If the error does not state the limit, the result is
// half of size.
func (a *Answer) sizeLimit(size int) int {
	if size <= leastSize || a.Status != http.StatusRequestEntityTooLarge && (a.Code != "resource_exhausted" || !sizeRefused.MatchString(a.Text)) {
		return 0
	}
	if m := lastNumber.FindStringSubmatch(a.Text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= leastSize && n < size {
			return n
		}
	}
	return max(size/2, leastSize)
}

// deadlineExceeded is the RPC code of a call whose deadline has expired.
const deadlineExceeded = "deadline_exceeded"

// ofHandlers are the RPC codes that parsers never return, so that a handler may have run.
var ofHandlers = map[string]bool{
	"canceled": true, deadlineExceeded: true, "not_found": true, "already_exists": true,
	"failed_precondition": true, "aborted": true, "out_of_range": true, "data_loss": true,
}

// read sets the fields from an HTTP response and its body data.
//
// Shape: if the response contains a message, the handler ran, even if an error follows.
func (a *Answer) read(p Protocol, resp *http.Response, data []byte) {
	if p == connectUnary {
		//nolint:errcheck // what could be read counts
		if e, _ := envelope.ParseError(data); e != nil && a.Status != http.StatusOK {
			a.Code, a.Message = e.Code, cmp.Or(e.Message, twirpMessage(data))
		}
		if a.isGRPC() {
			// The status is in the trailers: the method is not served with Connect.
			a.readEnd(cmp.Or(statusOf(resp.Trailer), statusOf(resp.Header)))
			return
		}
		a.Accepted = a.Status >= 200 && a.Status < 300 && !strings.HasPrefix(a.Type, "text/")
		return
	}
	if a.Status != http.StatusOK {
		return
	}
	end := statusOf(resp.Trailer)
	if end == nil {
		end = statusOf(resp.Header)
	}

	// The end of a stream is in the trailers, in the headers of a response without a body, or in
	// the last envelope.
	//nolint:errcheck // what could be read counts
	frames, _ := envelope.NewDecoder(envelope.Options{Framed: true}).Feed(data)
	for _, f := range frames {
		switch {
		case p == connectStream && f.Flags&envelope.EndStream != 0:
			if e, err := envelope.ParseEnd(f.Data); err == nil || e.Error != nil {
				end = e
			}
		case p == grpcWeb && f.Flags&envelope.Trailer != 0:
			//nolint:errcheck // what could be read counts
			fields, _ := envelope.ParseTrailer(f.Data)
			trailer := http.Header{}
			for _, t := range fields {
				trailer.Set(t.Name, t.Value)
			}
			end = statusOf(trailer)
		default:
			a.Accepted = true
		}
	}

	a.readEnd(end)
}

// isGRPC reports whether the response has the content type of gRPC, regardless of the request's
// protocol.
func (a *Answer) isGRPC() bool {
	return strings.HasPrefix(a.Type, "application/grpc") && !strings.HasPrefix(a.Type, "application/grpc-web")
}

// twirpMessage returns the message in a Twirp error, whose JSON member differs from Connect's.
func twirpMessage(data []byte) string {
	var e struct {
		Msg string `json:"msg"`
	}
	_ = json.Unmarshal(data, &e)
	return e.Msg
}

// readEnd sets code and message from the end of a stream; nil means that the stream had none.
func (a *Answer) readEnd(end *envelope.End) {
	// An end without an error means that the handler returned.
	switch {
	case end == nil:
	case end.Error == nil:
		a.Accepted = true
	default:
		a.Code, a.Message = end.Error.Code, end.Error.Message
	}
}

// statusOf returns the gRPC status in headers or trailers; nil if there is none.
func statusOf(h http.Header) *envelope.End {
	//nolint:errcheck // what could be read counts
	end, _ := envelope.ParseStatus(h.Get)
	return end
}

// finish sets the fields that are derived from others, such as FromParser.
func (a *Answer) finish(p Protocol) {
	// protobuf-go writes a non-breaking space in some builds, so that nobody relies on the text of
	// its errors.
	a.Text = strings.Join(strings.Fields(strings.ReplaceAll(a.Message, "\u00a0", " ")), " ")
	switch a.Code {
	case "invalid_argument", "internal", "unknown":
		a.FromParser = a.Message != "" && parserText(a.Text)
	}
}

// parserText reports whether an error message is probably from a parser of protobuf or JSON.
func parserText(s string) bool {
	s = strings.ToLower(s)
	for _, known := range []string{
		"illegal tag", "premature eof", "invalid varint", "cant skip wire type", "invalid end group", "call stack", "recursion", "parse binary",
		"offset is outside", "out of bounds", "not valid for encoding", "cannot decode", "proto:", "utf-8", "unmarshal", "wire-format", "unexpected eof",
	} {
		if strings.Contains(s, known) {
			return true
		}
	}
	return false
}
