package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/connection"
)

// runConnection opens a WebSocket or a raw connection, sends the planned messages over it, and records
// and receives messages until it ends. The outcome is stored in s.
//
// Errors: only those of recording the messages.
func (s *session) runConnection(ctx context.Context, cancel context.CancelCauseFunc) error {
	conn, err := s.connect(ctx)
	if err != nil || conn == nil {
		s.dialogue.End()
		return err
	}
	defer conn.Close() //nolint:errcheck // it was finished, or nothing can be done

	// Read and write concurrently: the server may send before the first frame, and frames wait for its
	// messages.
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.receive(ctx, conn)
		s.dialogue.End()
	}()

	// Frames are sent as the schedule allows, each after the message that it answers.
	err = s.writeFrames(ctx, func(f *PlanFrame, b []byte) error {
		s.rec.message(captures.Up, f.Opcode, b)
		return conn.Send(ctx, connection.Message{Opcode: f.Opcode, Data: b})
	})
	if err != nil {
		cancel(err)
	} else {
		s.finish(conn, read)
	}
	select {
	case <-read:
	case <-time.After(s.p.timing.Wait):
		// The server had time to answer the close frame, but did not.
		cancel(nil)
		_ = conn.Close()
		<-read
	}
	s.rec.end(nil, s.outcome(), reason(s.fail))
	return nil
}

// finish ends the connection in the way that the captured client did: it either closes the connection
// at once, or first waits for the server to do so, at most Timing.Wait. read is closed once everything
// from the server has been received.
func (s *session) finish(conn connection.Conn, read <-chan struct{}) {
	r := s.p.ending
	if !r.clientFirst {
		select {
		case <-read:
			return
		case <-time.After(s.p.timing.Wait):
		}
	}
	code := r.code
	if code < 1000 || code == 1005 || code == 1006 {
		code = 1000
	}
	if s.p.captured.Transport == captures.WebSocket {
		s.rec.message(captures.Up, captures.OpClose, binary.BigEndian.AppendUint16(nil, uint16(code)))
	}
	_ = conn.Finish(code, "") // what came is known
}

// connect opens the connection, with a handshake if it is a WebSocket. If the server was not reached or
// refused the handshake, conn and err are both nil, and the reason is in the recorded exchange and in
// s.fail.
func (s *session) connect(ctx context.Context) (conn connection.Conn, err error) {
	t := s.p.connectionTarget(&s.at)
	if s.p.captured.Transport != captures.WebSocket {
		conn, state, err := connection.DialRaw(ctx, t)
		if err != nil {
			s.fail = cause(ctx, err)
			s.rec.end(nil, captures.Failed, explain(&s.at, s.fail, s.p.timing.Timeout).Error())
			return nil, nil
		}
		s.connected = true
		s.rec.connection(s.p.o.state(state))
		return conn, nil
	}
	conn, shake, err := connection.DialWebSocket(s.at.Trace(ctx, &s.server), t)

	// Without a handshake there is no response to record, only the reason.
	if shake == nil {
		s.fail = cause(ctx, err)
		s.rec.end(nil, captures.Failed, explain(&s.at, s.fail, s.p.timing.Timeout).Error())
		return nil, nil
	}
	h := captures.SortedHeaders(shake.Response.Header)
	s.rec.response(shake.Response.StatusCode, "1.1", h, s.p.o.connection(shake.Response), s.server)

	// A refused handshake is a complete HTTP exchange, including its body.
	if errors.Is(err, connection.ErrNotAccepted) {
		if len(shake.Body) > 0 {
			if _, err := s.rec.chunk(captures.Down, shake.Body); err != nil {
				return nil, err
			}
		}
		s.rec.end(nil, captures.Complete, "")
		return nil, nil
	}

	// What follows is an exchange of its own, of which the handshake's headers are known.
	s.rec.end(nil, captures.Complete, "")
	first := s.rec
	s.rec, err = s.p.record(captures.Exchange{ID: 1, Transport: captures.WebSocket, URL: s.p.shown.URL, HTTP: "1.1"}, s.out)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s.connected = true
	s.rec.opened(first, handshakeHeaders(h), s.server)
	s.dialogue.AddHeaders(handshakeHeaders(h))
	return conn, nil
}

// receive reads and records the server's messages until the connection ends.
func (s *session) receive(ctx context.Context, conn connection.Conn) {
	// Decode with the same framing as the capture, so that live messages can be compared with captured
	// ones.
	ex := s.rec.snapshot()
	o := decode.Options{Profile: s.rec.profile, Split: s.p.captured.Split}
	stream := decode.NewStream(&ex, o)
	var turns *connection.TurnReader
	if connection.IsRaw(s.p.captured) {
		turns = connection.NewTurnReader(s.p.captured)
	}

	// Receiving blocks, so it gets a goroutine of its own; the loop below can then also react to
	// silence.
	arrived := make(chan received)
	go func() {
		for {
			m, err := conn.Receive(ctx)
			select {
			case arrived <- received{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		// Without message boundaries, a turn of the server ends when it has been silent for a while.
		var quiet <-chan time.Time
		if turns != nil && turns.Pending() {
			quiet = time.After(s.p.timing.Quiet)
		}
		select {
		case r := <-arrived:
			if r.err != nil {
				if turns != nil {
					s.dialogue.AddFrames(s.p.links, turns.Flush())
				}
				if !errors.Is(r.err, io.EOF) {
					s.fail = cause(ctx, r.err)
				}
				return
			}
			c := s.rec.message(captures.Down, r.Opcode, r.Data)
			if s.rec.tooLarge() {
				s.fail = errTooLarge
				return
			}
			frames := withoutControl(stream.Feed(c))
			if turns != nil {
				frames = turns.Feed(r.Data)
			}
			s.dialogue.AddFrames(s.p.links, frames)
		case <-quiet:
			s.dialogue.AddFrames(s.p.links, turns.Flush())
		case <-ctx.Done():
			s.fail = context.Cause(ctx)
			return
		}
	}
}

// received is a message that arrived, or the error that ended the connection.
type received struct {
	// Message is the message that arrived.
	connection.Message

	// err is the error that ended the connection; nil if a message arrived.
	err error
}
