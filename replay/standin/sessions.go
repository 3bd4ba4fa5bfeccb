package standin

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/dynamicpb"
)

// sessions are the streams that arrive in pieces, by request id: RunSSE carries the
// server's half, and each BidiAppend a message of the client. Either may come first.
//
// Source: RESEARCH.md#sse-fallback
type sessions struct {
	mu  sync.Mutex
	all map[string]*session
}

// A session puts the append calls of one split stream in order.
type session struct {
	mu      sync.Mutex
	next    int64
	early   map[int64]*dynamicpb.Message // arrived before their turn
	ready   []*dynamicpb.Message
	changed chan struct{} // closed and replaced whenever ready grows
	claimed bool          // by a RunSSE
	touched time.Time
	held    int // appends seen, to withhold each second one
	bytes   int // of early and ready
}

// A pollQueue buffers a turn's messages for a client that polls in several calls.
type pollQueue struct {
	mu       sync.Mutex
	messages []*dynamicpb.Message
	next     int64 // number of messages[0]
	ended    bool
	err      error
	changed  chan struct{}
	stop     context.CancelFunc
}

// polls maps request ids to the queues of messages that clients fetch by polling.
type polls struct {
	mu  sync.Mutex
	all map[string]*pollQueue
}
