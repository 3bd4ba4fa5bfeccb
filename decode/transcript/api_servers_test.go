package transcript

import (
	"unwire/captures"
	"unwire/decode/envelope"
)

// serverAPIs are chat servers and agents, written from public documentation before anybody looked at how the reader would
// treat them.
var serverAPIs = []api{
	{"LM Studio chat v1", false, lmStudioChat},
	{"Onyx send-message", false, onyxMessage},
	{"Home Assistant Assist pipeline, WebSocket", false, assistPipeline},
	{"Pydantic AI agent events", false, pydanticEvents},
	{"AutoGen Studio run, WebSocket", false, autoGenRun},
	{"Windsurf GetChatMessage, Connect", false, windsurfChat},
	{"Clarifai PostModelOutputs, gRPC", false, clarifaiOutputs},
	{"Bedrock RetrieveAndGenerateStream", false, retrieveAndGenerate},
	{"GitLab Duo chat, GraphQL over Action Cable", false, gitLabDuo},
	{"Augment chat-stream", false, augmentChat},
	{"FastGPT chat with details", false, fastGPT},
	{"Kimi CLI wire, JSON-RPC over WebSocket", false, kimiWire},
}

func lmStudioChat(g *apiCall) {
	g.realistic()
	g.earlier = nil
	request := object{"model": g.model, "input": g.question, "stream": true, "context_length": 8000, "temperature": 0.7, "integrations": []any{object{"type": "ephemeral_mcp", "server_label": "files", "server_url": "https://mcp.example/mcp", "allowed_tools": []any{toolNames[0], toolNames[1]}}}}
	if g.system != "" {
		request["system_prompt"] = g.system
	}
	g.up("/api/v1/chat", request)
	send := func(kind string, v object) {
		v["type"] = kind
		g.sse(kind, v)
	}
	send("chat.start", object{"model_instance_id": g.model})
	send("prompt_processing.start", object{})
	for _, p := range []float64{0, 0.5, 1} {
		send("prompt_processing.progress", object{"progress": p})
	}
	send("prompt_processing.end", object{})
	provider := object{"type": "ephemeral_mcp", "server_label": "files"}
	var output []any
	if g.thinking != "" {
		send("reasoning.start", object{})
		for _, p := range g.parts(g.thinking) {
			send("reasoning.delta", object{"content": p})
		}
		send("reasoning.end", object{})
		output = append(output, object{"type": "reasoning", "content": g.thinking})
	}
	for _, u := range g.calls {
		result := string(compactJSON([]any{object{"type": "text", "text": u.result}}))
		send("tool_call.start", object{"tool": u.name, "provider_info": provider})
		send("tool_call.arguments", object{"tool": u.name, "arguments": u.args, "provider_info": provider})
		send("tool_call.success", object{"tool": u.name, "arguments": u.args, "output": result, "provider_info": provider})
		output = append(output, object{"type": "tool_call", "tool": u.name, "arguments": u.args, "output": result, "provider_info": provider})
	}
	if g.answer != "" {
		send("message.start", object{})
		for _, p := range g.parts(g.answer) {
			send("message.delta", object{"content": p})
		}
		send("message.end", object{})
		output = append(output, object{"type": "message", "content": g.answer})
	}
	stats := object{"input_tokens": g.input, "total_output_tokens": g.output, "reasoning_output_tokens": g.reasoning, "tokens_per_second": 43.73, "time_to_first_token_seconds": 0.781}
	send("chat.end", object{"result": object{"model_instance_id": g.model, "output": output, "stats": stats, "response_id": "resp_" + g.padding()}})
}

