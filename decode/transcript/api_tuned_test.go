package transcript

// tunedAPIs are those that the reader was corrected on.
var tunedAPIs = []api{
	{"OpenAI chat completions", true, openAIChat},
	{"OpenAI responses", true, openAIResponses},
	{"Anthropic messages", true, anthropicMessages},
	{"Gemini generateContent, SSE or array", true, geminiContent},
	{"Bedrock ConverseStream", true, bedrockConverse},
	{"Ollama chat, NDJSON", true, ollamaChat},
	{"Cohere chat v2", true, cohereChat},
	{"Mistral chat", true, mistralChat},
	{"AI SDK UI message stream", true, aiSDKStream},
	{"Text Generation Inference", true, textGeneration},
	{"Vertex AI StreamGenerateContent, gRPC", true, vertexGRPC},
	{"xAI GetCompletionChunk, gRPC", true, xAIChat},
}

// chatMessages is a list of messages as most APIs have it.
func (g *apiCall) chatMessages() []any {
	var out []any
	if g.system != "" {
		out = append(out, object{"role": "system", "content": g.system})
	}
	out = append(out, object{"role": "user", "content": g.question})
	if len(g.earlier) > 0 {
		var calls []any
		for _, u := range g.earlier {
			calls = append(calls, object{"id": u.id, "type": "function", "function": object{"name": u.name, "arguments": u.json()}})
		}
		out = append(out, object{"role": "assistant", "content": nil, "tool_calls": calls})
		for _, u := range g.earlier {
			out = append(out, object{"role": "tool", "tool_call_id": u.id, "content": u.result})
		}
	}
	return out
}

func (g *apiCall) toolDefinitions() []any {
	var out []any
	for _, name := range toolNames[:3] {
		out = append(out, object{"type": "function", "function": object{"name": name, "description": toolAbout(g.maker), "parameters": object{"type": "object", "properties": object{"path": object{"type": "string"}}}}})
	}
	return out
}

func (g *apiCall) openAIUsage() object {
	return object{
		"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output,
		"prompt_tokens_details": object{"cached_tokens": g.cached, "audio_tokens": 0}, "completion_tokens_details": object{"reasoning_tokens": g.reasoning, "audio_tokens": 0, "accepted_prediction_tokens": 0},
	}
}

