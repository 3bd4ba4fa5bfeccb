package transcript

import (
	"encoding/base64"
	"slices"

	"unwire/captures"
)

// splitTunedAPIs and splitHeldAPIs are two halves of one set, written from public documents, SDKs and clients before
// anything was measured, and dealt out alternately. Only the failures of the first half were looked at
// before the totals of the second were recorded.
var splitTunedAPIs = []api{
	{"ChatGPT conversation, encoded as deltas", false, deltaEncodedConversation},
	{"Nova Sonic, event stream in both directions", false, novaSonic},
	{"Reka chat, growing messages", false, rekaChat},
	{"DashScope application, growing texts and thoughts", false, dashScopeApplication},
	{"chat completions with calls in the text", false, callsInText},
	{"Vellum prompt stream", false, vellumPrompt},
	{"LobeChat, values in named events", false, lobeChat},
	{"serverStreamingPredict, JSON tensors", false, streamingPredict},
	{"Ultravox, WebSocket", false, ultravoxCall},
	{"Sydney ChatHub, SignalR", false, sydneyHub},
	{"Glean chat, NDJSON", false, gleanChat},
	{"watsonx Orchestrate runs", false, orchestrateRuns},
	{"Warp multi-agent, protobuf as base64 in SSE", false, warpAgent},
}

func deltaEncodedConversation(g *apiCall) {
	g.realistic()
	g.noUsage = true
	g.withoutTools()
	conversation := g.uuid()
	message := func(role, status string, content object) object {
		return object{"id": g.uuid(), "author": object{"role": role, "name": nil, "metadata": object{}}, "create_time": 1763700000.123, "update_time": nil, "content": content, "status": status, "end_turn": nil, "weight": 1, "metadata": object{"model_slug": g.model, "parent_id": g.uuid()}, "recipient": "all", "channel": nil}
	}
	text := func(s string) object { return object{"content_type": "text", "parts": []any{s}} }
	g.up("/backend-api/f/conversation", object{"action": "next", "messages": []any{object{"id": g.uuid(), "author": object{"role": "user"}, "create_time": 1763700000.1, "content": text(g.question), "metadata": object{"system_hints": []any{}}}}, "parent_message_id": g.uuid(), "model": g.model, "conversation_id": conversation, "timezone": "Europe/Oslo", "conversation_mode": object{"kind": "primary_assistant"}, "supported_encodings": []any{"v1"}})
	g.sse("delta_encoding", `"v1"`)
	n := 0
	add := func(m object) {
		v := object{"v": object{"message": m, "conversation_id": conversation, "error": nil}, "c": n}
		if n == 0 {
			v["p"], v["o"] = "", "add"
		}
		n++
		g.sse("delta", v)
	}
	stream := func(path, s string) {
		for i, p := range g.parts(s) {
			if i == 0 {
				g.sse("delta", object{"p": path, "o": "append", "v": p})
			} else {
				g.sse("delta", object{"v": p})
			}
		}
	}
	done := func() {
		g.sse("delta", object{"p": "", "o": "patch", "v": []any{object{"p": "/message/status", "o": "replace", "v": "finished_successfully"}, object{"p": "/message/end_turn", "o": "replace", "v": true}}})
	}
	add(message("system", "finished_successfully", text("")))
	add(message("user", "finished_successfully", text(g.question)))
	g.sse("", object{"type": "input_message", "input_message": message("user", "finished_successfully", text(g.question)), "conversation_id": conversation})
	if g.thinking != "" {
		add(message("assistant", "in_progress", object{"content_type": "thoughts", "thoughts": []any{object{"summary": "Working it out", "content": ""}}, "source_analysis_msg_id": g.uuid()}))
		stream("/message/content/thoughts/0/content", g.thinking)
		done()
	}
	add(message("assistant", "in_progress", text("")))
	stream("/message/content/parts/0", g.answer)
	done()
	g.sse("", object{"type": "message_stream_complete", "conversation_id": conversation})
	g.sse("", object{"type": "conversation_detail_metadata", "banner_info": nil, "blocked_features": []any{}, "default_model_slug": g.model, "conversation_id": conversation})
	g.sse("", "[DONE]")
}

