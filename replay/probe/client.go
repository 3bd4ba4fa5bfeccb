package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// maxAnswer limits how many bytes of a response are read.
const maxAnswer = 1 << 20

// A Protocol is the RPC protocol in which a probe sends its messages.
type Protocol string

const (
	auto          Protocol = ""
	connectUnary  Protocol = "connect-unary"
	connectStream Protocol = "connect-stream"
	grpc          Protocol = "grpc"
	grpcWeb       Protocol = "grpc-web"
)

// IsKnown reports whether p is a protocol that can be probed, or the automatic choice.
func (p Protocol) IsKnown() bool {
	switch p {
	case auto, connectUnary, connectStream, grpc, grpcWeb:
		return true
	}
	return false
}

// A Client sends the messages of a probe to one RPC method, one request at a time.
type Client struct {
	// Requests is the number of requests so far, including those whose response came from the journal.
	Requests int

	// MaxMessage is the largest message in bytes that the server accepts; 0 if no limit is known.
	MaxMessage int

	// Remote means that the server is on another machine, so that the limits for live servers apply.
	Remote bool

	// o are the completed options.
	o *Options

	// url is the URL of the method.
	url *url.URL

	// protocol is the protocol in which messages are sent.
	protocol Protocol

	// http is the HTTP transport.
	http *http.Transport

	// journal records all requests and responses.
	journal *journal

	// http2 means that requests use HTTP/2.
	http2 bool
	// starts means that each request starts the RPC handler before the message is parsed, as for
	// bidirectional methods.
	starts bool
	// required are the numbers of the required fields in the request's definition that no test sets.
	required []int32
	// complete means that the parser may accept the message of the next request, so that the call has
	// to end for another reason before its handler runs.
	complete bool
	// empty means that the next request has no message at all.
	empty bool
	// refusesSecond means that the server has shown that it refuses a second message of the client after
	// parsing the first, and before the handler runs.
	refusesSecond bool
	// next is the earliest time at which the next request may be sent.
	next time.Time

	// first is the first message, whose response identifies the server's runtime.
	first []byte

	// firstAnswer is the response to the first message.
	firstAnswer *Answer

	// executed is the number of requests that may have started the handler; resumed is the number of
	// responses from the journal.
	executed, resumed int

	// bytes is the total size of all request bodies.
	bytes int64
}

// newClient completes the options o, opens their journal, and returns a client.
//
// Errors: invalid options; outbound.ErrRefused; errors of the journal.
func newClient(o *Options) (*Client, error) {
	headers, err := o.Complete()
	if err != nil {
		return nil, err
	}
	u := *o.To
	u.Path = strings.TrimSuffix(u.Path, "/") + o.Method
	c := &Client{o: o, url: &u, protocol: o.Protocol, starts: o.ClientStreams, Remote: outbound.CheckTarget(&u, false, nil) != nil}
	if c.protocol == auto {
		c.protocol = connectUnary
	}
	c.required = o.definedAsRequired()
	j, err := openJournal(o, headers)
	c.journal = j
	c.transport(o.HTTP2 || c.protocol == grpc || u.Scheme == "https")
	return c, err
}

// transport sets the HTTP transport, for HTTP/2 or HTTP/1.1.
func (c *Client) transport(http2 bool) {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	version := "1.1"
	if http2 {
		version = "2"
	}
	c.http, c.http2 = outbound.New(c.url.Scheme, version, !c.Remote, true, c.o.Reach), http2
	// With a low rate, the next request may be due after the default idle timeout.
	c.http.ResponseHeaderTimeout, c.http.IdleConnTimeout = c.o.Timeout, 0
}

// Ask sends a message encoded in protobuf and returns the response. what describes the message in the
// journal.
//
// Shape: the first message of the probe is not sent again; its response is returned.
func (c *Client) Ask(ctx context.Context, what string, message []byte) (*Answer, error) {
	if c.firstAnswer != nil && bytes.Equal(message, c.first) {
		return c.firstAnswer, nil
	}
	return c.send(ctx, what, "proto", message)
}

// AskJSON sends a message in JSON and returns the response. what describes the message in the journal.
func (c *Client) AskJSON(ctx context.Context, what string, message []byte) (*Answer, error) {
	return c.send(ctx, what, "json", message)
}

