package standin

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// startPoll starts a turn whose messages the client fetches by polling. id is the request id that all
// calls share.
func (s *Server) startPoll(id string, header http.Header) (*pollQueue, error) {
	s.polls.mu.Lock()
	defer s.polls.mu.Unlock()
	if s.polls.all == nil {
		s.polls.all = map[string]*pollQueue{}
	}
	if s.polls.all[id] != nil {
		return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("the request is already being polled"))
	}

	// Without a limit, abandoned polls would use up the memory.
	if len(s.polls.all) >= maxSessions {
		return nil, connect.NewError(connect.CodeResourceExhausted, errors.New("too many requests are polled"))
	}

	// The turn outlives the call that starts it, until it is idle for too long.
	ctx, stop := context.WithTimeout(context.Background(), sessionIdle)
	q := &pollQueue{changed: make(chan struct{}), stop: stop}
	s.polls.all[id] = q
	s.http.RegisterOnShutdown(stop)
	go func() {
		defer stop()
		err := s.runSession(ctx, procedureRunPoll, id, header, func(m *dynamicpb.Message) error {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.messages = append(q.messages, m)
			q.signal()
			return ctx.Err()
		})

		// Polls that wait must learn of the end.
		q.mu.Lock()
		defer q.mu.Unlock()
		q.ended, q.err = true, err
		q.signal()
	}()
	return q, nil
}

// signal wakes the waiting goroutines. The caller must hold the lock.
func (q *pollQueue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// poll responds to one polling call by sending at most most messages. It waits for the first of them.
// start means that the call starts the turn; send sends a message with its number, where eof marks the
// last one.
func (s *Server) poll(ctx context.Context, id string, start bool, header http.Header, most int, send func(number int64, m *dynamicpb.Message, eof bool) error) error {
	s.polls.mu.Lock()
	// The first poll starts the turn.
	q := s.polls.all[id]
	s.polls.mu.Unlock()
	if q == nil {
		if !start {
			return connect.NewError(connect.CodeNotFound, errors.New("polling of this request was never started"))
		}
		var err error
		if q, err = s.startPoll(id, header.Clone()); err != nil {
			return err
		}
	}

	// The end of the turn is a message of its own, after which the poll is removed.
	for sent := 0; sent < most; sent++ {
		m, number, err := q.nextMessage(ctx, sent == 0)
		if err != nil || m == nil && sent > 0 && !q.over() {
			return err
		}
		if m == nil {
			s.polls.mu.Lock()
			delete(s.polls.all, id)
			s.polls.mu.Unlock()
			if q.err != nil {
				return q.err
			}
			return send(number, nil, true)
		}
		if err := send(number, m, false); err != nil {
			return err
		}
	}
	return nil
}

// nextMessage removes and returns the next message of the turn, with its number. It returns nil if
// there is none yet or, with wait, if none will follow.
func (q *pollQueue) nextMessage(ctx context.Context, wait bool) (*dynamicpb.Message, int64, error) {
	for {
		q.mu.Lock()
		if len(q.messages) > 0 {
			m, n := q.messages[0], q.next
			q.messages, q.next = q.messages[1:], q.next+1
			q.mu.Unlock()
			return m, n, nil
		}
		ended, n, changed := q.ended, q.next, q.changed
		q.mu.Unlock()
		if ended || !wait {
			return nil, n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, n, ctx.Err()
		}
	}
}

// over reports whether the turn has ended and all its messages were fetched.
func (q *pollQueue) over() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended && len(q.messages) == 0
}