func novaSonic(g *apiCall) {
	g.realistic()
	g.thinking, g.earlier = "", nil
	g.ex.URL = "https://bedrock-runtime.example/model/amazon.nova-sonic-v1%3A0/invoke-with-bidirectional-stream"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/vnd.amazon.eventstream"}}
	prompt, session, completion := g.uuid(), g.uuid(), g.uuid()
	wrap := func(name string, v object) object {
		return object{"bytes": base64.StdEncoding.EncodeToString(compactJSON(object{"event": object{name: v}}))}
	}
	up := func(name string, v object) { g.awsUp("chunk", wrap(name, v)) }
	upText := func(role, s string) {
		id := g.uuid()
		up("contentStart", object{"promptName": prompt, "contentName": id, "type": "TEXT", "interactive": role == "USER", "role": role, "textInputConfiguration": object{"mediaType": "text/plain"}})
		up("textInput", object{"promptName": prompt, "contentName": id, "content": s})
		up("contentEnd", object{"promptName": prompt, "contentName": id})
	}
	up("sessionStart", object{"inferenceConfiguration": object{"maxTokens": 1024, "topP": 0.9, "temperature": 0.7}})
	up("promptStart", object{"promptName": prompt, "textOutputConfiguration": object{"mediaType": "text/plain"}, "audioOutputConfiguration": object{"mediaType": "audio/lpcm", "sampleRateHertz": 24000, "voiceId": "matthew", "encoding": "base64", "audioType": "SPEECH"}, "toolUseOutputConfiguration": object{"mediaType": "application/json"}, "toolConfiguration": object{"tools": []any{object{"toolSpec": object{"name": toolNames[0], "description": toolAbout(g.maker), "inputSchema": object{"json": `{"type":"object","properties":{"path":{"type":"string"}}}`}}}}}})
	if g.system != "" {
		upText("SYSTEM", g.system)
	}
	upText("USER", g.question)
	down := func(name string, v object) {
		v["sessionId"], v["promptName"], v["completionId"] = session, prompt, completion
		g.aws("chunk", wrap(name, v))
	}
	block := func(kind, role string, start object, name string, v object, reason string) {
		id := g.uuid()
		start["contentId"], start["type"], start["role"] = id, kind, role
		down("contentStart", start)
		v["contentId"] = id
		if name != "audioOutput" {
			v["role"] = role
		}
		down(name, v)
		down("contentEnd", object{"contentId": id, "type": kind, "stopReason": reason})
	}
	say := func(stage string) {
		block("TEXT", "ASSISTANT", object{"additionalModelFields": `{"generationStage":"` + stage + `"}`, "textOutputConfiguration": object{"mediaType": "text/plain"}}, "textOutput", object{"content": g.answer}, "PARTIAL_TURN")
	}
	down("completionStart", object{})
	usage := func(in, out int) {
		sides := func(a, b int) object {
			return object{"input": object{"speechTokens": 0, "textTokens": a}, "output": object{"speechTokens": 0, "textTokens": b}}
		}
		down("usageEvent", object{"details": object{"delta": sides(in, out-out/2), "total": sides(in, out)}, "totalInputTokens": in, "totalOutputTokens": out, "totalTokens": in + out})
	}
	usage(g.input, g.output/2)
	for _, u := range g.calls {
		block("TOOL", "TOOL", object{"toolUseOutputConfiguration": object{"mediaType": "application/json"}}, "toolUse", object{"content": u.json(), "toolName": u.name, "toolUseId": u.id}, "TOOL_USE")
	}
	if g.answer != "" {
		say("SPECULATIVE")
		block("AUDIO", "ASSISTANT", object{"audioOutputConfiguration": object{"mediaType": "audio/lpcm", "sampleRateHertz": 24000, "sampleSizeBits": 16, "encoding": "base64", "channelCount": 1}}, "audioOutput", object{"content": g.audio()}, "PARTIAL_TURN")
		say("FINAL")
	}
	usage(g.input, g.output)
	down("completionEnd", object{"stopReason": "END_TURN"})
}

