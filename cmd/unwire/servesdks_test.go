package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"unwire/captures/need"
)

// sdkSchema is the schema of the tool that the SDKs' clients have.
var sdkSchema = map[string]any{
	"type":       "object",
	"properties": map[string]any{"command": map[string]any{"type": "string"}},
	"required":   []string{"command"},
}

// runTool runs the tool.
func runTool(ctx context.Context, arguments string) string {
	var args struct{ Command string }
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		return err.Error()
	}
	out, err := exec.CommandContext(ctx, "sh", "-c", args.Command).Output()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// TestServedSDKs does what TestServedClients does, with the official SDKs for Go.
func TestServedSDKs(t *testing.T) {
	t.Parallel()
	need.Program(t, "sh", "dash")
	for name, ask := range map[string]func(context.Context, *served) (string, error){
		"anthropic-sdk-go":    askAnthropic,
		"openai-go chat":      askChat,
		"openai-go responses": askResponses,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, `{"v":1}`)
			out, err := ask(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, out, 1, 1)
		})
	}
}

// maxSteps bounds the requests of a task.
const maxSteps = 10

var errTooLong = fmt.Errorf("no answer after %d requests", maxSteps)

func askAnthropic(ctx context.Context, s *served) (string, error) {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(s.url), anthropicoption.WithAPIKey(servedKey), anthropicoption.WithMaxRetries(0))
	params := anthropic.MessageNewParams{
		Model: "composer-1", MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Run the tools demo."))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "bash", InputSchema: anthropic.ToolInputSchemaParam{Properties: sdkSchema["properties"], Required: []string{"command"}},
		}}},
	}
	for range maxSteps {
		stream := client.Messages.NewStreaming(ctx, params)
		var message anthropic.Message
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				return "", err
			}
		}
		if err := stream.Err(); err != nil {
			return "", err
		}
		var text strings.Builder
		var results []anthropic.ContentBlockParamUnion
		for _, block := range message.Content {
			text.WriteString(block.Text)
			if block.Type == "tool_use" {
				results = append(results, anthropic.NewToolResultBlock(block.ID, runTool(ctx, string(block.Input)), false))
			}
		}
		if results == nil {
			return text.String(), nil
		}
		params.Messages = append(params.Messages, message.ToParam(), anthropic.NewUserMessage(results...))
	}
	return "", errTooLong
}

func askChat(ctx context.Context, s *served) (string, error) {
	client := openai.NewClient(option.WithBaseURL(s.url+"/v1"), option.WithAPIKey(servedKey), option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{
		Model:    "composer-1",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Run the tools demo.")},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "bash", Parameters: sdkSchema})},
	}
	for range maxSteps {
		stream := client.Chat.Completions.NewStreaming(ctx, params)
		var sum openai.ChatCompletionAccumulator
		for stream.Next() {
			if !sum.AddChunk(stream.Current()) {
				return "", fmt.Errorf("the chunk %s does not fit", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			return "", err
		}
		message := sum.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		params.Messages = append(params.Messages, message.ToParam())
		for _, call := range message.ToolCalls {
			params.Messages = append(params.Messages, openai.ToolMessage(runTool(ctx, call.Function.Arguments), call.ID))
		}
	}
	return "", errTooLong
}

// askResponses sends only what is new, with previous_response_id.
func askResponses(ctx context.Context, s *served) (string, error) {
	client := openai.NewClient(option.WithBaseURL(s.url+"/v1"), option.WithAPIKey(servedKey), option.WithMaxRetries(0))
	params := responses.ResponseNewParams{
		Model: "composer-1",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Run the tools demo.")},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "bash", Parameters: sdkSchema}}},
	}
	for range maxSteps {
		stream := client.Responses.NewStreaming(ctx, params)
		var response responses.Response
		for stream.Next() {
			if event := stream.Current(); event.Type == "response.completed" {
				response = event.Response
			}
		}
		if err := stream.Err(); err != nil {
			return "", err
		}
		var results responses.ResponseInputParam
		for _, item := range response.Output {
			if item.Type == "function_call" {
				result := responses.ResponseInputItemParamOfFunctionCallOutput(runTool(ctx, item.Arguments.OfString))
				result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
				results = append(results, result)
			}
		}
		if results == nil {
			return response.OutputText(), nil
		}
		params.PreviousResponseID = openai.String(response.ID)
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
	}
	return "", errTooLong
}
