package responses

import "unwire/replay/gateway/front"

// Params lists the parameters of POST /v1/responses with their treatment. It has all that codex, the
// OpenAI SDKs, the AI SDK and LangChain can send.
var Params = front.Params{
	{Name: "model", Treatment: front.Honoured, Note: "an id or an alias of the upstream's models"},
	{Name: "input", Treatment: front.Honoured, Note: "a string or items; items of OpenAI's own tools are left out"},
	{Name: "instructions", Treatment: front.Honoured, Note: "a system message before the others"},
	{Name: "tools", Treatment: front.Honoured, Note: "functions, custom tools and namespaces; OpenAI's own tools are left out"},
	{Name: "tool_choice", Treatment: front.Honoured, Note: "auto is supported; with none, unwire announces no tools; required and a named tool are refused"},
	{Name: "stream", Treatment: front.Honoured},
	{Name: "stream_options", Treatment: front.Honoured},
	{Name: "previous_response_id", Treatment: front.Emulated, Note: "while unwire remembers the response"},
	{Name: "store", Treatment: front.Emulated, Note: "false forgets the transcript; otherwise it is kept in memory for previous_response_id, and nothing is stored"},
	{Name: "max_output_tokens", Treatment: front.Emulated, Note: "unwire ends the answer when the upstream's count of tokens reaches the limit"},
	{Name: "metadata", Treatment: front.Honoured, Note: "repeated in the response"},
	{Name: "text", Treatment: front.Honoured, Note: "format text; JSON formats are refused"},
	{Name: "max_tool_calls", Treatment: front.Honoured, Note: "this parameter limits OpenAI's own tools, which unwire does not offer"},
	{Name: "background", Treatment: front.Refused, Allowed: []string{"false"}, Note: "responses are not stored, so they could not be fetched later"},
	{Name: "conversation", Treatment: front.Refused, Note: "unwire stores no conversations; send the whole input"},
	{Name: "prompt", Treatment: front.Refused, Note: "unwire stores no prompts; send instructions and input"},
	{Name: "moderation", Treatment: front.Refused, Note: "unwire moderates nothing"},
	{Name: "top_logprobs", Treatment: front.Refused, Allowed: []string{"0"}, Note: "the upstream reports no probabilities"},
	{Name: "include", Treatment: front.Ignored, Allowed: []string{"[]"}, Note: "reasoning is reported as summaries, never encrypted; the other values of `include` request results of OpenAI's own tools, which unwire does not have"},
	{Name: "reasoning", Treatment: front.Ignored, Note: "summaries are reported whenever the model reasons; for effort choose another model"},
	{Name: "parallel_tool_calls", Treatment: front.Ignored, Allowed: []string{"true"}, Note: "the upstream decides how many tools it calls at once"},
	{Name: "temperature", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},
	{Name: "top_p", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},
	{Name: "truncation", Treatment: front.Ignored, Allowed: []string{`"disabled"`}, Note: "the upstream decides which part of a long conversation it uses"},
	{Name: "context_management", Treatment: front.Ignored, Allowed: []string{"[]"}, Note: "the client shortens its conversation"},
	{Name: "service_tier", Treatment: front.Ignored, Allowed: []string{`"auto"`, `"default"`}, Note: "the upstream has no such setting"},
	{Name: "prompt_cache_key", Treatment: front.Ignored, Note: "unwire recognizes the conversation by the IDs of its tool calls"},
	{Name: "prompt_cache_retention", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	{Name: "prompt_cache_options", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	{Name: "client_metadata", Treatment: front.Ignored, Note: "not sent to the upstream"},
	{Name: "access_programs", Treatment: front.Ignored, Note: "the upstream has none"},
	{Name: "safety_identifier", Treatment: front.Ignored, Note: "not sent to the upstream"},
	{Name: "user", Treatment: front.Ignored, Note: "not sent to the upstream"},
}

// The tables of the objects within a request.
var (
	// The treatment of the members of objects within a request, such as one tool.
	streamOptionsParams = front.Params{
		{Name: "include_obfuscation", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "events are not padded"},
	}
	textParams = front.Params{
		{Name: "format", Treatment: front.Honoured},
		{Name: "verbosity", Treatment: front.Ignored, Allowed: []string{`"medium"`}, Note: "the upstream has no such setting"},
	}
	functionParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "name", Treatment: front.Honoured},
		{Name: "description", Treatment: front.Honoured},
		{Name: "parameters", Treatment: front.Honoured},
		{Name: "strict", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "the upstream does not enforce the schema of arguments"},
		{Name: "defer_loading", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "all tools are announced"},
		{Name: "output_schema", Treatment: front.Ignored, Note: "the upstream has no such setting"},
		{Name: "allowed_callers", Treatment: front.Ignored, Note: "the upstream has no such setting"},
		{Name: "async", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "the upstream waits for results"},
	}
	customParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "name", Treatment: front.Honoured},
		{Name: "description", Treatment: front.Honoured},
		{Name: "format", Treatment: front.Emulated, Note: "a grammar is part of the description"},
		{Name: "defer_loading", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "all tools are announced"},
		{Name: "allowed_callers", Treatment: front.Ignored, Note: "the upstream has no such setting"},
		{Name: "async", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "the upstream waits for results"},
	}
	namespaceParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "name", Treatment: front.Emulated, Note: "the upstream sees NAMESPACE__NAME"},
		{Name: "description", Treatment: front.Emulated, Note: "part of the description of each tool"},
		{Name: "tools", Treatment: front.Honoured},
	}
	itemParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "role", Treatment: front.Honoured},
		{Name: "content", Treatment: front.Honoured},
		{Name: "call_id", Treatment: front.Honoured},
		{Name: "name", Treatment: front.Honoured},
		{Name: "namespace", Treatment: front.Honoured},
		{Name: "arguments", Treatment: front.Honoured},
		{Name: "input", Treatment: front.Honoured},
		{Name: "output", Treatment: front.Honoured},
		{Name: "id", Treatment: front.Honoured, Note: "unwire identifies items by their call_id or their position"},
		{Name: "status", Treatment: front.Honoured, Note: "unwire sends incomplete items unchanged"},
		{Name: "phase", Treatment: front.Ignored, Note: "the upstream has no phases"},
		{Name: "caller", Treatment: front.Ignored, Note: "the upstream has no such setting"},
		{Name: "async", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "the upstream waits for results"},
	}
	partParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "text", Treatment: front.Honoured},
		{Name: "refusal", Treatment: front.Honoured, Note: "as text"},
		{Name: "image_url", Treatment: front.Honoured, Note: "a data URL"},
		{Name: "file_id", Treatment: front.Refused, Note: "unwire stores no files; send a data URL"},
		{Name: "detail", Treatment: front.Ignored, Allowed: []string{`"auto"`}, Note: "unwire sends images unchanged"},
		{Name: "annotations", Treatment: front.Ignored, Allowed: []string{"[]"}, Note: "not sent to the upstream"},
		{Name: "logprobs", Treatment: front.Ignored, Allowed: []string{"[]"}, Note: "not sent to the upstream"},
		{Name: "prompt_cache_breakpoint", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	}
)
