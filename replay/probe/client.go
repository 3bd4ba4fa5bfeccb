package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"unwire/decode/envelope"
	"unwire/replay"
)

// A Protocol is how a message is put into a request.
type Protocol string

const (
	Auto          Protocol = ""
	ConnectUnary  Protocol = "connect-unary"
	ConnectStream Protocol = "connect-stream"
	GRPC          Protocol = "grpc"
	GRPCWeb       Protocol = "grpc-web"
)

// A stopError ends a probe early, with what was learnt.
type stopError struct {
	why  string
	off  bool // nothing that was learnt counts
	here bool // nothing that was learnt of this message counts; others can be asked

	// reason is set if a request got no answer.
	reason replay.Reason
}

func (e *stopError) Error() string { return e.why }

func stop(format string, args ...any) *stopError {
	return &stopError{why: fmt.Sprintf(format, args...)}
}

// oracleOff is for a server that says the same whatever it is asked.
func oracleOff(a *answer) *stopError {
	return &stopError{why: "the oracle is off: the answers do not follow from what is asked, so nothing is claimed: " + a.brief(), off: true}
}

// oracleOffAt is for a message whose control was answered as if it existed.
func oracleOffAt(path []int32, a *answer) *stopError {
	if len(path) == 0 {
		return oracleOff(a)
	}
	return &stopError{here: true, why: fmt.Sprintf("the oracle is off at %s: a number that cannot exist is answered as if it did, so nothing is claimed of its fields: %s", pathText(path), a.brief())}
}

// offHere reports whether an error says that nothing can be claimed of one
// message, and notes it.
func (r *Result) offHere(err error) bool {
	var stopped *stopError
	if !errors.As(err, &stopped) || !stopped.here {
		return false
	}
	r.note(stopped.why)
	return true
}

// An answer is what a server said to one message.
type answer struct {
	Status   int    `json:"status"` // of HTTP
	Code     string `json:"code"`   // Connect's name of the code; "" where there is none
	Message  string `json:"message"`
	Server   string `json:"server,omitempty"`
	Accepted bool   `json:"accepted,omitempty"` // it was no error: the handler may have run
	Type     string `json:"content_type,omitempty"`
	Allow    string `json:"allow,omitempty"`
	Fail     string `json:"fail,omitempty"` // why there is no answer

	// Reason names for programs why there is no answer.
	Reason replay.Reason `json:"reason,omitempty"`

	message    string        // Message, with white space made plain
	parser     bool          // it is an error as parsers make them
	retryAfter time.Duration // 0: none
}

