package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// A builder builds a response of the Responses API, and the server-sent events of its stream, from the
// events of a turn.
type builder struct {
	// response is the response as far as it is known.
	response *response

	// tools are the client's tools by their names for the upstream server.
	tools map[string]tool
	// emit writes one event of the response stream; nil if the response is not streamed.
	emit func(name string, v any) error
	// onEnd, if not nil, is called with the complete answer before the last event is written.
	onEnd func(answer turn.Message)

	// sequence is the sequence number of the next event.
	sequence int64

	// begun means that the first events were written.
	begun bool

	// ended means that the turn's Ended event was processed.
	ended bool

	// open is the kind of the output item that is being built ("" for none), and openID its id.
	open, openID string

	// text is the text of the open item so far.
	text strings.Builder

	// answerParts are the parts of the answer, for the stored transcript.
	answerParts []turn.Part
}

// The kinds of output items that grow piece by piece; see builder.open.
const (
	openMessage   = "message"
	openReasoning = "reasoning"
)

// newBuilder returns a builder for the response to req by the named model.
func newBuilder(req *request, model string) *builder {
	return &builder{response: newResponse(req, model), tools: req.tools}
}

// run builds the response from the events of a turn. onIdle is called when the turn is silent; it may
// be nil.
//
// Errors: ctx's, those of writing, or the turn's.
func (b *builder) run(ctx context.Context, t front.Turn, onIdle func() error) error {
	err := front.Each(ctx, t, b.event, onIdle)
	if err == nil && !b.ended {
		return openai.Cut()
	}
	return err
}

// event processes one event of the turn.
func (b *builder) event(e turn.Event) error {
	if ended, ok := e.(turn.Ended); ok {
		return b.end(ended)
	}
	if err := b.begin(); err != nil {
		return err
	}
	switch e := e.(type) {
	case turn.Text:
		return b.addText(e.Text)
	case turn.Thinking:
		return b.addThinking(e.Text)
	case turn.Calling:
		return b.addCall(e.Call)
	}
	return nil
}

// begin writes the first events of the response, unless this was done before.
func (b *builder) begin() error {
	if b.begun {
		return nil
	}
	b.begun = true
	if err := b.sendResponse("response.created"); err != nil {
		return err
	}
	return b.sendResponse("response.in_progress")
}

// addText adds text to the message item, which it opens if necessary.
func (b *builder) addText(text string) error {
	if text == "" {
		return nil
	}
	if err := b.openItem(openMessage); err != nil {
		return err
	}
	b.text.WriteString(text)
	const name = "response.output_text.delta"
	return b.send(name, textDeltaEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Delta: text, Logprobs: []string{}})
}

// addThinking adds reasoning to the reasoning item, which it opens if necessary.
func (b *builder) addThinking(text string) error {
	if text == "" {
		return nil
	}
	if err := b.openItem(openReasoning); err != nil {
		return err
	}
	b.text.WriteString(text)
	const name = "response.reasoning_summary_text.delta"
	return b.send(name, summaryDeltaEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Delta: text})
}

// index returns the index of the open output item or, if none is open, of the next one.
func (b *builder) index() int { return len(b.response.Output) }

// openItem starts an output item of a kind, unless one of this kind is open; an open one of another
// kind is finished.
func (b *builder) openItem(kind string) error {
	if b.open == kind {
		return nil
	}
	if err := b.closeItem("completed"); err != nil {
		return err
	}
	b.open = kind
	if kind == openReasoning {
		b.openID = openai.NewID("rs_")
		if err := b.sendItem("response.output_item.added", newReasoning(b.openID)); err != nil {
			return err
		}
		const name = "response.reasoning_summary_part.added"
		return b.send(name, summaryPartEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Part: newSummary("")})
	}
	b.openID = openai.NewID("msg_")
	if err := b.sendItem("response.output_item.added", newMessage(b.openID, "in_progress")); err != nil {
		return err
	}
	const name = "response.content_part.added"
	return b.send(name, partEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Part: newPart("")})
}

// closeItem finishes the open output item, if there is one, with a status such as "completed".
func (b *builder) closeItem(status string) error {
	kind, text := b.open, b.text.String()
	b.open = ""
	b.text.Reset()
	switch kind {
	case openReasoning:
		return b.closeReasoning(text)
	case openMessage:
		return b.closeMessage(text, status)
	}
	return nil
}

// closeReasoning writes the last events of a reasoning item with this text.
func (b *builder) closeReasoning(text string) error {
	name := "response.reasoning_summary_text.done"
	if err := b.send(name, summaryDoneEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Text: text}); err != nil {
		return err
	}
	name = "response.reasoning_summary_part.done"
	if err := b.send(name, summaryPartEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Part: newSummary(text)}); err != nil {
		return err
	}
	return b.finish(newReasoning(b.openID, newSummary(text)))
}

// closeMessage writes the last events of a message item with this text and status.
func (b *builder) closeMessage(text, status string) error {
	b.answerParts = append(b.answerParts, turn.Part{Text: text})
	name := "response.output_text.done"
	if err := b.send(name, textDoneEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Text: text, Logprobs: []string{}}); err != nil {
		return err
	}
	name = "response.content_part.done"
	if err := b.send(name, partEvent{envelope: b.next(name), ItemID: b.openID, OutputIndex: b.index(), Part: newPart(text)}); err != nil {
		return err
	}
	return b.finish(newMessage(b.openID, status, newPart(text)))
}

