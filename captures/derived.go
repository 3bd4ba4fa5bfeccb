package captures

import (
	"context"
	"iter"
)

// ProfileBits is how many of the bits of Summary.Version tell profiles apart.
const ProfileBits = 24

// A Summary is what a listing shows of an exchange that has to be derived from
// its bodies.
//
// Shape: Truth is Listed.Truth of the exchange that it was derived from: where
// that is another by now, the Summary counts for nothing. The words are those of
// the code that derives, with a profile; Version says which.
type Summary struct {
	Exchange int64

	// Version is that of the code, above ProfileBits bits that tell profiles apart. A
	// summary is never replaced by one of older code.
	Version int

	Truth                int64
	Protocol, Codec      string
	Service, RPC         string
	Code                 string
	FramesUp, FramesDown int

	// Thread is what it has in common with the other pieces of its conversation. It is ""
	// if it is no piece of one.
	Thread string
}

// A Listed exchange is one as a listing has it.
//
// Shape: of the Exchange, headers, trailers, TLS and addresses are left out.
// Summary is nil where none is there that was derived by the asked version from
// the exchange as it is now; that of one which has not ended always is.
type Listed struct {
	Exchange *Exchange
	Truth    int64
	Summary  *Summary
}

// A SummaryStore is a capture that keeps summaries of its exchanges.
type SummaryStore interface {
	Capture

	// Listing yields the exchanges of the capture as a listing has them, with
	// the summaries that were derived by a version.
	Listing(ctx context.Context, version int) iter.Seq2[Listed, error]

	// ExchangesAfter yields the exchanges with larger numbers.
	ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*Exchange, error]

	// Thread returns the summaries of the pieces of a conversation, and the
	// exchange up to which every exchange has a summary.
	Thread(ctx context.Context, thread string, version int) (pieces []Summary, upTo int64, err error)

	// PutSummaries stores summaries, after which each exchange up to upTo has one.
	PutSummaries(ctx context.Context, summaries []Summary, upTo int64) error
}

// A Reading is how somebody said that a field is read: of all messages that go in a
// direction of a method.
type Reading struct {
	Method string // "/package.Service/Method"
	Dir    Direction
	Path   string // of the field in the message: 1.2
	Type   string
}
