// Package ledger keeps track of the streams of the stand-in: which conversation has an
// open stream, which conversations were interrupted, and counts of all events.
//
// A Ledger is asked before a stream begins. It refuses a second stream of a conversation
// whose first one is alive, which is how tests find clients that open a stream per
// request. Its Stats are what such tests compare.
package ledger

import (
	"context"
	"maps"
	"sync"
	"time"
)

// The times that Open waits for an earlier stream of the same conversation to end. A
// client may cancel a stream and open the next one at once, and the server may see the
// two events in either order.
const (
	// How long Open waits for an earlier stream of the same conversation to end: after it was
	// cancelled, and after it was closed. A client may cancel a stream and open the next one at once,
	// and the server may notice the two events in either order.
	cancelGrace = 250 * time.Millisecond
	closeGrace  = 5 * time.Second
)

// maxConversations limits the number of conversations that are counted separately; streams of later
// ones are only counted in the totals.
const maxConversations = 10_000

// Stats counts streams, tool calls and other events since the server started.
type Stats struct {
	// Streams counts the streams of all conversations.
	Streams Streams `json:"streams"`
	// Conversations has the streams by conversation id, for at most 10,000 of them.
	Conversations map[string]Streams `json:"conversations"`
	// Execs counts tool calls, i.e. requests to the client to execute a tool.
	Execs Execs `json:"execs"`
	// KV counts requests to the client to store or return blobs.
	KV Questions `json:"kv"`
	// Queries counts questions to the user.
	Queries Questions `json:"queries"`
	// TurnsEnded counts turn_ended updates that were sent.
	TurnsEnded int `json:"turns_ended"`
	// Cancelled is the number of cancel_action messages from clients.
	Cancelled int `json:"cancelled"`
	// Heartbeats is the number of client_heartbeat messages.
	Heartbeats int `json:"heartbeats"`
	// Hung counts streams that were left hanging on purpose: the client had announced its tools twice,
	// or continued a conversation whose stream was interrupted during a tool call.
	Hung int `json:"hung"`
	// Stale counts runs that were refused because of an outdated conversation_state.
	Stale int `json:"stale"`
}

// Streams counts the streams of all conversations, or of a single one.
type Streams struct {
	// Opened is the number of all streams so far.
	Opened int `json:"opened"`
	// Open is the number of streams that are open now.
	Open int `json:"open"`
	// MostOpen is the largest number of streams that were open at the same time.
	MostOpen int `json:"most_open"`
	// Refused is the number of streams refused because their conversation already had one.
	Refused int `json:"refused"`
}

// Execs counts tool calls by their outcome.
type Execs struct {
	// Asked is the number of tool calls that the server requested.
	Asked int `json:"asked"`
	// Answered is the number of tool calls with a result from the client.
	Answered int `json:"answered"`
	// Rejected is the number of results that reject the call; Answered includes them.
	Rejected int `json:"rejected"`

	// NotFound is the number of results that report an unknown tool; Answered includes them.
	NotFound int `json:"not_found"`
	// Thrown is the number of calls that the client ended with a throw message.
	Thrown int `json:"thrown"`

	// Aborted is the number of calls that the server aborted.
	Aborted int `json:"aborted"`
	// Heartbeats is the number of heartbeats that clients sent for running tool calls.
	Heartbeats int `json:"heartbeats"`
	// Closed is the number of stream_close messages from clients.
	Closed int `json:"closed"`
}

// Questions counts one kind of requests to the client, and the responses to them.
type Questions struct {
	// Asked is the number of requests that the server sent.
	Asked int `json:"asked"`
	// Answered is the number of responses from clients.
	Answered int `json:"answered"`
}

// A Ledger counts the events on a server for its statistics, and decides which streams may begin. The
// zero value is ready for use.
type Ledger struct {
	// mu guards the fields below and the conversations.
	mu sync.Mutex

	// stats are the totals.
	stats Stats

	// conversations are the conversations by id.
	conversations map[string]*conversation
}

