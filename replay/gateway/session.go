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

// A session is one stream to the agent, together with the conversation as far as its client has seen
// it. It produces one response for each request that continues the conversation; between them it is
// parked, waiting for results of tool calls.
type session struct {
	// id is part of the ids of the session's tool calls, by which later requests are assigned to it.
	id string

	// key is the hash of the API key of the client.
	key sum

	// core is the Core to which the session belongs.
	core *Core

	// stream is the stream to the agent.
	stream Stream

	// started is the time at which the session began.
	started time.Time

	// ended is closed when the session and its stream are closed.
	ended chan struct{}
	// parked is the time since which the session has been parked, in Unix nanoseconds; 0 while a
	// response is running and after the end.
	parked atomic.Int64

	// mu guards the fields below.
	mu sync.Mutex
	// known is the transcript as the client should send it back. Its last run, i.e. the agent's answers
	// so far, grows.
	known *transcript
	// calls are the tool calls of the agent, numbered from 1.
	calls []call

	// current is the latest response.
	current *segment

	// over means that the stream was closed, or is being closed.
	over bool

	// expiry closes the session if it is parked for longer than Options.Idle.
	expiry *time.Timer
}

// A call is a tool call that the agent made.
type call struct {
	// native is the agent's id of the call; clients see another one (see callID).
	native string

	// answered means that a result was sent to the agent.
	answered bool
}

// A segment is one response: the events that the stream sent between two requests.
type segment struct {
	// before is the size of the conversation when the segment began, by which a repeated request is
	// recognised.
	before struct {
		// text is the number of bytes of the last run's text.
		text int

		// calls is the number of tool calls in the last run.
		calls int

		// notes is the number of notes in the last run.
		notes int

		// results are the fingerprints of the tool results, by call id.
		results map[string]sum
	}
	// heard is the time of the segment's last event, or of its beginning if there is none.
	heard time.Time

	// cutter ends the response at a stop text or token limit.
	cutter cutter

	// events are the events of the response, without the oldest if it is very long.
	events []turn.Event

	// first is the number of the first event in events.
	first int

	// size is the size of events in bytes of text plus eventSize for each event. Above maxReplay, all but the
	// last are dropped.
	size int

	// calling is the number of tool calls in this response.
	calling int
	// opening means that the segment is the first of its stream; thinking and content mean that it
	// contains such events.
	opening, thinking, content bool

	// done means that the response is complete, or broken if err is set.
	done bool

	// err is the error with which the response broke off; nil if it did not.
	err error

	// readers is the number of clients that read the response.
	readers int

	// pulling means that one of the readers is reading from the stream.
	pulling bool

	// changed is closed and replaced when an event is added.
	changed chan struct{}
}

// errEvicted ends a parked session that was closed because there were too many. No client sees it.
var errEvicted = errors.New("the session was closed because too many sessions are open")

// Limits on the part of a response that is kept for repeated requests.
const (
	// maxReplay is the largest size of that part, in bytes of text plus eventSize for each event.
	maxReplay = 4 << 20
	eventSize = 64
)

// newSession returns a session for a new stream, whose first response answers the request r. tr is the
// transcript of r.
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

// clone returns a copy of the transcript, whose last run can be extended without changing the original.
func (tr *transcript) clone() *transcript {
	c := &transcript{model: tr.model, tools: tr.tools, entries: slices.Clone(tr.entries), results: maps.Clone(tr.results)}
	if last := tr.openRun(); last != nil {
		grow := &run{calls: slices.Clone(last.calls), notes: slices.Clone(last.notes)}
		grow.text.WriteString(last.text.String())
		c.entries[len(c.entries)-1].run = grow
	}
	return c
}

// begin starts a segment, i.e. the response to request r. The caller must hold s.mu unless s is new.
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

// attach returns a new reader that starts at the beginning of the current response.
func (s *session) attach() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attachLocked()
}

// attachLocked is attach for callers that hold s.mu.
func (s *session) attachLocked() *reader {
	s.current.readers++
	return &reader{s: s, g: s.current}
}

// resume continues the session with the tool results of a request, whose transcript is tr. If the
// request does not continue it, the reader is nil and the reason is returned.
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

// answer sends the result of a tool call to the agent. The result of a call that the agent has aborted
// is ignored.
func (s *session) answer(result turn.Result) error {
	err := s.stream.Answer(result)
	if err != nil && turn.AsError(err).Kind == turn.NotFound {
		return nil
	}
	return err
}

// match compares a request with the session. If the request continues the session, match starts a
// segment and returns its reader with the results to send to the agent; otherwise it returns the
// reason.
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

// openCalls returns the numbers of the tool calls whose result was not sent to the agent yet, and how
// many of these have a result in the transcript tr.
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

// compare returns the reason why tr is not the known conversation continued with new tool results;
// coldNew if it is.
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

// repeated returns a new reader of the current response if tr is the transcript of the request that
// started it; otherwise nil.
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

// abandonLocked ends a parked session whose client has continued the conversation otherwise. It reports
// to the agent that no results will follow. The caller must hold s.mu.
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

// end closes the session. A running response ends with the error err.
func (s *session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.current; !g.done {
		g.fail(err)
	}
	s.closeLocked()
}

// closeLocked sends the results last to the agent and closes the stream, without waiting for the
// network. The caller must hold s.mu.
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

// park keeps the stream open to wait for tool results, unless the options or a shutdown forbid it. The
// caller must hold s.mu.
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

// wake notifies waiting readers that the segment has changed. The caller must hold the session's lock.
func (g *segment) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// accept processes an event of the agent's stream: tool calls get ids of the session, and the cutter
// may end the response. The caller must hold s.mu.
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

// emit adds an event to the response, as clients see it. The caller must hold s.mu.
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

// errEmpty reports a turn in which the model gave no answer. Otherwise clients would consider it a
// success and repeat the request.
var errEmpty = &turn.Error{Kind: turn.Upstream, Code: "empty_answer", Message: "the model ended its turn without an answer (it has only sent reasoning, or nothing): send the request again, or another one"}

// add appends an event, and drops all older events if they exceed maxReplay.
func (g *segment) add(event turn.Event) {
	g.events = append(g.events, event)
	g.size += eventSize
	if g.size > maxReplay {
		g.first += len(g.events) - 1
		g.events = slices.Clone(g.events[len(g.events)-1:])
		g.size = 0
	}
}

// boundary ends the response with the agent's tool calls, and parks the session. The caller must hold
// s.mu.
func (s *session) boundary(g *segment) {
	for _, e := range g.cutter.flush() {
		s.emit(g, e)
	}
	g.add(turn.Ended{Reason: turn.ToolCalls})
	g.done = true
	s.core.count(func(n *Counts) { n.Parked++ })
	s.park()
}

// fail ends the response with an error and closes the session. The caller must hold s.mu.
func (s *session) fail(g *segment, err error) {
	if errors.Is(err, io.EOF) {
		err = &turn.Error{Kind: turn.Upstream, Code: "incomplete", Message: "the upstream ended its stream in the middle of the turn", Err: err}
	}
	g.fail(err)
	s.core.count(func(n *Counts) { n.Failed++ })
	s.closeLocked()
}

// fail ends the response with an error. The caller must hold the session's lock.
func (g *segment) fail(err error) {
	g.done, g.err = true, err
	g.wake()
}
