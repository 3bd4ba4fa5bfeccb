package gateway

import (
	"context"
	"errors"
	"io"
	"time"

	"unwire/replay/agent/turn"
)

// A reader implements front.Turn: it returns the events of one response (a segment of a session) to one
// client. A repeated request gets a second reader of the same segment.
type reader struct {
	// s is the session.
	s *session

	// g is the segment, i.e. the response, that is read.
	g *segment

	// next is the number of the next event, from 0.
	next int

	// closed means that Close was called.
	closed bool

	// onEnd, if not nil, is called once after the last event was returned.
	onEnd func()
	// restart opens a new stream for the request if the session's stream turns out to be broken; nil
	// for a request that already has a new stream.
	restart func(ctx context.Context) (*reader, error)
}

// Next returns the next event of the response. If several readers wait, one of them reads from the
// stream for all.
func (t *reader) Next(ctx context.Context) (turn.Event, error) {
	for {
		t.s.mu.Lock()
		g := t.g
		// Events that were already read from the stream are served first; then the end or the
		// error.
		switch {
		case t.closed:
			t.s.mu.Unlock()
			return nil, io.EOF
		case t.next < g.first:
			t.s.mu.Unlock()
			return nil, &turn.Error{Kind: turn.Upstream, Code: "slow_reader", Message: "unwire no longer has the beginning of the response: send the request again"}
		case t.next < g.first+len(g.events):
			event := g.events[t.next-g.first]
			t.next++
			t.s.mu.Unlock()
			return event, nil
		case g.err != nil:
			err := g.err
			t.s.mu.Unlock()
			if t.next == 0 && t.restart != nil && broken(err) {
				if err := t.again(ctx); err != nil {
					return nil, err
				}
				continue
			}
			return nil, err
		case g.done:
			t.s.mu.Unlock()
			if t.onEnd != nil {
				t.onEnd()
				t.onEnd = nil
			}
			return nil, io.EOF
		case g.pulling:
			// Another reader is reading from the stream: wait for its event.
			changed := g.changed
			t.s.mu.Unlock()
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			continue
		}

		// This reader reads the next event for all.
		g.pulling = true
		t.s.mu.Unlock()
		if err := t.s.pull(ctx, g); err != nil {
			return nil, err
		}
	}
}

// broken reports whether an error means that the stream was lost, and not that the upstream refused the
// request.
func broken(err error) bool {
	kind := turn.AsError(err).Kind
	return kind == turn.Upstream || kind == turn.Timeout || kind == turn.Internal
}

// again opens a new stream for the request, and continues t with its response.
func (t *reader) again(ctx context.Context) error {
	fresh, err := t.restart(ctx)
	if err != nil {
		return err
	}
	t.Close()
	t.s, t.g, t.next, t.closed, t.restart, t.onEnd = fresh.s, fresh.g, 0, false, nil, fresh.onEnd
	return nil
}

// Close ends reading. If no other reader is left, an unfinished response is cancelled.
func (t *reader) Close() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	t.g.readers--
	if t.g.readers == 0 && !t.g.done {
		t.g.fail(&turn.Error{Kind: turn.Upstream, Code: "client_left", Message: "the client closed the connection before the response ended"})
		t.s.core.count(func(n *Counts) { n.Abandoned++ })
		t.s.closeLocked()
	}
}

// pull reads one event from the agent's stream and adds it to the segment g. If the agent is silent
// after a tool call, it ends the response.
//
// Errors: only ctx's.
func (s *session) pull(ctx context.Context, g *segment) error {
	s.mu.Lock()
	calling, limit := g.calling > 0, time.Until(g.heard.Add(s.core.o.Silence))
	s.mu.Unlock()

	// After a call, only a short silence is awaited: parallel calls arrive together.
	if calling {
		limit = s.core.o.Settle
		if s.stream.Pending() {
			limit = pendingWait
		}
	}
	wait, stop := context.WithTimeout(ctx, limit)
	event, err := s.stream.Next(wait)
	silent := wait.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
	stop()

	s.mu.Lock()
	defer s.mu.Unlock()
	g.pulling = false
	defer g.wake()

	// Silence after a call ends the response; without a call it is an error.
	switch {
	case g.done: // it was ended meanwhile
		return nil
	case err == nil:
		g.heard = time.Now()
		s.accept(g, event)
	case silent && calling:
		s.boundary(g)
	case silent:
		s.fail(g, errSilent)
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		s.fail(g, err)
	}
	return nil
}

// errSilent ends a response for which the agent has sent nothing but heartbeats for Options.Silence.
var errSilent = &turn.Error{Kind: turn.Timeout, Code: "upstream_silent", Message: "the upstream has sent nothing but heartbeats for too long (--silence)"}
