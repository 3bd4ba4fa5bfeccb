package gateway

import "time"

// A coldCause is why a request was started as a new stream.
type coldCause int

// The causes.
const (
	// coldNew: the request belongs to no session.
	coldNew coldCause = iota
	// coldUnknown: its calls belong to no session of this key.
	coldUnknown
	// coldExpired: its session has ended.
	coldExpired
	// coldEdited: the transcript is not the one that the session knows.
	coldEdited
	// coldChanged: another model, or other tools.
	coldChanged
	// coldMovedOn: a message of the user came in place of results.
	coldMovedOn
	// coldBroken: the stream was lost while it was parked.
	coldBroken
	// coldBusy: the session is busy with another request.
	coldBusy
	causes
)

var causeNames = [causes]string{"new", "unknown", "expired", "edited", "changed", "moved_on", "broken", "busy"}

// Counts are statistics of a Core since its start.
type Counts struct {
	// Running is the number of sessions that currently produce a response, and Waiting that of parked
	// sessions.
	Running, Waiting int
	// Streams is the number of streams opened to the upstream server.
	Streams int
	// Resumed counts requests that continued a parked session.
	Resumed int
	// Parked is the number of responses that ended with tool calls. Finished, Limited and Failed count
	// responses that ended otherwise, and Abandoned those whose client disconnected.
	Parked, Finished, Limited, Failed, Abandoned int
	// Expired and Evicted are the numbers of parked sessions that were closed because of their age, or
	// to limit their number.
	Expired, Evicted int
	// Cold counts new streams by the reason why no session could be reused.
	Cold [causes]int
}

// ColdByCause returns the numbers of new streams by the name of the reason.
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

func (c *Core) count(change func(*Counts)) {
	c.countsLock.Lock()
	defer c.countsLock.Unlock()
	change(&c.counts)
}

// pastSessions remembers sessions that have ended: the last ones whole, so that a repeated
// request gets the same response, and more of them by id, so that late results are known
// to be late.
type pastSessions struct {
	whole []pastSession // the latest last
	keys  map[string]sum
	order []string
}

type pastSession struct {
	*session
	ended time.Time
}

const (
	maxWhole   = 32
	wholeTime  = 2 * time.Minute
	maxPastIDs = 10_000
)

func newPastSessions() *pastSessions { return &pastSessions{keys: map[string]sum{}} }

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

// find returns the ended session with the given id and key as long as it is kept, so that a client that repeats its
// request gets the answer again. It also returns the reason why the session cannot be continued.
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
