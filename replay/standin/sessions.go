package standin

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/dynamicpb"
)

// sessions are the split streams, by request id: streams of clients without HTTP/2, for which a RunSSE
// call carries the server's half and each BidiAppend call one message of the client. Either may come
// first.
//
// Source: RESEARCH.md#sse-fallback
type sessions struct {
	// mu guards all.
	mu sync.Mutex

	// all are the sessions by request id.
	all map[string]*session
}

// A session sorts the append calls of one split stream by their sequence numbers.
type session struct {
	// mu guards the fields below.
	mu sync.Mutex

	// next is the sequence number of the next message.
	next int64

	// early are messages that arrived before earlier ones, by sequence number.
	early map[int64]*dynamicpb.Message

	// ready are messages that can be processed, in order.
	ready []*dynamicpb.Message

	// changed is closed and replaced whenever ready grows.
	changed chan struct{}

	// claimed means that a RunSSE call belongs to the session.
	claimed bool

	// touched is the time of the last append.
	touched time.Time

	// held is the number of appends so far; the response to each second one is delayed.
	held int

	// bytes is the size of the messages in early and ready.
	bytes int
}

// A pollQueue buffers the messages of a turn for a client that fetches them in several polling calls.
type pollQueue struct {
	// mu guards the fields below.
	mu sync.Mutex

	// messages are the messages that were not fetched yet.
	messages []*dynamicpb.Message

	// next is the number of messages[0].
	next int64

	// ended means that the turn has ended, with the error err.
	ended bool

	// err is the error with which the turn ended; nil for none.
	err error

	// changed is closed and replaced whenever the queue changes.
	changed chan struct{}

	// stop cancels the turn.
	stop context.CancelFunc
}

// polls are the queues of messages that clients fetch by polling, by request id.
type polls struct {
	// mu guards all.
	mu sync.Mutex

	// all are the queues by request id.
	all map[string]*pollQueue
}
