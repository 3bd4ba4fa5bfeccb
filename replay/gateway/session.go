package gateway

import (
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"unwire/replay/agent/turn"
)

// A session is one stream to the agent, with the part of the conversation that its client has seen.
type session struct {
	id      string
	key     sum
	core    *Core
	stream  Stream
	started time.Time
	ended   chan struct{} // closed when the session and its stream are closed
	// parked is since when the session waits for results, in Unix nanoseconds; 0 while a
	// response is running and after the end.
	parked atomic.Int64

	mu sync.Mutex
	// known is the transcript as the client should send it back: the opening request, and
	// a run at its end that grows.
	known *transcript
	// calls are the tool calls of the agent, numbered from 1.
	calls   []call
	current *segment
	over    bool // the stream was closed, or is being closed
	expiry  *time.Timer
}

// A call is a tool call that the agent made.
type call struct {
	native   string // the agent's id
	answered bool
}

// A segment is one response: what the stream sent between two boundaries.
type segment struct {
	// before is the state of the conversation when the segment began, by which a repeated request is
	// recognised.
	before struct {
		text    int // bytes of the last run's text
		calls   int // of the last run
		notes   int // of the last run
		results map[string]sum
	}
	// heard is the time of the segment's last event, or of its beginning.
	heard time.Time

	cutter  cutter
	events  []turn.Event // from number first on
	first   int
	size    int // of events: see maxReplay
	calling int // calls in this segment
	// opening means that the segment is the first of its stream; thinking and content mean that it
	// contains such events.
	opening, thinking, content bool
	done                       bool  // its last event is in events, or err is set
	err                        error // why it broke off
	readers                    int
	pulling                    bool
	changed                    chan struct{} // closed and replaced with each event
}

// errEvicted cannot reach a client, since only parked sessions are evicted.
var errEvicted = errors.New("the session was closed because too many sessions are open")

const (
	// maxReplay is the largest part of a response that is kept to answer a repeated request, in bytes
	// of text plus eventSize for each event.
	maxReplay = 4 << 20
	eventSize = 64
)

func newSession(c *Core, key sum, stream Stream, r *turn.Request, tr *transcript) *session {
	s := &session{
		id: newSessionID(), key: key, core: c, stream: stream, started: time.Now(),
		ended: make(chan struct{}), known: tr.clone(),
	}
	s.known.lastRun()
	s.begin(r)
	s.current.opening = true
	return s
}

// clone returns a copy of the transcript whose last run can be extended independently.
func (tr *transcript) clone() *transcript {
	c := &transcript{model: tr.model, tools: tr.tools, entries: slices.Clone(tr.entries), results: maps.Clone(tr.results)}
	if last := tr.openRun(); last != nil {
		grow := &run{calls: slices.Clone(last.calls), notes: slices.Clone(last.notes)}
		grow.text.WriteString(last.text.String())
		c.entries[len(c.entries)-1].run = grow
	}
	return c
}

// begin starts a segment for a request. s.mu is held, or s is new.
func (s *session) begin(r *turn.Request) {
	g := &segment{changed: make(chan struct{}), heard: time.Now(), cutter: cutter{stops: r.Stop, limit: r.MaxTokens}}
	run := s.known.openRun()
	g.before.text, g.before.calls, g.before.notes = run.text.Len(), len(run.calls), len(run.notes)
	g.before.results = maps.Clone(s.known.results)
	s.current = g
	s.parked.Store(0)
	if s.expiry != nil {
		s.expiry.Stop()
	}
}

// attach returns a reader that starts at the beginning of the current segment.
func (s *session) attach() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attachLocked()
}

func (s *session) attachLocked() *reader {
	s.current.readers++
	return &reader{s: s, g: s.current}
}

// resume continues the session with the results of a request, or returns why the request
// does not continue it.
func (s *session) resume(tr *transcript, r *turn.Request) (*reader, coldCause) {
	t, deliver, cause := s.match(tr, r)
	for _, result := range deliver {
		if err := s.answer(result); err != nil {
			s.end(&turn.Error{Kind: turn.Upstream, Code: "stream_lost", Message: "the upstream's stream was lost while it waited for results", Err: err})
			return nil, coldBroken
		}
	}
	return t, cause
}

