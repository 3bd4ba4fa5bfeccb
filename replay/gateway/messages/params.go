package messages

import "unwire/replay/gateway/front"

// Params lists the parameters of POST /v1/messages with their treatment. It has all that Claude Code
// 2.1, @anthropic-ai/sdk 1.12 and anthropic-sdk-go 1.84 send.
var Params = front.Params{
	{Name: "model", Treatment: front.Honoured, Note: "an id or an alias of GET /v1/models"},
	{Name: "messages", Treatment: front.Honoured, Note: "text, images as base64, tool calls and their results, thinking; a role system entry in the middle is delivered with the message before it"},
	{Name: "system", Treatment: front.Honoured},
	{Name: "tools", Treatment: front.Honoured, Note: "tools that the client runs; tools that run on Anthropic's servers are refused"},
	{Name: "tool_choice", Treatment: front.Honoured, Note: "auto and none; the upstream cannot be made to call a tool, so any and tool are refused"},
	{Name: "stream", Treatment: front.Honoured},

	{Name: "max_tokens", Treatment: front.Emulated, Note: "unwire ends the answer after as many tokens as the upstream counts while it answers"},
	{Name: "stop_sequences", Treatment: front.Emulated, Note: "unwire ends the answer before the text"},
	{Name: "thinking", Treatment: front.Emulated, Note: "decides whether thinking is shown; the upstream thinks as its model does, whatever the budget"},

	{Name: "cache_control", Treatment: front.Ignored, Note: "the upstream decides by itself what it caches"},
	{Name: "compaction", Treatment: front.Ignored, Note: "the upstream decides by itself when it shortens a conversation"},
	{Name: "context_management", Treatment: front.Ignored, Note: "the upstream manages its context by itself"},
	{Name: "diagnostics", Treatment: front.Ignored, Note: "the upstream has no such report"},
	{Name: "fallback_credit_token", Treatment: front.Ignored, Note: "the upstream has no fallback models"},
	{Name: "fallbacks", Treatment: front.Ignored, Note: "the upstream has no fallback models"},
	{Name: "metadata", Treatment: front.Ignored, Note: "not sent on: the upstream knows its own account"},
	{Name: "output_config", Treatment: front.Ignored, Allowed: []string{"{}"}, Note: "the upstream has no setting for the effort; format is refused"},
	{Name: "service_tier", Treatment: front.Ignored, Allowed: []string{`"auto"`, `"standard_only"`}, Note: "the upstream has one tier"},
	{Name: "speed", Treatment: front.Ignored, Allowed: []string{`"standard"`}, Note: "the upstream has one speed"},
	{Name: "temperature", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},
	{Name: "top_k", Treatment: front.Ignored, Note: "the upstream has no such setting"},
	{Name: "top_p", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},

	{Name: "container", Treatment: front.Refused, Note: "nothing runs on the server; give the model a tool of yours"},
	{Name: "inference_geo", Treatment: front.Refused, Note: "the upstream does not let unwire choose where it computes"},
	{Name: "mcp_servers", Treatment: front.Refused, Allowed: []string{"[]"}, Note: "the client must connect to MCP servers and offer their tools in tools"},
	{Name: "output_format", Treatment: front.Refused, Note: "the upstream cannot be held to a schema; ask for JSON in the prompt and check it"},
}
