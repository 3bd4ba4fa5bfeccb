package messages

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"unwire/replay/agent/turn"
)

func client(url string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

var sdkParams = anthropic.MessageNewParams{
	Model: "default", MaxTokens: 1000,
	System:   []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}},
	Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Read both."))},
	Thinking: anthropic.ThinkingConfigParamOfEnabled(1024),
	Tools: []anthropic.ToolUnionParam{
		{OfTool: &anthropic.ToolParam{Name: "read", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}}}},
		{OfTool: &anthropic.ToolParam{Name: "list", InputSchema: anthropic.ToolInputSchemaParam{Required: []string{"path"}}}},
	},
}

// TestSDKStream runs a conversation with tools as the official SDK's users do: the
// answer's message goes back as it is, with the results.
func TestSDKStream(t *testing.T) {
	t.Parallel()
	core := &fakeCore{scripts: [][]any{toolTurn, {turn.Text{Text: "Done."}, end}}}
	c := client(serve(t, core))
	params := sdkParams
	message := streamed(t, c, params)
	if message.StopReason != anthropic.StopReasonToolUse || len(message.Content) != 4 {
		t.Fatalf("got %s", message.RawJSON())
	}
	if got := message.Content[0]; got.Thinking != "The user wants two files." || got.Signature == "" {
		t.Errorf("thinking: %+v", got)
	}
	if got := message.Content[1].Text; got != `I read both: <a> & "b".` {
		t.Errorf("text: %q", got)
	}
	if got := message.Content[2].AsToolUse(); got.ID != "sess_A__call_1" || got.Name != "read" || string(got.Input) != `{"path":"a"}` {
		t.Errorf("first call: %+v", got)
	}
	if got := message.Content[3].AsToolUse(); string(got.Input) != "{}" {
		t.Errorf("second call: %+v", got)
	}
	if got := message.Usage; got.OutputTokens != 0 || got.InputTokens != 0 {
		t.Errorf("usage at the tools' boundary: %+v", got)
	}

	params.Messages = append(params.Messages, message.ToParam(), anthropic.NewUserMessage(
		anthropic.NewToolResultBlock("sess_A__call_1", "content of a", false),
		anthropic.NewToolResultBlock("sess_A__call_2", "no such folder", true)))
	message = streamed(t, c, params)
	if message.StopReason != anthropic.StopReasonEndTurn || message.Content[0].Text != "Done." {
		t.Errorf("got %s", message.RawJSON())
	}
	if got := message.Usage; got.InputTokens != 11 || got.OutputTokens != 7 || got.CacheReadInputTokens != 5 || got.CacheCreationInputTokens != 3 {
		t.Errorf("usage: %+v", got)
	}
	checkConversation(t, core.requests)
}

// checkConversation checks what the core got of the two requests of TestSDKStream.
func checkConversation(t *testing.T, requests []*turn.Request) {
	t.Helper()
	last := requests[1]
	if last.Model != "composer-1" || last.MaxTokens != 1000 || len(last.Tools) != 2 {
		t.Errorf("request: %+v", last)
	}
	const want = `[{"Role":"system","Parts":["Be brief."]},{"Role":"user","Parts":["Read both."]},` +
		`{"Role":"assistant","Parts":["(The user wants two files.)","I read both: <a> & \"b\".","call sess_A__call_1 read {\"path\":\"a\"}","call sess_A__call_2 list {}"]},` +
		`{"Role":"tool","Parts":["result sess_A__call_1 [content of a]","failure sess_A__call_2 [no such folder]"]}]`
	if got := sketch(last.Messages); got != want {
		t.Errorf("the core got\n%s\nwant\n%s", got, want)
	}
}

