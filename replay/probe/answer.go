package probe

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// An Answer is what a server said to one message.
type Answer struct {
	Status int `json:"status"` // of HTTP
	// Connect's name of the code; "" where there is none
	Code    string `json:"code"`
	Message string `json:"message"`
	Server  string `json:"server,omitempty"`
	// it was no error: the handler may have run
	Accepted bool   `json:"accepted,omitempty"`
	Type     string `json:"content_type,omitempty"`
	Allow    string `json:"allow,omitempty"`
	Fail     string `json:"fail,omitempty"` // why there is no answer

	// Reason names for programs why there is no answer.
	Reason outbound.Reason `json:"reason,omitempty"`

	Text       string        // Message, with white space made plain
	FromParser bool          // it is an error as parsers make them
	retryAfter time.Duration // 0: none
}

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

// Quoted is the server's message, cut and with its white space made plain.
func (a *Answer) Quoted() string { return quote(a.Text) }

func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// leastSize is of messages that no server refuses for their size.
const leastSize = 1 << 10

var (
	sizeRefused = regexp.MustCompile(`(?i)larger than|too large|exceeds|message size`)
	lastNumber  = regexp.MustCompile(`(\d{1,9})\D*$`)
)

// sizeLimit is how large a message may be where one was refused for its size;
// 0: it was not.
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

// Codes that no parser answers with: a handler may have run.
var ofHandlers = map[string]bool{
	"canceled": true, "deadline_exceeded": true, "not_found": true, "already_exists": true,
	"failed_precondition": true, "aborted": true, "out_of_range": true, "data_loss": true,
}

// read takes the server's code and words from a response.
//
// Shape: a message of the server's own means that its handler ran, whatever the
// status behind it.
func (a *Answer) read(p Protocol, resp *http.Response, data []byte) {
	if p == connectUnary {
		//nolint:errcheck // what could be read counts
		if e, _ := envelope.ParseError(data); e != nil && a.Status != http.StatusOK {
			a.Code, a.Message = e.Code, e.Message
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
	switch {
	case end == nil:
	case end.Error == nil:
		a.Accepted = true
	default:
		a.Code, a.Message = end.Error.Code, end.Error.Message
	}
}

func statusOf(h http.Header) *envelope.End {
	//nolint:errcheck // what could be read counts
	end, _ := envelope.ParseStatus(h.Get)
	return end
}

// finish works out what follows from an answer.
func (a *Answer) finish(p Protocol) {
	// protobuf-go puts a non-breaking space in some of its errors, and an
	// ordinary one in others, so that nobody compares them.
	a.Text = strings.Join(strings.Fields(strings.ReplaceAll(a.Message, "\u00a0", " ")), " ")
	switch a.Code {
	case "invalid_argument", "internal", "unknown":
		a.FromParser = a.Message != "" && parserText(a.Text)
	}
}

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