// MayComplete reports whether AskComplete can be used, i.e. whether there is a reason to expect that
// the handler will not run:
//
//   - connect-go refuses a unary call if the deadline has expired after the message was parsed and before
//     the handler runs.
//   - protobuf-go refuses messages that lack a required field, which is known only from a definition.
//   - connect-go and grpc-go refuse a second message after parsing the first, where AskCardinality has
//     shown it.
//
// If the expectation were wrong, the handler would run. Therefore no such request is sent to other
// machines unless that is allowed.
func (c *Client) MayComplete() bool {
	return c.o.AllowExecute || !c.Remote && (c.protocol == connectUnary || len(c.required) > 0 || c.refusesSecond)
}

// Untested returns field numbers that must not occur in the messages of AskComplete, because the
// request's definition declares them as required: if one of them existed with the tested type, the
// message would have all required fields.
func (c *Client) Untested() []int32 {
	if c.protocol == connectUnary {
		return nil
	}
	return c.required
}

// AskComplete sends a message that the parser may accept, in a call that should end before its handler
// runs; see MayComplete. Unary Connect calls have an expired deadline; in other calls, a second message
// follows, which recent servers refuse after parsing the first.
//
// Errors: those of Ask; if there is a response, it is returned as well.
func (c *Client) AskComplete(ctx context.Context, what string, message []byte) (*Answer, error) {
	c.complete = true
	defer func() { c.complete = false }()
	return c.send(ctx, what, "proto", message)
}

// maxRetries limits how often a request is repeated because the server responded with Retry-After.
const maxRetries = 5

// send returns the response to a message, from the journal if it is there. codec is "proto" or "json".
//
// Errors: a stopError if the server refuses further requests, or if it accepted the message.
func (c *Client) send(ctx context.Context, what, codec string, message []byte) (*Answer, error) {
	for try := 0; ; try++ {
		a, err := c.once(ctx, what, codec, message, try)
		if err != nil {
			return nil, err
		}
		a.finish(c.protocol)
		switch most := a.sizeLimit(len(message)); {
		case most > 0 && (c.MaxMessage == 0 || most < c.MaxMessage || len(message) > c.MaxMessage):
			c.MaxMessage = most
			return a, ErrSize
		case a.Accepted:
			c.executed++
			return a, Stop("the server accepted the malformed request %d, so it may have executed the method", c.Requests)
		case a.wantsNoMore():
			if err := c.waitFor(a, try); err != nil {
				return a, err
			}
		default:
			if ofHandlers[a.Code] && !(c.complete && a.Code == deadlineExceeded) {
				c.executed++
			}
			return a, nil
		}
	}
}

// waitFor makes the next request wait as the answer a, with which the server refused a request, asks.
//
// Errors: a stopError if the answer names no time, if the time is too long, or after maxRetries.
func (c *Client) waitFor(a *Answer, try int) error {
	now := time.Now()
	pause := a.pause(try, now)
	switch {
	case a.retryAt.IsZero():
		return Stop("the server answered %s to request %d", a.Brief(), c.Requests)
	case pause > c.o.MaxWait:
		text := fmt.Sprintf("the server answered %s to request %d", a.Brief(), c.Requests)
		if asked := outbound.AskedToWait(a.retryAt, now); asked != "" {
			text += "; " + asked
		}
		return Stop("%s", text)
	case try >= maxRetries:
		return Stop("the server answered %s to request %d, also after %d repetitions", a.Brief(), c.Requests, maxRetries)
	}
	if c.o.Waiting != nil {
		c.o.Waiting(pause, a.Brief())
	}
	c.next = now.Add(pause)
	return nil
}

// ErrSize reports that a message is larger than the server accepts; see Client.MaxMessage.
var ErrSize error = Stop("the server accepts no message of the necessary size")

