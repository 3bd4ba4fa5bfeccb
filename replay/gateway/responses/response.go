package responses

import (
	"encoding/json"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/openai"
)

// A response is the API's response object. Members that have no meaning here are constant.
type response struct {
	// ID is the id of the response, resp_….
	ID string `json:"id"`

	// Object is the type of the JSON object: "response".
	Object string `json:"object"`

	// CreatedAt is the time of the response in seconds since 1970.
	CreatedAt int64 `json:"created_at"`

	// CompletedAt is the time at which the response was completed, in seconds since 1970; null before.
	CompletedAt *int64 `json:"completed_at"`

	// Status is "in_progress", "completed", "incomplete" or "failed".
	Status string `json:"status"`

	// Error is the error of a failed response; otherwise null.
	Error *responseError `json:"error"`

	// IncompleteDetails is the reason if Status is incomplete; otherwise null.
	IncompleteDetails *incomplete `json:"incomplete_details"`

	// Instructions repeats the parameter of that name.
	Instructions *string `json:"instructions"`

	// MaxOutputTokens repeats the parameter of that name; null for no limit.
	MaxOutputTokens *int64 `json:"max_output_tokens"`

	// Model is the id of the model that answers.
	Model string `json:"model"`

	// Output are the output items so far, such as messageItem.
	Output []any `json:"output"`

	// ParallelToolCalls repeats the parameter of that name; it has no effect.
	ParallelToolCalls bool `json:"parallel_tool_calls"`

	// PreviousResponseID is the id of the earlier response that this one continues; null for none.
	PreviousResponseID *string `json:"previous_response_id"`

	// Reasoning is a constant: the upstream has no such setting.
	Reasoning reasoning `json:"reasoning"`

	// Temperature is a constant: the upstream has no such setting.
	Temperature float64 `json:"temperature"`

	// Text is the output format.
	Text text `json:"text"`

	// ToolChoice is "auto" or "none".
	ToolChoice string `json:"tool_choice"`

	// Tools repeats the tools of the request.
	Tools []any `json:"tools"`

	// TopP is a constant: the upstream has no such setting.
	TopP float64 `json:"top_p"`

	// Truncation is a constant: the upstream has no such setting.
	Truncation string `json:"truncation"`

	// Usage is the token usage of the turn; null before its end.
	Usage *usage `json:"usage"`

	// Metadata repeats the parameter of that name.
	Metadata map[string]string `json:"metadata"`

	// Background is always false.
	Background bool `json:"background"`
	// AccessPrograms is a member that the API's schema requires; "standard" means none.
	AccessPrograms accessPrograms `json:"access_programs"`
}

// A responseError is the error of a response with status failed.
type responseError struct {
	// Code is the API's name of the error.
	Code string `json:"code"`

	// Message is the text of the error for humans.
	Message string `json:"message"`
}

// An incomplete is the reason why a response has the status incomplete.
type incomplete struct {
	// Reason is always "max_output_tokens".
	Reason string `json:"reason"`
}

// A reasoning is the response's reasoning setting; its members are always null.
type reasoning struct {
	// Effort is how much the model is to reason; always null.
	Effort *string `json:"effort"`

	// Summary is the requested form of the summary of the reasoning; always null.
	Summary *string `json:"summary"`
}

// A text is the response's setting for the output format, which is always text.
type text struct {
	// Format is the output format, always that of plain text.
	Format format `json:"format"`
}

// A format is an output format: "text".
type format struct {
	// Type is always "text".
	Type string `json:"type"`
}

// accessPrograms is a constant part of the response.
type accessPrograms struct {
	// Cyber is always "standard".
	Cyber string `json:"cyber"`
}

// A usage is the token usage of a turn in the form of this API.
type usage struct {
	// InputTokens is the number of tokens that the model read.
	InputTokens int64 `json:"input_tokens"`

	// InputTokensDetails divides InputTokens into kinds, such as tokens from a cache.
	InputTokensDetails inputDetails `json:"input_tokens_details"`

	// OutputTokens is the number of tokens that the model wrote.
	OutputTokens int64 `json:"output_tokens"`

	// OutputTokensDetails divides OutputTokens into kinds, such as tokens of reasoning.
	OutputTokensDetails outputDetails `json:"output_tokens_details"`

	// TotalTokens is the sum of both.
	TotalTokens int64 `json:"total_tokens"`
}

// inputDetails are details about the tokens that the model read.
type inputDetails struct {
	// CachedTokens is the number of tokens read from the upstream's cache.
	CachedTokens int64 `json:"cached_tokens"`

	// CacheWriteTokens is the number of tokens written to the upstream's cache.
	CacheWriteTokens int64 `json:"cache_write_tokens"`
}

