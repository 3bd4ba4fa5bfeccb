package transcript

import "fmt"

// secondProductAPIs are chats of further products, written from public clients and documents after serverAPIs and runAPIs
// had led to corrections, before anybody looked at how the reader would treat them.
var secondProductAPIs = []api{
	{"Grok conversation", false, grokConversation},
	{"Microsoft Copilot, WebSocket", false, consumerCopilot},
	{"AppBuilder agent", false, appBuilder},
	{"JetBrains AI chat", false, jetBrainsChat},
	{"LlamaIndex workflow events", false, llamaIndexWorkflow},
	{"Genkit flow", false, genkitFlow},
	{"LM Studio SDK, WebSocket", false, lmStudioSDK},
	{"Copilot language server, JSON-RPC over WebSocket", false, copilotServer},
	{"Voiceflow interact", false, voiceflowInteract},
}

func grokConversation(g *apiCall) {
	g.realistic()
	g.noUsage = true
	g.withoutTools()
	g.up("/rest/app-chat/conversations/new", object{"temporary": false, "modelName": g.model, "message": g.question, "fileAttachments": []any{}, "imageAttachments": []any{}, "disableSearch": false, "enableImageGeneration": true, "returnImageBytes": false, "toolOverrides": object{}, "enableSideBySide": true, "sendFinalMetadata": true, "customPersonality": "", "isReasoning": true})
	id := g.uuid()
	send := func(v object) { g.line(object{"result": v}) }
	response := func(v object) { send(object{"response": v}) }
	send(object{"conversation": object{"conversationId": g.uuid(), "title": "New conversation", "starred": false, "createTime": "2026-11-20T10:12:13.123Z", "systemPromptName": "", "temporary": false}})
	response(object{"userResponse": object{"responseId": g.uuid(), "message": g.question, "sender": "human", "createTime": "2026-11-20T10:12:13.223Z", "manual": false, "partial": false, "fileAttachments": []any{}}, "isThinking": false, "isSoftStop": false, "responseId": id})
	response(object{"uiLayout": object{"reasoningUiLayout": "FUNCTION_CALL", "willThinkLong": false}, "isThinking": false, "isSoftStop": false, "responseId": id})
	for _, p := range g.parts(g.thinking) {
		response(object{"token": p, "isThinking": true, "isSoftStop": false, "responseId": id, "messageTag": "assistant", "messageStepId": 1})
	}
	for _, p := range g.parts(g.answer) {
		response(object{"token": p, "isThinking": false, "isSoftStop": false, "responseId": id, "messageTag": "final"})
	}
	response(object{"token": "", "isThinking": false, "isSoftStop": true, "responseId": id})
	response(object{"finalMetadata": object{"followUpSuggestions": []any{}, "feedbackLabels": []any{}, "toolsUsed": object{}}, "isThinking": false, "isSoftStop": false, "responseId": id})
	response(object{"modelResponse": object{"responseId": id, "message": g.answer, "sender": "assistant", "createTime": "2026-11-20T10:12:15.123Z", "manual": false, "partial": false, "webSearchResults": []any{}, "steps": []any{}}, "isThinking": false, "isSoftStop": false, "responseId": id})
	send(object{"title": object{"newTitle": "About the clock"}})
}

func consumerCopilot(g *apiCall) {
	g.realistic()
	g.noUsage = true
	g.withoutTools()
	g.webSocket("/c/api/chat?api-version=2&features=-,ncedge&clientSessionId=" + g.uuid())
	conversation, id := g.padding(), g.padding()
	g.upload(object{"event": "setOptions", "supportedCards": []any{"weather", "local", "image"}, "ads": nil})
	g.upload(object{"event": "send", "conversationId": conversation, "content": []any{object{"type": "text", "text": g.question}}, "mode": "reasoning", "context": object{}})
	n := 0
	send := func(event string, v object) {
		n++
		v["event"], v["id"] = event, fmt.Sprint(n)
		g.download(v)
	}
	send("connected", object{"requestId": g.uuid()})
	send("received", object{"conversationId": conversation, "messageId": g.padding(), "createdAt": "2026-11-20T10:12:13.123Z"})
	send("startMessage", object{"conversationId": conversation, "messageId": id, "createdAt": "2026-11-20T10:12:13.223Z"})
	for _, p := range g.parts(g.thinking) {
		send("chainOfThought", object{"conversationId": conversation, "messageId": id, "partId": "cot1", "text": p})
	}
	part := g.padding()
	for _, p := range g.parts(g.answer) {
		send("appendText", object{"messageId": id, "partId": part, "text": p})
	}
	send("partCompleted", object{"messageId": id, "partId": part})
	send("done", object{"messageId": id})
	send("titleUpdate", object{"conversationId": conversation, "title": "About the clock"})
	send("suggestedFollowups", object{"messageId": id, "suggestions": []any{"Why is that so?", "What is the next step?"}})
}

