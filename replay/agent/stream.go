package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"unwire/replay/agent/internal/history"
	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/internal/transport"
	"unwire/replay/agent/turn"
)

// The intervals at which the client sends heartbeats: for the stream, and for each open tool call.
//
// Source: RESEARCH.md#transports
const (
	heartbeatInterval     = 5 * time.Second
	execHeartbeatInterval = 3 * time.Second
)

// Limits of a stream.
const (
	// maxOutgoing is the number of messages that may wait to be sent; beyond it, no messages of the
	// server are processed.
	maxOutgoing = 64

	// cancelGrace is how long Close waits until the cancellation is sent.
	cancelGrace = 300 * time.Millisecond

	// endGrace is how long the server may take to end the stream after the turn has ended.
	endGrace = 5 * time.Second
)

// A Stream is one turn of a conversation: the events with which the server responds to one request.
// Next, Answer, Pending and Close may be called concurrently.
type Stream struct {
	// client is the Client that opened the stream.
	client *Client

	// conversation is the id of the conversation.
	conversation string

	// set are the client's tools.
	set *tools.Set

	// link is the connection to the server.
	link transport.Stream

	// events are the events that Next has not returned yet.
	events *queue

	// outgoing are the messages to be sent.
	outgoing chan outgoing
	// stop is closed when the stream ends; both goroutines then return.
	stop chan struct{}

	// stopOnce makes halt close stop only once.
	stopOnce sync.Once

	// closing makes Close run only once.
	closing sync.Once
	// closed is set when Close is called.
	closed atomic.Bool

	// running waits for the goroutines that read and write.
	running sync.WaitGroup
	// ended is the event that ended the turn; nil before. Only the reading goroutine uses it.
	ended *turn.Ended
	// limit interrupts the stream if the server does not end it within endGrace after the turn.
	limit *time.Timer

	// blobs are the blobs that the server stored with this client. Only the reading goroutine uses them
	// while the stream runs.
	blobs history.Blobs

	// mu guards calls.
	mu sync.Mutex

	// calls are the open tool calls.
	calls calls
}

// newStream returns a stream without its link; start must be called after link is set.
func newStream(c *Client, conversation string, set *tools.Set) *Stream {
	return &Stream{
		client: c, conversation: conversation, set: set,
		events: newQueue(), outgoing: make(chan outgoing, maxOutgoing), stop: make(chan struct{}),
		calls: newCalls(),
	}
}

// An outgoing message waits to be sent by the writing goroutine.
type outgoing struct {
	// message is the encoded message.
	message []byte

	// sent, if not nil, is closed once the message was sent.
	sent chan struct{}
}

// start starts the goroutines that read and write the stream.
func (s *Stream) start() {
	s.running.Go(s.read)
	s.running.Go(s.write)
}

// Conversation returns the id of the conversation.
func (s *Stream) Conversation() string { return s.conversation }

// ExchangeID returns the number of the stream in the capture; 0 without a recorder.
func (s *Stream) ExchangeID() int64 { return s.link.ExchangeID() }

// Next returns the next event of the turn. turn.Ended is the last event; after it Next returns io.EOF.
// If ctx ends first, no event is lost, and Next may be called again.
//
// Errors: ctx's, or a *turn.Error, which ends the turn.
func (s *Stream) Next(ctx context.Context) (turn.Event, error) { return s.events.take(ctx) }

// Pending reports whether the server has announced a tool call but not requested it yet.
func (s *Stream) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls.announced) > 0
}

// Answer sends the result of a tool call to the server; r.CallID is the id from its Calling event. It
// blocks while the server does not read (back-pressure).
//
// Errors: a *turn.Error of kind NotFound if the call is not open, of kind Upstream if the stream has
// ended.
func (s *Stream) Answer(r turn.Result) error {
	s.mu.Lock()
	exec := s.calls.close(r.CallID)
	s.mu.Unlock()
	if exec == nil {
		return &turn.Error{Kind: turn.NotFound, Code: "unknown_call", Message: "the stream has no open call with this id"}
	}
	if !s.finish(exec, s.set.Answer(exec, &r)) {
		return &turn.Error{Kind: turn.Upstream, Code: "stream_ended", Message: "the upstream's stream has ended before the result was sent"}
	}
	return nil
}

// Close cancels the turn unless it has ended, and waits for the stream's goroutines.
func (s *Stream) Close() {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.cancel()
		s.link.Interrupt()
		s.halt()
		s.running.Wait()
		s.link.Close()
	})
}

