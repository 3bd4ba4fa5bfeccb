package messages

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// signature is the constant signature of all thinking blocks. Clients only return it unchanged;
// Anthropic's own service would reject a block with it.
const signature = "dW53aXJl"

// A message is the response of POST /v1/messages, complete or at the beginning of a stream. It includes
// members that are always null, because clients of the API expect them.
type message struct {
	// ID is the id of the message, msg_….
	ID string `json:"id"`

	// Type is always "message".
	Type string `json:"type"`

	// Role is always "assistant".
	Role string `json:"role"`

	// Model is the id of the model that answers.
	Model string `json:"model"`

	// Content are the content blocks: pointers to textBlock, thinkingBlock or toolUseBlock.
	Content []any `json:"content"`

	// Container is always null.
	Container any `json:"container"`

	// Diagnostics is always null.
	Diagnostics any `json:"diagnostics"`

	// StopDetails is always null.
	StopDetails any `json:"stop_details"`

	// StopReason is the reason why the message ended; null at the beginning of a stream.
	StopReason *string `json:"stop_reason"`

	// StopSequence is the stop text that ended the message; null if none did.
	StopSequence *string `json:"stop_sequence"`

	// Usage is the token usage of the turn.
	Usage usage `json:"usage"`

	// betaMessage is only set in the beta form of the API.
	*betaMessage
}

// The beta form of the API, which clients ask for with ?beta=true, has some fields more.
// They are always null here.
type (
	// A betaMessage has the members that messages have in addition in the beta form of the API.
	betaMessage struct {
		// ContextManagement is always null.
		ContextManagement any `json:"context_management"`
	}

	// A betaUsage has the members that a usage has in addition in the beta form.
	betaUsage struct {
		// FallbackCredit is always null.
		FallbackCredit any `json:"fallback_credit"`

		// Iterations is always null.
		Iterations any `json:"iterations"`
	}

	// A betaThinkingDelta has the members that a thinking delta has in addition in the beta form.
	betaThinkingDelta struct {
		// EstimatedTokens is always null.
		EstimatedTokens any `json:"estimated_tokens"`
	}
)

// A usage is the token usage of a turn, in the form for messages.
type usage struct {
	// deltaUsage has the numbers of tokens.
	deltaUsage

	// CacheCreation and the members below are always null, but the API's clients expect them.
	CacheCreation any `json:"cache_creation"`

	// InferenceGeo is always null.
	InferenceGeo any `json:"inference_geo"`

	// ServiceTier is always null.
	ServiceTier any `json:"service_tier"`

	// Speed is always null.
	Speed any `json:"speed"`
}