func appBuilder(g *apiCall) {
	g.realistic()
	g.thinking, g.earlier = "", nil
	g.up("/v2/app/conversation/runs", object{"app_id": g.uuid(), "query": g.question, "stream": true, "conversation_id": g.uuid(), "file_ids": []any{}})
	request, conversation, message := g.uuid(), g.uuid(), g.uuid()
	n := 0
	send := func(answer string, last bool, content ...any) {
		g.sse("", object{"request_id": request, "date": "2026-11-20T10:12:13Z", "answer": answer, "conversation_id": conversation, "message_id": message, "is_completion": last, "content": append([]any{}, content...)})
	}
	event := func(kind, status, contentType string, outputs, usage any) object {
		n++
		return object{"event_code": 0, "event_message": "", "event_type": kind, "event_id": fmt.Sprint(n), "event_status": status, "content_type": contentType, "visible_scope": "all", "outputs": outputs, "usage": usage}
	}
	for _, u := range g.calls {
		call := object{"text": object{"arguments": u.args, "component_code": u.name, "component_name": u.name}}
		send("", false, event("function_call", "running", "function_call", call, nil))
		send("", false, event(u.name, "done", "text", object{"text": u.result}, nil))
	}
	usage := object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output, "name": g.model, "type": "chat"}
	for _, p := range g.parts(g.answer) {
		send(p, false, event("ChatAgent", "running", "text", object{"text": p}, nil))
	}
	send("", true, event("ChatAgent", "done", "text", object{"text": ""}, usage))
}

func jetBrainsChat(g *apiCall) {
	before := g.realistic()
	message := func(kind string, v object) object {
		v["type"] = kind
		return v
	}
	var messages []any
	if g.system != "" {
		messages = append(messages, message("system_message", object{"content": g.system}))
	}
	for _, b := range before {
		messages = append(messages, message("user_message", object{"content": b.question}), message("assistant_message_text", object{"content": b.answer}))
	}
	messages = append(messages, message("user_message", object{"content": g.question}))
	for _, u := range g.earlier {
		messages = append(messages, message("assistant_message_tool", object{"id": u.id, "toolName": u.name, "content": u.json()}), message("tool_message", object{"id": u.id, "toolName": u.name, "result": u.result}))
	}
	g.earlier = nil
	g.up("/user/v5/llm/chat/stream/v8", object{"prompt": "ij.chat.request.new-chat", "profile": g.model, "chat": object{"messages": messages}, "parameters": object{"data": []any{}}})
	send := func(kind string, v object) {
		v["type"] = kind
		g.sse("data", v)
	}
	for _, p := range g.parts(g.thinking) {
		send("ThinkingContent", object{"content": p})
	}
	for _, p := range g.parts(g.answer) {
		send("Content", object{"content": p})
	}
	for _, u := range g.calls {
		send("ToolCall", object{"id": u.id, "name": u.name, "content": ""})
		for _, p := range g.parts(u.json()) {
			send("ToolCall", object{"id": nil, "name": nil, "content": p})
		}
	}
	send("FinishMetadata", object{"reason": "stop"})
	send("QuotaMetadata", object{"updated": object{"license": "x", "current": object{"amount": "132.1"}, "maximum": object{"amount": "5000.0"}, "until": 1766000000000}, "spent": object{"amount": "12.4"}})
	send("UsageMetadata", object{"promptTokens": g.input, "completionTokens": g.output})
	g.sse("", "end")
}