func onyxMessage(g *apiCall) {
	g.realistic()
	g.noUsage = true
	g.withoutTools()
	g.up("/api/chat/send-message", object{"chat_session_id": g.uuid(), "parent_message_id": 120, "message": g.question, "file_descriptors": []any{}, "search_doc_ids": []any{}, "retrieval_options": object{"run_search": "auto", "real_time": true, "filters": object{"source_type": nil, "document_set": nil, "time_cutoff": nil, "tags": []any{}}}, "llm_override": object{"model_provider": "Default", "model_version": g.model, "temperature": 0.5}, "deep_research": false})
	g.line(object{"user_message_id": 121, "reserved_assistant_message_id": 122})
	ind := 0
	send := func(kind string, v object) {
		v["type"] = kind
		g.line(object{"ind": ind, "obj": v})
	}
	if g.thinking != "" {
		send("reasoning_start", object{})
		for _, p := range g.parts(g.thinking) {
			send("reasoning_delta", object{"reasoning": p})
		}
		send("section_end", object{})
		ind++
	}
	document := object{"document_id": "https://docs.example/a", "chunk_ind": 0, "semantic_identifier": "Handbook", "link": "https://docs.example/a", "blurb": g.sentence(languages[0]), "source_type": "web", "boost": 0, "hidden": false, "score": 0.74, "is_relevant": nil, "match_highlights": []any{}, "metadata": object{}, "updated_at": "2026-10-02T09:00:00Z"}
	send("internal_search_tool_start", object{"is_internet_search": false})
	send("internal_search_tool_delta", object{"queries": []any{"handbook release"}, "documents": []any{}})
	send("internal_search_tool_delta", object{"queries": []any{}, "documents": []any{document}})
	send("section_end", object{})
	ind++
	send("message_start", object{"id": "m1", "content": "", "final_documents": []any{document}})
	for _, p := range g.parts(g.answer) {
		send("message_delta", object{"content": p})
	}
	send("citation_start", object{})
	send("citation_delta", object{"citations": []any{object{"citation_num": 1, "document_id": "https://docs.example/a"}}})
	send("section_end", object{})
	ind++
	send("stop", object{})
}

func assistPipeline(g *apiCall) {
	g.realistic()
	g.earlier, g.noUsage = nil, true
	g.webSocket("/api/websocket")
	g.download(object{"type": "auth_required", "ha_version": "2026.11.1"})
	g.upload(object{"type": "auth", "access_token": g.padding()})
	g.download(object{"type": "auth_ok", "ha_version": "2026.11.1"})
	conversation := g.padding()
	g.upload(object{"type": "assist_pipeline/run", "start_stage": "intent", "end_stage": "intent", "input": object{"text": g.question}, "pipeline": "01h", "conversation_id": conversation, "id": 41})
	g.download(object{"id": 41, "type": "result", "success": true, "result": nil})
	send := func(kind string, data any) {
		g.download(object{"id": 41, "type": "event", "event": object{"type": kind, "data": data, "timestamp": "2026-11-20T10:12:13.456789+00:00"}})
	}
	delta := func(v object) { send("intent-progress", object{"chat_log_delta": v}) }
	send("run-start", object{"pipeline": "01h", "language": "en", "conversation_id": conversation, "satellite_id": nil, "runner_data": object{"stt_binary_handler_id": nil, "timeout": 300}})
	send("intent-start", object{"engine": "conversation.openai_conversation", "language": "en", "intent_input": g.question, "conversation_id": conversation, "device_id": nil, "satellite_id": nil, "prefer_local_intents": false})
	delta(object{"role": "assistant"})
	for _, p := range g.parts(g.thinking) {
		delta(object{"thinking_content": p})
	}
	for _, u := range g.calls {
		delta(object{"tool_calls": []any{object{"id": u.id, "tool_name": u.name, "tool_args": u.args, "external": false}}})
		delta(object{"role": "tool_result", "agent_id": "conversation.openai_conversation", "tool_call_id": u.id, "tool_name": u.name, "tool_result": object{"success": true, "result": u.result}})
	}
	if len(g.calls) > 0 && g.answer != "" {
		delta(object{"role": "assistant"})
	}
	for _, p := range g.parts(g.answer) {
		delta(object{"content": p})
	}
	send("intent-end", object{"processed_locally": false, "intent_output": object{"response": object{"speech": object{"plain": object{"speech": g.answer, "extra_data": nil}}, "card": object{}, "language": "en", "response_type": "action_done", "data": object{"targets": []any{}, "success": []any{}, "failed": []any{}}}, "conversation_id": conversation, "continue_conversation": false}})
	send("run-end", nil)
}

