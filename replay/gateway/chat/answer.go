package chat

import (
	"context"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// A completion is the JSON object of a response to POST /v1/chat/completions that is not streamed.
type completion struct {
	// ID is the id of the response, chatcmpl-….
	ID string `json:"id"`

	// Object is the type of the JSON object: "chat.completion".
	Object string `json:"object"`

	// Created is the time of the response in seconds since 1970.
	Created int64 `json:"created"`

	// Model is the id of the model that answered.
	Model string `json:"model"`

	// Choices has exactly one choice.
	Choices []completionChoice `json:"choices"`

	// Usage is the token usage of the turn.
	Usage usage `json:"usage"`
}

// A completionChoice is the answer in a completion, with the reason why it ended.
type completionChoice struct {
	// Index is always 0: there is one choice.
	Index int `json:"index"`

	// Message is the answer.
	Message message `json:"message"`

	// Logprobs and similar members are always null, but the API's clients expect them.
	Logprobs *string `json:"logprobs"`

	// FinishReason is the reason why the answer ended, such as "stop" or "tool_calls".
	FinishReason string `json:"finish_reason"`
}

// A message is the model's answer in a completion.
type message struct {
	// Role is always "assistant".
	Role string `json:"role"`
	// Content is the text of the answer; null if the answer consists only of tool calls.
	Content *string `json:"content"`

	// Refusal is always null; the API's clients expect the member.
	Refusal *string `json:"refusal"`

	// Annotations is always empty; the API's clients expect the member.
	Annotations []string `json:"annotations"`

	// Reasoning is the model's visible reasoning.
	Reasoning string `json:"reasoning_content,omitempty"`

	// ToolCalls are the tool calls of the model.
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// An answer collects the events of a turn for a response that is not streamed.
type answer struct {
	// text is the visible answer, and thinking the model's reasoning.
	text, thinking strings.Builder

	// calls are the tool calls of the model.
	calls []turn.Call

	// end is the last event of the turn.
	end turn.Ended
}

// collect reads the events of a turn until it ends.
//
// Errors: ctx's, or the turn's.
func collect(ctx context.Context, t front.Turn) (*answer, error) {
	a := &answer{}
	err := front.Each(ctx, t, func(e turn.Event) error {
		switch e := e.(type) {
		case turn.Text:
			a.text.WriteString(e.Text)
		case turn.Thinking:
			a.thinking.WriteString(e.Text)
		case turn.Calling:
			a.calls = append(a.calls, e.Call)
		case turn.Ended:
			a.end = e
		}
		return nil
	}, nil)
	if err == nil && a.end.Reason == "" {
		err = openai.Cut()
	}
	return a, err
}

// completion returns the answer in the API's form. head has the id, time and model of the response.
func (a *answer) completion(head chunk) completion {
	m := message{Role: "assistant", Annotations: []string{}, Reasoning: a.thinking.String()}
	if text := a.text.String(); text != "" || len(a.calls) == 0 {
		m.Content = &text
	}
	for _, c := range a.calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.ID, Type: "function", Function: function{Name: c.Name, Arguments: openai.Arguments(c)}})
	}
	return completion{
		ID: head.ID, Object: "chat.completion", Created: head.Created, Model: head.Model,
		Choices: []completionChoice{{Message: m, FinishReason: finishReason(a.end.Reason)}},
		Usage:   usageOf(a.end.Usage),
	}
}