// A deltaUsage is the token usage of a turn, in the form for the end of a stream.
type deltaUsage struct {
	// InputTokens is the number of tokens that the model read.
	InputTokens int64 `json:"input_tokens"`

	// OutputTokens is the number of tokens that the model wrote.
	OutputTokens int64 `json:"output_tokens"`

	// CacheCreationInputTokens is the number of tokens written to the upstream's cache.
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`

	// CacheReadInputTokens is the number of tokens read from the upstream's cache.
	CacheReadInputTokens int64 `json:"cache_read_input_tokens"`

	// OutputTokensDetails is the number of tokens of reasoning; null if unknown.
	OutputTokensDetails *thinkingTokens `json:"output_tokens_details"`

	// ServerToolUse is always null.
	ServerToolUse any `json:"server_tool_use"`

	// betaUsage is only set in the beta form of the API.
	*betaUsage
}

// thinkingTokens are details about the output tokens.
type thinkingTokens struct {
	// ThinkingTokens is the number of tokens of reasoning.
	ThinkingTokens int64 `json:"thinking_tokens"`
}

// set copies the reported token usage; nil leaves zeros.
func (d *deltaUsage) set(u *turn.Usage) {
	if u == nil {
		return
	}
	d.InputTokens, d.OutputTokens = u.Input, u.Output
	d.CacheCreationInputTokens, d.CacheReadInputTokens = u.CacheWrite, u.CacheRead
	d.OutputTokensDetails = &thinkingTokens{ThinkingTokens: u.Reasoning}
}

// stopReasons are the API's names for the reasons why a turn ended.
var stopReasons = map[turn.Reason]string{
	turn.Finished:  "end_turn",
	turn.ToolCalls: "tool_use",
	turn.Length:    "max_tokens",
	turn.StoppedBy: "stop_sequence",
}

// A textBlock is a content block with visible text. Citations are always null.
type textBlock struct {
	// Type is always "text".
	Type string `json:"type"`

	// Text is the visible text of the block.
	Text string `json:"text"`

	// Citations is always null.
	Citations any `json:"citations"`
}

// A thinkingBlock is a content block with the model's reasoning.
type thinkingBlock struct {
	// Type is always "thinking".
	Type string `json:"type"`

	// Thinking is the text of the model's reasoning.
	Thinking string `json:"thinking"`

	// Signature is always the constant signature.
	Signature string `json:"signature"`
}

// A toolUseBlock is a content block with a tool call.
type toolUseBlock struct {
	// Type is always "tool_use".
	Type string `json:"type"`

	// ID is the id of the call, which its result must repeat.
	ID string `json:"id"`

	// Name is the name of the called tool.
	Name string `json:"name"`

	// Input are the arguments of the call, a JSON object.
	Input json.RawMessage `json:"input"`

	// Caller says who called the tool.
	Caller caller `json:"caller"`
}

// A caller says who called a tool: always "direct", i.e. the model itself.
type caller struct {
	// Type is always "direct".
	Type string `json:"type"`
}

// An answer builds the response to a turn; both streamed and non-streamed responses use it.
type answer struct {
	// message is the response as far as it is known.
	message message

	// thinking is how the model's reasoning appears in the response.
	thinking display

	// ended means that the turn's Ended event was processed.
	ended bool
	// text accumulates the text of the last block in a non-streamed response.
	text strings.Builder
}

// newAnswer returns an answer without content. id is the id of the message; beta asks for the beta form
// of the API.
func newAnswer(id, model string, thinking display, beta bool) *answer {
	a := &answer{
		message:  message{ID: id, Type: "message", Role: "assistant", Model: model, Content: []any{}},
		thinking: thinking,
	}
	if beta {
		a.message.betaMessage = &betaMessage{}
		a.message.Usage.betaUsage = &betaUsage{}
	}
	return a
}

// end stores the reason why the turn ended and its token usage in the message.
func (a *answer) end(e turn.Ended) {
	a.ended = true
	reason, ok := stopReasons[e.Reason]
	if !ok {
		reason = stopReasons[turn.Finished]
	}
	a.message.StopReason = &reason
	if e.Reason == turn.StoppedBy {
		a.message.StopSequence = &e.Stop
	}
	a.message.Usage.set(e.Usage)
}

// failure returns the error to report if the response is incomplete; nil if it is complete. err is the
// error of reading the turn. It ensures that an interrupted turn never looks complete.
func (a *answer) failure(err error) error {
	if err == nil && !a.ended {
		return &turn.Error{Kind: turn.Upstream, Message: "the answer ended unexpectedly"}
	}
	return err
}

// whole waits for the end of the turn and writes the response as one JSON message.
func whole(ctx context.Context, w http.ResponseWriter, requestID string, t front.Turn, a *answer) {
	err := front.Each(ctx, t, func(event turn.Event) error {
		a.add(event)
		return nil
	}, nil)
	if err := a.failure(err); err != nil {
		if ctx.Err() == nil {
			writeError(w, requestID, turn.AsError(err))
		}
		return
	}
	// A client that has gone needs no answer.
	_ = front.WriteJSON(w, http.StatusOK, a.message)
}

// add adds the content of an event to a message that is not streamed.
func (a *answer) add(event turn.Event) {
	switch e := event.(type) {
	case turn.Text:
		if _, ok := a.lastBlock().(*textBlock); !ok {
			a.append(&textBlock{Type: "text"})
		}
		a.text.WriteString(e.Text)
	case turn.Thinking:
		if a.thinking == hidden {
			return
		}
		if _, ok := a.lastBlock().(*thinkingBlock); !ok {
			a.append(&thinkingBlock{Type: "thinking", Signature: signature})
		}
		if a.thinking == shown {
			a.text.WriteString(e.Text)
		}
	case turn.Calling:
		a.append(newToolUse(e.Call))
	case turn.Ended:
		a.finishBlock()
		a.end(e)
	}
}

// lastBlock returns the last block of the message; nil if there is none.
func (a *answer) lastBlock() any {
	if len(a.message.Content) == 0 {
		return nil
	}
	return a.message.Content[len(a.message.Content)-1]
}

// append starts a new content block of the message.
func (a *answer) append(block any) {
	a.finishBlock()
	a.message.Content = append(a.message.Content, block)
}

// finishBlock stores the accumulated text in the last content block, before another one starts.
func (a *answer) finishBlock() {
	switch b := a.lastBlock().(type) {
	case *textBlock:
		b.Text = a.text.String()
	case *thinkingBlock:
		b.Thinking = a.text.String()
	}
	a.text.Reset()
}

// newToolUse returns the content block for a tool call.
func newToolUse(c turn.Call) *toolUseBlock {
	return &toolUseBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: front.Arguments(string(c.Arguments)), Caller: caller{Type: "direct"}}
}
