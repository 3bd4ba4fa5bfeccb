package transcript

import (
	"fmt"

	"unwire/captures"
)

func dataStream(g *apiCall) {
	messages := []any{object{"role": "user", "content": g.question, "parts": []any{object{"type": "text", "text": g.question}}}}
	if len(g.earlier) > 0 {
		var parts []any
		for _, u := range g.earlier {
			parts = append(parts, object{"type": "tool-invocation", "toolInvocation": object{"state": "result", "step": 0, "toolCallId": u.id, "toolName": u.name, "args": u.args, "result": u.result}})
		}
		messages = append(messages, object{"role": "assistant", "content": "", "parts": parts})
	}
	g.up("/api/chat", object{"id": g.padding(), "messages": messages})
	g.respond("text/plain; charset=utf-8")
	g.ex.ResponseHeaders = append(g.ex.ResponseHeaders, captures.Header{Name: "x-vercel-ai-data-stream", Value: "v1"})
	send := func(prefix string, v any) { g.down([]byte(prefix + ":" + string(compactJSON(v)) + "\n")) }
	send("f", object{"messageId": "msg-" + g.padding()})
	for _, p := range g.parts(g.thinking) {
		send("g", p)
	}
	if g.thinking != "" {
		send("j", object{"signature": g.padding() + g.padding()})
	}
	if g.chance(0.3) {
		send("8", []any{object{"kind": "title", "text": "A talk about it"}})
	}
	for _, p := range g.parts(g.answer) {
		send("0", p)
	}
	for _, u := range g.calls {
		send("b", object{"toolCallId": u.id, "toolName": u.name})
		for _, p := range g.parts(u.json()) {
			send("c", object{"toolCallId": u.id, "argsTextDelta": p})
		}
		send("9", object{"toolCallId": u.id, "toolName": u.name, "args": u.args})
	}
	usage := object{"promptTokens": g.input, "completionTokens": g.output}
	send("e", object{"finishReason": "stop", "usage": usage, "isContinued": false})
	send("d", object{"finishReason": "stop", "usage": usage})
}

