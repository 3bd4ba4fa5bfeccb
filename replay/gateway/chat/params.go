package chat

import "unwire/replay/gateway/front"

// Params lists the parameters of POST /v1/chat/completions with their treatment. It has all that
// opencode, the AI SDK, the OpenAI SDKs and LangChain can send.
var Params = front.Params{
	{Name: "model", Treatment: front.Honoured, Note: "an id or an alias of the upstream's models"},
	{Name: "messages", Treatment: front.Honoured},
	{Name: "tools", Treatment: front.Honoured, Note: "functions; other types are refused"},
	{Name: "tool_choice", Treatment: front.Honoured, Note: "auto is supported; with none, unwire announces no tools; required and a named tool are refused"},
	{Name: "stream", Treatment: front.Honoured},
	{Name: "stream_options", Treatment: front.Honoured, Note: "include_usage"},
	{Name: "stop", Treatment: front.Emulated, Note: "unwire ends the answer"},
	{Name: "max_tokens", Treatment: front.Emulated, Note: "unwire ends the answer when the upstream's count of tokens reaches the limit"},
	{Name: "max_completion_tokens", Treatment: front.Emulated, Note: "the same as max_tokens, and takes precedence over it"},
	{Name: "response_format", Treatment: front.Honoured, Note: "text; JSON modes are refused"},
	{Name: "n", Treatment: front.Refused, Allowed: []string{"1"}, Note: "unwire gives one answer"},
	{Name: "modalities", Treatment: front.Refused, Allowed: []string{`["text"]`}, Note: "answers are text"},
	{Name: "audio", Treatment: front.Refused, Note: "answers are text"},
	{Name: "logprobs", Treatment: front.Refused, Allowed: []string{"false"}, Note: "the upstream reports no probabilities"},
	{Name: "top_logprobs", Treatment: front.Refused, Allowed: []string{"0"}, Note: "the upstream reports no probabilities"},
	{Name: "logit_bias", Treatment: front.Refused, Allowed: []string{"{}"}, Note: "the upstream has no such setting"},
	{Name: "functions", Treatment: front.Refused, Allowed: []string{"[]"}, Note: "use tools"},
	{Name: "function_call", Treatment: front.Refused, Allowed: []string{`"auto"`, `"none"`}, Note: "use tool_choice"},
	{Name: "web_search_options", Treatment: front.Refused, Note: "the upstream decides itself whether it searches"},
	{Name: "moderation", Treatment: front.Refused, Note: "unwire moderates nothing"},
	{Name: "parallel_tool_calls", Treatment: front.Ignored, Allowed: []string{"true"}, Note: "the upstream decides how many tools it calls at once"},
	{Name: "temperature", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},
	{Name: "top_p", Treatment: front.Ignored, Allowed: []string{"1", "1.0"}, Note: "the upstream has no such setting"},
	{Name: "top_k", Treatment: front.Ignored, Note: "the upstream has no such setting"},
	{Name: "frequency_penalty", Treatment: front.Ignored, Allowed: []string{"0", "0.0"}, Note: "the upstream has no such setting"},
	{Name: "presence_penalty", Treatment: front.Ignored, Allowed: []string{"0", "0.0"}, Note: "the upstream has no such setting"},
	{Name: "seed", Treatment: front.Ignored, Note: "the upstream has no such setting"},
	{Name: "reasoning_effort", Treatment: front.Ignored, Note: "choose a model that reasons instead"},
	{Name: "verbosity", Treatment: front.Ignored, Note: "the upstream has no such setting"},
	{Name: "prediction", Treatment: front.Ignored, Note: "this parameter only makes answers faster"},
	{Name: "service_tier", Treatment: front.Ignored, Allowed: []string{`"auto"`, `"default"`}, Note: "the upstream has no such setting"},
	{Name: "store", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "unwire stores no answers"},
	{Name: "metadata", Treatment: front.Ignored, Allowed: []string{"{}"}, Note: "unwire stores no answers"},
	{Name: "prompt_cache_key", Treatment: front.Ignored, Note: "unwire recognizes the conversation by the IDs of its tool calls"},
	{Name: "prompt_cache_retention", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	{Name: "prompt_cache_options", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	{Name: "safety_identifier", Treatment: front.Ignored, Note: "not sent to the upstream"},
	{Name: "user", Treatment: front.Ignored, Note: "not sent to the upstream"},
}

// The tables of the objects within a request.
var (
	// The treatment of the members of objects within a request, such as one message.
	streamOptionsParams = front.Params{
		{Name: "include_usage", Treatment: front.Honoured},
		{Name: "include_obfuscation", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "chunks are not padded"},
	}
	formatParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
	}
	messageParams = front.Params{
		{Name: "role", Treatment: front.Honoured},
		{Name: "content", Treatment: front.Honoured},
		{Name: "tool_calls", Treatment: front.Honoured},
		{Name: "tool_call_id", Treatment: front.Honoured},
		{Name: "reasoning_content", Treatment: front.Honoured},
		{Name: "refusal", Treatment: front.Honoured, Note: "as text"},
		{Name: "audio", Treatment: front.Refused, Note: "the upstream takes text and images"},
		{Name: "function_call", Treatment: front.Refused, Note: "use tool_calls"},
		{Name: "name", Treatment: front.Ignored, Note: "the upstream has no names of participants"},
		{Name: "annotations", Treatment: front.Ignored, Allowed: []string{"[]"}, Note: "not sent to the upstream"},
		{Name: "cache_control", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	}
	partParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "text", Treatment: front.Honoured},
		{Name: "image_url", Treatment: front.Honoured},
		{Name: "refusal", Treatment: front.Honoured, Note: "as text"},
		{Name: "cache_control", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
		{Name: "prompt_cache_breakpoint", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	}
	imageParams = front.Params{
		{Name: "url", Treatment: front.Honoured, Note: "a data URL"},
		{Name: "detail", Treatment: front.Ignored, Allowed: []string{`"auto"`}, Note: "unwire sends images unchanged"},
	}
	callParams = front.Params{
		{Name: "id", Treatment: front.Honoured},
		{Name: "type", Treatment: front.Honoured},
		{Name: "function", Treatment: front.Honoured},
		{Name: "index", Treatment: front.Ignored, Note: "calls are in the order of the list"},
	}
	toolParams = front.Params{
		{Name: "type", Treatment: front.Honoured},
		{Name: "function", Treatment: front.Honoured},
		{Name: "cache_control", Treatment: front.Ignored, Note: "the upstream decides what it caches"},
	}
	functionParams = front.Params{
		{Name: "name", Treatment: front.Honoured},
		{Name: "description", Treatment: front.Honoured},
		{Name: "parameters", Treatment: front.Honoured},
		{Name: "strict", Treatment: front.Ignored, Allowed: []string{"false"}, Note: "the upstream does not enforce the schema of arguments"},
	}
)