func rekaChat(g *apiCall) {
	before := g.realistic()
	g.thinking, g.earlier = "", nil
	var messages []any
	for _, b := range before {
		messages = append(messages, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
	}
	g.up("/v1/chat", object{"messages": append(messages, object{"role": "user", "content": []any{object{"type": "text", "text": g.question}}}), "model": g.model, "stream": true, "tools": []any{object{"name": toolNames[0], "description": toolAbout(g.maker), "parameters": object{"type": "object"}}}})
	id := g.uuid()
	send := func(m object, finish any, out int) {
		m["role"] = "assistant"
		g.sse("message", object{"id": id, "model": g.model, "responses": []any{object{"finish_reason": finish, "message": m}}, "usage": object{"input_tokens": g.input, "output_tokens": out}})
	}
	said := ""
	parts := g.parts(g.answer)
	for i, p := range parts {
		said += p
		send(object{"content": said}, nil, 1+g.output*i/len(parts))
	}
	last, finish := object{"content": g.answer}, "stop"
	if len(g.calls) > 0 {
		var calls []any
		for _, u := range g.calls {
			calls = append(calls, object{"id": u.id, "name": u.name, "parameters": u.args})
		}
		last["tool_calls"], finish = calls, "tool_calls"
	}
	send(last, finish, g.output)
}

func dashScopeApplication(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.up("/api/v1/apps/"+g.padding()+"/completion", object{"input": object{"prompt": g.question, "session_id": g.padding()}, "parameters": object{"has_thoughts": true, "incremental_output": false}, "debug": object{}})
	session, request := g.padding(), g.uuid()
	var thoughts []any
	send := func(text, finish string, out int) {
		g.sse("result", object{"output": object{"session_id": session, "finish_reason": finish, "text": text, "thoughts": thoughts, "reject_status": false}, "usage": object{"models": []any{object{"input_tokens": g.input, "output_tokens": out, "model_id": g.model}}}, "request_id": request})
	}
	if g.thinking != "" {
		thoughts = append(thoughts, nil)
		said := ""
		for _, p := range g.parts(g.thinking) {
			said += p
			thoughts[0] = object{"thought": said, "action_type": "reasoning", "action_name": "reasoning", "action": "reasoning", "response": "", "observation": "", "action_input_stream": ""}
			send("", "null", 1+len(said)/4)
		}
	}
	for _, u := range g.calls {
		thoughts = append(thoughts, object{"thought": "", "action_type": "api", "action_name": u.name, "action": u.name, "action_input_stream": u.json(), "action_input": u.args, "response": "", "observation": u.result})
		send("", "null", 9)
	}
	said := ""
	for _, p := range g.parts(g.answer) {
		said += p
		send(said, "null", 10+len(said)/4)
	}
	send(g.answer, "stop", g.output)
}

func callsInText(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	g.up("/v1/chat/completions", object{"model": g.model, "messages": g.dialogueMessages(before), "tools": g.toolDefinitions(), "stream": true, "stream_options": object{"include_usage": true}})
	text := g.answer
	if g.thinking != "" {
		text = "<think>\n" + g.thinking + "\n</think>\n\n" + text
	}
	for _, u := range g.calls {
		text += "\n<tool_call>\n{\"name\": \"" + u.name + "\", \"arguments\": " + u.json() + "}\n</tool_call>"
	}
	id := "chatcmpl-" + g.padding()
	send := func(delta object, finish any) {
		g.sse("", object{"id": id, "object": "chat.completion.chunk", "created": 1763700000, "model": g.model, "choices": []any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}})
	}
	send(object{"role": "assistant", "content": ""}, nil)
	for _, p := range g.parts(text) {
		send(object{"content": p}, nil)
	}
	send(object{"content": ""}, "stop")
	g.sse("", object{"id": id, "object": "chat.completion.chunk", "created": 1763700000, "model": g.model, "choices": []any{}, "usage": object{"prompt_tokens": g.input, "total_tokens": g.input + g.output, "completion_tokens": g.output}})
	g.sse("", "[DONE]")
}