// streamed runs one streamed request. Each event must be one that the SDK knows
// entirely.
func streamed(t *testing.T, c anthropic.Client, params anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	stream := c.Messages.NewStreaming(t.Context(), params)
	var message anthropic.Message
	for stream.Next() {
		event := stream.Current()
		strict(t, event.Type, event)
		if err := message.Accumulate(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return message
}

func TestSDKWhole(t *testing.T) {
	t.Parallel()
	c := client(serve(t, &fakeCore{scripts: [][]any{toolTurn}}))
	message, err := c.Messages.New(t.Context(), sdkParams)
	if err != nil {
		t.Fatal(err)
	}
	strict(t, "message", message)
	if len(message.Content) != 4 || message.Content[1].Text != `I read both: <a> & "b".` || string(message.Content[2].AsToolUse().Input) != `{"path":"a"}` {
		t.Errorf("got %s", message.RawJSON())
	}
}

// TestSDKBeta does the same with the form of the API that Claude Code asks for.
func TestSDKBeta(t *testing.T) {
	t.Parallel()
	c := client(serve(t, &fakeCore{scripts: [][]any{toolTurn, toolTurn}}))
	params := anthropic.BetaMessageNewParams{
		Model: "composer-1", MaxTokens: 1000,
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Read both."))},
		Thinking: anthropic.BetaThinkingConfigParamOfEnabled(1024),
	}
	message, err := c.Beta.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	strict(t, "message", message)

	stream := c.Beta.Messages.NewStreaming(t.Context(), params)
	var sum anthropic.BetaMessage
	for stream.Next() {
		strict(t, stream.Current().Type, stream.Current())
		if err := sum.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil || len(sum.Content) != 4 {
		t.Errorf("got %v, %s", err, sum.RawJSON())
	}
}

func TestSDKModels(t *testing.T) {
	t.Parallel()
	c := client(serve(t, &fakeCore{}))
	for _, limit := range []int64{1, 2, 20} {
		var ids []string
		pages := c.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{Limit: anthropic.Int(limit)})
		for pages.Next() {
			strict(t, "model", pages.Current())
			ids = append(ids, pages.Current().ID)
		}
		if err := pages.Err(); err != nil || strings.Join(ids, " ") != "composer-1 default small-1 vendor/big-1" {
			t.Errorf("limit %d: got %v, %v", limit, ids, err)
		}
	}
	model, err := c.Models.Get(t.Context(), "default", anthropic.ModelGetParams{})
	if err != nil || model.ID != "composer-1" || model.DisplayName != "Composer 1" {
		t.Errorf("the alias: %v, %+v", err, model)
	}
	if model, err = c.Models.Get(t.Context(), "vendor/big-1", anthropic.ModelGetParams{}); err != nil || model.ID != "vendor/big-1" {
		t.Errorf("an id with a slash: %v", err)
	}
	beta, err := c.Beta.Models.Get(t.Context(), "small-1", anthropic.BetaModelGetParams{})
	if err != nil {
		t.Fatal(err)
	}
	strict(t, "model", beta)
}

// TestSDKErrors has every kind of error, before the stream and within it.
func TestSDKErrors(t *testing.T) {
	t.Parallel()
	for kind, want := range map[turn.Kind]struct {
		status int
		name   string
	}{
		turn.Internal: {500, "api_error"}, turn.Invalid: {400, "invalid_request_error"},
		turn.Unauthorized: {401, "authentication_error"}, turn.Forbidden: {403, "permission_error"},
		turn.NotFound: {404, "not_found_error"}, turn.TooLarge: {413, "request_too_large"},
		turn.RateLimited: {429, "rate_limit_error"}, turn.Overloaded: {529, "overloaded_error"},
		turn.Upstream: {502, "api_error"}, turn.Timeout: {504, "timeout_error"},
		turn.ContextTooLong: {400, "invalid_request_error"},
	} {
		failure := &turn.Error{Kind: kind, Message: "what failed", RetryAfter: 1500 * time.Millisecond}
		for name, core := range map[string]*fakeCore{
			"refused": {refuse: failure},
			"first":   {scripts: [][]any{{failure}}},
		} {
			c := client(serve(t, core))
			_, err := c.Messages.New(t.Context(), sdkParams)
			checkError(t, name, err, want.status, want.name)
			core.scripts = [][]any{{failure}}
			stream := c.Messages.NewStreaming(t.Context(), sdkParams)
			if stream.Next() {
				t.Errorf("%s: a stream began", name)
			}
			checkError(t, name, stream.Err(), want.status, want.name)
		}

		c := client(serve(t, &fakeCore{scripts: [][]any{{turn.Text{Text: "a"}, failure}}}))
		stream := c.Messages.NewStreaming(t.Context(), sdkParams)
		for stream.Next() {
			if stream.Current().Type == "message_stop" {
				t.Errorf("%s: a broken stream has a clean end", want.name)
			}
		}
		checkError(t, "within", stream.Err(), 200, want.name)
	}
}

func checkError(t *testing.T, name string, err error, status int, kind string) {
	t.Helper()
	var api *anthropic.Error
	if !errors.As(err, &api) {
		t.Errorf("%s %s: got %v, want an error of the API", name, kind, err)
		return
	}
	var body anthropic.ErrorResponse
	if err := json.Unmarshal([]byte(api.RawJSON()), &body); err != nil {
		t.Fatal(err)
	}
	if kind != "request_too_large" { // which the API documents and the SDK does not list
		strict(t, "error", body)
	}
	if api.StatusCode != status || string(api.Type()) != kind && body.Error.Type != kind {
		t.Errorf("%s: got %d %s, want %d %s: %s", name, api.StatusCode, api.Type(), status, kind, api.RawJSON())
	}
	if status != 200 && api.Response.Header.Get("Retry-After") != "2" {
		t.Errorf("%s %s: Retry-After is %q, want 2", name, kind, api.Response.Header.Get("Retry-After"))
	}
}

// TestBrokenTurn ends a turn without an end.
func TestBrokenTurn(t *testing.T) {
	t.Parallel()
	c := client(serve(t, &fakeCore{scripts: [][]any{{turn.Text{Text: "a"}}, {turn.Text{Text: "a"}}}}))
	stream := c.Messages.NewStreaming(t.Context(), sdkParams)
	for stream.Next() {
		if kind := stream.Current().Type; kind == "message_stop" || kind == "message_delta" {
			t.Errorf("a broken stream has a %s", kind)
		}
	}
	if stream.Err() == nil {
		t.Error("a broken stream looks complete")
	}
	if _, err := c.Messages.New(t.Context(), sdkParams); err == nil {
		t.Error("a broken turn looks complete")
	}
}

// TestClientGoes closes the turn when its client disconnects.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	core := &fakeCore{scripts: [][]any{{turn.Text{Text: "a"}, time.Hour, end}, {time.Hour, end}}}
	c := client(serve(t, core))
	ctx, cancel := context.WithCancel(t.Context())
	stream := c.Messages.NewStreaming(ctx, sdkParams)
	for stream.Next() && stream.Current().Type != "content_block_delta" {
	}
	cancel()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() {
		core.await(t, "the second request has not come", func() bool { return len(core.requests) == 2 })
		cancel()
	}()
	if _, err := c.Messages.New(ctx, sdkParams); err == nil {
		t.Error("an answer came to a client that has left")
	}
	core.await(t, "not all turns were closed", func() bool { return core.closed == 2 })
}
