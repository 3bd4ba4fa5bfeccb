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

// A duplex is a bidirectional stream of messages.
type duplex interface {
	Send(m *message) error
	Receive() (*message, error)
	CloseRequest() error
	CloseResponse() error
}

// inFlight is the largest number of append calls that run at the same time.
const inFlight = 16

// A split is a bidirectional stream for those without HTTP/2: the server's
// messages are the answer to one call, each of the client's is a call.
//
// Source: RESEARCH.md#sse-fallback
type split struct {
	c      *client
	ctx    context.Context
	cancel context.CancelFunc
	header http.Header
	append *connect.Client[message, message]
	input  protoreflect.MessageDescriptor // of append
	output protoreflect.MessageDescriptor // of the server's messages
	slots  chan struct{}
	wg     sync.WaitGroup

	mu     sync.Mutex
	number int64
	failed error // of an append

	opened chan struct{} // closed when the answer has begun, or will not
	body   io.ReadCloser
	fail   error // why there is no body
	dec    *envelope.Decoder
	ready  []envelope.Frame
}

// openSplit begins a split stream of a service's method.
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

// open asks for the server's half. The answer may begin only after an append.
func (s *split) open(req *http.Request) {
	defer close(s.opened)
	resp, err := s.c.http.Do(req)
	if err != nil {
		s.fail = err
		return
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		s.fail = fmt.Errorf("status %s", resp.Status)
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
			s.failed = errors.Join(s.failed, fmt.Errorf("append %d: %w", number, err))
			s.mu.Unlock()
			s.cancel()
		}
	})
	return nil
}

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

// CloseRequest does nothing: there is no way to say that no append follows.
func (s *split) CloseRequest() error { return nil }

// CloseResponse waits for the appends that are under way and ends the call.
func (s *split) CloseResponse() error {
	s.wg.Wait()
	s.cancel()
	<-s.opened
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}
