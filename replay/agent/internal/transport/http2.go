package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

const (
	contentType = "application/connect+proto"

	// statusNeedsHTTP2 is what the live service's load balancer is reported to answer.
	//
	// Source: RESEARCH.md#transports
	statusNeedsHTTP2 = 464
)

// A call is a stream over HTTP/2.
type call struct {
	cancel context.CancelFunc
	pipe   *io.PipeWriter
	down   *download
	record captures.Recording
	buf    []byte // of Send
}

// openHTTP2 opens a stream as one call. net/http would otherwise wait for the first
// message of the body on its own goroutine, so the message is written on another.
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
		err = openError(ctx, &progress, err)
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
	<-sent // a server that answers has read it, or does not want it
	c.down = newDownload(resp, c.record)
	return c, nil
}

// openError explains why there is no answer.
func openError(ctx context.Context, at *outbound.Progress, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason, text := at.Explain(err, 0)
	switch {
	case reason == outbound.NoHTTP2, strings.Contains(err.Error(), "HTTP_1_1_REQUIRED"),
		// what net/http says where a server without TLS does not know HTTP/2
		strings.Contains(err.Error(), "looked like an HTTP/1.1 header"):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case reason == outbound.NoAnswer:
		return err
	}
	return &UnreachableError{Reason: reason, Text: text, Err: err}
}

// statusFault is the error of a status that is no success.
func statusFault(resp *http.Response, record captures.Recording) error {
	e := statusError(resp, record)
	switch e.Status {
	case statusNeedsHTTP2, http.StatusHTTPVersionNotSupported, http.StatusUpgradeRequired:
		return fmt.Errorf("%w: %w", ErrRefused, e)
	}
	return e
}

// Send writes a message into the request.
func (c *call) Send(message []byte) error {
	c.buf = envelope.Append(c.buf[:0], 0, message)
	if c.record != nil {
		c.record.Chunk(captures.Up, c.buf)
	}
	_, err := c.pipe.Write(c.buf)
	return err
}

// Receive returns the next message of the response.
func (c *call) Receive() ([]byte, error) { return c.down.next() }

// abort cancels the call. A cancelled context alone leaves the server's half open until
// the body ends, so the body fails first.
func (c *call) abort(err error) {
	_ = c.pipe.CloseWithError(err) // never fails
	c.cancel()
}

// closeGrace is how long a server may take to end a stream that is interrupted.
const closeGrace = 200 * time.Millisecond

// Interrupt ends the client's half, and cancels the call if the server does not end it
// soon. A RST_STREAM at once would make servers throw away what was sent before.
func (c *call) Interrupt() {
	_ = c.pipe.Close() // never fails
	time.AfterFunc(closeGrace, func() { c.abort(ErrClosed) })
}

// Close frees what the call has.
func (c *call) Close() {
	_ = c.pipe.CloseWithError(ErrClosed) // never fails
	c.cancel()
	_ = c.down.body.Close()
	c.down.end(c.record)
}

// ExchangeID returns the number of the call in the capture.
func (c *call) ExchangeID() int64 { return idOf(c.record) }
