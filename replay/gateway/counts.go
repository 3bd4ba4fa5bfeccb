package gateway

import "time"

// A coldCause is the reason why a request was sent to the agent as a new stream with the whole
// transcript ("cold"), instead of continuing the open stream of an earlier request (its session).
type coldCause int

// The reasons for a new stream.
const (
	// coldNew: the transcript has no tool calls of a session. As the result of a comparison, it means
	// that nothing prevents continuing the session.
	coldNew coldCause = iota
	// coldUnknown: the transcript's tool calls belong to no session of this API key.
	coldUnknown
	// coldExpired: the session has ended.
	coldExpired
	// coldEdited: the transcript differs from the conversation in the session.
	coldEdited
	// coldChanged: the request asks for another model or has other tools.
	coldChanged
	// coldMovedOn: the client sent a new message instead of results for the open tool calls.
	coldMovedOn
	// coldBroken: the stream was lost while it was parked.
	coldBroken
	// coldBusy: the session is busy with another request.
	coldBusy
	causes
)

// causeNames are the names of the reasons in metrics, indexed by coldCause.
var causeNames = [causes]string{"new", "unknown", "expired", "edited", "changed", "moved_on", "broken", "busy"}

// Counts are statistics of a Core since it was created. A session is an open stream to the agent; it is
// parked while it waits for the client to send results of tool calls.
type Counts struct {
	// Running is the number of sessions that currently produce a response, and Waiting that of parked
	// sessions.
	Running, Waiting int
	// Streams is the number of streams opened to the upstream server.
	Streams int
	// Resumed is the number of requests that continued a parked session.
	Resumed int
	// Parked is the number of responses that ended with tool calls. Finished, Limited and Failed are
	// the numbers of responses that ended regularly, at a limit or stop text, and with an error;
	// Abandoned is that of responses whose client disconnected.
	Parked, Finished, Limited, Failed, Abandoned int
	// Expired and Evicted are the numbers of parked sessions that were closed because of their age, or
	// to limit their number.
	Expired, Evicted int
	// Cold are the numbers of new streams by the reason why no session was continued.
	Cold [causes]int
}

// ColdByCause returns Cold as a map from the names of the reasons.
func (n Counts) ColdByCause() map[string]int {
	by := map[string]int{}
	for cause, count := range n.Cold {
		by[causeNames[cause]] = count
	}
	return by
}

// Counts returns the statistics of the Core so far.
func (c *Core) Counts() Counts {
	c.countsLock.Lock()
	n := c.counts
	c.countsLock.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.open {
		if s.parked.Load() != 0 {
			n.Waiting++
		} else {
			n.Running++
		}
	}
	return n
}

// count changes the statistics by calling change, with the lock held.
func (c *Core) count(change func(*Counts)) {
	c.countsLock.Lock()
	defer c.countsLock.Unlock()
	change(&c.counts)
}

// pastSessions remembers sessions that have ended. The latest are kept completely, so that a repeated
// request gets the same response. Of older ones only the ids are kept, so that late results of tool
// calls are recognised as late.
type pastSessions struct {
	// whole are the sessions that are kept completely, the latest last.
	whole []pastSession

	// keys are the hashed API keys of past sessions, by session id.
	keys map[string]sum

	// order are the ids in keys, oldest first.
	order []string
}

// A pastSession is a session that has ended, with the time of its end.
type pastSession struct {
	// session is the complete session.
	*session

	// ended is the time at which the session ended.
	ended time.Time
}

// The limits of pastSessions: the number and the age of complete sessions, and the number of ids.
const (
	maxWhole   = 32
	wholeTime  = 2 * time.Minute
	maxPastIDs = 10_000
)

// newPastSessions returns an empty pastSessions.
func newPastSessions() *pastSessions { return &pastSessions{keys: map[string]sum{}} }

// add adds a session that has ended, and removes the oldest above the limits.
func (g *pastSessions) add(s *session) {
	if _, ok := g.keys[s.id]; ok {
		return
	}
	g.keys[s.id] = s.key
	g.order = append(g.order, s.id)
	if len(g.order) > maxPastIDs {
		delete(g.keys, g.order[0])
		g.order = g.order[1:]
	}
	g.whole = append(g.whole, pastSession{s, time.Now()})
	if len(g.whole) > maxWhole {
		g.whole = g.whole[1:]
	}
}

// find returns the ended session with this id and hashed API key while it is kept completely, so that a
// client that repeats its request gets the same response; otherwise nil. It also returns the reason why
// the session cannot be continued.
func (g *pastSessions) find(key sum, id string) (*session, coldCause) {
	if of, ok := g.keys[id]; !ok || of != key {
		return nil, coldUnknown
	}
	for _, s := range g.whole {
		if s.id == id && time.Since(s.ended) < wholeTime {
			return s.session, coldExpired
		}
	}
	return nil, coldExpired
}