// cancel sends the server the message that cancels the turn, and waits at most cancelGrace until it is
// sent.
func (s *Stream) cancel() {
	root := s.client.definitions.Client()
	root.At("conversation_action", "cancel_action")
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	sent := make(chan struct{})
	select {
	case s.outgoing <- outgoing{root.Bytes(), sent}:
	case <-s.stop:
		return
	case <-timer.C:
		return
	}
	select {
	case <-sent:
	case <-s.stop:
	case <-timer.C:
	}
}

// halt stops the goroutines that read and write the stream.
func (s *Stream) halt() { s.stopOnce.Do(func() { close(s.stop) }) }

// send queues a message for the writing goroutine; it blocks while the queue is full. It returns false
// if the stream has ended.
func (s *Stream) send(m message.Message) bool {
	select {
	case <-s.stop:
		return false
	default:
	}
	select {
	case s.outgoing <- outgoing{message: m.Bytes()}:
		return true
	case <-s.stop:
		return false
	}
}

// finish queues the messages with the result of the exec request e, and then a stream_close message. It
// returns false if the stream ended before the result was queued. It ignores whether stream_close could
// still be queued, because a server may end the turn as soon as it has the result.
func (s *Stream) finish(e *tools.Exec, messages []message.Message) bool {
	for _, m := range messages {
		if !s.send(m) {
			return false
		}
	}
	s.send(s.set.StreamClose(e))
	return true
}

// write is the goroutine that sends queued messages and heartbeats until the stream ends.
func (s *Stream) write() {
	beat, execBeat := time.NewTicker(s.client.beat), time.NewTicker(s.client.execBeat)
	defer beat.Stop()
	defer execBeat.Stop()
	alive := s.client.definitions.Client()
	alive.At("client_heartbeat")
	heartbeat := alive.Bytes()
	for {
		var err error
		select {
		case m := <-s.outgoing:
			err = s.link.Send(m.message)
			if m.sent != nil {
				close(m.sent)
			}
		case <-beat.C:
			err = s.link.Send(heartbeat)
		case <-execBeat.C:
			for _, id := range s.openCalls() {
				if err = s.link.Send(s.execHeartbeat(id)); err != nil {
					break
				}
			}
		case <-s.stop:
			return
		}
		// the reader reports why
		if err != nil {
			s.link.Interrupt()
			return
		}
	}
}

// openCalls returns the numbers of the exec requests of all open tool calls.
func (s *Stream) openCalls() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.execIDs()
}

// execHeartbeat returns the encoded heartbeat message for the exec request with this number.
func (s *Stream) execHeartbeat(id uint32) []byte {
	root := s.client.definitions.Client()
	beat := root.At("exec_client_control_message", "heartbeat")
	if id != 0 {
		beat.Set("id", id)
	}
	return root.Bytes()
}

// read is the goroutine that processes the server's messages until the stream ends. It then ends the
// queue of events with the Ended event or an error.
func (s *Stream) read() {
	err := s.readAll()
	if errors.Is(err, errStopped) {
		s.drain()
	}
	if s.limit != nil && !s.limit.Stop() && s.ended != nil && !errors.Is(err, io.EOF) {
		// the server did not end the stream after the turn
		err = io.EOF
	}
	switch {
	case s.closed.Load():
		s.events.close(errClosed())
	case errors.Is(err, io.EOF) && s.ended != nil:
		s.events.put(*s.ended, s.stop)
		s.events.close(io.EOF)
	case errors.Is(err, io.EOF):
		s.events.close(&turn.Error{Kind: turn.Upstream, Code: "no_turn_ended", Message: "the upstream ended the stream before the turn had ended"})
	default:
		s.events.close(s.client.failure(err))
	}
	s.halt()
}

// drain reads and discards the rest of a closed stream, so that the server can end it.
func (s *Stream) drain() {
	for {
		if _, err := s.link.Receive(); err != nil {
			return
		}
	}
}

// readAll processes the server's messages. It returns the error that ended the stream: io.EOF after a
// regular end, errStopped if the stream was closed locally.
func (s *Stream) readAll() error {
	for {
		data, err := s.link.Receive()
		if err != nil {
			return err
		}
		m := s.client.definitions.Server()
		if err := m.Parse(data); err != nil {
			return fmt.Errorf("a message of the upstream cannot be decoded with the definitions: %w", err)
		}
		if err := s.handle(m); err != nil {
			return err
		}
	}
}