func vellumPrompt(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	var history []any
	for _, b := range before {
		history = append(history, object{"role": "USER", "text": b.question}, object{"role": "ASSISTANT", "text": b.answer})
	}
	g.up("/v1/execute-prompt-stream", object{"prompt_deployment_name": "support", "inputs": []any{object{"type": "CHAT_HISTORY", "name": "history", "value": append(history, object{"role": "USER", "text": g.question})}}, "expand_meta": object{"usage": true, "model_name": true}})
	execution := g.uuid()
	g.line(object{"state": "INITIATED", "execution_id": execution, "meta": object{"model_name": g.model, "latency": 12, "deployment_release_tag": "LATEST", "prompt_version_id": g.uuid()}})
	at := 0
	var outputs []any
	stream := func(v object) {
		g.line(object{"state": "STREAMING", "output": v, "output_index": at, "execution_id": execution})
	}
	text := func(s string) object { return object{"type": "STRING", "value": s} }
	if g.thinking != "" {
		for _, p := range g.parts(g.thinking) {
			stream(object{"type": "THINKING", "value": text(p)})
		}
		outputs = append(outputs, object{"type": "THINKING", "value": text(g.thinking)})
		at++
	}
	if g.answer != "" {
		for _, p := range g.parts(g.answer) {
			stream(text(p))
		}
		outputs = append(outputs, text(g.answer))
		at++
	}
	for _, u := range g.calls {
		call := object{"type": "FUNCTION_CALL", "value": object{"name": u.name, "arguments": u.args, "id": u.id, "state": "FULFILLED"}}
		stream(call)
		outputs = append(outputs, call)
		at++
	}
	g.line(object{"state": "FULFILLED", "outputs": outputs, "execution_id": execution, "meta": object{"latency": 1234, "finish_reason": "STOP", "usage": object{"input_token_count": g.input, "output_token_count": g.output, "input_char_count": nil, "output_char_count": nil}}})
}

func lobeChat(g *apiCall) {
	before := g.realistic()
	g.up("/webapi/chat/openai", object{"model": g.model, "messages": g.dialogueMessages(before), "tools": g.toolDefinitions(), "stream": true, "temperature": 1})
	send := func(name string, v any) { g.sse(name, string(compactJSON(v))) }
	for _, p := range g.parts(g.thinking) {
		send("reasoning", p)
	}
	for _, p := range g.parts(g.answer) {
		send("text", p)
	}
	for i, u := range g.calls {
		send("tool_calls", []any{object{"function": object{"arguments": "", "name": u.name}, "id": u.id, "index": i, "type": "function"}})
		for _, p := range g.parts(u.json()) {
			send("tool_calls", []any{object{"function": object{"arguments": p, "name": nil}, "id": u.id, "index": i, "type": "function"}})
		}
	}
	send("usage", object{"inputTextTokens": g.input, "outputTextTokens": g.output, "totalInputTokens": g.input, "totalOutputTokens": g.output, "totalTokens": g.input + g.output})
	send("speed", object{"duration": 1234, "latency": 2345, "tps": 41.2, "ttft": 812})
	send("stop", "stop")
}

