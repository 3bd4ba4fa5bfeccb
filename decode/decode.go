// Package decode turns a capture's exchanges into frames, trees and
// annotations. It is the glue between captures, envelope and wire.
package decode

import (
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// A Protocol names how an exchange carries its messages, in the contract's words.
type Protocol string

const (
	ConnectUnary  Protocol = "connect-unary"
	ConnectGet    Protocol = "connect-get"
	ConnectStream Protocol = "connect-stream"
	GRPC          Protocol = "grpc"
	GRPCWeb       Protocol = "grpc-web"
	GRPCWebText   Protocol = "grpc-web-text"
	SSE           Protocol = "sse"
	HTTP          Protocol = "http" // none of the above
)

// A Call says what an exchange is, from its headers alone.
type Call struct {
	Protocol Protocol
	Codec    string // "proto", "json", or the media subtype
	Service  string // "agent.v1.AgentService"; "" for plain HTTP
	RPC      string // "Run"
}

// A Frame is one message of an exchange as it passed, decoded as far as it goes.
type Frame struct {
	Dir  captures.Direction
	Seq  int           // from 0, per direction
	T    time.Duration // when its last byte passed, since the exchange's start
	Tree *wire.Tree    // nil where the data is not protobuf
	End  *envelope.End // set on a Connect end-of-stream frame and on unary errors
	envelope.Frame
}

// An Exchange is a captured exchange with its frames of both directions, in
// the order in which they were complete.
type Exchange struct {
	captures.Exchange
	Call
	Code    string // "ok", or the Connect/gRPC code's name; "" while unknown
	Message string // the error's message; "" if there is none
	Frames  []Frame
	Err     error // what could not be decoded; the frames before it are there
}
