// Package transport carries the agent's stream, with client messages in one direction and server
// messages in the other: over HTTP/2 as one call, or over HTTP/1.1 as one call for the server's
// half and one call for each client message.
//
//	d := &transport.Dialer{URL: u, Policy: policy, Profile: profile}
//	s, err := d.Open(ctx, header)
//	go s.Send(message)
//	for {
//		message, err := s.Receive() // io.EOF after the end-of-stream message
//	}
//
// A Dialer knows the server and chooses between the two. A Stream frames messages in envelopes,
// decompresses them, and reports both directions to a captures.Recorder. The package interprets
// only the messages of the fallback. replay/agent uses it.
//
// Source: RESEARCH.md#transports, RESEARCH.md#sse-fallback
package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// Limits on responses and connections.
const (
	// maxMessage limits the size of a server's message in bytes.
	maxMessage = 32 << 20

	// maxErrorBody limits the body of an error response in bytes.
	maxErrorBody = 64 << 10

	// idleTimeout is how long a connection without streams is kept.
	idleTimeout = 90 * time.Second

	// pingAfter is how long a connection may be silent before it is tested. Otherwise a parked
	// stream would not notice that its server is gone.
	pingAfter = 30 * time.Second
)

// The values of Dialer.Choice: HTTP/2 with SSE as the fallback, only HTTP/2, or only SSE, which splits
// the stream into several HTTP/1.1 calls and receives server-sent events.
const (
	Auto  = "auto"
	HTTP2 = "http2"
	SSE   = "sse"
)

var (
	// ErrRefused reports that the server refused a stream over HTTP/2.
	ErrRefused = errors.New("the server does not accept the stream over HTTP/2")

	// ErrNoEnd reports that a response ended without its end-of-stream message.
	ErrNoEnd = errors.New("the stream ended without its end-of-stream message")

	// ErrClosed reports that the stream was closed locally.
	ErrClosed = errors.New("the stream is closed")
)

// A StatusError reports a response with an HTTP status other than 200.
type StatusError struct {
	// Status is the HTTP status of the response.
	Status int
	// RetryAfter is the value of the Retry-After header; "" if there is none.
	RetryAfter string
	// Err is the error in the response body; nil if there is none.
	Err *envelope.Error
}

// Error formats the HTTP status and the server's message.
func (e *StatusError) Error() string {
	if e.Err != nil && e.Err.Message != "" {
		return fmt.Sprintf("HTTP status %d: %s: %s", e.Status, e.Err.Code, e.Err.Message)
	}
	return fmt.Sprintf("HTTP status %d", e.Status)
}

// An UnreachableError reports that a request was not sent because the server could not be reached.
type UnreachableError struct {
	// Reason is the kind of failure, for programs.
	Reason outbound.Reason
	// Text describes the failure for the user.
	Text string
	// Err is the underlying error.
	Err error
}

// Error returns Text, the description of the failure.
func (e *UnreachableError) Error() string { return e.Text }

// Unwrap returns the underlying error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// An EndError is an RPC error that the server reported in the end-of-stream message.
type EndError struct {
	// Err is the error status from the server.
	Err *envelope.Error
	// RetryAfter is the value of the retry-after metadata; "" if there is none.
	RetryAfter string
}

// Error formats the code and the message of the server's error.
func (e *EndError) Error() string { return e.Err.Code + ": " + e.Err.Message }

// A Stream exchanges messages with the agent server in both directions. Send and Receive may be called
// concurrently with each other, but each by only one goroutine at a time.
type Stream interface {
	// Send sends a message. It blocks while the server does not read.
	Send(message []byte) error

	// Receive waits for the next message of the server, which is valid until the next call. It returns
	// io.EOF after an end of stream without an error.
	//
	// Errors: an *EndError; ErrNoEnd; ErrClosed; errors of the connection.
	Receive() ([]byte, error)

	// Interrupt ends the stream in both directions, after the messages sent so far. Send and Receive
	// return soon after. Any goroutine may call it.
	Interrupt()

	// Close releases the stream's resources. Send and Receive must have returned, and must not be
	// called again.
	Close()

	// ExchangeID is the number of the exchange in the capture; 0 if it is not recorded.
	ExchangeID() int64
}