// answer sends a result. One for a call that the agent has taken back is late, and dropped.
func (s *session) answer(result turn.Result) error {
	err := s.stream.Answer(result)
	if err != nil && turn.AsError(err).Kind == turn.NotFound {
		return nil
	}
	return err
}

// match compares a request with the session. If the request continues it, match begins a
// segment and returns its reader with the results to send.
func (s *session) match(tr *transcript, r *turn.Request) (*reader, []turn.Result, coldCause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.repeated(tr); t != nil {
		return t, nil, coldNew
	}
	switch {
	case s.over:
		return nil, nil, coldExpired
	case s.parked.Load() == 0:
		return nil, nil, coldBusy
	}
	open, results := s.openCalls(tr)
	cause := s.compare(tr)
	if cause == coldNew && results == 0 {
		cause = coldMovedOn
	}
	if cause != coldNew {
		// Results or a message after the open calls show that this is the conversation
		// itself, which goes on elsewhere; anything else may be a side request.
		if results > 0 || cause == coldMovedOn {
			s.abandonLocked()
		}
		return nil, nil, cause
	}

	deliver := make([]turn.Result, 0, len(open))
	for _, n := range open {
		id := callID(s.id, n)
		result, ok := tr.given[id]
		if !ok {
			result = interrupted(id)
		}
		s.known.results[id] = printResult(&result)
		result = cutResult(result, s.core.o.MaxResult)
		result.CallID = s.calls[n-1].native
		deliver = append(deliver, result)
		s.calls[n-1].answered = true
	}
	// What the client said together with the results goes to the model with the last one.
	run := s.known.openRun()
	notes := tr.openRun().notes[len(run.notes):]
	for _, note := range notes {
		last := &deliver[len(deliver)-1]
		last.Parts = append(slices.Clone(last.Parts), note.parts...)
	}
	run.notes = append(run.notes, notes...)
	s.begin(r)
	return s.attachLocked(), deliver, coldNew
}

// openCalls returns the numbers of the calls that have no result yet, and how many of them have one in
// tr.
func (s *session) openCalls(tr *transcript) (open []int, results int) {
	for i, c := range s.calls {
		if !c.answered {
			open = append(open, i+1)
			if _, ok := tr.results[callID(s.id, i+1)]; ok {
				results++
			}
		}
	}
	return open, results
}

// compare returns the reason why tr is not the known conversation with new results added; coldNew if it
// is.
func (s *session) compare(tr *transcript) coldCause {
	at := len(s.known.entries) - 1
	if len(tr.entries) <= at || !sameEntries(s.known.entries[:at], tr.entries[:at]) {
		return coldEdited
	}
	mine, theirs := s.known.entries[at].run, tr.entries[at].run
	switch {
	case theirs == nil, !sameText(mine.text.String(), theirs.text.String()), !slices.Equal(mine.calls, theirs.calls),
		len(theirs.notes) < len(mine.notes), !sameNotes(mine.notes, theirs.notes[:len(mine.notes)]):
		return coldEdited
	}
	if !tr.hasResults(s.known.results) {
		return coldEdited
	}
	if len(tr.entries) > at+1 {
		return coldMovedOn
	}
	if !tr.sameSetting(s.known) {
		return coldChanged
	}
	return coldNew
}

// repeated returns a reader of the current segment if tr is the request that began it.
func (s *session) repeated(tr *transcript) *reader {
	g := s.current
	at := len(s.known.entries) - 1
	if g.before.calls == 0 || g.first > 0 || g.err != nil || len(tr.entries) != at+1 || tr.entries[at].run == nil ||
		s.over && !g.done {
		return nil
	}
	mine, theirs := s.known.entries[at].run, tr.entries[at].run
	if len(theirs.calls) != g.before.calls || !slices.Equal(theirs.calls, mine.calls[:g.before.calls]) ||
		!sameText(mine.text.String()[:g.before.text], theirs.text.String()) || !sameNotes(mine.notes[:g.before.notes], theirs.notes) ||
		!sameEntries(s.known.entries[:at], tr.entries[:at]) || !tr.sameSetting(s.known) {
		return nil
	}
	if !tr.hasResults(g.before.results) {
		return nil
	}
	return s.attachLocked()
}

// abandonLocked ends a parked session whose client continued with another conversation. It tells the
// agent that no result will come. The caller must hold s.mu.
func (s *session) abandonLocked() {
	var rejections []turn.Result
	for i, c := range s.calls {
		if !c.answered {
			s.calls[i].answered = true
			rejections = append(rejections, interrupted(c.native))
		}
	}
	s.closeLocked(rejections...)
}

