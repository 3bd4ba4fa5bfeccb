package messages

import (
	"context"
	"net/http"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A streamer writes the response to one turn as server-sent events.
type streamer struct {
	// events writes the server-sent events.
	events *front.Events

	// answer has the state of the response.
	answer *answer
	// open is the type of the content block that has begun and not ended; "" for none.
	open string
	// index is the index of the open content block or, if none is open, of the next one.
	index int
	// last is the time at which the last event was written.
	last time.Time
}

// The server-sent events of a streamed response.
type (
	// A startEvent is the event message_start, with a message without content.
	startEvent struct {
		// Type is always "message_start".
		Type string `json:"type"`

		// Message is the message without content, to which the next events add.
		Message message `json:"message"`
	}

	// A blockStart is the event content_block_start, with an empty block.
	blockStart struct {
		// Type is always "content_block_start".
		Type string `json:"type"`

		// Index is the index of the block in the message's content.
		Index int `json:"index"`

		// Block is the block without its content.
		Block any `json:"content_block"`
	}

	// A blockDelta is the event content_block_delta, which appends to the open block.
	blockDelta struct {
		// Type is always "content_block_delta".
		Type string `json:"type"`

		// Index is the index of the block in the message's content.
		Index int `json:"index"`

		// Delta is the piece that is appended to the block, such as a textDelta.
		Delta any `json:"delta"`
	}

	// A blockStop is the event content_block_stop.
	blockStop struct {
		// Type is always "content_block_stop".
		Type string `json:"type"`

		// Index is the index of the block in the message's content.
		Index int `json:"index"`
	}

	// A messageDelta is the event message_delta, with the end of the message.
	messageDelta struct {
		// Type is always "message_delta".
		Type string `json:"type"`

		// Delta has the reason why the message ended.
		Delta endDelta `json:"delta"`

		// Usage is the token usage of the turn.
		Usage deltaUsage `json:"usage"`

		// betaMessage is only set in the beta form of the API.
		*betaMessage
	}

	// A bare event has no other members, such as ping.
	bare struct {
		// Type is the name of the event.
		Type string `json:"type"`
	}

	// A textDelta is a piece of a text block.
	textDelta struct {
		// Type is always "text_delta".
		Type string `json:"type"`

		// Text is the text to be appended to the block.
		Text string `json:"text"`
	}

	// A thinkingDelta is a piece of a thinking block.
	thinkingDelta struct {
		// Type is always "thinking_delta".
		Type string `json:"type"`

		// Thinking is the text of the model's reasoning to be appended to the block.
		Thinking string `json:"thinking"`

		// betaThinkingDelta is only set in the beta form of the API.
		*betaThinkingDelta
	}

	// A signatureDelta is the signature of a thinking block.
	signatureDelta struct {
		// Type is always "signature_delta".
		Type string `json:"type"`

		// Signature is the signature of the block, always the same constant.
		Signature string `json:"signature"`
	}

	// An inputDelta is a piece of a tool call's JSON arguments.
	inputDelta struct {
		// Type is always "input_json_delta".
		Type string `json:"type"`

		// JSON is a piece of the JSON text.
		JSON string `json:"partial_json"`
	}

	// An endDelta has the members that a message gets at its end.
	endDelta struct {
		// StopReason is the reason why the message ended.
		StopReason *string `json:"stop_reason"`

		// StopSequence is the stop text that ended the message; null if none did.
		StopSequence *string `json:"stop_sequence"`

		// StopDetails is always null.
		StopDetails any `json:"stop_details"`

		// Container is always null.
		Container any `json:"container"`
	}
)

// stream writes the response to a turn as server-sent events. If the turn fails before the first event,
// the response is an error with its HTTP status.
func stream(ctx context.Context, w http.ResponseWriter, requestID string, t front.Turn, a *answer) {
	s := &streamer{events: front.NewEvents(w), answer: a, last: time.Now()}
	err := front.Each(ctx, t, s.add, s.ping)
	err = a.failure(err)
	switch {
	case err == nil || ctx.Err() != nil: // a client that has gone needs no answer
	case s.events.Started():
		// An error of writing comes here as well, and the client does not see this event.
		_ = s.events.Send("error", newErrorBody(requestID, turn.AsError(err)))
	default:
		writeError(w, requestID, turn.AsError(err))
	}
}

// send writes an event, after message_start if that was not written yet.
func (s *streamer) send(name string, event any) error {
	if err := s.startMessage(); err != nil {
		return err
	}
	s.last = time.Now()
	return s.events.Send(name, event)
}

// startMessage writes the event message_start, unless it was written before.
func (s *streamer) startMessage() error {
	if s.events.Started() {
		return nil
	}
	return s.events.Send("message_start", startEvent{Type: "message_start", Message: s.answer.message})
}

// ping writes a ping event, to keep the client's connection alive.
func (s *streamer) ping() error { return s.send("ping", bare{Type: "ping"}) }

// add writes the server-sent events for one event of the turn.
func (s *streamer) add(event turn.Event) error {
	switch e := event.(type) {
	case turn.Text:
		if e.Text == "" {
			return nil
		}
		if err := s.begin("text"); err != nil {
			return err
		}
		return s.delta(textDelta{Type: "text_delta", Text: e.Text})
	case turn.Thinking:
		return s.thinking(e.Text)
	case turn.Tokens:
		return s.silent()
	case turn.Calling:
		return s.call(e.Call)
	case turn.Ended:
		return s.end(e)
	}
	return nil
}

// thinking writes a piece of the model's reasoning, in the form that the client asked for.
func (s *streamer) thinking(text string) error {
	if s.answer.thinking == hidden || text == "" {
		return s.silent()
	}
	if err := s.begin("thinking"); err != nil {
		return err
	}
	if s.answer.thinking == omitted {
		return s.silent()
	}
	d := thinkingDelta{Type: "thinking_delta", Thinking: text}
	if s.answer.message.betaMessage != nil {
		d.betaThinkingDelta = &betaThinkingDelta{}
	}
	return s.delta(d)
}

// silent writes a ping event if no event was written for front.PingInterval.
func (s *streamer) silent() error {
	if time.Since(s.last) < front.PingInterval {
		return nil
	}
	return s.ping()
}

// call writes the events for a tool call, which is a content block of its own.
func (s *streamer) call(c turn.Call) error {
	block := newToolUse(c)
	arguments := string(block.Input)
	block.Input = []byte("{}")
	if err := s.finishBlock(); err != nil {
		return err
	}
	if err := s.start("tool_use", block); err != nil {
		return err
	}
	if err := s.delta(inputDelta{Type: "input_json_delta", JSON: arguments}); err != nil {
		return err
	}
	return s.finishBlock()
}

// begin starts a content block of text or thinking, unless one of this type is open; an open one of
// another type is ended.
func (s *streamer) begin(kind string) error {
	if s.open == kind {
		return nil
	}
	if err := s.finishBlock(); err != nil {
		return err
	}
	if kind == "thinking" {
		return s.start(kind, thinkingBlock{Type: kind})
	}
	return s.start(kind, textBlock{Type: kind})
}

// start writes content_block_start for a block of type kind.
func (s *streamer) start(kind string, block any) error {
	s.open = kind
	return s.send("content_block_start", blockStart{Type: "content_block_start", Index: s.index, Block: block})
}

// delta writes content_block_delta for the open block.
func (s *streamer) delta(d any) error {
	return s.send("content_block_delta", blockDelta{Type: "content_block_delta", Index: s.index, Delta: d})
}

// finishBlock writes content_block_stop for the open block, if there is one.
func (s *streamer) finishBlock() error {
	if s.open == "" {
		return nil
	}
	if s.open == "thinking" {
		if err := s.delta(signatureDelta{Type: "signature_delta", Signature: signature}); err != nil {
			return err
		}
	}
	if err := s.send("content_block_stop", blockStop{Type: "content_block_stop", Index: s.index}); err != nil {
		return err
	}
	s.open = ""
	s.index++
	return nil
}

// end writes the events at the end of the message, with the reason and the token usage.
func (s *streamer) end(e turn.Ended) error {
	if err := s.startMessage(); err != nil {
		return err
	}
	if err := s.finishBlock(); err != nil {
		return err
	}
	s.answer.end(e)
	m := &s.answer.message
	err := s.send("message_delta", messageDelta{
		Type:  "message_delta",
		Delta: endDelta{StopReason: m.StopReason, StopSequence: m.StopSequence},
		Usage: m.Usage.deltaUsage, betaMessage: m.betaMessage,
	})
	if err != nil {
		return err
	}
	return s.send("message_stop", bare{Type: "message_stop"})
}
