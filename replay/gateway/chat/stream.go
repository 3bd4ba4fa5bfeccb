package chat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// A chunk is one event of a streamed response.
type chunk struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	// Usage is nil, null, or a usage: with include_usage each chunk has the member.
	Usage any `json:"usage,omitempty"`
}

type choice struct {
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// A toolCall is a piece of a call. Type, ID and Name are in the first one only: clients
// join the pieces' texts, names included.
type toolCall struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type usage struct {
	PromptTokens            int64             `json:"prompt_tokens"`
	CompletionTokens        int64             `json:"completion_tokens"`
	TotalTokens             int64             `json:"total_tokens"`
	PromptTokensDetails     promptDetails     `json:"prompt_tokens_details"`
	CompletionTokensDetails completionDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
}

type completionDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// usageOf converts the token usage; if the upstream server reported none, it is zero.
func usageOf(u *turn.Usage) usage {
	if u == nil {
		return usage{}
	}
	return usage{
		PromptTokens: u.Input, CompletionTokens: u.Output, TotalTokens: u.Input + u.Output,
		PromptTokensDetails:     promptDetails{CachedTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite},
		CompletionTokensDetails: completionDetails{ReasoningTokens: u.Reasoning},
	}
}

// finishReason returns the API's finish_reason for the reason why a turn ended.
func finishReason(r turn.Reason) string {
	switch r {
	case turn.ToolCalls:
		return "tool_calls"
	case turn.Length:
		return "length"
	}
	return "stop"
}

// A stream writes a response as a sequence of chunks.
type stream struct {
	events       *front.Events
	head         chunk
	includeUsage bool
	begun        bool
	calls        int
	// ended means that the response is complete.
	ended bool
}

// streamTurn writes a turn as server-sent events. An error before the first event still
// has its status.
func streamTurn(ctx context.Context, w http.ResponseWriter, t front.Turn, head chunk, includeUsage bool) {
	head.Object = "chat.completion.chunk"
	if includeUsage {
		head.Usage = json.RawMessage("null")
	}
	s := &stream{events: front.NewEvents(w), head: head, includeUsage: includeUsage}

	err := front.Each(ctx, t, s.event, func() error { return s.events.Comment("waiting for the upstream") })
	if err == nil && !s.ended {
		err = openai.Cut()
	}
	var failed *turn.Error
	switch {
	case err == nil || ctx.Err() != nil && !errors.As(err, &failed):
		// The turn has ended, or the client is gone.
	case s.events.Started():
		_ = s.events.Send("", openai.ErrorBody{Error: openai.ErrorOf(turn.AsError(err))})
	default:
		openai.WriteError(w, turn.AsError(err))
	}
}

func (s *stream) event(e turn.Event) error {
	switch e := e.(type) {
	case turn.Text:
		return s.send(delta{Content: &e.Text})
	case turn.Thinking:
		return s.send(delta{Reasoning: e.Text})
	case turn.Calling:
		return s.call(e.Call)
	case turn.Ended:
		return s.end(e)
	}
	return nil
}

func (s *stream) call(c turn.Call) error {
	index := s.calls
	s.calls++
	first := toolCall{Index: &index, ID: c.ID, Type: "function", Function: function{Name: c.Name}}
	if err := s.send(delta{ToolCalls: []toolCall{first}}); err != nil {
		return err
	}
	return s.send(delta{ToolCalls: []toolCall{{Index: &index, Function: function{Arguments: openai.Arguments(c)}}}})
}

func (s *stream) end(e turn.Ended) error {
	s.ended = true
	reason := finishReason(e.Reason)
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.sendChoice(choice{FinishReason: &reason}); err != nil {
		return err
	}
	if s.includeUsage {
		last := s.head
		last.Choices, last.Usage = []choice{}, usageOf(e.Usage)
		if err := s.events.Send("", last); err != nil {
			return err
		}
	}
	return s.events.SendText("[DONE]")
}

// begin writes the first chunk, which contains the role.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	empty := ""
	return s.sendChoice(choice{Delta: delta{Role: "assistant", Content: &empty}})
}

func (s *stream) send(d delta) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.sendChoice(choice{Delta: d})
}

func (s *stream) sendChoice(c choice) error {
	s.head.Choices = append(s.head.Choices[:0], c)
	return s.events.Send("", s.head)
}
