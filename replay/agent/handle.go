package agent

import (
	"fmt"
	"time"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

// handle processes one message of the server. Unknown kinds of messages are ignored, because servers
// change often. An error ends the stream.
func (s *Stream) handle(m message.Message) error {
	kind, member := m.Case("message")
	switch kind {
	case "interaction_update":
		return s.update(member)
	case "exec_server_message":
		return s.exec(member)
	case "kv_server_message":
		return s.kv(member)
	case "interaction_query":
		return s.query(member)
	case "exec_server_control_message":
		s.control(member)
	}
	return nil
}

// emit queues an event for the caller of Next. It blocks while the queue is full, and returns
// errStopped if the stream is closed.
func (s *Stream) emit(e turn.Event) error {
	if !s.events.put(e, s.stop) {
		return errStopped
	}
	return nil
}

// update processes a message about the progress of the turn, such as new text, and emits the event for
// it.
func (s *Stream) update(m message.Message) error {
	kind, u := m.Case("message")
	switch kind {
	case "text_delta":
		if text := u.Text("text"); text != "" {
			return s.emit(turn.Text{Text: text})
		}
	case "thinking_delta":
		if text := u.Text("text"); text != "" {
			return s.emit(turn.Thinking{Text: text})
		}
	case "token_delta":
		if n := u.Value("tokens").Int(); n > 0 {
			return s.emit(turn.Tokens{N: n})
		}
	// A call is announced while its arguments are still being written.
	case "partial_tool_call", "tool_call_started":
		tool, _ := u.Sub("tool_call").Case("tool")
		s.mu.Lock()
		s.calls.announce(u.Text("call_id"), tool)
		s.mu.Unlock()
	case "tool_call_completed":
		s.mu.Lock()
		s.calls.arrived(u.Text("call_id"))
		s.mu.Unlock()
	case "turn_ended":
		s.turnEnded(u)
	}
	return nil
}

// turnEnded stores the end of the turn and its token counts. The Ended event is only emitted when the
// stream ends, for which the server has endGrace.
func (s *Stream) turnEnded(u message.Message) {
	if s.ended != nil {
		return
	}
	s.ended = &turn.Ended{Reason: turn.Finished}
	usage := turn.Usage{}
	for name, n := range map[string]*int64{
		"input_tokens": &usage.Input, "output_tokens": &usage.Output,
		"cache_read_tokens": &usage.CacheRead, "cache_write_tokens": &usage.CacheWrite, "reasoning_tokens": &usage.Reasoning,
	} {
		if u.Has(name) {
			*n = max(u.Value(name).Int(), 0)
			s.ended.Usage = &usage
		}
	}
	s.limit = time.AfterFunc(endGrace, s.link.Interrupt)
}

// exec processes a request from the server to run a tool: it emits a Calling event if a tool of the
// client can do it, and otherwise answers at once.
func (s *Stream) exec(m message.Message) error {
	e := tools.ExecOf(m)
	s.mu.Lock()
	s.calls.arrived(e.CallID())
	s.mu.Unlock()
	if e.Kind == "request_context_args" {
		return s.answered(s.finish(&e, s.set.Context(&e)))
	}
	call, refusal := s.set.Call(&e)
	if call != nil {
		s.mu.Lock()
		id, err := s.calls.open(&e)
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case id != "":
			call.ID = id
			return s.emit(turn.Calling{Call: *call})
		}
		refusal = s.set.Refuse(&e, fmt.Sprintf("%d calls are open already.", maxCalls))
	}
	return s.answered(s.finish(&e, refusal))
}

// answered returns errStopped if ok is false, i.e. if an answer could not be sent because the stream
// has ended.
func (s *Stream) answered(ok bool) error {
	if !ok {
		return errStopped
	}
	return nil
}

// control processes a message from the server that aborts a tool call.
func (s *Stream) control(m message.Message) {
	if m.Has("abort") {
		s.mu.Lock()
		s.calls.abort(m.Uint32("abort", "id"))
		s.mu.Unlock()
	}
}