func pydanticEvents(g *apiCall) {
	before := g.realistic()
	stamp := "2026-11-20T10:12:13.456Z"
	request := func(parts ...any) object {
		return object{"parts": parts, "instructions": nil, "kind": "request", "run_id": nil, "metadata": nil}
	}
	response := func(parts ...any) object {
		return object{"parts": parts, "usage": object{"input_tokens": 51, "cache_write_tokens": 0, "cache_read_tokens": 0, "output_tokens": 7, "details": object{}}, "model_name": g.model, "timestamp": stamp, "kind": "response", "finish_reason": "stop"}
	}
	call := func(u toolUse, args string) object {
		return object{"tool_name": u.name, "args": args, "tool_call_id": u.id, "id": nil, "part_kind": "tool-call"}
	}
	result := func(u toolUse) object {
		return object{"tool_name": u.name, "content": u.result, "tool_call_id": u.id, "metadata": nil, "timestamp": stamp, "part_kind": "tool-return"}
	}
	user := func(s string) object {
		return object{"content": s, "timestamp": stamp, "part_kind": "user-prompt"}
	}
	var history []any
	for _, b := range before {
		history = append(history, request(user(b.question)), response(object{"content": b.answer, "id": nil, "part_kind": "text"}))
	}
	for _, u := range g.earlier {
		history = append(history, response(call(u, u.json())), request(result(u)))
	}
	g.up("/agent/events", object{"user_prompt": g.question, "message_history": history})
	index := 0
	send := func(kind string, v object) {
		v["event_kind"] = kind
		g.sse("", v)
	}
	run := func(kind, text string, part object) {
		parts := g.parts(text)
		if len(parts) == 0 {
			return
		}
		part["content"] = parts[0]
		send("part_start", object{"index": index, "part": part, "previous_part_kind": nil})
		for _, p := range parts[1:] {
			send("part_delta", object{"index": index, "delta": object{"content_delta": p, "part_delta_kind": kind}})
		}
		part["content"] = text
		send("part_end", object{"index": index, "part": part, "next_part_kind": nil})
		index++
	}
	run("thinking", g.thinking, object{"id": nil, "signature": nil, "provider_name": nil, "part_kind": "thinking"})
	for _, u := range g.calls {
		send("part_start", object{"index": index, "part": call(u, "")})
		for _, p := range g.parts(u.json()) {
			send("part_delta", object{"index": index, "delta": object{"tool_name_delta": nil, "args_delta": p, "tool_call_id": u.id, "part_delta_kind": "tool_call"}})
		}
		send("part_end", object{"index": index, "part": call(u, u.json()), "next_part_kind": nil})
		index++
	}
	for _, u := range g.calls {
		send("function_tool_call", object{"part": call(u, u.json())})
	}
	for _, u := range g.calls {
		send("function_tool_result", object{"result": result(u), "content": nil})
	}
	if g.answer != "" {
		if len(g.calls) > 0 {
			index = 0
		}
		send("final_result", object{"tool_name": nil, "tool_call_id": nil})
		run("text", g.answer, object{"id": nil, "part_kind": "text"})
	}
	send("agent_run_result", object{"result": object{"output": g.answer, "usage": object{"input_tokens": g.input, "cache_write_tokens": 0, "cache_read_tokens": g.cached, "output_tokens": g.output, "requests": 1, "tool_calls": len(g.calls), "details": object{}}}})
}