// end closes the session. A running response ends with err.
func (s *session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.current; !g.done {
		g.fail(err)
	}
	s.closeLocked()
}

// closeLocked sends the last results and closes the stream. The caller must hold s.mu.
func (s *session) closeLocked(last ...turn.Result) {
	if s.over {
		return
	}
	s.over = true
	s.parked.Store(0)
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.core.forget(s)
	// This waits for the network.
	s.core.closing.Go(func() {
		defer close(s.ended)
		for _, result := range last {
			if s.answer(result) != nil {
				break // the stream was lost
			}
		}
		s.stream.Close()
	})
}

// park keeps the stream open for results. s.mu is held.
func (s *session) park() {
	if s.core.o.NoReuse || s.core.draining.Load() || time.Since(s.started) > s.core.o.MaxAge {
		s.closeLocked()
		return
	}
	s.parked.Store(time.Now().UnixNano())
	g := s.current
	s.expiry = time.AfterFunc(s.core.o.Idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current == g && !s.over {
			s.core.count(func(n *Counts) { n.Expired++ })
			s.closeLocked()
		}
	})
}

// wake notifies waiting readers that the segment has new events.
func (g *segment) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// accept processes an event of the stream. The caller must hold s.mu.
func (s *session) accept(g *segment, event turn.Event) {
	if e, ok := event.(turn.Calling); ok {
		s.calls = append(s.calls, call{native: e.Call.ID})
		e.Call.ID = callID(s.id, len(s.calls))
		run := s.known.openRun()
		run.calls = append(run.calls, callPrint{e.Call.ID, printCall(&e.Call)})
		g.calling++
		event = e
	}
	for _, e := range g.cutter.add(event) {
		s.emit(g, e)
		if g.done {
			return
		}
	}
}

// emit adds an event that clients see to the segment. The caller must hold s.mu.
func (s *session) emit(g *segment, event turn.Event) {
	switch e := event.(type) {
	case turn.Text:
		s.known.openRun().addText(e.Text)
		g.size += len(e.Text)
		g.content = true
	case turn.Thinking:
		g.size += len(e.Text)
		g.thinking = true
	case turn.Calling:
		g.size += len(e.Call.Arguments)
		g.content = true
	case turn.Ended:
		if e.Reason == turn.Finished && !g.content && (g.thinking || g.opening) {
			s.fail(g, errEmpty)
			return
		}
		g.done = true
		if e.Reason == turn.Finished {
			s.core.count(func(n *Counts) { n.Finished++ })
		} else {
			s.core.count(func(n *Counts) { n.Limited++ })
		}
		s.closeLocked()
	}
	g.add(event)
}

// errEmpty reports a turn without any answer. Clients would otherwise treat it as a success and repeat
// the request.
var errEmpty = &turn.Error{Kind: turn.Upstream, Code: "empty_answer", Message: "the model ended its turn without an answer (it has only sent reasoning, or nothing): send the request again, or another one"}

// add appends an event, and drops the oldest ones beyond maxReplay.
func (g *segment) add(event turn.Event) {
	g.events = append(g.events, event)
	g.size += eventSize
	if g.size > maxReplay {
		g.first += len(g.events) - 1
		g.events = slices.Clone(g.events[len(g.events)-1:])
		g.size = 0
	}
}

// boundary ends the response at the agent's calls, and parks the session. s.mu is held.
func (s *session) boundary(g *segment) {
	for _, e := range g.cutter.flush() {
		s.emit(g, e)
	}
	g.add(turn.Ended{Reason: turn.ToolCalls})
	g.done = true
	s.core.count(func(n *Counts) { n.Parked++ })
	s.park()
}

// fail ends the response with an error. s.mu is held.
func (s *session) fail(g *segment, err error) {
	if errors.Is(err, io.EOF) {
		err = &turn.Error{Kind: turn.Upstream, Code: "incomplete", Message: "the upstream ended its stream in the middle of the turn", Err: err}
	}
	g.fail(err)
	s.core.count(func(n *Counts) { n.Failed++ })
	s.closeLocked()
}

func (g *segment) fail(err error) {
	g.done, g.err = true, err
	g.wake()
}