// A Dialer opens streams to one server. Its methods may be called concurrently.
type Dialer struct {
	// URL is the base URL of the server.
	URL *url.URL
	// Choice selects the transport: Auto, HTTP2 or SSE.
	Choice string
	// Policy decides which hosts may be contacted.
	Policy outbound.Policy
	// Profile describes the service, in particular how SSE splits the stream into calls.
	Profile *profile.Profile
	// Authorization returns the current Authorization header for further requests of an open stream,
	// because a stream may last longer than its token; nil reuses the header of the first request.
	Authorization func(context.Context) (string, error)
	// Recorder records all exchanges; nil records nothing.
	Recorder captures.Recorder

	// once guards the creation of http2 and http1.
	once sync.Once

	// http2 is the HTTP transport for HTTP/2.
	http2 *http.Transport

	// http1 is the HTTP transport for HTTP/1.1.
	http1 *http.Transport
	// refused means that the server has refused HTTP/2.
	refused atomic.Bool

	// procedures are the URL paths of the service's methods.
	procedures procedures
}

// prepare creates the HTTP transports for HTTP/1.1 and HTTP/2.
func (d *Dialer) prepare() {
	d.once.Do(func() {
		local := outbound.IsLoopback(d.URL.Hostname())
		d.http2 = outbound.New(d.URL.Scheme, "2", local, false, d.Policy)
		d.http2.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter / 2}
		d.http1 = outbound.New(d.URL.Scheme, "1.1", local, false, d.Policy)
		for _, t := range []*http.Transport{d.http2, d.http1} {
			t.IdleConnTimeout = idleTimeout
		}
		d.procedures = proceduresOf(d.Profile)
	})
}

// Open starts a stream. first is its first message, which servers wait for before they answer. ctx
// limits only the opening; the stream lives until it is closed.
//
// Errors: outbound.ErrRefused if the host is not allowed; a *StatusError; ErrRefused if HTTP/2 is
// refused and Choice excludes the fallback; that of ctx; errors of the connection.
func (d *Dialer) Open(ctx context.Context, header http.Header, first []byte) (Stream, error) {
	if err := outbound.CheckTarget(d.URL, d.Policy.Live, d.Policy.AllowHosts); err != nil {
		return nil, err
	}
	d.prepare()
	if d.Choice == SSE || d.Choice != HTTP2 && d.refused.Load() {
		return d.openSSE(ctx, header, first)
	}
	s, err := d.openHTTP2(ctx, header, first)
	if errors.Is(err, ErrRefused) && d.Choice != HTTP2 {
		d.refused.Store(true)
		return d.openSSE(ctx, header, first)
	}
	return s, err
}

// Close closes the idle connections of both transports.
func (d *Dialer) Close() {
	d.prepare()
	d.http2.CloseIdleConnections()
	d.http1.CloseIdleConnections()
}

// endpoint returns the URL of an RPC method; procedure is its path, package.Service/Method.
func (d *Dialer) endpoint(procedure string) *url.URL {
	return d.URL.JoinPath(procedure)
}

// procedures are the URL paths of the methods that carry a stream: run is the bidirectional call, sse
// the call for the server's half, and add the call that carries one client message (an append).
type procedures struct {
	// run is the path of the bidirectional call, sse that of the call for the server's half, and add that of an append.
	run, sse, add string
}

// appendService is the service of the append method. The profile only has the name of the method.
const appendService = "aiserver.v1.BidiService"

// proceduresOf returns the paths for the service that a profile describes.
func proceduresOf(p *profile.Profile) procedures {
	run := p.Split.Service + "/" + p.Split.RPC
	return procedures{run: run, sse: run + "SSE", add: appendService + "/" + p.Split.Append.RPC}
}
