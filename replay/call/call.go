// Package call calls a method of a server with messages in JSON, by its definition: over
// Connect, gRPC or gRPC-Web, in protobuf or JSON, unary or as a stream in either direction.
//
//	result, err := call.Do(ctx, call.Options{To: url, Method: method, Protocol: call.GRPC}, in, out)
//
// Messages are sent as Next returns them and received through OnAnswer, concurrently if the method
// is bidirectional. Each request is recorded, with its secrets redacted. Package outbound decides
// which servers may be called. Unlike replay, which sends recorded bytes, call encodes each
// message; connect-go implements the protocols.
package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/replay/outbound"
)

// A Protocol is an RPC protocol: Connect, gRPC or gRPC-Web.
type Protocol string

const (
	// Connect is the Connect protocol, which works over HTTP/1.1 and HTTP/2.
	Connect Protocol = "connect"
	// GRPC needs HTTP/2.
	GRPC Protocol = "grpc"
	// GRPCWeb is gRPC-Web with binary (not base64) bodies.
	GRPCWeb Protocol = "grpc-web"
)

// Protocols returns the names of all supported RPC protocols.
func Protocols() []string { return []string{string(Connect), string(GRPC), string(GRPCWeb)} }

// The codecs of messages.
const (
	Proto = "proto"
	JSON  = "json"
)

// The defaults and limits of a call.
const (
	defaultTimeout = time.Minute

	// maxMessage limits a decompressed response message in bytes.
	maxMessage = 64 << 20
)

// A Header is an HTTP request header that the user added.
type Header struct {
	// Name and Value are sent unchanged.
	Name, Value string

	// Secret means that the value is redacted in recordings.
	Secret bool
}

// Options describe a call. To and Method are required.
type Options struct {
	// To is the base URL of the server. The method's path is appended to its path.
	To *url.URL
	// Method is the descriptor of the method to be called.
	Method protoreflect.MethodDescriptor

	// Find returns the definition of a message in google.protobuf.Any by its full name, or nil.
	Find func(name string) protoreflect.MessageDescriptor

	// Protocol is the RPC protocol. Default: Connect.
	Protocol Protocol
	// Codec is the encoding of messages, Proto or JSON. Default: Proto.
	Codec string
	// Headers are sent in addition to the headers of the protocol.
	Headers []Header

	// HTTP2 uses HTTP/2 without TLS for http:// URLs, for Connect and gRPC-Web. gRPC and bidirectional
	// methods always use HTTP/2.
	HTTP2 bool

	// Reach determines which hosts may be contacted, and how their certificates are verified.
	Reach outbound.Policy
	// Timeout is the time limit for the whole call. Default: 1 minute.
	Timeout time.Duration

	// Record records the request and the response; nil records nothing.
	Record captures.Recorder

	// Placeholder returns the text that replaces a secret of Headers in Record. By default, equal secrets
	// have equal placeholders within this call.
	Placeholder func(secret string) string
}

// Messages supplies the request messages of a call, and receives the responses.
type Messages struct {
	// Next returns the next message to send as JSON, and io.EOF after the last.
	Next func() ([]byte, error)

	// OnAnswer is called with each response message as a single line of JSON. lost are the paths of
	// fields that the JSON lacks because the definitions do not contain them.
	OnAnswer func(json []byte, lost []string) error
}

// A Result is the outcome of a call.
type Result struct {
	// Code is "ok", or the name of the RPC error code.
	Code string
	// Number is the number of the RPC status code; 0 for ok.
	Number int
	// Message is the error message.
	Message string
	// Details are the details of the error.
	Details []Detail

	// Local means that no response arrived from a server; Reason and Message then describe why.
	Local bool
	// Reason is the kind of failure for programs, if no response arrived.
	Reason outbound.Reason

	// RetryAfter is the time before which the server wants no further request, from its Retry-After; zero
	// if it named none.
	RetryAfter time.Time

	// Sent and Received are the numbers of messages.
	Sent, Received int
	// Exchange is the number of the recorded exchange in the capture; 0 if nothing was recorded.
	Exchange int64
}

// A Detail is one detail message of an error.
type Detail struct {
	// Type is the full name of the detail's message type.
	Type string
	// Value is the encoded detail message.
	Value []byte
}

