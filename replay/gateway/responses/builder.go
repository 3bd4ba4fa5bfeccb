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

// A builder builds a response, and the events of its stream, from the events of a turn.
type builder struct {
	response *response
	tools    map[string]tool
	// emit, if not nil, writes an event of the response stream.
	emit func(name string, v any) error
	// onEnd, if not nil, is called with the answer before the last event is written.
	onEnd func(answer turn.Message)

	sequence int64
	begun    bool
	ended    bool

	// open is the kind of the output item that is being built ("" for none), and openID its id; its
	// text so far is in text.
	open, openID string
	text         strings.Builder

	// answerParts are the parts of the answer for the stored transcript.
	answerParts []turn.Part
}

// The kinds of items that deltas are added to.
const (
	openMessage   = "message"
	openReasoning = "reasoning"
)

func newBuilder(req *request, model string) *builder {
	return &builder{response: newResponse(req, model), tools: req.tools}
}

// run builds the response from a turn. onIdle may be nil.
//
// Errors: ctx's, those of writing, or the turn's.
func (b *builder) run(ctx context.Context, t front.Turn, onIdle func() error) error {
	err := front.Each(ctx, t, b.event, onIdle)
	if err == nil && !b.ended {
		return openai.Cut()
	}
	return err
}

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

// begin writes the first events of the response, once.
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

// openItem starts an output item of a kind, unless one is open.
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

// closeItem finishes the open output item with a status.
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

// end completes the response.
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

// fail ends the stream of a turn that broke. The item that is open is part of the
// output, and is not finished. A client that is gone is no error.
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

// next returns the common members of the next event.
func (b *builder) next(name string) envelope {
	n := b.sequence
	b.sequence++
	return envelope{Type: name, SequenceNumber: n}
}

func (b *builder) send(name string, v any) error {
	if b.emit == nil {
		return nil
	}
	return b.emit(name, v)
}

func (b *builder) sendResponse(name string) error {
	return b.send(name, responseEvent{envelope: b.next(name), Response: b.response})
}

func (b *builder) sendItem(name string, item any) error {
	return b.send(name, itemEvent{envelope: b.next(name), OutputIndex: b.index(), Item: item})
}
