package messages

import "unwire/replay/gateway/front"

// Params lists the parameters of POST /v1/messages with their treatment. It has all that Claude Code
// 2.1, @anthropic-ai/sdk 1.12 and anthropic-sdk-go 1.84 send.
var Params = front.Params{
	{Name: "model", Treatment: front.Honoured, Note: "an id or an alias of GET /v1/models"},
	{Name: "messages", Treatment: front.Honoured, Note: "text, images as base64, tool calls and their results, thinking; a role system entry in the middle is delivered with the message before it"},
	{Name: "system", Treatment: front.Honoured},
	{Name: "tools", Treatment: front.Honoured, Note: "tools that the client runs; tools that run on Anthropic's servers are refused"},
	{Name: "tool_choice", Treatment: front.Honoured, Note: "auto and none are supported; any and tool are refused, because the upstream cannot be forced to call a tool"},
	{Name: "stream", Treatment: front.Honoured},

	{Name: "max_tokens", Treatment: front.Emulated, Note: "unwire ends the answer when the upstream's count of tokens reaches the limit"},
	{Name: "stop_sequences", Treatment: front.Emulated, Note: "unwire ends the answer before the first of these texts"},
	{Name: "thinking", Treatment: front.Emulated, Note: "decides whether the answer contains thinking; the budget has no effect on how long the model thinks"},

	{Name: "cache_control", Treatment: front.Ignored, Note: "the upstream decides by itself what it caches"},
	{Name: "compaction", Treatment: front.Ignored, Note: "the upstream decides by itself when it shortens a conversation"},
	{Name: "context_management", Treatment: front.Ignored, Note: "the upstream manages its context by itself"},
	{Name: "diagnostics", Treatment: front.Ignored, Note: "the upstream has no such report"},
	{Name: "fallback_credit_token", Treatment: front.Ignored, Note: "the upstream has no fallback models"},
	{Name: "fallbacks", Treatment: front.Ignored, Note: "the upstream has no fallback models"},
	{Name: "metadata", Treatment: front.Ignored, Note: "not sent to the upstream, which identifies the user by the account"},
	{Name: "output_config", Treatment: front.Ignored, Allowed: []string{"{}"}, Note: "effort is ignored, because the upstream has no such setting; format is refused"},
	{Name: "service_tier", Treatment: front.Ignored, Allowed: []string{`"auto"`, `"standard_only"`}, Note: "the upstream has one tier"},
	{Name: "speed", Treatment: front.Ignored, Allowed: []string{`"standard"`}, Note: "the upstream has one speed"},
	{Name: "temperature", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},
	{Name: "top_k", Treatment: front.Ignored, Note: "the upstream has no such setting"},
	{Name: "top_p", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},

	{Name: "container", Treatment: front.Refused, Note: "the upstream runs no tools on its servers; offer a tool of your own instead"},
	{Name: "inference_geo", Treatment: front.Refused, Note: "unwire cannot choose the region in which the upstream runs"},
	{Name: "mcp_servers", Treatment: front.Refused, Allowed: []string{"[]"}, Note: "the client must connect to MCP servers and list their tools in the parameter `tools`"},
	{Name: "output_format", Treatment: front.Refused, Note: "the upstream cannot enforce a schema; ask for JSON in the prompt and check it"},
}