func streamingPredict(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	message := func(author, s string) object {
		return object{"structVal": object{"author": object{"stringVal": author}, "content": object{"stringVal": s}}}
	}
	var messages []any
	for _, b := range before {
		messages = append(messages, message("user", b.question), message("bot", b.answer))
	}
	g.up("/v1/projects/p/locations/l/publishers/google/models/chat-bison:serverStreamingPredict", object{"inputs": []any{object{"structVal": object{"context": object{"stringVal": g.system}, "messages": object{"listVal": append(messages, message("user", g.question))}}}}, "parameters": object{"structVal": object{"temperature": object{"doubleVal": 0.2}, "maxOutputTokens": object{"intVal": 1024}, "topK": object{"intVal": 40}}}})
	g.respond("application/json; charset=UTF-8")
	for i, p := range g.parts(g.answer) {
		open := ",\r\n"
		if i == 0 {
			open = "["
		}
		candidate := object{"structVal": object{"author": object{"stringVal": []any{"1"}}, "content": object{"stringVal": []any{p}}}}
		safety := object{"structVal": object{"blocked": object{"boolVal": []any{false}}, "categories": object{}, "scores": object{}}}
		g.down(append([]byte(open), compactJSON(object{"outputs": []any{object{"structVal": object{"candidates": object{"listVal": []any{candidate}}, "citationMetadata": object{"listVal": []any{object{"structVal": object{"citations": object{}}}}}, "safetyAttributes": object{"listVal": []any{safety}}}}}})...))
	}
	g.down([]byte("]"))
}

func ultravoxCall(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/calls/" + g.uuid() + "/sock")
	g.download(object{"type": "call_started", "callId": g.uuid()})
	n := 0
	utterance := func(role, s string) {
		if role == "user" {
			g.upload(object{"type": "user_text_message", "text": s})
			g.download(object{"type": "transcript", "role": "user", "medium": "text", "text": s, "delta": nil, "final": true, "ordinal": n})
			n++
			return
		}
		g.download(object{"type": "state", "state": "speaking"})
		for _, p := range g.parts(s) {
			g.download(object{"type": "transcript", "role": "agent", "medium": "text", "text": nil, "delta": p, "final": false, "ordinal": n})
		}
		g.download(object{"type": "transcript", "role": "agent", "medium": "text", "text": s, "delta": nil, "final": true, "ordinal": n})
		n++
		g.download(object{"type": "state", "state": "listening"})
	}
	g.upload(object{"type": "set_output_medium", "medium": "text"})
	utterance("user", g.question)
	g.download(object{"type": "state", "state": "thinking"})
	for _, u := range g.calls {
		id := g.uuid()
		g.download(object{"type": "client_tool_invocation", "toolName": u.name, "invocationId": id, "parameters": u.args})
		g.upload(object{"type": "client_tool_result", "invocationId": id, "result": u.result, "responseType": "tool-response", "agentReaction": "speaks"})
	}
	if g.answer != "" {
		utterance("agent", g.answer)
	}
}