// Path returns the URL path of an RPC method: /package.Service/Method.
func Path(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// ErrMessage reports that the messages to send do not match the protobuf definition of the method.
var ErrMessage = errors.New("the request does not match its definition")

// Do calls an RPC method: it sends the messages that m supplies and passes the responses to m.
//
// Limits: Options.Timeout; 64 MiB for each answer.
// Errors: outbound.ErrRefused; ErrMessage and those of Messages; those of the record; that of ctx. An
// error of the server, or a missing answer, is in the Result.
func Do(ctx context.Context, o Options, m Messages) (*Result, error) {
	o.defaults()
	if err := outbound.CheckTarget(o.To, o.Reach.Live, o.Reach.AllowHosts); err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, o.Timeout)
	defer stop()
	s := newSender(&o)
	defer s.close()

	c := &caller{o: &o, m: m, sender: s, result: &Result{Code: "ok"}, client: connect.NewClient[frame, frame](s, strings.TrimSuffix(o.To.String(), "/")+Path(o.Method), o.clientOptions()...)}
	err := c.call(limited)
	s.end(err)
	c.result.Exchange, c.result.Sent = s.exchange(), int(c.sent.Load())

	// A local mistake takes precedence, because it is the cause of the errors that follow.
	switch local := c.faulted(); {
	case local != nil:
		return c.result, local
	case s.recordErr != nil:
		return c.result, s.recordErr
	case err != nil && ctx.Err() != nil:
		return c.result, context.Cause(ctx)
	case err != nil && errors.Is(err, outbound.ErrRefused):
		return nil, err
	case err != nil:
		c.fail(s, err)
	}
	if s.answered {
		c.result.RetryAfter = outbound.RetryAfter(s.retryAfter, time.Now())
		o.Reach.Pace.Observe(o.To.Hostname(), s.status, c.result.Code, s.retryAfter)
	}
	return c.result, nil
}

// defaults sets fields that are zero to their defaults, and HTTP2 if the call needs it.
func (o *Options) defaults() {
	if o.Protocol == "" {
		o.Protocol = Connect
	}
	if o.Codec == "" {
		o.Codec = Proto
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Placeholder == nil {
		o.Placeholder = redact.New(redact.Options{}).Placeholder
	}
	o.HTTP2 = o.HTTP2 || o.Protocol == GRPC || o.Method.IsStreamingClient() && o.Method.IsStreamingServer()
}

// clientOptions returns the options for the connect-go client: codec, protocol and limits.
func (o *Options) clientOptions() []connect.ClientOption {
	list := []connect.ClientOption{connect.WithCodec(rawCodec{o.Codec}), connect.WithReadMaxBytes(maxMessage), connect.WithSchema(o.Method)}
	switch o.Protocol {
	case GRPC:
		list = append(list, connect.WithGRPC())
	case GRPCWeb:
		list = append(list, connect.WithGRPCWeb())
	}
	return list
}

// setHeaders adds the user's headers to a request, except those that the protocol determines.
func (o *Options) setHeaders(h http.Header) {
	for _, one := range o.Headers {
		if !ofProtocol(one.Name) {
			h.Add(one.Name, one.Value)
		}
	}
}

// protocolHeaders are headers, in lower case, that the protocol itself sets because they describe body
// or timeout. The user's headers of these names are ignored.
var protocolHeaders = []string{
	"content-type", "content-length", "content-encoding", "connect-content-encoding", "grpc-encoding", "accept-encoding", "connect-accept-encoding",
	"grpc-accept-encoding", "te", "x-grpc-web", "connect-protocol-version", "transfer-encoding", "connect-timeout-ms", "grpc-timeout", "host", "connection",
}

// ofProtocol reports whether a header is in protocolHeaders.
func ofProtocol(name string) bool { return slices.Contains(protocolHeaders, strings.ToLower(name)) }

// A caller is the state of one call.
type caller struct {
	// o are the options of the call with defaults filled in.
	o *Options

	// m supplies the request messages and receives the responses.
	m Messages

	// sender sends the request.
	sender *sender

	// client calls the method with encoded messages.
	client *connect.Client[frame, frame]

	// result is the result as far as it is known.
	result *Result

	// sent counts the sent messages. It is atomic, because a bidirectional method may end while
	// Next still waits for a message.
	sent atomic.Int64

	// mu guards local.
	mu sync.Mutex
	// local is the first local error: of Messages, or of encoding a message.
	local error
}

// fault stores err as an error that occurred on this machine, unless there was an earlier one, and
// returns it.
func (c *caller) fault(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local == nil {
		c.local = err
	}
	return err
}

// faulted returns the first error that occurred on this machine; nil if there was none.
func (c *caller) faulted() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local
}

