package chat

import (
	"context"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// A completion is a non-streamed response as one JSON object.
type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   usage              `json:"usage"`
}

type completionChoice struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	Logprobs     *string `json:"logprobs"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Role string `json:"role"`
	// Content is the text of the answer; null if the answer consists only of tool calls.
	Content     *string    `json:"content"`
	Refusal     *string    `json:"refusal"`
	Annotations []string   `json:"annotations"`
	Reasoning   string     `json:"reasoning_content,omitempty"`
	ToolCalls   []toolCall `json:"tool_calls,omitempty"`
}

// An answer accumulates the events of a turn.
type answer struct {
	text, thinking strings.Builder
	calls          []turn.Call
	end            turn.Ended
}

// collect waits for the end of a turn.
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