func sydneyHub(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/sydney/ChatHub?sec_access_token=" + g.padding())
	record := func(v object) string { return string(compactJSON(v)) + "\x1e" }
	conversation, request, message := "51D|BingProdUnAuthenticatedUsers|"+g.padding(), g.uuid(), g.uuid()
	g.upload("{\"protocol\":\"json\",\"version\":1}\x1e")
	g.download("{}\x1e")
	g.upload(record(object{"type": 6}))
	g.upload(record(object{"arguments": []any{object{"source": "cib", "optionsSets": []any{"nlu_direct_response_filter", "deepleo", "dv3sugg"}, "allowedMessageTypes": []any{"Chat", "InternalSearchQuery", "Suggestion"}, "sliceIds": []any{"0731ziv2"}, "isStartOfSession": true, "message": object{"locale": "en-US", "market": "en-US", "author": "user", "inputMethod": "Keyboard", "text": g.question, "messageType": "Chat", "requestId": request}, "tone": "Balanced", "conversationId": conversation, "participant": object{"id": "1055518"}}}, "invocationId": "0", "target": "chat", "type": 4}))
	bot := func(s string) object {
		return object{"text": s, "author": "bot", "createdAt": "2026-11-20T10:12:13.123Z", "timestamp": "2026-11-20T10:12:13.123Z", "messageId": message, "offense": "None", "adaptiveCards": []any{object{"type": "AdaptiveCard", "version": "1.0", "body": []any{object{"type": "TextBlock", "text": s, "wrap": true}}}}, "sourceAttributions": []any{}, "feedback": object{"tag": nil, "updatedOn": nil, "type": "None"}, "contentOrigin": "DeepLeo", "requestId": request}
	}
	said := ""
	for _, p := range g.parts(g.answer) {
		said += p
		g.download(record(object{"type": 1, "target": "update", "arguments": []any{object{"messages": []any{bot(said)}, "requestId": request}}}))
		if g.chance(0.05) {
			g.download(record(object{"type": 6}))
		}
	}
	last := bot(g.answer)
	last["suggestedResponses"] = []any{object{"text": "What is the next step?", "author": "user", "createdAt": "2026-11-20T10:12:15.123Z", "messageId": g.uuid(), "messageType": "Suggestion", "contentOrigin": "SuggestionChipsFalconService"}}
	g.download(record(object{"type": 2, "invocationId": "0", "item": object{"messages": []any{object{"text": g.question, "author": "user", "from": object{"id": "1055518", "name": nil}, "createdAt": "2026-11-20T10:12:12.123Z", "locale": "en-us", "messageId": request, "requestId": request, "nlu": object{"scoredClassification": object{"classification": "CHAT_GPT", "score": nil}}, "inputMethod": "Keyboard"}, last}, "firstNewMessageIndex": 1, "conversationId": conversation, "requestId": request, "conversationExpiryTime": "2026-11-21T10:12:15.123Z", "throttling": object{"maxNumUserMessagesInConversation": 30, "numUserMessagesInConversation": 1}, "result": object{"value": "Success", "message": g.answer, "serviceVersion": "20231101.1"}}}))
	g.download(record(object{"type": 3, "invocationId": "0"}))
}

func gleanChat(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	fragments := func(list ...any) []any { return list }
	var messages []any
	// The newest message is the first one.
	messages = append(messages, object{"author": "USER", "messageType": "CONTENT", "fragments": fragments(object{"text": g.question})})
	for i := len(before) - 1; i >= 0; i-- {
		messages = append(messages, object{"author": "GLEAN_AI", "messageType": "CONTENT", "fragments": fragments(object{"text": before[i].answer})}, object{"author": "USER", "messageType": "CONTENT", "fragments": fragments(object{"text": before[i].question})})
	}
	g.up("/rest/api/v1/chat", object{"messages": messages, "saveChat": true, "stream": true, "agentConfig": object{"agent": "DEFAULT", "mode": "DEFAULT"}, "timeoutMillis": 60000})
	chat, id := g.padding(), g.padding()
	send := func(kind, step string, more bool, f []any, citations any) {
		m := object{"author": "GLEAN_AI", "messageId": id, "messageType": kind, "stepId": step, "agentConfig": object{"agent": "DEFAULT", "mode": "DEFAULT"}, "hasMoreFragments": more, "ts": "1763700000123456", "fragments": f}
		if citations != nil {
			m["citations"] = citations
		}
		g.line(object{"messages": []any{m}, "chatId": chat, "followUpPrompts": []any{}, "chatSessionTrackingToken": "CST"})
	}
	source := object{"id": "d1", "title": "Handbook, chapter 4", "url": "https://wiki.example/handbook", "datasource": "confluence"}
	send("UPDATE", "SEARCH", false, fragments(object{"text": "**Searching:** "}, object{"querySuggestion": object{"query": "handbook", "datasource": "all"}}), nil)
	send("UPDATE", "READ", false, fragments(object{"text": "**Reading:** "}, object{"structuredResults": []any{object{"document": source}}}), nil)
	for _, p := range g.parts(g.answer) {
		send("CONTENT", "RESPOND", true, fragments(object{"text": p}), nil)
	}
	send("CONTENT", "RESPOND", false, fragments(), []any{object{"sourceDocument": source, "referenceRanges": []any{object{"textRange": object{"startIndex": 0, "endIndex": 12}}}}})
}

