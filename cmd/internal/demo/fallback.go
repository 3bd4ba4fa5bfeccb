package demo

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/envelope"
)

// A duplex is the client's side of a bidirectional stream of messages, over HTTP/2 or split over several
// calls.
type duplex interface {
	// Send sends a message to the server; io.EOF means that the stream has ended.
	Send(m *message) error

	// Receive returns the server's next message, and io.EOF after the last.
	Receive() (*message, error)

	// CloseRequest ends the client's half of the stream.
	CloseRequest() error

	// CloseResponse ends the stream and releases its resources.
	CloseResponse() error
}

// inFlight is the largest number of calls with client messages that run at the same time.
const inFlight = 16

// A split is a bidirectional stream for clients without HTTP/2, divided into several calls: the server's
// messages are the response of one call (events), and each of the client's messages is a call of its own
// (append).
//
// Source: RESEARCH.md#sse-fallback
type split struct {
	// c is the client.
	c *client

	// ctx ends all calls of the stream; cancel cancels it.
	ctx context.Context

	// cancel ends all calls of the stream.
	cancel context.CancelFunc

	// header has the headers of the call for the server's messages; its x-request-id identifies the
	// stream.
	header http.Header

	// append makes the calls with the client's messages.
	append *connect.Client[message, message]

	// input is the message type of the unary calls that carry the client's messages of the stream.
	input protoreflect.MessageDescriptor

	// output is the type of the server's messages.
	output protoreflect.MessageDescriptor

	// slots has an element for each append call in progress.
	slots chan struct{}

	// wg waits for the append calls.
	wg sync.WaitGroup

	// mu guards number and failed.
	mu sync.Mutex

	// number is the sequence number of the next client message, from 0.
	number int64

	// failed joins the errors of append calls.
	failed error

	// opened is closed when the response with the server's messages has begun or failed.
	opened chan struct{}

	// body is that response; nil if it failed.
	body io.ReadCloser

	// fail is the error that ended the response.
	fail error

	// dec splits the response into frames.
	dec *envelope.Decoder

	// ready are frames that have been received and not yet returned.
	ready []envelope.Frame
}

// openSplit starts a split stream for a method, and returns when the request for the server's messages
// has been sent.
func (c *client) openSplit(ctx context.Context, service, rpc string) (*split, error) {
	calls, append, err := c.method("aiserver.v1.BidiService", "BidiAppend", connect.WithSendGzip(), connect.WithCompressMinBytes(512))
	if err != nil {
		return nil, err
	}
	_, head, err := c.method(service, rpc+"SSE")
	if err != nil {
		return nil, err
	}
	s := &split{
		c: c, header: http.Header{}, append: calls, input: append.Input(), output: head.Output(),
		slots: make(chan struct{}, inFlight), opened: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	c.headers(s.header)

	// The request id joins the two halves of the stream.
	id, err := build(head.Input(), object{"requestId": s.header.Get("x-request-id")})
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, c.o.URL+"/"+service+"/"+rpc+"SSE", bytes.NewReader(envelope.Append(nil, 0, data)))
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	req.Header = s.header.Clone()
	req.Header.Set("content-type", "application/connect+proto")
	req.Header.Set("connect-protocol-version", "1")
	req.Header.Set("x-cursor-streaming", "true")

	// Wait until the request for the server's half is sent, so that it arrives before the appends.
	sent := make(chan struct{})
	var once sync.Once
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once.Do(func() { close(sent) }) }}
	go s.open(req.WithContext(httptrace.WithClientTrace(s.ctx, trace)))
	select { // the appends follow it
	case <-sent:
	case <-s.opened:
	}
	return s, nil
}

// open makes the call that returns the server's messages. The response may begin only after an append.
func (s *split) open(req *http.Request) {
	defer close(s.opened)
	resp, err := s.c.http.Do(req)
	if err != nil {
		s.fail = err
		return
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		s.fail = fmt.Errorf("the server answered with the status %s", resp.Status)
		return
	}
	events := strings.HasPrefix(resp.Header.Get("content-type"), "text/event-stream")
	s.dec = envelope.NewDecoder(envelope.Options{Events: events, Framed: !events, Encoding: resp.Header.Get("connect-content-encoding")})
}

// Send sends a message in its own append call, and does not wait for the response.
func (s *split) Send(m *message) error {
	data, err := stableCodec{}.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return io.EOF // Receive says why
	}
	s.mu.Lock()
	number := s.number
	s.number++
	header := http.Header{}
	s.c.headers(header) // they count, too
	s.mu.Unlock()
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		if err := s.call(number, data, header); err != nil && s.ctx.Err() == nil {
			s.mu.Lock()
			s.failed = errors.Join(s.failed, fmt.Errorf("append call %d failed: %w", number, err))
			s.mu.Unlock()
			s.cancel()
		}
	})
	return nil
}

// call makes the append call with one client message, data, and its sequence number.
func (s *split) call(number int64, data []byte, header http.Header) error {
	form := object{"requestId": object{"requestId": s.header.Get("x-request-id")}, "appendSeqno": number}
	if s.c.o.Fallback == FallbackBinary {
		form["dataBinary"] = data
	} else {
		form["data"] = hex.EncodeToString(data)
	}
	m, err := build(s.input, form)
	if err != nil {
		return err
	}
	req := connect.NewRequest(m)
	maps.Copy(req.Header(), header)
	_, err = s.append.CallUnary(s.ctx, req)
	return err
}

// Receive returns the server's next message, io.EOF after the last.
func (s *split) Receive() (*message, error) {
	<-s.opened

	// The body is a sequence of envelopes, which may be divided anywhere by reads.
	for s.fail == nil && len(s.ready) == 0 {
		buf := make([]byte, 32<<10)
		n, err := s.body.Read(buf)
		frames, derr := s.dec.Feed(buf[:n])
		if s.ready = frames; derr != nil {
			err = derr
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // before the end of the stream
		}
		s.fail = err
	}

	// Errors of the appends explain a missing frame better than the end of the body.
	if len(s.ready) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, errors.Join(s.failed, s.fail)
	}
	f := s.ready[0]
	s.ready = s.ready[1:]
	if f.Flags&envelope.EndStream != 0 {
		end, err := envelope.ParseEnd(f.Data)
		switch {
		case err != nil:
			return nil, err
		case end.Error != nil:
			return nil, fmt.Errorf("%s: %s", end.Error.Code, end.Error.Message)
		}
		// Nothing follows, but a body that was not read to its end counts as cut off.
		if _, err := io.Copy(io.Discard, s.body); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	m := dynamicpb.NewMessage(s.output)
	return m, stableCodec{}.Unmarshal(f.Data, m)
}

// CloseRequest does nothing: the protocol has no way to end the client's half.
func (s *split) CloseRequest() error { return nil }

// CloseResponse waits for the append calls in progress, and ends the call with the server's messages.
func (s *split) CloseResponse() error {
	s.wg.Wait()
	s.cancel()
	<-s.opened
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}