func llamaIndexWorkflow(g *apiCall) {
	g.realistic()
	g.noUsage, g.earlier = true, nil
	g.up("/workflows/agent/run-nowait", object{"start_event": object{"user_msg": g.question}, "context": object{}, "stream": true})
	send := func(kind string, value object) {
		g.line(object{"value": value, "qualified_name": "llama_index.core.agent.workflow.workflow_events." + kind, "type": kind, "types": []any{"Event", kind}})
	}
	block := func(s string) object {
		return object{"role": "assistant", "additional_kwargs": object{}, "blocks": []any{object{"block_type": "text", "text": s}}}
	}
	call := func(u toolUse) object {
		return object{"tool_name": u.name, "tool_kwargs": u.args, "tool_id": u.id}
	}
	send("AgentInput", object{"input": []any{object{"role": "user", "additional_kwargs": object{}, "blocks": []any{object{"block_type": "text", "text": g.question}}}}, "current_agent_name": "Agent"})
	stream := func(delta, response, thinking string, calls []any) {
		send("AgentStream", object{"delta": delta, "response": response, "current_agent_name": "Agent", "tool_calls": append([]any{}, calls...), "raw": nil, "thinking_delta": thinking})
	}
	for _, p := range g.parts(g.thinking) {
		stream("", "", p, nil)
	}
	if len(g.calls) > 0 {
		var calls []any
		for _, u := range g.calls {
			calls = append(calls, call(u))
		}
		stream("", "", "", calls)
		send("AgentOutput", object{"response": block(""), "structured_response": nil, "current_agent_name": "Agent", "raw": nil, "tool_calls": calls, "retry_messages": []any{}})
		for _, u := range g.calls {
			send("ToolCall", call(u))
		}
		for _, u := range g.calls {
			v := call(u)
			v["tool_output"], v["return_direct"] = object{"blocks": []any{object{"block_type": "text", "text": u.result}}, "tool_name": u.name, "raw_input": object{"args": []any{}, "kwargs": u.args}, "raw_output": u.result, "is_error": false}, false
			send("ToolCallResult", v)
		}
	}
	if g.answer != "" {
		said := ""
		for _, p := range g.parts(g.answer) {
			said += p
			stream(p, said, "", nil)
		}
		send("AgentOutput", object{"response": block(g.answer), "structured_response": nil, "current_agent_name": "Agent", "raw": nil, "tool_calls": []any{}, "retry_messages": []any{}})
		send("StopEvent", object{"result": object{"response": block(g.answer), "current_agent_name": "Agent", "tool_calls": []any{}}})
	}
}

func genkitFlow(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	message := func(role string, content ...any) object { return object{"role": role, "content": content} }
	text := func(s string) object { return object{"text": s} }
	var messages []any
	for _, b := range before {
		messages = append(messages, message("user", text(b.question)), message("model", text(b.answer)))
	}
	g.up("/chatFlow", object{"data": object{"messages": append(messages, message("user", text(g.question))), "config": object{"temperature": 0.4}}})
	chunk := func(content object) {
		g.sse("", object{"message": object{"role": "model", "index": 0, "content": []any{content}, "aggregated": false}})
	}
	var content []any
	for _, p := range g.parts(g.thinking) {
		chunk(object{"reasoning": p})
	}
	if g.thinking != "" {
		content = append(content, object{"reasoning": g.thinking})
	}
	for _, p := range g.parts(g.answer) {
		chunk(text(p))
	}
	if g.answer != "" {
		content = append(content, text(g.answer))
	}
	for _, u := range g.calls {
		c := object{"toolRequest": object{"name": u.name, "ref": u.id, "input": u.args}}
		chunk(c)
		content = append(content, c)
	}
	g.sse("", object{"result": object{"message": message("model", content...), "finishReason": "stop", "usage": object{"inputTokens": g.input, "outputTokens": g.output, "totalTokens": g.input + g.output, "thoughtsTokens": 0, "inputCharacters": 210, "outputCharacters": 330, "inputImages": 0}, "latencyMs": 1234.5}})
}

func lmStudioSDK(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	g.webSocket("/llm")
	g.upload(object{"authVersion": 1, "clientIdentifier": g.padding(), "clientPasskey": g.padding()})
	g.download(object{"success": true})
	message := func(role, s string) object {
		return object{"role": role, "content": []any{object{"type": "text", "text": s}}}
	}
	var history []any
	for _, b := range before {
		history = append(history, message("user", b.question), message("assistant", b.answer))
	}
	g.upload(object{"type": "channelCreate", "endpoint": "predict", "channelId": 3, "creationParameter": object{"modelSpecifier": object{"type": "query", "query": object{"identifier": g.model}}, "history": object{"messages": append(history, message("user", g.question))}, "predictionConfigStack": object{"layers": []any{object{"layerName": "apiOverride", "config": object{"fields": []any{object{"key": "llm.prediction.temperature", "value": 0.7}}}}}}}})
	send := func(kind string, v object) {
		v["type"] = kind
		g.download(object{"type": "channelSend", "channelId": 3, "message": v})
	}
	send("promptProcessingProgress", object{"progress": 1})
	fragment := func(kind, p string) {
		send("fragment", object{"fragment": object{"content": p, "tokensCount": 1, "containsDrafted": false, "reasoningType": kind, "isStructural": false}})
	}
	for _, p := range g.parts(g.thinking) {
		fragment("reasoning", p)
	}
	for _, p := range g.parts(g.answer) {
		fragment("none", p)
	}
	for i, u := range g.calls {
		send("toolCallGenerationStart", object{"callId": i})
		send("toolCallGenerationNameReceived", object{"callId": i, "name": u.name})
		for _, p := range g.parts(u.json()) {
			send("toolCallGenerationArgumentFragmentGenerated", object{"callId": i, "content": p})
		}
		send("toolCallGenerationEnd", object{"callId": i, "toolCallRequest": object{"id": u.id, "type": "function", "name": u.name, "arguments": u.args}, "rawContent": u.json()})
	}
	send("success", object{"stats": object{"stopReason": "eosFound", "tokensPerSecond": 41.2, "timeToFirstTokenSec": 0.31, "promptTokensCount": g.input, "predictedTokensCount": g.output, "totalTokensCount": g.input + g.output}, "modelInfo": object{"identifier": g.model, "path": "qwen/model.gguf", "format": "gguf"}, "loadModelConfig": object{"fields": []any{}}, "predictionConfig": object{"fields": []any{}}})
	g.download(object{"type": "channelClose", "channelId": 3})
}

