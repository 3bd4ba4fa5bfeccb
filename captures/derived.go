package captures

import (
	"context"
	"iter"
)

// ProfileBits is the number of low bits of Summary.Version that identify the profile.
const ProfileBits = 24

// A Summary contains the properties of an exchange that are shown in listings but can only be found by decoding
// its bodies, such as the RPC method. A capture stores summaries, so that later listings need not decode again.
//
// Shape: a Summary is valid only while ExchangeHash equals that of the stored exchange, and only for
// readers that ask for the same Version. Its texts are those of package decode.
type Summary struct {
	// Exchange is the ID of the summarised exchange.
	Exchange int64

	// Version is the version of the summarizing code, shifted left by ProfileBits, combined with bits that
	// identify the profile. A summary is never replaced by one of older code.
	Version int

	// ExchangeHash is a hash of the stored exchange from which the summary was derived.
	ExchangeHash int64
	// Protocol is the detected RPC protocol or streaming format, such as "connect-stream" or "grpc".
	Protocol string
	// Codec is the encoding of the messages, such as "proto" or "json"; "" if unknown.
	Codec string
	// Service is the full name of the called RPC service; "" if the exchange is not a call.
	Service string
	// RPC is the name of the called method, without the service; "" if the exchange is not a call.
	RPC string
	// Code is the RPC status code, such as "ok" or "unavailable"; "" if unknown.
	Code string
	// FramesUp is the number of frames (messages or events) in the request body.
	FramesUp int
	// FramesDown is the number of frames (messages or events) in the response body.
	FramesDown int

	// Thread identifies the conversation to which the exchange belongs; "" if it belongs to none.
	Thread string
}

// A Listed is one row of a listing: an exchange with its summary.
//
// Shape: Exchange lacks headers, trailers, TLS and addresses. Summary is nil if no valid one of the requested
// version is stored; it is always nil for an exchange in flight.
type Listed struct {
	// Exchange is the listed exchange.
	Exchange *Exchange
	// ExchangeHash is a hash of the exchange's current stored data. A Summary with another hash is
	// outdated.
	ExchangeHash int64
	// Summary is the stored result of decoding the exchange; nil if there is none.
	Summary *Summary
}

// A SummaryStore is a capture that also stores summaries of its exchanges.
type SummaryStore interface {
	Capture

	// Listing yields all exchanges in the order of their IDs, each with its stored summary if that has the
	// given version.
	Listing(ctx context.Context, version int) iter.Seq2[Listed, error]

	// LastNumber returns the largest row number in the capture. It grows whenever something is recorded or
	// added, so a caller can detect changes.
	LastNumber(ctx context.Context) (int64, error)

	// ListingSince yields the exchanges about which something was recorded after a row number that LastNumber
	// returned earlier, each with its stored summary if that has the given version.
	ListingSince(ctx context.Context, version int, number int64) iter.Seq2[Listed, error]

	// ExchangesAfter yields the exchanges whose ID is larger than number.
	ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*Exchange, error]

	// Thread returns the summaries of the exchanges that belong to a conversation (see Summary.Thread). All
	// exchanges with IDs up to upTo have been searched; later ones may have no summary yet.
	Thread(ctx context.Context, thread string, version int) (pieces []Summary, upTo int64, err error)

	// PutSummaries stores summaries, and records that every exchange with an ID up to upTo now has one.
	PutSummaries(ctx context.Context, summaries []Summary, upTo int64) error
}

// A Reading is a user's choice of the type of a protobuf field, for all messages of one direction of an RPC
// method. It overrides the type that unwire inferred.
type Reading struct {
	// Method is the RPC method in the form "/package.Service/Method".
	Method string
	// Dir is the direction of the messages that contain the field.
	Dir Direction
	// Path is the field's path in the message by field numbers, such as 1.2.
	Path string
	// Type is the chosen type, such as "sint32"; "" removes an earlier choice.
	Type string
}
