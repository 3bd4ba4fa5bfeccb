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

// A chunk is the JSON object of one server-sent event of a streamed response.
type chunk struct {
	// ID is the id of the response, chatcmpl-…, in all its chunks.
	ID string `json:"id"`

	// Object is the type of the JSON object: "chat.completion.chunk".
	Object string `json:"object"`

	// Created is the time of the response in seconds since 1970.
	Created int64 `json:"created"`

	// Model is the id of the model that answers.
	Model string `json:"model"`

	// Choices has one choice, or none in the chunk with the usage.
	Choices []choice `json:"choices"`
	// Usage is a usage in the last chunk. Before that it is JSON null if the client asked for
	// include_usage, and otherwise nil, i.e. absent.
	Usage any `json:"usage,omitempty"`
}

// A choice is what a chunk adds to the answer.
type choice struct {
	// Index is always 0: there is one choice.
	Index int `json:"index"`

	// Delta is the next piece of the answer; empty in the last one.
	Delta delta `json:"delta"`

	// FinishReason is the reason why the answer ended; null before the last piece.
	FinishReason *string `json:"finish_reason"`
}

// A delta is a piece of the answer: its role, text, reasoning, or tool calls.
type delta struct {
	// Role is "assistant" in the first piece, and absent in others.
	Role string `json:"role,omitempty"`

	// Content is a piece of the visible text; nil for none.
	Content *string `json:"content,omitempty"`

	// Reasoning is a piece of the model's reasoning; "" for none.
	Reasoning string `json:"reasoning_content,omitempty"`

	// ToolCalls has one tool call or a piece of one; empty for none.
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// A toolCall is a tool call or, in a stream, a piece of one. Type, ID and Name are only in the first
// piece, because clients concatenate the texts of all pieces.
type toolCall struct {
	// Index identifies the call to which the piece belongs; nil if the response is not streamed.
	Index *int `json:"index,omitempty"`

	// ID is the id of the call, which its result must repeat.
	ID string `json:"id,omitempty"`

	// Type is the type of the tool: "function".
	Type string `json:"type,omitempty"`

	// Function is the called function with its arguments.
	Function function `json:"function"`
}

// A function is the name and the JSON arguments of a tool call.
type function struct {
	// Name is the name of the tool.
	Name string `json:"name,omitempty"`

	// Arguments are the arguments as JSON text.
	Arguments string `json:"arguments"`
}

// A usage is the token usage of a turn in the form of this API.
type usage struct {
	// PromptTokens is the number of tokens that the model read.
	PromptTokens int64 `json:"prompt_tokens"`

	// CompletionTokens is the number of tokens that the model wrote.
	CompletionTokens int64 `json:"completion_tokens"`

	// TotalTokens is the sum of both.
	TotalTokens int64 `json:"total_tokens"`

	// PromptTokensDetails divides PromptTokens into kinds, such as tokens from a cache.
	PromptTokensDetails promptDetails `json:"prompt_tokens_details"`

	// CompletionTokensDetails divides CompletionTokens into kinds, such as tokens of reasoning.
	CompletionTokensDetails completionDetails `json:"completion_tokens_details"`
}

// promptDetails are details about the tokens that the model read.
type promptDetails struct {
	// CachedTokens is the number of tokens read from the upstream's cache.
	CachedTokens int64 `json:"cached_tokens"`

	// CacheWriteTokens is the number of tokens written to the upstream's cache.
	CacheWriteTokens int64 `json:"cache_write_tokens"`
}

// completionDetails are details about the tokens that the model wrote.
type completionDetails struct {
	// ReasoningTokens is the number of tokens of reasoning.
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// usageOf converts the token usage of a turn; nil gives zeros.
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

// A stream writes the response to one turn as a sequence of chunks.
type stream struct {
	// events writes the server-sent events.
	events *front.Events

	// head is the chunk to be sent, with the members that all chunks have in common.
	head chunk

	// includeUsage asks for a last chunk with the token usage.
	includeUsage bool

	// begun means that the first chunk was written.
	begun bool

	// calls is the number of tool calls so far.
	calls int
	// ended means that the response is complete.
	ended bool
}

// streamTurn writes a turn as server-sent events. If it fails before the first event, the response is
// an error with its HTTP status. head has the members that all chunks have in common.
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

// event writes the chunks for one event of the turn.
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

// call writes the chunks for a tool call.
func (s *stream) call(c turn.Call) error {
	index := s.calls
	s.calls++
	first := toolCall{Index: &index, ID: c.ID, Type: "function", Function: function{Name: c.Name}}
	if err := s.send(delta{ToolCalls: []toolCall{first}}); err != nil {
		return err
	}
	return s.send(delta{ToolCalls: []toolCall{{Index: &index, Function: function{Arguments: openai.Arguments(c)}}}})
}

// end writes the last chunks and the marker [DONE].
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

// begin writes the first chunk, with the role, unless this was done before.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	empty := ""
	return s.sendChoice(choice{Delta: delta{Role: "assistant", Content: &empty}})
}

// send writes a chunk with a piece of the answer.
func (s *stream) send(d delta) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.sendChoice(choice{Delta: d})
}

// sendChoice writes a chunk with this choice.
func (s *stream) sendChoice(c choice) error {
	s.head.Choices = append(s.head.Choices[:0], c)
	return s.events.Send("", s.head)
}