// finish writes the event for a complete output item, and adds the item to the response.
func (b *builder) finish(item any) error {
	err := b.sendItem("response.output_item.done", item)
	b.response.Output = append(b.response.Output, item)
	return err
}

// addCall adds an output item for a tool call.
func (b *builder) addCall(c turn.Call) error {
	if err := b.closeItem("completed"); err != nil {
		return err
	}
	c.Arguments = json.RawMessage(openai.Arguments(c))
	b.answerParts = append(b.answerParts, turn.Part{Call: &c})
	known, ok := b.tools[c.Name]
	if !ok {
		known = tool{name: c.Name}
	}
	if known.custom {
		return b.addCustomCall(c, known)
	}

	// The API announces an item, streams its arguments, and then completes it.
	item := functionCallItem{ID: openai.NewID("fc_"), Type: "function_call", Status: "in_progress", CallID: c.ID, Namespace: known.namespace, Name: known.name}
	if err := b.sendItem("response.output_item.added", item); err != nil {
		return err
	}
	item.Arguments, item.Status = string(c.Arguments), "completed"
	name := "response.function_call_arguments.delta"
	if err := b.send(name, callDeltaEvent{envelope: b.next(name), ItemID: item.ID, OutputIndex: b.index(), Delta: item.Arguments}); err != nil {
		return err
	}
	name = "response.function_call_arguments.done"
	if err := b.send(name, argumentsDoneEvent{envelope: b.next(name), ItemID: item.ID, OutputIndex: b.index(), Arguments: item.Arguments}); err != nil {
		return err
	}
	return b.finish(item)
}

// addCustomCall is addCall for a custom tool, whose input is text instead of JSON.
func (b *builder) addCustomCall(c turn.Call, known tool) error {
	item := customCallItem{ID: openai.NewID("ctc_"), Type: "custom_tool_call", CallID: c.ID, Namespace: known.namespace, Name: known.name}
	if err := b.sendItem("response.output_item.added", item); err != nil {
		return err
	}
	item.Input = input(c.Arguments)
	name := "response.custom_tool_call_input.delta"
	if err := b.send(name, callDeltaEvent{envelope: b.next(name), ItemID: item.ID, OutputIndex: b.index(), Delta: item.Input}); err != nil {
		return err
	}
	name = "response.custom_tool_call_input.done"
	if err := b.send(name, inputDoneEvent{envelope: b.next(name), ItemID: item.ID, OutputIndex: b.index(), Input: item.Input}); err != nil {
		return err
	}
	return b.finish(item)
}

// end completes the response, and writes its last event.
func (b *builder) end(e turn.Ended) error {
	if err := b.begin(); err != nil {
		return err
	}
	status, name := "completed", "response.completed"
	if e.Reason == turn.Length {
		status, name = "incomplete", "response.incomplete"
		b.response.IncompleteDetails = &incomplete{Reason: "max_output_tokens"}
	} else {
		now := openai.Now()
		b.response.CompletedAt = &now
	}
	if err := b.closeItem(status); err != nil {
		return err
	}
	b.ended = true
	b.response.Status, b.response.Usage = status, usageOf(e.Usage)
	if b.onEnd != nil {
		b.onEnd(turn.Message{Role: turn.Assistant, Parts: b.answerParts})
	}
	return b.sendResponse(name)
}

// fail ends the stream of a turn that failed with err. An open item becomes part of the output with the
// status incomplete.
func (b *builder) fail(err *turn.Error) {
	if b.begin() != nil {
		return
	}
	switch text := b.text.String(); b.open {
	case openMessage:
		b.response.Output = append(b.response.Output, newMessage(b.openID, "incomplete", newPart(text)))
	case openReasoning:
		b.response.Output = append(b.response.Output, newReasoning(b.openID, newSummary(text)))
	}

	e := openai.ErrorOf(err)
	code := "server_error"
	if e.Code != nil {
		code = *e.Code
	}
	message := e.Message
	if err.RetryAfter > 0 {
		// Clients of this API find the time to wait in the text, since there is no header.
		message += fmt.Sprintf(" Please try again in %ds.", int64(math.Ceil(err.RetryAfter.Seconds())))
	}
	b.response.Status, b.response.Error = "failed", &responseError{Code: code, Message: message}
	if b.sendResponse("response.failed") != nil {
		return
	}
	_ = b.send("error", errorEvent{envelope: b.next("error"), Code: e.Code, Message: message, Param: e.Param, Error: e})
}

// next returns the members that all events share, for the next event, which is of type name.
func (b *builder) next(name string) envelope {
	n := b.sequence
	b.sequence++
	return envelope{Type: name, SequenceNumber: n}
}

// send writes an event, if the response is streamed. name is the type of the event.
func (b *builder) send(name string, v any) error {
	if b.emit == nil {
		return nil
	}
	return b.emit(name, v)
}

// sendResponse writes an event that contains the whole response so far.
func (b *builder) sendResponse(name string) error {
	return b.send(name, responseEvent{envelope: b.next(name), Response: b.response})
}

// sendItem writes an event that contains an output item.
func (b *builder) sendItem(name string, item any) error {
	return b.send(name, itemEvent{envelope: b.next(name), OutputIndex: b.index(), Item: item})
}