// call executes the method, which may be unary or stream in one or both directions.
func (c *caller) call(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch m := c.o.Method; {
	case m.IsStreamingClient() && m.IsStreamingServer():
		return c.bidi(ctx, cancel)
	case m.IsStreamingClient():
		return c.clientStream(ctx)
	case m.IsStreamingServer():
		return c.serverStream(ctx)
	}
	return c.unary(ctx)
}

// next returns the next request message in the call's codec; io.EOF after the last one.
func (c *caller) next() (*frame, error) {
	text, err := c.m.Next()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	var data []byte
	if err == nil {
		data, err = c.o.encode(text)
	}
	if err != nil {
		return nil, c.fault(err)
	}
	c.sent.Add(1)
	return &frame{data}, nil
}

// only returns the single request message of a method without client streaming; an empty message if the
// user supplied none. It is an error if there are several.
func (c *caller) only() (*connect.Request[frame], error) {
	f, err := c.next()
	if errors.Is(err, io.EOF) {
		c.sent.Add(1)
		f, err = &frame{c.o.empty()}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := c.m.Next(); err == nil {
		return nil, c.fault(fmt.Errorf("%w: the method %s takes one message, but several were given", ErrMessage, c.o.Method.FullName()))
	} else if !errors.Is(err, io.EOF) {
		return nil, c.fault(err)
	}
	r := connect.NewRequest(f)
	c.o.setHeaders(r.Header())
	return r, nil
}

// take decodes a response message and passes it to Messages.OnAnswer.
func (c *caller) take(f *frame) error {
	c.result.Received++
	text, lost, err := c.o.decode(f.data)
	if err == nil {
		err = c.m.OnAnswer(text, lost)
	}
	if err != nil {
		return c.fault(err)
	}
	return nil
}

// unary executes a method that does not stream.
func (c *caller) unary(ctx context.Context) error {
	req, err := c.only()
	if err != nil {
		return err
	}
	resp, err := c.client.CallUnary(ctx, req)
	if err != nil {
		return err
	}
	return c.take(resp.Msg)
}

// serverStream executes a method that streams responses.
func (c *caller) serverStream(ctx context.Context) error {
	req, err := c.only()
	if err != nil {
		return err
	}
	stream, err := c.client.CallServerStream(ctx, req)
	if err != nil {
		return err
	}
	// Err has its error
	defer stream.Close() //nolint:errcheck
	for stream.Receive() {
		if err := c.take(stream.Msg()); err != nil {
			return err
		}
	}
	return stream.Err()
}

// clientStream executes a method that streams requests.
func (c *caller) clientStream(ctx context.Context) error {
	stream := c.client.CallClientStream(ctx)
	c.o.setHeaders(stream.RequestHeader())
	for {
		f, err := c.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := stream.Send(f); errors.Is(err, io.EOF) {
			// the server has answered
			break
		} else if err != nil {
			return err
		}
	}
	resp, err := stream.CloseAndReceive()
	if err != nil {
		return err
	}
	return c.take(resp.Msg)
}

// bidi executes a bidirectional method: it sends requests and receives responses concurrently. cancel
// cancels ctx.
func (c *caller) bidi(ctx context.Context, cancel context.CancelFunc) error {
	stream := c.client.CallBidiStream(ctx)
	c.o.setHeaders(stream.RequestHeader())
	received := make(chan error, 1)
	go func() {
		for {
			f, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				received <- nil
				return
			}
			if err == nil {
				err = c.take(f)
			}
			if err != nil {
				received <- err
				return
			}
		}
	}()

	go func() {
		// send the headers at once
		err := stream.Send(nil)
		for err == nil {
			var f *frame
			if f, err = c.next(); err == nil {
				err = stream.Send(f)
			}
		}
		if c.faulted() != nil {
			cancel()
			c.sender.close()
			return
		}
		// Receive reports the stream's error
		_ = stream.CloseRequest()
	}()
	// The server may end the stream while Next waits for more.
	err := <-received
	// its error is known already
	_ = stream.CloseResponse()
	return err
}
