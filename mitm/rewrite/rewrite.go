// Package rewrite changes the bodies of running exchanges, frame by frame. The relays (packages h1, h2, raw) read a
// body from one side, pass it to a Body, and send its result to the other side. A Policy decides what is changed:
//
//	exchange := policy.Begin(connection, request) // nil: the exchange passes untouched
//	body := rewrite.Body{Dir: captures.Down, Exchange: exchange, Recorder: recording, Declared: -1}
//	err := body.Run(ctx, received, forwarded)
//
// A Body splits the bytes into frames: envelopes, messages of a WebSocket, chunks of a raw connection, or one whole
// body. It removes the compression of each frame, asks Exchange.Frame, and forwards the frame unchanged, changed,
// several times, or not at all. Frame may block: that is how a frame is delayed or held. Every change is recorded
// with the range of received bytes that it replaces.
//
// Package mitm/rules implements Policy with rules of a file and held frames. This package knows neither rules nor
// connections.
//
// Limits: a frame of more than MaxFrame bytes, or one that does not decompress, passes unchanged. The frames that
// are being assembled have maxAssembled bytes together.
//
// Source: mitm/README.md#rules
package rewrite

import (
	"context"
	"fmt"
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
)

const (
	// MaxFrame is the size in bytes up to which a frame can be changed, before and after decompression.
	MaxFrame = 16 << 20

	// maxAssembled limits the frames that are assembled at the same time in all exchanges, in bytes.
	maxAssembled = 256 << 20
)

// A Policy decides which exchanges are changed. It is safe for concurrent use.
type Policy interface {
	// Begin returns how the exchange of a request is changed, or nil if it passes untouched. connection has what all
	// exchanges of the connection have in common. It is kept, and must not be changed any more.
	Begin(connection *captures.Exchange, q Request) Exchange

	// Maps reports whether Server replaces any server.
	Maps() bool

	// Server returns the URL of the server that replaces the one of a host (host:port), or "".
	Server(scheme, host string) string
}

// A Request is the head of a request.
type Request struct {
	// Method is the HTTP method.
	Method string
	// URL is the URL of the request.
	URL string
	// Header are the headers of the request.
	Header captures.Headers
	// Started is when the exchange began.
	Started time.Time
}

// RequestOf returns the request of an exchange.
func RequestOf(ex *captures.Exchange) Request {
	return Request{Method: ex.Method, URL: ex.URL, Header: ex.RequestHeaders, Started: ex.Started}
}

// An Exchange decides about the frames of one exchange. Its methods may be called from one goroutine for each
// direction.
type Exchange interface {
	// Changes reports whether frames of a direction may be changed. The answer is constant.
	Changes(d captures.Direction) bool

	// Diverts reports whether anything may happen to a direction: whether frames may be changed, held or paced, or the
	// exchange ended. Without that, a relay may forward its bytes as they come. The answer is constant.
	Diverts(d captures.Direction) bool

	// Request decides about the request before it is sent. Its action is Pass, Answer or Reset.
	Request() Verdict

	// Response is called with the head of the response, before the first frame down.
	Response(status int, h captures.Headers)

	// Framing returns how the body of a direction is split. For Down, it is called after Response.
	Framing(d captures.Direction) Framing

	// Frame decides about a frame. It returns early if ctx ends.
	Frame(ctx context.Context, f *Frame) Verdict

	// Passes reports whether Frame would forward a frame unchanged at once. It has no effects.
	Passes(f *Frame) bool

	// PassesEnvelopes examines complete, uncompressed envelopes at the beginning of p. It returns the number, and the
	// total length in bytes, of those for which it finds quickly that Passes is true. For the next envelope, Passes
	// decides. There may be thousands of small envelopes, for each of which filling a Frame costs more than this.
	PassesEnvelopes(d captures.Direction, p []byte) (passed, frames int)

	// PassesMessage is PassesEnvelopes for a whole body, or for an envelope with flags, that has a message after
	// decompression. If it returns false, Passes decides.
	PassesMessage(d captures.Direction, flags envelope.Flags, message []byte) bool

	// Paces reports whether Pace may wait. The answer is constant.
	Paces() bool

	// Pace waits until n bytes of a direction may be forwarded.
	Pace(ctx context.Context, d captures.Direction, n int)

	// Recorded is called before the first frame, with the number of the exchange in the capture.
	Recorded(id int64)

	// Passed reports a body that cannot be changed, with the reason.
	Passed(d captures.Direction, reason string)

	// ClientLeft is called when the client of an exchange on HTTP/1 has closed its connection, or at least the direction
	// to the server. Nobody needs to decide about frames of its response any more, so that they are not held.
	ClientLeft()

	// End is called when the exchange has ended.
	End()
}