func autoGenRun(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.noUsage = len(g.calls) > 0 && g.answer != ""
	g.webSocket("/api/ws/runs/17?token=" + g.padding())
	g.download(object{"type": "system", "status": "connected", "timestamp": "2026-11-20T10:12:13.456789+00:00"})
	g.upload(object{"type": "start", "task": g.question, "files": []any{}, "team_config": object{"provider": "autogen_agentchat.teams.RoundRobinGroupChat", "component_type": "team", "version": 1, "label": "Team", "description": "A team with one agent.", "config": object{"participants": []any{object{"provider": "autogen_agentchat.agents.AssistantAgent", "label": "AssistantAgent", "config": object{"name": "assistant_agent", "model_client": object{"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "config": object{"model": g.model}}, "system_message": "You are a helpful assistant. Solve tasks carefully. When done, say TERMINATE.", "model_client_stream": true}}}}}})
	usage := object{"prompt_tokens": g.input, "completion_tokens": g.output}
	message := func(kind, source string, content, usage any) object {
		return object{"id": g.uuid(), "source": source, "models_usage": usage, "metadata": object{}, "created_at": "2026-11-20T10:12:14.001002Z", "content": content, "type": kind}
	}
	var all []any
	send := func(kind, source string, content, usage any) {
		m := message(kind, source, content, usage)
		all = append(all, m)
		g.download(object{"type": "message", "data": m})
	}
	send("TextMessage", "user", g.question, nil)
	if len(g.calls) > 0 {
		var calls, results []any
		for _, u := range g.calls {
			calls = append(calls, object{"id": u.id, "arguments": u.json(), "name": u.name})
			results = append(results, object{"content": u.result, "name": u.name, "call_id": u.id, "is_error": false})
		}
		if g.thinking != "" {
			send("ThoughtEvent", "assistant_agent", g.thinking, nil)
		}
		send("ToolCallRequestEvent", "assistant_agent", calls, usage)
		send("ToolCallExecutionEvent", "assistant_agent", results, nil)
	} else if g.thinking != "" {
		send("ThoughtEvent", "assistant_agent", g.thinking, nil)
	}
	if g.answer != "" {
		full := g.uuid()
		for _, p := range g.parts(g.answer) {
			chunk := message("ModelClientStreamingChunkEvent", "assistant_agent", p, nil)
			chunk["full_message_id"] = full
			g.download(object{"type": "message_chunk", "data": chunk})
		}
		send("TextMessage", "assistant_agent", g.answer, usage)
	}
	g.download(object{"type": "result", "status": "complete", "data": object{"task_result": object{"messages": all, "stop_reason": "Maximum number of messages 10 reached"}, "usage": "", "duration": 3.21}})
	g.download(object{"type": "completion", "status": "complete", "data": nil, "timestamp": "2026-11-20T10:12:18.456789+00:00"})
}

func windsurfChat(g *apiCall) {
	before := g.realistic()
	g.tokens()
	prompt := func(source int, text string, more ...[]byte) []byte {
		fields := append([][]byte{pbText(1, g.uuid()), num(2, source), pbText(3, text), num(4, len(text)/4)}, more...)
		return pbMsg(3, fields...)
	}
	call := func(n int, id, name, args string) []byte {
		return pbMsg(n, pbText(1, id), pbText(2, name), pbText(3, args))
	}
	request := pbMsg(1, pbText(1, "windsurf"), pbText(2, "1.48.2"), pbText(3, g.padding()), pbText(4, "en"), pbText(5, "linux"), pbText(7, "1.12.27"))
	request = append(request, pbText(2, "You are Cascade, a powerful agentic AI coding assistant. "+g.system)...)
	for _, b := range before {
		request = append(append(request, prompt(1, b.question)...), prompt(2, b.answer)...)
	}
	request = append(request, prompt(1, g.question)...)
	for _, u := range g.earlier {
		request = append(request, prompt(2, "", call(6, u.id, u.name, u.json()))...)
		request = append(request, prompt(4, u.result, pbText(7, u.id))...)
	}
	for _, name := range toolNames[:3] {
		request = append(request, pbMsg(10, pbText(1, name), pbText(2, toolAbout(g.maker)), pbText(3, `{"type":"object","properties":{"path":{"type":"string"}}}`))...)
	}
	request = append(request, pbText(21, g.model)...)
	g.ex.URL = "https://server.example/exa.api_server_pb.ApiServerService/GetChatMessage"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	g.respond("application/connect+proto")
	g.chunk(captures.Up, envelope.Append(nil, 0, request))
	id := "bot-" + g.uuid()
	send := func(fields ...[]byte) {
		b := append(pbText(1, id), pbMsg(2, num(1, 1763700000+len(g.chunks)/50), num(2, 120000000+len(g.chunks)*1000))...)
		for _, f := range fields {
			b = append(b, f...)
		}
		g.message(b)
	}
	for _, p := range g.parts(g.thinking) {
		send(pbText(9, p))
	}
	for _, p := range g.parts(g.answer) {
		send(pbText(3, p), num(4, max(1, len(p)/4)))
	}
	for _, u := range g.calls {
		send(call(6, u.id, u.name, ""))
		for _, p := range g.parts(u.json()) {
			send(call(6, u.id, "", p))
		}
	}
	stop := 2
	if len(g.calls) > 0 {
		stop = 10
	}
	send(num(5, stop), pbMsg(7, num(1, 226), num(2, g.input), num(3, g.output), num(5, g.cached), num(6, 3), pbText(7, id)))
	g.down(envelope.Append(nil, envelope.EndStream, []byte("{}")))
}

func clarifaiOutputs(g *apiCall) {
	g.realistic()
	g.thinking = ""
	g.withoutTools()
	g.tokens()
	input := pbMsg(3, pbText(1, g.padding()), pbMsg(2, pbMsg(13, pbText(1, g.question))))
	g.grpc("clarifai.api.V2/GenerateModelOutputs", append(append(pbMsg(6, pbText(1, "openai"), pbText(2, "chat-completion")), pbText(1, g.model)...), input...))
	status := func(n, code int, text string) []byte {
		return pbMsg(n, num(1, code), pbText(2, text), pbText(10, g.padding()))
	}
	id := g.padding()
	send := func(code int, text string, more ...[]byte) {
		fields := append([][]byte{pbText(1, id), status(2, code, "Ok"), pbMsg(3, num(1, 1763700000), num(2, 15000000+len(g.chunks))), pbMsg(6, pbMsg(13, pbText(1, text)))}, more...)
		g.message(append(status(1, code, "Ok"), pbMsg(2, fields...)...))
	}
	for _, p := range g.parts(g.answer) {
		send(10000, p)
	}
	send(10000, "", num(7, g.input), num(8, g.output))
}

func retrieveAndGenerate(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/retrieveAndGenerateStream", object{"input": object{"text": g.question}, "sessionId": g.uuid(), "retrieveAndGenerateConfiguration": object{"type": "KNOWLEDGE_BASE", "knowledgeBaseConfiguration": object{"knowledgeBaseId": "KB12345678", "modelArn": "arn:aws:bedrock:eu-west-1::foundation-model/" + g.model, "retrievalConfiguration": object{"vectorSearchConfiguration": object{"numberOfResults": 5}}, "generationConfiguration": object{"promptTemplate": object{"textPromptTemplate": "You are a question answering agent. Answer only from the search results. $search_results$"}}}}})
	parts := g.parts(g.answer)
	for i, p := range parts {
		g.aws("output", object{"text": p})
		if i == len(parts)/2 {
			part := object{"textResponsePart": object{"span": object{"start": 0, "end": 11}, "text": p}}
			references := []any{object{"content": object{"text": g.sentence(languages[0]) + " " + g.sentence(languages[0]), "type": "TEXT"}, "location": object{"type": "S3", "s3Location": object{"uri": "s3://docs/handbook.pdf"}}, "metadata": object{"x-amz-bedrock-kb-source-uri": "s3://docs/handbook.pdf", "x-amz-bedrock-kb-chunk-id": "1%3A0%3A" + g.padding()}}}
			g.aws("citation", object{"citation": object{"generatedResponsePart": part, "retrievedReferences": references}, "generatedResponsePart": part, "retrievedReferences": references})
		}
	}
	g.aws("guardrail", object{"action": "NONE"})
}

func gitLabDuo(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/-/cable")
	g.download(object{"type": "welcome"})
	identifier := string(compactJSON(object{"channel": "GraphqlChannel", "query": "subscription aiCompletionResponse($userId: UserID, $clientSubscriptionId: String, $aiAction: AiAction) {\n  aiCompletionResponse(userId: $userId, aiAction: $aiAction, clientSubscriptionId: $clientSubscriptionId) {\n    id\n    requestId\n    content\n    errors\n    role\n    timestamp\n    type\n    chunkId\n  }\n}", "variables": string(compactJSON(object{"userId": "gid://gitlab/User/7", "aiAction": "CHAT", "clientSubscriptionId": g.uuid()})), "operationName": "aiCompletionResponse", "nonce": g.padding()}))
	g.upload(object{"command": "subscribe", "identifier": identifier})
	g.download(object{"identifier": identifier, "type": "confirm_subscription"})
	request := g.uuid()
	send := func(id, role, content string, chunk any) {
		g.download(object{"identifier": identifier, "message": object{"result": object{"data": object{"aiCompletionResponse": object{"id": id, "requestId": request, "content": content, "errors": []any{}, "role": role, "threadId": nil, "timestamp": "2026-11-20T10:12:13Z", "type": nil, "chunkId": chunk, "extras": object{"sources": nil, "additionalContext": []any{}}}}}, "more": true}})
	}
	send(g.uuid(), "USER", g.question, nil)
	id := g.uuid()
	for i, p := range g.parts(g.answer) {
		send(id, "ASSISTANT", p, i+1)
		if i%40 == 20 {
			g.download(object{"type": "ping", "message": 1763700000 + i})
		}
	}
	send(id, "ASSISTANT", g.answer, nil)
}

func augmentChat(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	var history, tools []any
	for _, b := range before {
		history = append(history, object{"request_message": b.question, "response_text": b.answer, "request_id": g.uuid(), "request_nodes": []any{}, "response_nodes": []any{}})
	}
	for _, name := range toolNames[:3] {
		tools = append(tools, object{"name": name, "description": toolAbout(g.maker), "input_schema_json": `{"type":"object","properties":{"path":{"type":"string"}}}`, "tool_safety": 1})
	}
	g.up("/chat-stream", object{"model": g.model, "path": pick(g.maker, filePaths), "prefix": g.code(), "selected_code": "", "suffix": "", "message": g.question, "chat_history": history, "lang": "go", "blobs": object{"checkpoint_id": nil, "added_blobs": []any{}, "deleted_blobs": []any{}}, "user_guidelines": g.system, "workspace_guidelines": "", "tool_definitions": tools, "nodes": []any{object{"id": 1, "type": 0, "text_node": object{"content": g.question}}}, "mode": "AGENT", "conversation_id": g.uuid()})
	n := 0
	send := func(text string, kind int, content string, v object) {
		n++
		node := object{"id": n, "type": kind, "content": content, "tool_use": nil, "thinking": nil, "billing_metadata": nil, "metadata": nil, "token_usage": nil}
		for k, x := range v {
			node[k] = x
		}
		g.line(object{"text": text, "unknown_blob_names": []any{}, "checkpoint_not_found": false, "workspace_file_chunks": []any{}, "incorporated_external_sources": []any{}, "nodes": []any{node}, "stop_reason": nil})
	}
	if g.thinking != "" {
		send("", 8, "", object{"thinking": object{"summary": g.thinking, "encrypted_content": nil, "content": nil, "openai_id": nil}})
	}
	for _, p := range g.parts(g.answer) {
		send(p, 0, p, nil)
	}
	if g.answer != "" {
		send("", 2, g.answer, nil)
	}
	stop := 1
	for _, u := range g.calls {
		send("", 7, "", object{"tool_use": object{"tool_use_id": u.id, "tool_name": u.name, "input_json": "", "is_partial": true}})
		send("", 5, "", object{"tool_use": object{"tool_use_id": u.id, "tool_name": u.name, "input_json": u.json(), "is_partial": false}})
		stop = 3
	}
	send("", 10, "", object{"token_usage": object{"input_tokens": g.input, "output_tokens": g.output, "cache_read_input_tokens": g.cached, "cache_creation_input_tokens": 0}})
	g.line(object{"text": "", "unknown_blob_names": []any{}, "checkpoint_not_found": false, "workspace_file_chunks": []any{}, "nodes": []any{}, "stop_reason": stop})
}

func fastGPT(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.up("/api/v1/chat/completions", object{"chatId": g.padding(), "stream": true, "detail": true, "responseChatItemId": g.padding(), "variables": object{"uid": "u-17", "name": "Jo"}, "messages": []any{object{"role": "user", "content": g.question}}})
	status := func(name string) { g.sse("flowNodeStatus", object{"status": "running", "name": name}) }
	answer := func(delta object, finish any) {
		g.sse("answer", object{"id": "", "object": "", "created": 0, "model": "", "choices": []any{object{"delta": delta, "index": 0, "finish_reason": finish}}})
	}
	tool := func(event string, v object) {
		o := object{"toolName": "", "toolAvatar": "", "params": "", "response": ""}
		for k, x := range v {
			o[k] = x
		}
		g.sse(event, object{"tool": o})
	}
	status("Knowledge base search")
	status("AI Chat")
	for _, p := range g.parts(g.thinking) {
		answer(object{"role": "assistant", "reasoning_content": p}, nil)
	}
	for _, u := range g.calls {
		tool("toolCall", object{"id": u.id, "toolName": "Company search", "toolAvatar": "/imgs/tool.svg", "functionName": u.name})
		for _, p := range g.parts(u.json()) {
			tool("toolParams", object{"id": u.id, "params": p})
		}
		tool("toolResponse", object{"id": u.id, "response": u.result})
	}
	for _, p := range g.parts(g.answer) {
		answer(object{"role": "assistant", "content": p}, nil)
	}
	answer(object{"role": "assistant", "content": ""}, "stop")
	g.sse("answer", "[DONE]")
	preview := []any{object{"obj": "Human", "value": g.question}}
	if g.answer != "" {
		preview = append(preview, object{"obj": "AI", "value": g.answer})
	}
	g.sse("flowResponses", []any{
		object{"id": g.padding(), "nodeId": "search1", "moduleName": "Knowledge base search", "moduleType": "datasetSearchNode", "totalPoints": 0.01, "query": g.question, "runningTime": 0.41, "similarity": 0.4, "limit": 3000, "quoteList": []any{object{"id": g.padding(), "q": g.sentence(languages[0]), "a": "", "datasetId": "d1", "sourceName": "handbook.pdf", "score": []any{object{"type": "embedding", "value": 0.81, "index": 0}}}}},
		object{"id": g.padding(), "nodeId": "chat1", "moduleName": "AI Chat", "moduleType": "chatNode", "totalPoints": 0.3, "model": g.model, "inputTokens": g.input, "outputTokens": g.output, "query": g.question, "maxToken": 2000, "historyPreview": preview, "contextTotalLen": 2, "runningTime": 2.11, "finishReason": "stop"},
	})
}

func kimiWire(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.noUsage = len(g.calls) > 0 && g.answer != ""
	g.webSocket("/api/sessions/" + g.uuid() + "/stream")
	first, second := g.uuid(), g.uuid()
	g.upload(object{"jsonrpc": "2.0", "method": "initialize", "id": first, "params": object{"protocol_version": "1.7", "client": object{"name": "web", "version": "1.0.0"}, "capabilities": object{"supports_question": true}}})
	g.download(object{"jsonrpc": "2.0", "id": first, "result": object{"protocol_version": "1.7", "server": object{"name": "Kimi Code CLI", "version": "1.14.0"}, "slash_commands": []any{object{"name": "init", "description": "Analyze the codebase and generate an AGENTS.md file", "aliases": []any{}}, object{"name": "compact", "description": "Compact the context", "aliases": []any{}}}}})
	g.upload(object{"jsonrpc": "2.0", "method": "prompt", "id": second, "params": object{"user_input": g.question}})
	send := func(kind string, payload object) {
		g.download(object{"jsonrpc": "2.0", "method": "event", "params": object{"type": kind, "payload": payload}})
	}
	status := func() {
		send("StatusUpdate", object{"context_usage": 0.0517, "context_tokens": 13560, "max_context_tokens": 262144, "token_usage": object{"input_other": g.input, "output": g.output, "input_cache_read": 0, "input_cache_creation": 0}, "message_id": "chatcmpl-" + g.padding(), "plan_mode": false})
	}
	send("TurnBegin", object{"user_input": g.question})
	send("StepBegin", object{"n": 1})
	for _, p := range g.parts(g.thinking) {
		send("ContentPart", object{"type": "think", "think": p, "encrypted": nil})
	}
	for _, u := range g.calls {
		parts := append(g.parts(u.json()), "")
		send("ToolCall", object{"type": "function", "id": u.id, "function": object{"name": u.name, "arguments": parts[0]}, "extras": nil})
		for _, p := range parts[1:] {
			send("ToolCallPart", object{"arguments_part": p})
		}
	}
	if len(g.calls) > 0 {
		status()
		for _, u := range g.calls {
			send("ToolResult", object{"tool_call_id": u.id, "return_value": object{"is_error": false, "output": u.result, "message": "Command executed successfully.", "display": []any{}, "extras": nil}})
		}
	}
	if g.answer != "" {
		if len(g.calls) > 0 {
			send("StepBegin", object{"n": 2})
		}
		for _, p := range g.parts(g.answer) {
			send("ContentPart", object{"type": "text", "text": p})
		}
		status()
	}
	send("TurnEnd", object{})
	g.download(object{"jsonrpc": "2.0", "id": second, "result": object{"status": "finished"}})
}
