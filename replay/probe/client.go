package probe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// maxAnswer bounds how much of an answer is read.
const maxAnswer = 1 << 20

// A Protocol is how a message is put into a request.
type Protocol string

const (
	auto          Protocol = ""
	connectUnary  Protocol = "connect-unary"
	connectStream Protocol = "connect-stream"
	grpc          Protocol = "grpc"
	grpcWeb       Protocol = "grpc-web"
)

// IsKnown reports whether it is a protocol that messages can be put into, or none.
func (p Protocol) IsKnown() bool {
	switch p {
	case auto, connectUnary, connectStream, grpc, grpcWeb:
		return true
	}
	return false
}

// A Client asks one method, one request at a time.
type Client struct {
	// Requests is how many requests were made, with those of a journal.
	Requests int

	// MaxMessage is how many bytes of a message the server takes; 0: any, as far as is
	// known.
	MaxMessage int

	// Remote says that the server is on another machine.
	Remote bool

	o        *Options
	url      *url.URL
	protocol Protocol
	http     *http.Transport
	journal  *journal
	http2    bool
	starts   bool      // the handler starts at each request
	next     time.Time // when the next request may go

	first       []byte // the message that the fingerprint was taken with
	firstAnswer *Answer

	executed, resumed int
	bytes             int64
}

// newClient completes o, and opens its journal.
//
// Errors: of options; outbound.ErrRefused; of the journal.
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
	j, err := openJournal(o, headers)
	c.journal = j
	c.transport(o.HTTP2 || c.protocol == grpc || u.Scheme == "https")
	return c, err
}

func (c *Client) transport(http2 bool) {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	version := "1.1"
	if http2 {
		version = "2"
	}
	c.http, c.http2 = outbound.New(c.url.Scheme, version, !c.Remote, true, c.o.Reach), http2
	// The next request may be due later than idle connections are closed.
	c.http.ResponseHeaderTimeout, c.http.IdleConnTimeout = c.o.Timeout, 0
}

// Ask sends a message in protobuf.
//
// Shape: what the fingerprint was taken with is not asked twice.
func (c *Client) Ask(ctx context.Context, what string, message []byte) (*Answer, error) {
	if c.firstAnswer != nil && bytes.Equal(message, c.first) {
		return c.firstAnswer, nil
	}
	return c.send(ctx, what, "proto", message)
}

// AskJSON sends a message in JSON.
func (c *Client) AskJSON(ctx context.Context, what string, message []byte) (*Answer, error) {
	return c.send(ctx, what, "json", message)
}

// maxRetries is how often in a row a server's retry-after is followed.
const maxRetries = 5

// send sends a message and reads the answer, or takes it from the journal.
//
// Errors: a stopError where the server wants no more, or took the message.
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
			return a, Stop("request %d was taken, though no parser should: the handler may have run", c.Requests)
		case outbound.WantsNoMore(a.Status, a.Code):
			if a.retryAfter <= 0 || a.retryAfter > c.o.MaxWait || try >= maxRetries {
				return a, Stop("the server answered %s to request %d", a.Brief(), c.Requests)
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

// ErrSize is a message that is larger than the server takes: Client.MaxMessage says
// how large it may be.
var ErrSize error = Stop("the server takes no message of the size that is needed")

// once makes one request.
func (c *Client) once(ctx context.Context, what, codec string, message []byte, try int) (*Answer, error) {
	if c.Requests >= c.o.Budget {
		return nil, Stop("the budget of %d requests is used up", c.o.Budget)
	}
	body := c.body(codec, message)
	key := c.journal.key(c.protocol, codec, body, try)
	// which no handler of a stream is asked by
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

// wait keeps to the rate.
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

func (c *Client) body(codec string, message []byte) []byte {
	if c.protocol == connectUnary {
		return message
	}
	return envelope.Append(make([]byte, 0, envelope.PrefixLen+len(message)), 0, message)
}

func (c *Client) contentType(codec string) string {
	switch c.protocol {
	case connectUnary:
		return "application/" + codec
	case connectStream:
		return "application/connect+" + codec
	}
	return "application/" + string(c.protocol) + "+" + codec
}

func (c *Client) exchange(ctx context.Context, codec string, body []byte) *Answer {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
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
	req.Header.Set("Content-Type", c.contentType(codec))
	switch c.protocol {
	case grpc:
		req.Header.Set("Te", "trailers")
	case grpcWeb:
		req.Header.Set("X-Grpc-Web", "1")
	default:
		req.Header.Set("Connect-Protocol-Version", "1")
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
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	a := &Answer{Status: resp.StatusCode, Server: resp.Header.Get("Server"), Type: resp.Header.Get("Content-Type"), Allow: resp.Header.Get("Accept-Post")}
	now := time.Now()
	if at := outbound.RetryAfter(resp.Header.Get("Retry-After"), now); !at.IsZero() {
		a.retryAfter = max(at.Sub(now), time.Millisecond)
	}
	a.read(c.protocol, resp, data)
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
