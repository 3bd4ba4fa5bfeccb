package mcp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// drainTime is how long the answers to the last requests may take after the end of the input.
	drainTime = 600 * time.Millisecond

	// closingTime is how long calls may take to end after they were cancelled.
	closingTime = 200 * time.Millisecond
)

// ServeStdio serves one client on standard input and output, until the input or the context ends.
//
// Errors: input that is not the Model Context Protocol.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	transport := &drainingTransport{IOTransport: sdk.IOTransport{Reader: io.NopCloser(in), Writer: noClose{out}, MaxLineLength: maxRequest}}
	session, err := s.server.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait() }()
	select {
	case err = <-done:
		return transport.failure(err)
	case <-ctx.Done():
	}

	// The goroutine that reads ends with the process.
	go session.Close() //nolint:errcheck // the client is gone
	select {
	case <-done:
	case <-time.After(closingTime):
	}
	return nil
}

// A noClose is a writer with a Close method that does nothing, because the caller owns the writer.
type noClose struct {
	// Writer is the wrapped writer.
	io.Writer
}

// Close does nothing.
func (noClose) Close() error { return nil }

// A drainingTransport delays the end of its input until all earlier requests are answered, because the
// SDK cancels running requests at the end of input. Requests piped from a file would otherwise get no
// answer.
type drainingTransport struct {
	// IOTransport is the SDK's transport over an input and an output stream.
	sdk.IOTransport

	// conn is the wrapped connection, once it is open.
	conn *drainingConnection
}

// Connect opens the underlying transport, and wraps its connection in a drainingConnection.
func (t *drainingTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.conn = &drainingConnection{Connection: c, answered: make(chan struct{}, 1)}
	return t.conn, nil
}

// failure returns the error to report for a session that ended with err; nil if the input ended
// regularly, between two messages.
func (t *drainingTransport) failure(err error) error {
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	switch {
	case errors.Is(t.conn.err, io.EOF) || errors.Is(t.conn.err, context.Canceled):
		return nil
	case t.conn.err != nil:
		return &inputError{t.conn.err}
	}
	return err
}

// An inputError reports input that is not the Model Context Protocol.
type inputError struct {
	// err says what is wrong with the input.
	err error
}

// Error returns the text.
func (e *inputError) Error() string {
	return "the client sent something that is not a message of the Model Context Protocol: " + e.err.Error()
}

// Unwrap returns what is wrong with the input.
func (e *inputError) Unwrap() error { return e.err }

// A drainingConnection counts the requests that have not been answered yet, and reports the end of its
// input only when there are none.
type drainingConnection struct {
	// Connection is the wrapped connection of the SDK.
	sdk.Connection

	// answered receives a value each time a response is written.
	answered chan struct{}

	// mu guards the fields below.
	mu sync.Mutex

	// open is the number of unanswered requests.
	open int

	// err is the error with which reading ended.
	err error
}

// Read reads a message. It returns the end of the input only after all requests have been answered, or
// after drainTime.
func (c *drainingConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.count(1)
	}
	if err == nil {
		return m, nil
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	for timeout := time.After(drainTime); c.count(0) > 0; {
		select {
		case <-c.answered:
		case <-timeout:
			return m, err
		case <-ctx.Done():
			return m, err
		}
	}
	return m, err
}

// Write writes a message. A response counts as the answer to one request.
func (c *drainingConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.count(-1)
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// count adds by to the number of unanswered requests, and returns the new number.
func (c *drainingConnection) count(by int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += by
	return c.open
}
