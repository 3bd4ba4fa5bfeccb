package messages

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// signature is the constant signature of thinking blocks. Clients send it back unchanged. Anthropic's
// own service would reject a block with it.
const signature = "dW53aXJl"

// A message is a response, complete or at the beginning of a stream. It includes members that are
// always null, because clients of the API expect them.
type message struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	Container    any     `json:"container"`
	Diagnostics  any     `json:"diagnostics"`
	StopDetails  any     `json:"stop_details"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
	*betaMessage
}

// The beta form of the API, which clients ask for with ?beta=true, has some fields more.
// They are always null here.
type (
	betaMessage struct {
		ContextManagement any `json:"context_management"`
	}
	betaUsage struct {
		FallbackCredit any `json:"fallback_credit"`
		Iterations     any `json:"iterations"`
	}
	betaThinkingDelta struct {
		EstimatedTokens any `json:"estimated_tokens"`
	}
)

// A usage is the token usage of a turn, in the form for non-streamed responses.
type usage struct {
	deltaUsage
	CacheCreation any `json:"cache_creation"`
	InferenceGeo  any `json:"inference_geo"`
	ServiceTier   any `json:"service_tier"`
	Speed         any `json:"speed"`
}

// A deltaUsage is the tokens of a turn, in the form that a stream's end has.
type deltaUsage struct {
	InputTokens              int64           `json:"input_tokens"`
	OutputTokens             int64           `json:"output_tokens"`
	CacheCreationInputTokens int64           `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64           `json:"cache_read_input_tokens"`
	OutputTokensDetails      *thinkingTokens `json:"output_tokens_details"`
	ServerToolUse            any             `json:"server_tool_use"`
	*betaUsage
}

type thinkingTokens struct {
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

// stopReasons are the API's words for the ends of turns.
var stopReasons = map[turn.Reason]string{
	turn.Finished:  "end_turn",
	turn.ToolCalls: "tool_use",
	turn.Length:    "max_tokens",
	turn.StoppedBy: "stop_sequence",
}

type textBlock struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Citations any    `json:"citations"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolUseBlock struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Caller caller          `json:"caller"`
}

// A caller is who called a tool: always the model itself.
type caller struct {
	Type string `json:"type"`
}

// An answer is the state shared by streamed and non-streamed responses.
type answer struct {
	message  message
	thinking display
	ended    bool
	// text accumulates the text of the last block in a non-streamed response.
	text strings.Builder
}

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

// end records the reason and usage at the end of the turn.
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

// failure returns the error of an incomplete response, nil if it is complete. err is the error of
// reading the turn. A turn that breaks off must never look complete.
func (a *answer) failure(err error) error {
	if err == nil && !a.ended {
		return &turn.Error{Kind: turn.Upstream, Message: "the turn broke off without an end"}
	}
	return err
}

// whole writes the response as one JSON message.
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

// add adds an event of the turn to the message.
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

// append starts a new content block.
func (a *answer) append(block any) {
	a.finishBlock()
	a.message.Content = append(a.message.Content, block)
}

// finishBlock stores the accumulated text in the last content block.
func (a *answer) finishBlock() {
	switch b := a.lastBlock().(type) {
	case *textBlock:
		b.Text = a.text.String()
	case *thinkingBlock:
		b.Thinking = a.text.String()
	}
	a.text.Reset()
}

func newToolUse(c turn.Call) *toolUseBlock {
	return &toolUseBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: front.Arguments(string(c.Arguments)), Caller: caller{Type: "direct"}}
}