// outputDetails are details about the tokens that the model wrote.
type outputDetails struct {
	// ReasoningTokens is the number of tokens of reasoning.
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// usageOf converts the token usage of a turn; nil gives zeros.
func usageOf(u *turn.Usage) *usage {
	if u == nil {
		return &usage{}
	}
	return &usage{
		InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Input + u.Output,
		InputTokensDetails:  inputDetails{CachedTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite},
		OutputTokensDetails: outputDetails{ReasoningTokens: u.Reasoning},
	}
}

// newResponse returns the response to req by the named model, with the status in_progress and without
// output.
func newResponse(req *request, model string) *response {
	return &response{
		ID: openai.NewID("resp_"), Object: "response", CreatedAt: openai.Now(), Status: "in_progress", Model: model,
		Output: []any{}, Tools: req.echoTools, ToolChoice: req.toolChoice, ParallelToolCalls: req.parallel,
		Instructions: req.instructions, PreviousResponseID: req.previous, Metadata: req.metadata, MaxOutputTokens: req.maxTokens,
		Temperature: 1, TopP: 1, Truncation: "disabled", Text: text{Format: format{Type: "text"}},
		AccessPrograms: accessPrograms{Cyber: "standard"},
	}
}

// A functionTool is a tool definition of the request in the form in which the response repeats it.
type functionTool struct {
	// Type is always "function".
	Type string `json:"type"`

	// Name is the name of the function.
	Name string `json:"name"`

	// Description tells the model what the function does; null if the request has none.
	Description *string `json:"description"`

	// Parameters is the JSON schema of the arguments.
	Parameters json.RawMessage `json:"parameters"`

	// Strict is always false: arguments are not checked against the schema.
	Strict bool `json:"strict"`
}

// newFunctionTool converts a tool to the form in which the response repeats it.
func newFunctionTool(t turn.Tool) functionTool {
	f := functionTool{Type: "function", Name: t.Name, Parameters: t.Schema}
	if t.Description != "" {
		f.Description = &t.Description
	}
	if f.Parameters == nil {
		f.Parameters = json.RawMessage("null")
	}
	return f
}

// The kinds of items in the output of a response.
type (
	// A messageItem is an output item with the visible text of the answer.
	messageItem struct {
		// ID is the id of the item in the response.
		ID string `json:"id"`

		// Type is always "message".
		Type string `json:"type"`

		// Status is "in_progress", "completed" or "incomplete".
		Status string `json:"status"`

		// Role is always "assistant".
		Role string `json:"role"`

		// Content are the parts of the message, at most one.
		Content []messagePart `json:"content"`
	}

	// A messagePart is a part of a message's content. Annotations and Logprobs are always empty.
	messagePart struct {
		// Type is always "output_text".
		Type string `json:"type"`

		// Text is the text of the part.
		Text string `json:"text"`

		// Annotations is always empty; the API's clients expect the member.
		Annotations []string `json:"annotations"`

		// Logprobs is always empty; the API's clients expect the member.
		Logprobs []string `json:"logprobs"`
	}

	// A reasoningItem is an output item with the model's reasoning.
	reasoningItem struct {
		// ID is the id of the item in the response.
		ID string `json:"id"`

		// Type is always "reasoning".
		Type string `json:"type"`

		// Summary are the parts of the reasoning that the model made visible, at most one.
		Summary []summaryPart `json:"summary"`
	}

	// A summaryPart is a part of a reasoning item.
	summaryPart struct {
		// Type is always "summary_text".
		Type string `json:"type"`

		// Text is the text of the part.
		Text string `json:"text"`
	}

	// A functionCallItem is an output item with a call of a function.
	functionCallItem struct {
		// ID is the id of the item in the response.
		ID string `json:"id"`

		// Type is always "function_call".
		Type string `json:"type"`

		// Status is "in_progress", "completed" or "incomplete".
		Status string `json:"status"`

		// CallID is the id that the result of the call must repeat.
		CallID string `json:"call_id"`

		// Namespace is the namespace of the tool; "" for none.
		Namespace string `json:"namespace,omitempty"`

		// Name is the name of the called function.
		Name string `json:"name"`

		// Arguments are the arguments as JSON text.
		Arguments string `json:"arguments"`
	}

	// A customCallItem is an output item with a call of a custom tool, whose input is text.
	customCallItem struct {
		// ID is the id of the item in the response.
		ID string `json:"id"`

		// Type is always "custom_tool_call".
		Type string `json:"type"`

		// CallID is the id that the result of the call must repeat.
		CallID string `json:"call_id"`

		// Namespace is the namespace of the tool; "" for none.
		Namespace string `json:"namespace,omitempty"`

		// Name is the name of the called tool.
		Name string `json:"name"`

		// Input is the input of the tool, a text.
		Input string `json:"input"`
	}
)

// newMessage returns a message item with these parts.
func newMessage(id, status string, content ...messagePart) messageItem {
	if content == nil {
		content = []messagePart{}
	}
	return messageItem{ID: id, Type: "message", Status: status, Role: "assistant", Content: content}
}

// newPart returns a message part with this text.
func newPart(text string) messagePart {
	return messagePart{Type: "output_text", Text: text, Annotations: []string{}, Logprobs: []string{}}
}

// newReasoning returns a reasoning item with these parts.
func newReasoning(id string, summary ...summaryPart) reasoningItem {
	if summary == nil {
		summary = []summaryPart{}
	}
	return reasoningItem{ID: id, Type: "reasoning", Summary: summary}
}

// newSummary returns a part of a reasoning item with this text.
func newSummary(text string) summaryPart { return summaryPart{Type: "summary_text", Text: text} }