func copilotServer(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/lsp")
	token, conversation, turn := g.uuid(), g.uuid(), g.uuid()
	g.upload(object{"jsonrpc": "2.0", "id": 7, "method": "conversation/create", "params": object{"workDoneToken": token, "turns": []any{object{"request": g.question, "response": ""}}, "capabilities": object{"skills": []any{"current-editor"}, "allSkills": false}, "source": "panel", "computeSuggestions": true, "model": g.model, "chatMode": "Agent"}})
	progress := func(kind string, v object) {
		v["kind"], v["conversationId"], v["turnId"] = kind, conversation, turn
		g.download(object{"jsonrpc": "2.0", "method": "$/progress", "params": object{"token": token, "value": v}})
	}
	g.download(object{"jsonrpc": "2.0", "id": 7, "result": object{"conversationId": conversation, "turnId": turn, "agentSlug": "", "modelName": g.model}})
	progress("begin", object{})
	progress("report", object{"steps": []any{object{"id": "collect-context", "title": "Collecting context", "status": "running"}}})
	progress("report", object{"steps": []any{object{"id": "collect-context", "title": "Collecting context", "status": "completed"}}})
	for _, p := range g.parts(g.answer) {
		progress("report", object{"reply": p, "annotations": []any{}, "references": []any{}, "hideText": false, "warnings": []any{}})
	}
	for i, u := range g.calls {
		round := func(status string, result []any) {
			progress("report", object{"editAgentRounds": []any{object{"roundId": i + 1, "reply": "", "toolCalls": []any{object{"id": u.id, "name": u.name, "input": u.args, "progressMessage": "Running " + u.name, "status": status, "result": result}}}}})
		}
		round("running", []any{})
		g.download(object{"jsonrpc": "2.0", "id": 20 + i, "method": "conversation/invokeClientTool", "params": object{"name": u.name, "input": u.args, "conversationId": conversation, "turnId": turn, "roundId": i + 1, "toolCallId": u.id}})
		g.upload(object{"jsonrpc": "2.0", "id": 20 + i, "result": []any{object{"content": []any{object{"value": u.result}}, "status": "success"}, nil}})
		round("completed", []any{object{"type": "text", "value": u.result}})
	}
	progress("end", object{"followUp": object{"message": "What does the cache do?", "id": g.uuid(), "type": "follow-up"}, "suggestedTitle": "About the clock"})
}

func voiceflowInteract(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/v2/project/p1/user/jo/interact/stream?completion_events=true", object{"action": object{"type": "text", "payload": g.question}, "session": object{"sessionID": g.padding()}})
	at := 1763700000000
	send := func(v object) {
		at += 11
		v["time"] = at
		g.sse("trace", v)
	}
	send(object{"type": "path", "payload": object{"path": "reprompt"}})
	send(object{"type": "debug", "payload": object{"type": "prompt", "message": "Evaluating AI prompt", "metadata": object{"model": g.model, "temperature": 0.3}}})
	send(object{"type": "completion", "payload": object{"state": "start"}})
	for _, p := range g.parts(g.answer) {
		send(object{"type": "completion", "payload": object{"state": "content", "content": p}})
	}
	send(object{"type": "completion", "payload": object{"state": "end", "tokens": object{"answer": 0, "query": 0, "total": 0}}})
	send(object{"type": "text", "payload": object{"message": g.answer, "delay": 1000, "slate": object{"id": g.padding(), "content": []any{object{"children": []any{object{"text": g.answer}}}}}}})
	send(object{"type": "choice", "payload": object{"buttons": []any{object{"name": "Yes", "request": object{"type": "path-1", "payload": object{"label": "Yes"}}}}}})
	g.sse("end", object{})
}