func (a *answer) brief() string {
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

func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// maxAnswer bounds how much of an answer is read.
const maxAnswer = 1 << 20

// A client asks one method, one request at a time.
type client struct {
	o        *Options
	url      *url.URL
	protocol Protocol
	http     *http.Transport
	journal  *journal
	http2    bool
	starts   bool      // the handler starts at each request
	next     time.Time // when the next request may go

	// controlled has the paths, or tests at paths, whose control was answered as
	// it should be.
	controlled map[string]bool

	versionAsked bool // which version of protobuf-es answers

	showsMaps bool // the parser skips nothing in entries of maps, so a message is none

	counted   bool // the parser counts the levels that it goes down, up to levelLimit
	uncounted bool // it does not

	most int // bytes of a message that the server takes; 0: as far as is known, any

	first       []byte // the message that the fingerprint was taken with
	firstAnswer *answer

	requests, executed, resumed int
	bytes                       int64
}

func newClient(o *Options) (*client, error) {
	u := *o.To
	u.Path = strings.TrimSuffix(u.Path, "/") + o.Method
	c := &client{o: o, url: &u, protocol: o.Protocol, starts: o.ClientStreams, controlled: map[string]bool{}}
	if c.protocol == Auto {
		c.protocol = ConnectUnary
	}
	j, err := openJournal(o)
	c.journal = j
	c.transport(o.HTTP2 || c.protocol == GRPC || u.Scheme == "https")
	return c, err
}

func (c *client) transport(http2 bool) {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.http, c.http2 = replay.NewTransport(c.url, http2, c.o.Reach), http2
	c.http.ResponseHeaderTimeout = c.o.Timeout
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends a message in protobuf.
//
// Shape: what the fingerprint was taken with is not asked twice.
func (c *client) ask(ctx context.Context, what string, message []byte) (*answer, error) {
	if c.firstAnswer != nil && bytes.Equal(message, c.first) {
		return c.firstAnswer, nil
	}
	return c.send(ctx, what, "proto", message)
}

// maxRetries is how often in a row a server's retry-after is followed.
const maxRetries = 5

// send sends a message and reads the answer, or takes it from the journal.
//
// Errors: a stopError where the server wants no more, or took the message.
func (c *client) send(ctx context.Context, what, codec string, message []byte) (*answer, error) {
	for try := 0; ; try++ {
		a, err := c.once(ctx, what, codec, message, try)
		if err != nil {
			return nil, err
		}
		a.finish(c.protocol)
		switch most := a.sizeLimit(len(message)); {
		case most > 0 && (c.most == 0 || most < c.most || len(message) > c.most):
			c.most = most
			return a, errSize
		case a.Accepted:
			c.executed++
			return a, stop("request %d was taken, though no parser should: the handler may have run", c.requests)
		case replay.WantsNoMore(a.Status, a.Code):
			if a.retryAfter <= 0 || a.retryAfter > c.o.MaxWait || try >= maxRetries {
				return a, stop("the server answered %s to request %d", a.brief(), c.requests)
			}
			c.next = time.Now().Add(a.retryAfter)
		default:
			if ofHandlers[a.Code] {
				c.executed++
			}
			return a, nil
		}
	}
}

// errSize is a message that is larger than the server takes: client.most says
// how large it may be.
var errSize = stop("the server takes no message of the size that is needed")

// leastSize is of messages that no server refuses for their size.
const leastSize = 1 << 10

var (
	sizeRefused = regexp.MustCompile(`(?i)larger than|too large|exceeds|message size`)
	lastNumber  = regexp.MustCompile(`(\d{1,9})\D*$`)
)

// sizeLimit is how large a message may be where one was refused for its size;
// 0: it was not.
func (a *answer) sizeLimit(size int) int {
	if size <= leastSize || a.Status != http.StatusRequestEntityTooLarge && (a.Code != "resource_exhausted" || !sizeRefused.MatchString(a.message)) {
		return 0
	}
	if m := lastNumber.FindStringSubmatch(a.message); m != nil {
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

// once makes one request.
func (c *client) once(ctx context.Context, what, codec string, message []byte, try int) (*answer, error) {
	if c.requests >= c.o.Budget {
		return nil, stop("the budget of %d requests is used up", c.o.Budget)
	}
	body := c.body(codec, message)
	key := c.journal.key(c.protocol, codec, body, try)
	starts := c.starts && c.protocol != ConnectUnary // which no handler of a stream is asked by
	if a := c.journal.answered(key); a != nil {
		if starts {
			c.executed++
		}
		c.requests++
		c.resumed++
		c.bytes += int64(len(body))
		return a, nil
	}
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	if err := c.journal.asking(key, c.requests+1, what, c, codec, body); err != nil {
		return nil, err
	}
	c.requests++
	c.bytes += int64(len(body))
	a := c.exchange(ctx, codec, body)
	if starts && !a.Reason.Unsent() {
		c.executed++
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return a, c.journal.answer(key, c.requests, a)
}

// wait keeps to the rate.
func (c *client) wait(ctx context.Context) error {
	if d := time.Until(c.next); d > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
		}
	}
	rate := c.o.Rate
	if rate <= 0 && replay.CheckTarget(c.url, false, nil) != nil {
		rate = 1
	}
	if rate > 0 {
		c.next = time.Now().Add(time.Duration(float64(time.Second) / rate))
	}
	return nil
}

func (c *client) body(codec string, message []byte) []byte {
	if c.protocol == ConnectUnary {
		return message
	}
	return envelope.Append(make([]byte, 0, envelope.PrefixLen+len(message)), 0, message)
}

func (c *client) contentType(codec string) string {
	switch c.protocol {
	case ConnectUnary:
		return "application/" + codec
	case ConnectStream:
		return "application/connect+" + codec
	}
	return "application/" + string(c.protocol) + "+" + codec
}

func (c *client) exchange(ctx context.Context, codec string, body []byte) *answer {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	var at replay.Progress
	req, err := http.NewRequestWithContext(at.Trace(ctx), http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return &answer{Fail: err.Error()}
	}
	for _, h := range c.o.Header {
		if !ownHeader(h.Name) {
			req.Header.Add(h.Name, h.Value)
		}
	}
	req.Header.Set("Content-Type", c.contentType(codec))
	switch c.protocol {
	case GRPC:
		req.Header.Set("Te", "trailers")
	case GRPCWeb:
		req.Header.Set("X-Grpc-Web", "1")
	default:
		req.Header.Set("Connect-Protocol-Version", "1")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header["User-Agent"] = nil
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		a := new(answer)
		a.Reason, a.Fail = at.Explain(err, c.o.Timeout)
		if a.Reason == replay.NoAnswer {
			a.Fail = plain(err)
		}
		return a
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end or given up
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	a := &answer{Status: resp.StatusCode, Server: resp.Header.Get("Server"), Type: resp.Header.Get("Content-Type"), Allow: resp.Header.Get("Accept-Post")}
	now := time.Now()
	if at := replay.RetryAfter(resp.Header.Get("Retry-After"), now); !at.IsZero() {
		a.retryAfter = max(at.Sub(now), time.Millisecond)
	}
	c.read(a, resp, data)
	if err != nil && a.Code == "" {
		a.Fail = plain(err)
	}
	return a
}

// ownHeader reports whether a header of a capture belongs to the body that was
// captured, or to how it was carried.
func ownHeader(name string) bool {
	switch strings.ToLower(name) {
	case "content-type", "content-length", "content-encoding", "connect-content-encoding", "grpc-encoding", "accept-encoding",
		"connect-accept-encoding", "grpc-accept-encoding", "te", "x-grpc-web", "connect-protocol-version", "transfer-encoding",
		"connect-timeout-ms", "grpc-timeout", "host", "connection":
		return true
	}
	return false
}

func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// read takes the server's code and words from a response.
//
// Shape: a message of the server's own means that its handler ran, whatever the
// status behind it.
func (c *client) read(a *answer, resp *http.Response, data []byte) {
	if c.protocol == ConnectUnary {
		if e, _ := envelope.ParseError(data); e != nil && a.Status != http.StatusOK { //nolint:errcheck // what could be read counts
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
	frames, _ := envelope.NewDecoder(envelope.Options{Framed: true}).Feed(data) //nolint:errcheck // what could be read counts
	for _, f := range frames {
		switch {
		case c.protocol == ConnectStream && f.Flags&envelope.EndStream != 0:
			if e, err := envelope.ParseEnd(f.Data); err == nil || e.Error != nil {
				end = e
			}
		case c.protocol == GRPCWeb && f.Flags&envelope.Trailer != 0:
			fields, _ := envelope.ParseTrailer(f.Data) //nolint:errcheck // what could be read counts
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
	end, _ := envelope.ParseStatus(h.Get) //nolint:errcheck // what could be read counts
	return end
}

// finish works out what follows from an answer.
func (a *answer) finish(p Protocol) {
	// protobuf-go puts a non-breaking space in some of its errors, and an
	// ordinary one in others, so that nobody compares them.
	a.message = strings.Join(strings.Fields(strings.ReplaceAll(a.Message, "\u00a0", " ")), " ")
	switch a.Code {
	case "invalid_argument", "internal", "unknown":
		a.parser = a.Message != "" && parserText(a.message)
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