// A conversation is the state of a conversation across its streams.
type conversation struct {
	// streams counts the streams of the conversation.
	streams Streams

	// live is the newest stream that is open; nil if there is none.
	live *Stream

	// poisoned means that a stream was interrupted during a tool call.
	poisoned bool

	// turns is the number of turns in the newest checkpoint.
	turns int
}

// A Stream is an open stream of a conversation.
type Stream struct {
	// ledger is the ledger in which the stream is registered.
	ledger *Ledger

	// id is the id of the conversation.
	id string

	// ctx is the context of the stream.
	ctx context.Context

	// closed is closed when the stream ends.
	closed chan struct{}
}

// Open registers a new stream of the conversation id; ctx is the stream's context. If alone is set and
// the conversation already has an open stream, it returns nil. Streams with the id "" are independent
// of each other.
func (l *Ledger) Open(ctx context.Context, id string, alone bool) *Stream {
	if alone && id != "" && !l.free(ctx, id) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stats.Streams.Refused++
		if c := l.conversation(id); c != nil {
			c.streams.Refused++
		}
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &Stream{ledger: l, id: id, ctx: ctx, closed: make(chan struct{})}
	l.stats.Streams.open()
	if c := l.conversation(id); c != nil {
		c.streams.open()
		c.live = s
	}
	return s
}

// open counts a stream that was opened.
func (s *Streams) open() {
	s.Opened++
	s.Open++
	s.MostOpen = max(s.MostOpen, s.Open)
}

// free waits briefly until a conversation has no open stream. It returns false if a client still uses
// one.
func (l *Ledger) free(ctx context.Context, id string) bool {
	l.mu.Lock()
	var live *Stream
	if c := l.conversation(id); c != nil {
		live = c.live
	}

	// Release the lock while waiting: the other stream needs it to end.
	l.mu.Unlock()
	if live == nil {
		return true
	}

	cancelled := time.NewTimer(cancelGrace)
	defer cancelled.Stop()
	select {
	case <-live.closed:
		return true
	case <-ctx.Done():
		return false
	case <-cancelled.C:
		return false
	case <-live.ctx.Done():
	}
	// The client is gone; the handler needs a moment to notice.
	closed := time.NewTimer(closeGrace)
	defer closed.Stop()
	select {
	case <-live.closed:
		return true
	case <-ctx.Done():
		return false
	case <-closed.C:
		return false
	}
}

// conversation returns the state of a conversation; nil if it is not counted separately. The caller
// must hold the lock.
func (l *Ledger) conversation(id string) *conversation {
	c := l.conversations[id]
	if c == nil && id != "" && len(l.conversations) < maxConversations {
		c = &conversation{}
		if l.conversations == nil {
			l.conversations = map[string]*conversation{}
		}
		l.conversations[id] = c
	}
	return c
}

// Close records that the stream has ended; interrupted means that this happened during a tool call.
func (s *Stream) Close(interrupted bool) {
	s.update(func(c *conversation) {
		c.streams.Open--
		if c.live == s {
			c.live = nil
		}
		c.poisoned = c.poisoned || interrupted
	})
	s.ledger.Count(func(n *Stats) { n.Streams.Open-- })
	close(s.closed)
}

// Poisoned reports whether an earlier stream of the conversation was interrupted.
func (s *Stream) Poisoned() (yes bool) {
	s.update(func(c *conversation) { yes = c.poisoned })
	return yes
}

// SetTurns records the number of turns in the checkpoint that was just sent to the client.
func (s *Stream) SetTurns(n int) { s.update(func(c *conversation) { c.turns = n }) }

// Turns returns the number of turns that SetTurns recorded last, in any stream of the conversation.
func (s *Stream) Turns() (n int) {
	s.update(func(c *conversation) { n = c.turns })
	return n
}

// update calls f with the state of the stream's conversation, with the lock held. It does nothing for
// conversations that are not counted separately.
func (s *Stream) update(f func(*conversation)) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if c := s.ledger.conversation(s.id); c != nil {
		f(c)
	}
}

// Count changes the statistics by calling change, with the lock held.
func (l *Ledger) Count(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
}

// Stats returns a copy of the statistics.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Conversations = map[string]Streams{}
	for id, c := range maps.All(l.conversations) {
		s.Conversations[id] = c.streams
	}
	return s
}