func copilotKit(g *apiCall) {
	g.thinking, g.noUsage, g.earlier = "", true, nil
	messages := []any{}
	if g.system != "" {
		messages = append(messages, object{"id": g.uuid(), "createdAt": "2026-11-02T10:12:13.000Z", "textMessage": object{"content": g.system, "role": "system"}})
	}
	messages = append(messages, object{"id": g.uuid(), "createdAt": "2026-11-02T10:12:14.000Z", "textMessage": object{"content": g.question, "role": "user"}})
	g.up("/api/copilotkit", object{
		"operationName": "generateCopilotResponse",
		"query":         "mutation generateCopilotResponse($data: GenerateCopilotResponseInput!) {\n  generateCopilotResponse(data: $data) {\n    threadId\n    messages @stream {\n      __typename\n      ... on TextMessageOutput {\n        content @stream\n        role\n      }\n    }\n  }\n}",
		"variables":     object{"data": object{"frontend": object{"actions": []any{}, "url": "http://localhost:3000/"}, "threadId": g.uuid(), "messages": messages, "metadata": object{"requestType": "Chat"}}, "properties": object{}},
	})
	g.respond(`multipart/mixed; boundary="-"`)
	send := func(v object) {
		b := compactJSON(v)
		g.down(fmt.Appendf(nil, "\r\n---\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(b), b))
	}
	send(object{"data": object{"generateCopilotResponse": object{"threadId": g.uuid(), "runId": g.uuid(), "extensions": nil, "messages": []any{}, "metaEvents": []any{}, "__typename": "CopilotResponse"}}, "hasNext": true})
	at := 0
	path := func(more ...any) []any { return append([]any{"generateCopilotResponse", "messages", at}, more...) }
	item := func(v any, path []any) {
		send(object{"incremental": []any{object{"items": []any{v}, "path": path}}, "hasNext": true})
	}
	done := func() {
		send(object{"incremental": []any{object{"data": object{"status": object{"code": "Success", "__typename": "SuccessMessageStatus"}}, "path": path()}}, "hasNext": true})
		at++
	}
	if g.answer != "" {
		item(object{"__typename": "TextMessageOutput", "id": g.uuid(), "createdAt": "2026-11-02T10:12:15.000Z", "content": []any{}, "role": "assistant", "parentMessageId": nil}, path())
		for i, p := range g.parts(g.answer) {
			item(p, path("content", i))
		}
		done()
	}
	for _, u := range g.calls {
		item(object{"__typename": "ActionExecutionMessageOutput", "id": u.id, "createdAt": "2026-11-02T10:12:16.000Z", "name": u.name, "arguments": []any{}, "parentMessageId": nil}, path())
		for i, p := range g.parts(u.json()) {
			item(p, path("arguments", i))
		}
		done()
	}
	send(object{"incremental": []any{object{"data": object{"status": object{"code": "Success", "__typename": "BaseResponseStatus"}}, "path": []any{"generateCopilotResponse"}}}, "hasNext": false})
	g.down([]byte("\r\n-----\r\n"))
}

func langServeLog(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/chat/stream_log", object{"input": object{"topic": g.question}, "config": object{}, "diff": true})
	patch := func(ops ...any) { g.sse("data", object{"ops": ops}) }
	op := func(kind, path string, v any) object { return object{"op": kind, "path": path, "value": v} }
	id := g.uuid()
	patch(op("replace", "", object{"id": id, "streamed_output": []any{}, "final_output": nil, "logs": object{}, "name": "RunnableSequence", "type": "chain"}))
	patch(op("add", "/logs/ChatModel", object{"id": g.uuid(), "name": "ChatModel", "type": "llm", "tags": []any{"seq:step:2"}, "metadata": object{"ls_model_name": g.model}, "start_time": "2026-11-02T10:12:13.123+00:00", "streamed_output": []any{}, "streamed_output_str": []any{}, "final_output": nil, "end_time": nil}))
	said := ""
	for _, p := range g.parts(g.answer) {
		patch(op("add", "/logs/ChatModel/streamed_output_str/-", p), op("add", "/logs/ChatModel/streamed_output/-", object{"content": p, "additional_kwargs": object{}, "response_metadata": object{}, "type": "AIMessageChunk", "id": "run-" + id}))
		kind := "replace"
		if said == "" {
			kind = "add"
		}
		said += p
		patch(op("add", "/streamed_output/-", p), op(kind, "/final_output", said))
	}
	patch(op("add", "/logs/ChatModel/final_output", object{"generations": []any{[]any{object{"text": said, "type": "ChatGenerationChunk", "message": object{"content": said, "type": "AIMessageChunk"}}}}}), op("add", "/logs/ChatModel/end_time", "2026-11-02T10:12:15.123+00:00"))
	g.down([]byte("event: end\n\n"))
}

func amazonQ(g *apiCall) {
	g.noUsage = true
	current := object{"content": g.question, "userInputMessageContext": object{"envState": object{"operatingSystem": "linux"}, "tools": []any{object{"toolSpecification": object{"name": "fs_read", "description": toolAbout(g.maker), "inputSchema": object{"json": object{"type": "object"}}}}}}, "origin": "CLI", "modelId": g.model}
	history := []any{}
	if len(g.earlier) > 0 {
		var uses, results []any
		for _, u := range g.earlier {
			uses = append(uses, object{"toolUseId": u.id, "name": u.name, "input": u.args})
			results = append(results, object{"toolUseId": u.id, "content": []any{object{"text": u.result}}, "status": "success"})
		}
		history = append(history, object{"userInputMessage": object{"content": g.question, "origin": "CLI"}}, object{"assistantResponseMessage": object{"messageId": g.uuid(), "content": "", "toolUses": uses}})
		current["content"] = ""
		current["userInputMessageContext"].(object)["toolResults"] = results
	}
	g.up("/", object{"conversationState": object{"conversationId": g.uuid(), "currentMessage": object{"userInputMessage": current}, "chatTriggerType": "MANUAL", "history": history}})
	g.aws("messageMetadataEvent", object{"conversationId": g.uuid(), "utteranceId": g.uuid()})
	for _, p := range g.parts(g.thinking) {
		g.aws("reasoningContentEvent", object{"text": p})
	}
	if g.thinking != "" {
		g.aws("reasoningContentEvent", object{"signature": g.padding() + g.padding()})
	}
	for _, p := range g.parts(g.answer) {
		g.aws("assistantResponseEvent", object{"content": p, "modelId": g.model})
	}
	for _, u := range g.calls {
		g.aws("toolUseEvent", object{"toolUseId": u.id, "name": u.name})
		for _, p := range g.parts(u.json()) {
			g.aws("toolUseEvent", object{"toolUseId": u.id, "name": u.name, "input": p})
		}
		g.aws("toolUseEvent", object{"toolUseId": u.id, "name": u.name, "stop": true})
	}
	if g.chance(0.4) {
		g.aws("followupPromptEvent", object{"followupPrompt": object{"content": "How do I test this?", "userIntent": "APPLY_COMMON_BEST_PRACTICES"}})
	}
	g.aws("meteringEvent", object{"unit": "credit", "unitPlural": "credits", "usage": 0.0213})
	g.aws("contextUsageEvent", object{"contextUsagePercentage": 1.53})
}

func lettaMessages(g *apiCall) {
	g.earlier = nil
	g.up("/v1/agents/agent-"+g.uuid()+"/messages/stream", object{"messages": []any{object{"role": "user", "content": g.question}}, "stream_tokens": true, "include_pings": true})
	send := func(id, kind string, v object) {
		v["id"], v["date"], v["message_type"], v["otid"] = id, "2026-11-02T10:12:13+00:00", kind, g.uuid()
		g.sse("", v)
	}
	id := "message-" + g.uuid()
	for _, p := range g.parts(g.thinking) {
		send(id, "reasoning_message", object{"source": "reasoner_model", "reasoning": p, "signature": nil, "step_id": "step-1"})
	}
	for _, u := range g.calls {
		id = "message-" + g.uuid()
		send(id, "tool_call_message", object{"tool_call": object{"name": u.name, "arguments": "", "tool_call_id": u.id}})
		for _, p := range g.parts(u.json()) {
			send(id, "tool_call_message", object{"tool_call": object{"name": nil, "arguments": p, "tool_call_id": u.id}})
		}
		send("message-"+g.uuid(), "tool_return_message", object{"tool_return": u.result, "status": "success", "tool_call_id": u.id, "stdout": nil, "stderr": nil, "name": u.name})
	}
	send("message-"+g.uuid(), "ping", object{})
	id = "message-" + g.uuid()
	for _, p := range g.parts(g.answer) {
		send(id, "assistant_message", object{"content": p, "name": nil})
	}
	g.sse("", object{"message_type": "stop_reason", "stop_reason": "end_turn"})
	g.sse("", object{"message_type": "usage_statistics", "completion_tokens": g.output, "prompt_tokens": g.input, "total_tokens": g.input + g.output, "step_count": 1, "run_ids": nil})
	g.sse("", "[DONE]")
}

func codyCompletions(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	var messages []any
	say := func(speaker, text string) {
		messages = append(messages, object{"speaker": speaker, "text": text})
	}
	if g.system != "" {
		say("system", g.system)
	}
	if g.chance(0.5) {
		say("human", "Codebase context from file main.go:\npackage main\n\nfunc main() {}\n")
		say("assistant", "Ok.")
	}
	say("human", g.question)
	grows := g.chance(0.5)
	g.up("/.api/completions/stream?api-version=1&client-name=vscode", object{"temperature": 0.2, "topK": -1, "topP": -1, "model": "anthropic::2024-10-22::" + g.model, "maxTokensToSample": 4000, "messages": messages, "stream": true})
	said := ""
	for _, p := range g.parts(g.answer) {
		said += p
		if grows {
			g.sse("completion", object{"completion": said, "stopReason": ""})
		} else {
			g.sse("completion", object{"deltaText": p})
		}
	}
	if grows {
		g.sse("completion", object{"completion": said, "stopReason": "end_turn"})
	} else {
		g.sse("completion", object{"stopReason": "end_turn"})
	}
	g.sse("done", object{})
}

func poeQuery(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	query := []any{}
	message := func(role, text string) {
		query = append(query, object{"role": role, "sender_id": nil, "content": text, "content_type": "text/markdown", "timestamp": 1763700000000000, "message_id": "m-" + g.padding(), "feedback": []any{}, "attachments": []any{}})
	}
	if g.chance(0.5) {
		message("user", "Hi, are you there?")
		message("bot", "Yes, I am. What would you like to know?")
	}
	message("user", g.question)
	g.up("/", object{"version": "1.2", "type": "query", "query": query, "user_id": "u-" + g.padding(), "conversation_id": "c-" + g.padding(), "message_id": "m-" + g.padding(), "metadata": "", "temperature": 0.7, "skip_system_prompt": false, "logit_bias": object{}, "stop_sequences": []any{}})
	g.sse("meta", object{"content_type": "text/markdown", "linkify": true, "refetch_settings": false, "suggested_replies": true})
	parts := g.parts(g.answer)
	replaces := g.chance(0.25)
	if replaces {
		g.sse("text", object{"text": "Searching the web for an answer..."})
	}
	for i, p := range parts {
		if i == 0 && replaces {
			g.sse("replace_response", object{"text": p})
			continue
		}
		if g.chance(0.05) {
			g.down([]byte(": ping - 2026-11-02 10:12:13\n\n"))
		}
		g.sse("text", object{"text": p})
	}
	for _, s := range []string{"Can you give me an example?", "How does it work?", "Tell me more about that"} {
		g.sse("suggested_reply", object{"text": s})
	}
	g.sse("done", object{})
}

func discoveryAnswer(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/v1/projects/1/locations/global/collections/default_collection/engines/docs/servingConfigs/default_search:streamAnswer", object{"query": object{"text": g.question}, "session": "projects/1/sessions/-", "relatedQuestionsSpec": object{"enable": true}, "answerGenerationSpec": object{"modelSpec": object{"modelVersion": "stable"}, "includeCitations": true}})
	g.respond("application/json; charset=UTF-8")
	first := true
	send := func(v object) {
		lead := ",\r\n"
		if first {
			lead, first = "[", false
		}
		g.down(append([]byte(lead), compactJSON(v)...))
	}
	step := object{"state": "SUCCEEDED", "description": "Rephrase the query and search.", "actions": []any{object{"searchAction": object{"query": g.question}, "observation": object{"searchResults": []any{object{"document": "projects/1/documents/a", "uri": "https://example.org/a", "title": "A page about it", "snippetInfo": []any{object{"snippet": "What the page <b>says</b> about it in two lines.", "snippetStatus": "SUCCESS"}}}}}}}}
	send(object{"answer": object{"state": "STREAMING", "steps": []any{step}}})
	for _, p := range g.parts(g.answer) {
		send(object{"answer": object{"state": "STREAMING", "answerText": p}})
	}
	name := "projects/1/sessions/7/answers/" + g.padding()
	send(object{"answer": object{
		"name": name, "state": "SUCCEEDED", "answerText": g.answer, "citations": []any{object{"startIndex": "0", "endIndex": "20", "sources": []any{object{"referenceId": "0"}}}},
		"references":       []any{object{"chunkInfo": object{"content": "What the document says about it, in a long line of text with details.", "relevanceScore": 0.8, "documentMetadata": object{"uri": "https://example.org/a", "title": "A page about it"}}}},
		"relatedQuestions": []any{"How does it work?", "Who made it?"}, "createTime": "2026-11-02T10:12:13Z", "completeTime": "2026-11-02T10:12:16Z",
	}, "session": object{"name": "projects/1/sessions/7", "state": "IN_PROGRESS", "turns": []any{object{"query": object{"text": g.question}, "answer": name}}}, "answerQueryToken": g.padding()})
	g.down([]byte("]"))
}

func flowisePrediction(g *apiCall) {
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.up("/api/v1/prediction/"+g.uuid(), object{"question": g.question, "streaming": true, "chatId": g.uuid(), "history": []any{object{"role": "apiMessage", "content": "Hello, how can I help?"}, object{"role": "userMessage", "content": "Wait a moment."}}})
	g.respond("text/event-stream")
	send := func(event string, data any) {
		g.down([]byte("message:\ndata:" + string(compactJSON(object{"event": event, "data": data})) + "\n\n"))
	}
	if g.answer != "" {
		send("start", "")
	}
	for _, p := range g.parts(g.answer) {
		send("token", p)
	}
	if len(g.calls) > 0 {
		var used []any
		for _, u := range g.calls {
			used = append(used, object{"tool": u.name, "toolInput": u.args, "toolOutput": u.result})
		}
		send("usedTools", used)
	}
	if g.chance(0.5) {
		send("sourceDocuments", []any{object{"pageContent": "What the document says about it, in a long line of text.", "metadata": object{"source": "help.pdf", "loc": object{"pageNumber": 3}}}})
	}
	send("metadata", object{"chatId": g.uuid(), "chatMessageId": g.uuid(), "question": g.question, "sessionId": g.uuid(), "memoryType": "Buffer Memory"})
	send("end", "[DONE]")
}
