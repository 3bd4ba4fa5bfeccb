// Package transport carries the agent's stream: client messages one way, server
// messages the other, over HTTP/2 as one call, or over HTTP/1.1 as one call for the
// server's half and one for each message of the client's.
//
//	d := &transport.Dialer{URL: u, Policy: policy, Profile: profile}
//	s, err := d.Open(ctx, header)
//	go s.Send(message)
//	for {
//		message, err := s.Receive() // io.EOF after the end-of-stream message
//	}
//
// A Dialer knows the server and decides between the two. A Stream frames messages in
// envelopes, undoes compression, and hands both directions to a captures.Recorder. It
// knows no messages but those of the fallback. It is used by replay/agent.
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

const (
	// maxMessage bounds one message of the server.
	maxMessage = 32 << 20

	// maxErrorBody bounds the body of an answer that is an error.
	maxErrorBody = 64 << 10

	// idleTimeout is how long a connection without streams is kept.
	idleTimeout = 90 * time.Second

	// pingAfter is how long a connection may be silent before it is tested; a parked
	// stream would otherwise not notice that its server is gone.
	pingAfter = 30 * time.Second
)

// The choices of a transport.
const (
	Auto  = "auto"
	HTTP2 = "http2"
	SSE   = "sse"
)

var (
	// ErrRefused is wrapped where a server does not take the stream over HTTP/2.
	ErrRefused = errors.New("the server does not take the stream over HTTP/2")

	// ErrNoEnd is wrapped where a response ended without its end-of-stream message.
	ErrNoEnd = errors.New("the stream ended without its end-of-stream message")

	// ErrClosed is returned by a stream that was closed.
	ErrClosed = errors.New("the stream is closed")
)

// A StatusError is an HTTP status that is no success.
type StatusError struct {
	Status     int
	RetryAfter string
	// Err is the error that the body has; nil if it has none.
	Err *envelope.Error
}

func (e *StatusError) Error() string {
	if e.Err != nil && e.Err.Message != "" {
		return fmt.Sprintf("HTTP status %d: %s: %s", e.Status, e.Err.Code, e.Err.Message)
	}
	return fmt.Sprintf("HTTP status %d", e.Status)
}

// An UnreachableError is why nothing of a request was sent.
type UnreachableError struct {
	Reason outbound.Reason
	// Text says it for people.
	Text string
	Err  error
}

func (e *UnreachableError) Error() string { return e.Text }

func (e *UnreachableError) Unwrap() error { return e.Err }

// An EndError is the error that the end of a stream has.
type EndError struct {
	Err        *envelope.Error
	RetryAfter string
}

func (e *EndError) Error() string { return e.Err.Code + ": " + e.Err.Message }

// A Stream is one conversation with the server. Send may be called by one goroutine at
// a time, and Receive by another.
type Stream interface {
	// Send sends a message. It waits while the server does not read.
	Send(message []byte) error

	// Receive waits for the next message, which may be used until the next call. It
	// returns io.EOF after an end of stream without an error.
	//
	// Errors: an *EndError; ErrNoEnd; ErrClosed; the connection's.
	Receive() ([]byte, error)

	// Interrupt ends the stream in both directions, behind what was sent. Send and
	// Receive return soon. It may be called by any goroutine.
	Interrupt()

	// Close frees what the stream has. Send and Receive must not run, nor be called
	// again.
	Close()

	// ExchangeID is the number of the exchange in the capture, 0 without one.
	ExchangeID() int64
}

// A Dialer opens streams to one server. Its methods may be called concurrently.
type Dialer struct {
	// URL is the server.
	URL *url.URL
	// Choice is Auto, HTTP2 or SSE.
	Choice string
	// Policy says which servers may be asked.
	Policy outbound.Policy
	// Profile says how the fallback carries messages.
	Profile *profile.Profile
	// Authorization returns the field of a request of a stream that was opened before; nil
	// for that of the opening. A stream may outlive its token.
	Authorization func(context.Context) (string, error)
	// Recorder gets all exchanges; nil for none.
	Recorder captures.Recorder

	once       sync.Once
	http2      *http.Transport
	http1      *http.Transport
	refused    atomic.Bool // HTTP/2, by this server
	procedures procedures
}

// prepare makes the two transports.
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

// Open starts a stream. first is its first message, which servers wait for before they
// answer. ctx bounds the opening alone; the stream lives until it is closed.
//
// Errors: outbound.ErrRefused; a *StatusError; ErrRefused, if there is no other way;
// ctx's; the connection's.
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

// Close closes the connections that no stream uses.
func (d *Dialer) Close() {
	d.prepare()
	d.http2.CloseIdleConnections()
	d.http1.CloseIdleConnections()
}

// endpoint is the URL of a procedure.
func (d *Dialer) endpoint(procedure string) *url.URL {
	return d.URL.JoinPath(procedure)
}

// procedures are the paths of the calls that carry a stream.
type procedures struct{ run, sse, add string }

// appendService is the service of the call that carries one message of the client.
// A profile has the name of the call alone.
const appendService = "aiserver.v1.BidiService"

func proceduresOf(p *profile.Profile) procedures {
	run := p.Split.Service + "/" + p.Split.RPC
	return procedures{run: run, sse: run + "SSE", add: appendService + "/" + p.Split.Append.RPC}
}
