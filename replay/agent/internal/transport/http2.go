package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

const (
	contentType = "application/connect+proto"

	// statusNeedsHTTP2 is the status that the live service's load balancer is reported to return.
	//
	// Source: RESEARCH.md#transports
	statusNeedsHTTP2 = 464

	// versionCheckTimeout limits the check which version of HTTP a server without TLS answers in.
	versionCheckTimeout = 2 * time.Second
)

// A call is a Stream over HTTP/2: a single bidirectional RPC.
type call struct {
	// cancel cancels the HTTP request.
	cancel context.CancelFunc

	// pipe is the writing end of the request body.
	pipe *io.PipeWriter

	// down is the server's half.
	down *download

	// record records the exchange; nil if nothing is recorded.
	record captures.Recording
	// buf is the buffer of Send, which is reused.
	buf []byte
}

// openHTTP2 opens a stream over HTTP/2 and sends its first message. It returns once the server's
// response headers have arrived. ctx limits only the opening.
func (d *Dialer) openHTTP2(ctx context.Context, header http.Header, first []byte) (Stream, error) {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	body, pipe := io.Pipe()
	u := d.endpoint(d.procedures.run)
	req, err := http.NewRequestWithContext(live, http.MethodPost, u.String(), body)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Te", "trailers")

	c := &call{cancel: cancel, pipe: pipe}
	if c.record, err = d.begin(req, "2"); err != nil {
		cancel()
		return nil, err
	}

	// Cancelling ctx aborts only the opening; afterwards the stream has its own context.
	var progress outbound.Progress
	var server string
	stop := context.AfterFunc(ctx, func() { c.abort(ctx.Err()) })
	sent := make(chan error, 1)
	go func() { sent <- c.Send(first) }()
	resp, err := d.http2.RoundTrip(req.WithContext(progress.Trace(live, &server)))
	if !stop() && err == nil {
		err = ctx.Err()
		resp.Body.Close()
	}
	if err != nil {
		early := closedEarly(err)
		err = openError(ctx, &progress, err)
		if early && d.answersInHTTP1(ctx) {
			// The server closed the connection before its answer was read.
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
	} else {
		recordResponse(c.record, resp, server)
		if resp.StatusCode != http.StatusOK {
			err = statusFault(resp, c.record)
		}
	}
	if err != nil {
		c.abort(err)
		<-sent
		endRecord(c.record, captures.Failed, err)
		return nil, err
	}
	// a server that answers has read it, or does not want it
	<-sent
	c.down = newDownload(resp, c.record)
	return c, nil
}

// closedEarly reports whether err is due to a server that closed the connection before it answered.
func closedEarly(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		// The system reports a reset once: if a write gets that error, the read that waits for the answer gets the end of
		// the stream, and the HTTP/2 client returns whichever came first.
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		// The error of the HTTP/2 client if the connection closes before the request is written; it is not exported.
		strings.Contains(err.Error(), "client conn could not be established")
}

// http2Start is what a client sends at the beginning of an HTTP/2 connection: the preface and an empty SETTINGS frame.
const http2Start = http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// answersInHTTP1 reports whether a server without TLS answers the beginning of an HTTP/2 connection in HTTP/1. Such a
// server cannot have executed a request in HTTP/2, so that the request can be sent again. No request is sent for the
// check.
func (d *Dialer) answersInHTTP1(ctx context.Context) bool {
	if d.URL.Scheme != "http" {
		return false
	}
	conn, err := d.http2.DialContext(ctx, "tcp", net.JoinHostPort(d.URL.Hostname(), cmp.Or(d.URL.Port(), "80")))
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const version = "HTTP/1."
	start := make([]byte, len(version))
	_ = conn.SetDeadline(time.Now().Add(versionCheckTimeout))
	// If the server refuses the rest of the preface, its answer can be read nevertheless.
	_, _ = io.WriteString(conn, http2Start)
	_, err = io.ReadFull(conn, start)
	return err == nil && string(start) == version
}

// openError explains err, the reason why no response arrived. at records how far connecting progressed.
//
// Errors: ErrRefused if the server does not support HTTP/2; an *UnreachableError if nothing was sent;
// the cause of ctx.
func openError(ctx context.Context, at *outbound.Progress, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason, text := at.Explain(err, 0)
	switch {
	case reason == outbound.NoHTTP2, strings.Contains(err.Error(), "HTTP_1_1_REQUIRED"),
		// The error of net/http if a server without TLS does not support HTTP/2.
		strings.Contains(err.Error(), "looked like an HTTP/1.1 header"):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case reason == outbound.NoAnswer:
		return err
	}
	return &UnreachableError{Reason: reason, Text: text, Err: err}
}

// statusFault returns the error for a response with a status other than 200; it wraps ErrRefused if the
// status means that the server does not support the stream over HTTP/2.
func statusFault(resp *http.Response, record captures.Recording) error {
	e := statusError(resp, record)
	switch e.Status {
	case statusNeedsHTTP2, http.StatusHTTPVersionNotSupported, http.StatusUpgradeRequired:
		return fmt.Errorf("%w: %w", ErrRefused, e)
	}
	return e
}

// Send sends a message in the request body. It blocks while the server does not read.
func (c *call) Send(message []byte) error {
	c.buf = envelope.Append(c.buf[:0], 0, message)
	if c.record != nil {
		c.record.Chunk(captures.Up, c.buf)
	}
	_, err := c.pipe.Write(c.buf)
	return err
}

// Receive waits for the next message of the server, which is valid until the next call. It returns io.EOF after an end
// of stream without an error.
func (c *call) Receive() ([]byte, error) { return c.down.next() }

// abort ends the request body with err and cancels the call. Cancelling the context alone would leave
// the response open until the request body ends.
func (c *call) abort(err error) {
	_ = c.pipe.CloseWithError(err) // never fails
	c.cancel()
}

// closeGrace is how long a server may take to end an interrupted stream.
const closeGrace = 200 * time.Millisecond

// Interrupt half-closes the stream, and cancels the call if the server does not end it soon. An
// immediate RST_STREAM would make servers discard what was sent before.
func (c *call) Interrupt() {
	_ = c.pipe.Close() // never fails
	time.AfterFunc(closeGrace, func() { c.abort(ErrClosed) })
}

// Close releases the resources of the call.
func (c *call) Close() {
	_ = c.pipe.CloseWithError(ErrClosed) // never fails
	c.cancel()
	_ = c.down.body.Close()
	c.down.end(c.record)
}

// ExchangeID returns the number of the call in the capture.
func (c *call) ExchangeID() int64 { return idOf(c.record) }
