// Package ledger knows the streams of the stand-in: which conversation has one open,
// which conversations were cut off, and how often everything happened.
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

// The times that Open waits for an earlier stream of the same conversation to go: a
// client that cancels a stream and opens the next one at once does nothing wrong, and
// the server may learn of the two in either order.
const (
	cancelGrace = 250 * time.Millisecond
	closeGrace  = 5 * time.Second
)

// maxConversations bounds what is remembered; later conversations are counted in the
// totals only.
const maxConversations = 10_000

// Stats count what a server has seen since it started.
type Stats struct {
	Streams Streams `json:"streams"`
	// Conversations has the streams by conversation id, for at most 10,000 of them.
	Conversations map[string]Streams `json:"conversations"`
	Execs         Execs              `json:"execs"`
	KV            Questions          `json:"kv"`
	Queries       Questions          `json:"queries"`
	// TurnsEnded counts turn_ended updates that were sent.
	TurnsEnded int `json:"turns_ended"`
	// Cancelled counts cancel_action messages.
	Cancelled int `json:"cancelled"`
	// Heartbeats counts client_heartbeat messages.
	Heartbeats int `json:"heartbeats"`
	// Hung counts streams that were left hanging on purpose: the client announced its
	// tools twice, or continued a conversation whose stream was cut off in a tool call.
	Hung int `json:"hung"`
	// Stale counts runs that were refused because of an outdated conversation_state.
	Stale int `json:"stale"`
}

// Streams count the streams of all conversations or of one.
type Streams struct {
	Opened int `json:"opened"`
	Open   int `json:"open"`
	// MostOpen is the largest number that was open at once.
	MostOpen int `json:"most_open"`
	// Refused counts runs whose conversation had a stream already.
	Refused int `json:"refused"`
}

// Execs count tool calls and what became of them.
type Execs struct {
	Asked    int `json:"asked"`
	Answered int `json:"answered"`
	// Rejected and NotFound count results of these kinds; they are answers too.
	Rejected int `json:"rejected"`
	NotFound int `json:"not_found"`
	// Thrown counts calls that the client ended with a throw, Aborted those that the
	// server took back.
	Thrown     int `json:"thrown"`
	Aborted    int `json:"aborted"`
	Heartbeats int `json:"heartbeats"`
	// Closed counts stream_close messages.
	Closed int `json:"closed"`
}

// Questions count questions of one kind and their answers.
type Questions struct {
	Asked    int `json:"asked"`
	Answered int `json:"answered"`
}

// A Ledger counts, and says which streams may begin. The zero value is ready.
type Ledger struct {
	mu            sync.Mutex
	stats         Stats
	conversations map[string]*conversation
}

type conversation struct {
	streams  Streams
	live     *Stream // the newest stream that is open
	poisoned bool
	turns    int
}

// A Stream is one that was opened.
type Stream struct {
	ledger *Ledger
	id     string
	ctx    context.Context
	closed chan struct{}
}

// Open registers a stream of the conversation; ctx is the stream's. With alone, it
// returns nil if the conversation has a stream that is alive. The empty id is no
// conversation: its streams never meet.
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

func (s *Streams) open() {
	s.Opened++
	s.Open++
	s.MostOpen = max(s.MostOpen, s.Open)
}

// free waits until the conversation has no stream; it returns false if there is one
// that its client still uses.
func (l *Ledger) free(ctx context.Context, id string) bool {
	l.mu.Lock()
	var live *Stream
	if c := l.conversation(id); c != nil {
		live = c.live
	}
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

// conversation returns what is known of a conversation, nil if nothing can be. The lock
// is held.
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

// Close says that the stream has ended; interrupted, that this was in a tool call.
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

// SetTurns notes how many turns the conversation's newest checkpoint has.
func (s *Stream) SetTurns(n int) { s.update(func(c *conversation) { c.turns = n }) }

// Turns returns what SetTurns noted.
func (s *Stream) Turns() (n int) {
	s.update(func(c *conversation) { n = c.turns })
	return n
}

func (s *Stream) update(f func(*conversation)) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if c := s.ledger.conversation(s.id); c != nil {
		f(c)
	}
}

// Count changes the totals.
func (l *Ledger) Count(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
}

// Stats returns a copy of the counts.
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