// A Kind is the way in which a body is split into frames.
type Kind uint8

const (
	// Opaque bodies are not split, and pass unchanged.
	Opaque Kind = iota
	// Whole means that the whole body is one frame.
	Whole
	// Envelopes are those of Connect, gRPC and gRPC-Web.
	Envelopes
	// Events are server-sent events; the frame is the data of each.
	Events
	// Messages means that each WebSocket message is a frame.
	Messages
	// Chunks means that the bytes of each read are a frame.
	Chunks
)

// A Framing describes how a body is split into frames.
type Framing struct {
	// Kind is the way in which the body is split into frames.
	Kind Kind

	// Encoding is the compression of each frame, or of the whole body; "" if there is none.
	Encoding string

	// NoTakeover means that each compressed message of a WebSocket is compressed by itself.
	NoTakeover bool

	// Base64 means that the envelopes are encoded in base64 (grpc-web-text).
	Base64 bool
}

// A Frame is a frame that was received completely and is not forwarded yet.
type Frame struct {
	// Dir is the direction of the frame.
	Dir captures.Direction

	// Number is the number of the frame in its direction, from 0.
	Number int

	// Framed means that the frame has an envelope, i.e. a prefix of flags and length.
	Framed bool
	// Flags are the flags of the frame's envelope; 0 without one.
	Flags envelope.Flags

	// Opcode is the type of a WebSocket message, with the flags OpFinal and OpCompressed; 0 for other frames.
	Opcode captures.Opcode

	// Received is the frame as received, including its envelope.
	Received []byte

	// Raw is the payload as it was received, perhaps compressed.
	Raw []byte
	// Data is the payload after decompression.
	Data []byte
}

// An Action is what a rule does with a frame, such as forwarding or dropping it.
type Action uint8

const (
	// Pass forwards the frame unchanged.
	Pass Action = iota
	// Replace forwards other messages in place of the frame.
	Replace
	// Answer ends the exchange with an answer to the client.
	Answer
	// Reset resets the exchange in both directions.
	Reset
)

// A Verdict is the decision of the rules about a frame.
type Verdict struct {
	// Action is what happens to the frame. Default: Pass, it is forwarded unchanged.
	Action Action

	// Rule is the name of the rule that made the decision.
	Rule string

	// Messages are the payloads that Replace forwards, not compressed. None drops the frame.
	Messages [][]byte

	// Answer is the response for the client, if Action is Answer.
	Answer *Response
}

// A Response is an HTTP response that is sent to the client instead of the server's.
type Response struct {
	// Status is the HTTP status of the response.
	Status int

	// Header are the HTTP headers of the response.
	Header captures.Headers

	// Body is the complete body, with its envelopes. It is sent if no part of another response was forwarded.
	Body []byte

	// Trailers are the HTTP trailers of the response; empty for none.
	Trailers captures.Headers

	// Tail are the bytes with which the body ends if a part of the server's response was already
	// forwarded.
	Tail []byte
}

// A Stop is the error that ends the processing of a body because a Verdict ends the whole exchange
// (Answer or Reset).
type Stop struct {
	// Verdict is the decision that ended the exchange, with the name of the rule.
	Verdict
}

// Error names the rule that ended the exchange.
func (s *Stop) Error() string { return fmt.Sprintf("ended by the rule %s", s.Rule) }

// A Recorder stores the differences between received and forwarded bytes; a captures.Recording is one.
type Recorder interface {
	// Edit records that a rule replaced the received bytes from start to end (exclusive) of a body with data.
	Edit(d captures.Direction, start, end int64, rule string, data []byte)

	// ForwardHead records the head of a direction as it was forwarded after a rule changed it.
	ForwardHead(d captures.Direction, rule string, h captures.ForwardedHead)
}