// once makes a single request, unless the journal has its response. try counts repetitions of the same
// request.
func (c *Client) once(ctx context.Context, what, codec string, message []byte, try int) (*Answer, error) {
	if c.Requests >= c.o.Budget {
		return nil, Stop("the limit of %d requests (--budget) is reached", c.o.Budget)
	}
	body := c.body(codec, message)
	key := c.journal.key(c.protocol, codec, body, try)
	// A streaming method starts its handler before any message is parsed.
	starts := c.starts && c.protocol != connectUnary
	if a := c.journal.recorded(key); a != nil {
		if starts {
			c.executed++
		}
		c.Requests++
		c.resumed++
		c.bytes += int64(len(body))
		return a, nil
	}
	if err := c.wait(ctx); err != nil {
		return nil, err
	}

	// The request is logged before it is sent, so that a killed probe never repeats one unnoticed.
	if err := c.journal.logRequest(key, c.Requests+1, what, c, codec, body); err != nil {
		return nil, err
	}
	c.Requests++
	c.bytes += int64(len(body))
	a := c.exchange(ctx, codec, body)
	if c.o.Asked != nil {
		c.o.Asked()
	}
	if starts && !a.Reason.Unsent() {
		c.executed++
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return a, c.journal.logAnswer(key, c.Requests, a)
}

// wait waits until the next request is allowed by the rate limit.
func (c *Client) wait(ctx context.Context) error {
	if d := time.Until(c.next); d > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
		}
	}
	rate := c.o.Rate
	if rate <= 0 && c.Remote {
		rate = 1
	}
	if rate > 0 {
		c.next = time.Now().Add(time.Duration(float64(time.Second) / rate))
	}
	return nil
}

// body returns the request body for a message: with an envelope, unless the protocol is unary Connect.
func (c *Client) body(codec string, message []byte) []byte {
	switch {
	case c.protocol == connectUnary:
		return message
	case c.empty:
		return nil
	}
	framed := envelope.Append(make([]byte, 0, envelope.PrefixLen+len(message)), 0, message)
	if c.complete {
		framed = envelope.Append(framed, 0, nil)
	}
	return framed
}

// HasEnvelopes reports whether messages have envelopes, so that a call can have several.
func (c *Client) HasEnvelopes() bool { return c.protocol != connectUnary }

// contentType returns the content type of requests in a codec, "proto" or "json".
func (c *Client) contentType(codec string) string {
	switch c.protocol {
	case connectUnary:
		return "application/" + codec
	case connectStream:
		return "application/connect+" + codec
	}
	return "application/" + string(c.protocol) + "+" + codec
}

// exchange sends an HTTP request with this body and returns the response. A failure is described in the
// Answer.
func (c *Client) exchange(ctx context.Context, codec string, body []byte) *Answer {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()

	// The trace records how far the request got, which decides between "not sent" and "no answer".
	var at outbound.Progress
	req, err := http.NewRequestWithContext(at.Trace(ctx, nil), http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return &Answer{Fail: err.Error()}
	}
	for _, h := range c.o.Header {
		if !ownHeader(h.Name) {
			req.Header.Add(h.Name, h.Value)
		}
	}

	// The headers of a call in this protocol. They replace captured ones.
	req.Header.Set("Content-Type", c.contentType(codec))
	switch c.protocol {
	case grpc:
		req.Header.Set("Te", "trailers")
	case grpcWeb:
		req.Header.Set("X-Grpc-Web", "1")
	default:
		req.Header.Set("Connect-Protocol-Version", "1")
		if c.complete && c.protocol == connectUnary {
			req.Header.Set("Connect-Timeout-Ms", "0")
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header["User-Agent"] = nil
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		a := new(Answer)
		a.Reason, a.Fail = at.Explain(err, c.o.Timeout)
		if a.Reason == outbound.NoAnswer {
			a.Fail = plain(err)
		}
		return a
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end or given up

	// Only the beginning of an answer is read: an error is short.
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	a := &Answer{Status: resp.StatusCode, Server: resp.Header.Get("Server"), Type: resp.Header.Get("Content-Type"), Allow: resp.Header.Get("Accept-Post")}
	a.retryAt = outbound.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	a.read(c.protocol, resp, data)
	if err != nil && a.Code == "" {
		a.Fail = plain(err)
	}
	return a
}

// ownHeader reports whether a captured header describes the captured body or connection, and so must
// not be sent by a probe.
func ownHeader(name string) bool {
	switch strings.ToLower(name) {
	case "content-type", "content-length", "content-encoding", "connect-content-encoding", "grpc-encoding", "accept-encoding",
		"connect-accept-encoding", "grpc-accept-encoding", "te", "x-grpc-web", "connect-protocol-version", "transfer-encoding",
		"connect-timeout-ms", "grpc-timeout", "host", "connection":
		return true
	}
	return false
}

// plain returns the text of an error without the method and URL that net/http adds.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}