func openAIChat(g *apiCall) {
	g.thinking = ""
	g.up("/v1/chat/completions", object{"model": g.model, "messages": g.chatMessages(), "tools": g.toolDefinitions(), "tool_choice": "auto", "stream": true, "stream_options": object{"include_usage": true}})
	id := "chatcmpl-" + g.uuid()
	send := func(delta object, finish any) {
		g.sse("", object{"id": id, "object": "chat.completion.chunk", "created": 1763700000, "model": g.model, "system_fingerprint": "fp_1", "choices": []any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}})
	}
	send(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, p := range g.parts(g.answer) {
		send(object{"content": p}, nil)
	}
	for i, u := range g.calls {
		send(object{"tool_calls": []any{object{"index": i, "id": u.id, "type": "function", "function": object{"name": u.name, "arguments": ""}}}}, nil)
		for _, p := range g.parts(u.json()) {
			send(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	send(object{}, "stop")
	g.sse("", object{"id": id, "object": "chat.completion.chunk", "model": g.model, "choices": []any{}, "usage": g.openAIUsage()})
	g.sse("", "[DONE]")
}

func openAIResponses(g *apiCall) {
	input := []any{object{"role": "user", "content": []any{object{"type": "input_text", "text": g.question}}}}
	for _, u := range g.earlier {
		input = append(input, object{"type": "function_call", "id": "fc_" + u.id, "call_id": u.id, "name": u.name, "arguments": u.json(), "status": "completed"})
	}
	for _, u := range g.earlier {
		input = append(input, object{"type": "function_call_output", "call_id": u.id, "output": u.result})
	}
	g.up("/v1/responses", object{"model": g.model, "instructions": g.system, "input": input, "tools": g.toolDefinitions(), "reasoning": object{"effort": "high", "summary": "auto"}, "stream": true})
	response := object{
		"id": "resp_" + g.uuid(), "object": "response", "status": "in_progress", "instructions": g.system, "model": g.model, "output": []any{}, "tool_choice": object{"type": "function", "name": "read_file"},
		"tools": g.toolDefinitions(), "reasoning": object{"effort": "high", "summary": "detailed"}, "text": object{"format": object{"type": "text"}, "verbosity": "medium"}, "usage": nil, "metadata": object{},
	}
	seq := 0
	send := func(typ string, v object) {
		v["type"], v["sequence_number"] = typ, seq
		seq++
		g.sse(typ, v)
	}
	send("response.created", object{"response": response})
	send("response.in_progress", object{"response": response})
	var output []any
	item := func(open, done object, between func(id string, at int)) {
		at, id := len(output), pick(g.maker, []string{"msg_", "rs_", "fc_"})+g.uuid()
		open["id"], done["id"] = id, id
		send("response.output_item.added", object{"output_index": at, "item": open})
		between(id, at)
		send("response.output_item.done", object{"output_index": at, "item": done})
		output = append(output, done)
	}
	if g.thinking != "" {
		part := object{"type": "summary_text", "text": g.thinking}
		item(object{"type": "reasoning", "summary": []any{}}, object{"type": "reasoning", "summary": []any{part}, "encrypted_content": "gAAAA" + g.padding()}, func(id string, at int) {
			send("response.reasoning_summary_part.added", object{"item_id": id, "output_index": at, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
			for _, p := range g.parts(g.thinking) {
				send("response.reasoning_summary_text.delta", object{"item_id": id, "output_index": at, "summary_index": 0, "delta": p})
			}
			send("response.reasoning_summary_text.done", object{"item_id": id, "output_index": at, "summary_index": 0, "text": g.thinking})
			send("response.reasoning_summary_part.done", object{"item_id": id, "output_index": at, "summary_index": 0, "part": part})
		})
	}
	if g.answer != "" {
		part := object{"type": "output_text", "annotations": []any{}, "logprobs": []any{}, "text": g.answer}
		item(object{"type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}, object{"type": "message", "status": "completed", "role": "assistant", "content": []any{part}}, func(id string, at int) {
			send("response.content_part.added", object{"item_id": id, "output_index": at, "content_index": 0, "part": object{"type": "output_text", "annotations": []any{}, "text": ""}})
			for _, p := range g.parts(g.answer) {
				send("response.output_text.delta", object{"item_id": id, "output_index": at, "content_index": 0, "delta": p, "logprobs": []any{}, "obfuscation": g.padding()})
			}
			send("response.output_text.done", object{"item_id": id, "output_index": at, "content_index": 0, "text": g.answer})
			send("response.content_part.done", object{"item_id": id, "output_index": at, "content_index": 0, "part": part})
		})
	}
	for _, u := range g.calls {
		item(object{"type": "function_call", "status": "in_progress", "arguments": "", "call_id": u.id, "name": u.name}, object{"type": "function_call", "status": "completed", "arguments": u.json(), "call_id": u.id, "name": u.name}, func(id string, at int) {
			for _, p := range g.parts(u.json()) {
				send("response.function_call_arguments.delta", object{"item_id": id, "output_index": at, "delta": p})
			}
			send("response.function_call_arguments.done", object{"item_id": id, "output_index": at, "arguments": u.json()})
		})
	}
	done := object{}
	for k, v := range response {
		done[k] = v
	}
	done["status"], done["output"] = "completed", output
	done["usage"] = object{"input_tokens": g.input, "input_tokens_details": object{"cached_tokens": g.cached}, "output_tokens": g.output, "output_tokens_details": object{"reasoning_tokens": g.reasoning}, "total_tokens": g.input + g.output}
	send("response.completed", object{"response": done})
}

func anthropicMessages(g *apiCall) {
	messages := []any{object{"role": "user", "content": g.question}}
	if len(g.earlier) > 0 {
		var uses, results []any
		for _, u := range g.earlier {
			uses = append(uses, object{"type": "tool_use", "id": u.id, "name": u.name, "input": u.args})
			results = append(results, object{"type": "tool_result", "tool_use_id": u.id, "content": pick(g.maker, []any{any(u.result), any([]any{object{"type": "text", "text": u.result}})})})
		}
		messages = append(messages, object{"role": "assistant", "content": uses}, object{"role": "user", "content": results})
	}
	g.up("/v1/messages", object{"model": g.model, "max_tokens": 4096, "system": []any{object{"type": "text", "text": "You are helpful. " + g.system, "cache_control": object{"type": "ephemeral"}}}, "messages": messages, "thinking": object{"type": "enabled", "budget_tokens": 2048}, "tool_choice": object{"type": "auto"}, "stream": true})
	g.sse("message_start", object{"type": "message_start", "message": object{
		"id": "msg_" + g.uuid(), "type": "message", "role": "assistant", "model": g.model, "content": []any{}, "stop_reason": nil,
		"usage": object{"input_tokens": g.input, "cache_creation_input_tokens": 3, "cache_read_input_tokens": g.cached, "cache_creation": object{"ephemeral_5m_input_tokens": 3}, "output_tokens": 1},
	}})
	at := 0
	block := func(start object, deltas []object) {
		g.sse("content_block_start", object{"type": "content_block_start", "index": at, "content_block": start})
		if g.chance(0.2) {
			g.sse("ping", object{"type": "ping"})
		}
		for _, d := range deltas {
			g.sse("content_block_delta", object{"type": "content_block_delta", "index": at, "delta": d})
		}
		g.sse("content_block_stop", object{"type": "content_block_stop", "index": at})
		at++
	}
	if g.thinking != "" {
		var deltas []object
		for _, p := range g.parts(g.thinking) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": p})
		}
		block(object{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, object{"type": "signature_delta", "signature": "EqQB" + g.padding()}))
	}
	if g.answer != "" {
		var deltas []object
		for _, p := range g.parts(g.answer) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
		block(object{"type": "text", "text": ""}, deltas)
	}
	for _, u := range g.calls {
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range g.parts(u.json()) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		block(object{"type": "tool_use", "id": u.id, "name": u.name, "input": object{}}, deltas)
	}
	g.sse("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": object{"output_tokens": g.output}})
	g.sse("message_stop", object{"type": "message_stop"})
}

func geminiContent(g *apiCall) {
	contents := []any{object{"role": "user", "parts": []any{object{"text": g.question}}}}
	if len(g.earlier) > 0 {
		var calls, results []any
		for _, u := range g.earlier {
			calls = append(calls, object{"functionCall": object{"name": u.name, "args": u.args}})
			results = append(results, object{"functionResponse": object{"name": u.name, "response": object{"output": u.result}}})
		}
		contents = append(contents, object{"role": "model", "parts": calls}, object{"role": "user", "parts": results})
	}
	body := object{"contents": contents, "tools": []any{object{"functionDeclarations": g.toolDefinitions()}}, "generationConfig": object{"thinkingConfig": object{"includeThoughts": true}}}
	if g.system != "" {
		body["systemInstruction"] = object{"parts": []any{object{"text": g.system}}}
	}
	array := g.chance(0.5)
	g.up("/v1beta/models/"+g.model+":streamGenerateContent", body)
	first := true
	send := func(parts []any, more object) {
		v := object{"candidates": []any{object{"content": object{"role": "model", "parts": parts}, "index": 0}}, "modelVersion": g.model, "responseId": "r1", "usageMetadata": object{"promptTokenCount": g.input, "totalTokenCount": g.input}}
		for k, x := range more {
			v[k] = x
		}
		if !array {
			g.sse("", v)
			return
		}
		before := ",\n"
		if first {
			g.respond("application/json; charset=UTF-8")
			before, first = "[", false
		}
		g.down(append([]byte(before), compactJSON(v)...))
	}
	for _, p := range g.parts(g.thinking) {
		send([]any{object{"text": p, "thought": true}}, nil)
	}
	for _, p := range g.parts(g.answer) {
		send([]any{object{"text": p}}, nil)
	}
	var calls []any
	for _, u := range g.calls {
		calls = append(calls, object{"functionCall": object{"name": u.name, "args": u.args}, "thoughtSignature": "CpUB" + g.padding()})
	}
	if len(calls) > 0 {
		send(calls, nil)
	}
	send([]any{object{"text": ""}}, object{"usageMetadata": object{"promptTokenCount": g.input, "candidatesTokenCount": g.output, "totalTokenCount": g.input + g.output + g.reasoning, "thoughtsTokenCount": g.reasoning, "promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": g.input}}}})
	if array {
		g.down([]byte("\n]"))
	}
}

func bedrockConverse(g *apiCall) {
	messages := []any{object{"role": "user", "content": []any{object{"text": g.question}}}}
	if len(g.earlier) > 0 {
		var uses, results []any
		for _, u := range g.earlier {
			uses = append(uses, object{"toolUse": object{"toolUseId": u.id, "name": u.name, "input": u.args}})
			results = append(results, object{"toolResult": object{"toolUseId": u.id, "content": []any{object{"text": u.result}}, "status": "success"}})
		}
		messages = append(messages, object{"role": "assistant", "content": uses}, object{"role": "user", "content": results})
	}
	g.up("/model/"+g.model+"/converse-stream", object{"messages": messages, "system": []any{object{"text": g.system}}, "inferenceConfig": object{"maxTokens": 512}})
	g.aws("messageStart", object{"role": "assistant", "p": "abcd"})
	at := 0
	delta := func(v object) {
		g.aws("contentBlockDelta", object{"contentBlockIndex": at, "delta": v, "p": "abcdefghij"[:1+g.r.IntN(9)]})
	}
	stop := func() {
		g.aws("contentBlockStop", object{"contentBlockIndex": at, "p": "ab"})
		at++
	}
	if g.thinking != "" {
		for _, p := range g.parts(g.thinking) {
			delta(object{"reasoningContent": object{"text": p}})
		}
		delta(object{"reasoningContent": object{"signature": g.padding()}})
		stop()
	}
	if g.answer != "" {
		for _, p := range g.parts(g.answer) {
			delta(object{"text": p})
		}
		stop()
	}
	for _, u := range g.calls {
		g.aws("contentBlockStart", object{"contentBlockIndex": at, "start": object{"toolUse": object{"name": u.name, "toolUseId": u.id}}})
		for _, p := range g.parts(u.json()) {
			delta(object{"toolUse": object{"input": p}})
		}
		stop()
	}
	g.aws("messageStop", object{"stopReason": "end_turn", "p": "abc"})
	g.aws("metadata", object{"usage": object{"inputTokens": g.input, "outputTokens": g.output, "totalTokens": g.input + g.output, "cacheReadInputTokens": g.cached}, "metrics": object{"latencyMs": 812}})
}