func orchestrateRuns(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.up("/v1/orchestrate/runs?stream=true", object{"message": object{"role": "user", "content": g.question}, "agent_id": g.uuid(), "thread_id": g.uuid(), "additional_parameters": object{}, "context": object{}})
	run, thread, message := g.uuid(), g.uuid(), g.uuid()
	send := func(event string, data object) {
		data["run_id"], data["thread_id"] = run, thread
		g.line(object{"id": g.uuid(), "event": event, "data": data})
	}
	send("run.started", object{"timestamp": 1763700000, "status": "running"})
	var steps []any
	step := func(detail object) {
		d := object{"role": "assistant", "step_details": []any{detail}}
		steps = append(steps, d)
		send("run.step.delta", object{"delta": d})
	}
	for _, u := range g.calls {
		step(object{"type": "tool_calls", "tool_calls": []any{object{"id": u.id, "name": u.name, "args": u.args}}, "agent_display_name": "helper"})
		step(object{"type": "tool_response", "name": u.name, "tool_call_id": u.id, "content": u.result})
	}
	send("message.started", object{"message_id": message})
	block := func(s string) []any { return []any{object{"id": "1", "response_type": "text", "text": s}} }
	for _, p := range g.parts(g.answer) {
		send("message.delta", object{"message_id": message, "delta": object{"role": "assistant", "content": block(p)}})
	}
	if g.answer != "" {
		send("message.created", object{"message": object{"id": message, "thread_id": thread, "role": "assistant", "content": block(g.answer), "step_history": steps, "created_on": "2026-11-20T10:12:15Z"}})
	}
	send("run.completed", object{"status": "completed", "result": object{"type": "text", "data": object{"message": object{"role": "assistant", "content": block(g.answer)}}}})
	send("done", object{"status": "done"})
}

func warpAgent(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.tokens()
	g.ex.URL = "https://app.example/ai/multi-agent"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/x-protobuf"}}
	request := pbMsg(1)
	context := pbMsg(1, pbMsg(1, pbText(1, "/home/u/project"), pbText(2, "/home/u")), pbMsg(2, pbText(1, "Linux")), pbMsg(3, pbText(1, "zsh"), pbText(2, "5.9")), pbMsg(4, num(1, 1763700000)))
	request = append(request, pbMsg(2, context, pbMsg(6, pbMsg(1, pbMsg(1, pbText(1, g.question)))))...)
	request = append(request, pbMsg(3, pbMsg(1, pbText(1, g.model), pbText(4, "cli-agent-auto")), num(2, 1), num(4, 1))...)
	conversation := g.uuid()
	request = append(request, pbMsg(4, pbText(1, conversation))...)
	g.chunk(captures.Up, request)
	task, req := g.uuid(), g.uuid()
	send := func(fields ...[]byte) {
		g.sse("", base64.URLEncoding.EncodeToString(slices.Concat(fields...)))
	}
	action := func(n int, fields ...[]byte) { send(pbMsg(2, pbMsg(1, pbMsg(n, fields...)))) }
	send(pbMsg(1, pbText(1, conversation), pbText(2, req)))
	action(10)
	message := func(id string, n int, fields ...[]byte) []byte {
		return pbMsg(2, pbText(1, id), pbMsg(n, fields...), pbText(11, task), pbText(13, req))
	}
	stream := func(n int, mask, s string) {
		id := g.uuid()
		for i, p := range g.parts(s) {
			if i == 0 {
				action(3, pbText(1, task), message(id, n, pbText(1, p)))
			} else {
				action(5, pbText(1, task), message(id, n, pbText(1, p)), pbMsg(3, pbText(1, mask)))
			}
		}
	}
	stream(15, "agent_reasoning.reasoning", g.thinking)
	stream(3, "agent_output.text", g.answer)
	for _, u := range g.calls {
		action(3, pbText(1, task), message(g.uuid(), 4, pbText(1, u.id), pbMsg(12, pbText(1, u.name), pbMsg(2, pbStruct(u.args)))))
	}
	action(11)
	send(pbMsg(3, pbMsg(5), pbMsg(7, pbText(1, g.model), num(2, g.input), num(3, g.output))))
}
