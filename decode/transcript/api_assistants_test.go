package transcript

// assistantAPIs are chats in further forms, written after productAPIs had led to corrections, before anybody looked at how
// the reader would treat them.
var assistantAPIs = []api{
	{"Rasa REST channel", false, rasaWebhook},
	{"Vectara query", false, vectaraQuery},
	{"KoboldCpp generate", false, koboldStream},
	{"Tabby thread run, GraphQL over WebSocket", false, tabbyThread},
	{"agent over Phoenix channels", false, phoenixAgent},
	{"You.com agents run", false, youAgents},
	{"Aleph Alpha complete", false, alephComplete},
	{"MiniMax chatcompletion_pro", false, minimaxPro},
	{"Vapi chat", false, vapiChat},
	{"OpenHands events, Socket.IO", false, openHands},
	{"Goose agent reply", false, gooseReply},
	{"Inworld session, WebSocket", false, inworldSession},
}

func rasaWebhook(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/webhooks/rest/webhook", object{"sender": "user-1", "message": g.question, "metadata": object{}})
	g.respond("application/json")
	g.down(compactJSON([]any{object{"recipient_id": "user-1", "text": g.answer}}))
}

func vectaraQuery(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/v2/chats", object{"query": g.question, "search": object{"corpora": []any{object{"corpus_key": "docs", "lexical_interpolation": 0.025}}, "limit": 10}, "generation": object{"generation_preset_name": "mockingbird-2.0", "max_used_search_results": 5, "response_language": "auto"}, "stream_response": true, "chat": object{"store": true}})
	send := func(kind string, v object) {
		v["type"] = kind
		g.sse(kind, v)
	}
	send("chat_info", object{"chat_id": "cht_1", "turn_id": "trn_1"})
	send("search_results", object{"search_results": []any{object{"text": g.sentence(languages[0]) + " " + g.sentence(languages[0]), "score": 0.71, "part_metadata": object{"title": "Handbook", "section": 3}, "document_id": "d1", "request_corpora_index": 0}}})
	for _, p := range g.parts(g.answer) {
		send("generation_chunk", object{"generation_chunk": p})
	}
	send("generation_end", object{})
	send("factual_consistency_score", object{"factual_consistency_score": 0.93})
	send("end", object{})
}

func koboldStream(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/api/extra/generate/stream", object{"n": 1, "max_context_length": 8192, "max_length": 300, "rep_pen": 1.07, "temperature": 0.75, "prompt": "\n### Instruction:\n" + g.question + "\n### Response:\n", "quiet": true, "stop_sequence": []any{"### Instruction:"}})
	for _, p := range g.parts(g.answer) {
		g.sse("message", object{"token": p, "finish_reason": nil})
	}
	g.sse("message", object{"token": "", "finish_reason": "stop"})
}

func tabbyThread(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/subscriptions")
	g.upload(object{"type": "connection_init", "payload": object{"authorization": "Bearer " + g.padding()}})
	g.download(object{"type": "connection_ack"})
	id := g.uuid()
	g.upload(object{"id": id, "type": "subscribe", "payload": object{"query": "subscription CreateThreadAndRun($input: CreateThreadAndRunInput!) { createThreadAndRun(input: $input) { __typename ... on ThreadAssistantMessageContentDelta { delta } } }", "variables": object{"input": object{"thread": object{"userMessage": object{"content": g.question}}, "options": object{"docQuery": object{"content": g.question, "searchPublic": false}, "generateRelevantQuestions": true, "modelName": g.model}}}, "operationName": "CreateThreadAndRun"}})
	send := func(kind string, v object) {
		v["__typename"] = kind
		g.download(object{"id": id, "type": "next", "payload": object{"data": object{"createThreadAndRun": v}}})
	}
	send("ThreadCreated", object{"id": "Zx1"})
	send("ThreadUserMessageCreated", object{"id": "Zx2"})
	send("ThreadAssistantMessageCreated", object{"id": "Zx3"})
	send("ThreadAssistantMessageAttachmentsCode", object{"hits": []any{object{"code": object{"gitUrl": "https://git.example/r", "filepath": "src/a.rs", "language": "rust", "content": g.rust(), "startLine": 3}, "scores": object{"rrf": 0.03, "bm25": 11.2}}}})
	send("ThreadRelevantQuestions", object{"questions": []any{"How is it configured?", "Where is it tested?"}})
	for _, p := range g.parts(g.answer) {
		send("ThreadAssistantMessageContentDelta", object{"delta": p})
	}
	send("ThreadAssistantMessageCompleted", object{"id": "Zx3"})
	g.download(object{"id": id, "type": "complete"})
}

func phoenixAgent(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.webSocket("/socket/websocket?vsn=2.0.0")
	topic := "thread:" + g.uuid()
	g.upload([]any{"3", "3", topic, "phx_join", object{}})
	g.download([]any{"3", "3", topic, "phx_reply", object{"status": "ok", "response": object{}}})
	g.upload([]any{"3", "4", topic, "ask", object{"text": g.question, "model": g.model, "system": g.system}})
	send := func(event string, v object) {
		g.download([]any{"3", nil, topic, event, v})
	}
	for _, p := range g.parts(g.thinking) {
		send("thinking", object{"chunk": p})
	}
	for _, u := range g.calls {
		send("tool_started", object{"call_id": u.id, "tool": u.name, "args": u.args})
		send("tool_finished", object{"call_id": u.id, "output": u.result, "ms": 41})
	}
	for _, p := range g.parts(g.answer) {
		send("delta", object{"chunk": p})
	}
	send("completed", object{"usage": object{"input": g.input, "output": g.output}, "stop": "end_turn"})
	g.download([]any{nil, "9", "phoenix", "phx_reply", object{"status": "ok", "response": object{}}})
}

func youAgents(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/v1/agents/runs", object{"agent": "advanced", "input": g.question, "stream": true, "tools": []any{object{"type": "web_search"}}, "verbosity": "medium"})
	n := 0
	send := func(kind string, v object) {
		o := object{"seq_id": n, "type": kind}
		if v != nil {
			o["response"] = v
		}
		g.sse(kind, o)
		n++
	}
	send("response.created", nil)
	send("response.starting", nil)
	send("response.output_item.added", object{"output_index": 0, "type": "web_search.results"})
	send("response.output_content.full", object{"output_index": 0, "type": "web_search.results", "full": []any{object{"source_type": "web_search", "citation_uri": "https://example.org/a", "title": "A page about it", "snippet": g.sentence(languages[0]), "url": "https://example.org/a"}}})
	send("response.output_item.done", object{"output_index": 0})
	send("response.output_item.added", object{"output_index": 1, "type": "message.answer"})
	for _, p := range g.parts(g.answer) {
		send("response.output_text.delta", object{"output_index": 1, "type": "message.answer", "delta": p})
	}
	send("response.output_item.done", object{"output_index": 1})
	g.sse("response.done", object{"seq_id": n, "type": "response.done", "response": object{"run_time_ms": "2400", "finished": true}})
}

func alephComplete(g *apiCall) {
	g.realistic()
	g.thinking = ""
	g.withoutTools()
	g.up("/complete", object{"model": g.model, "prompt": g.question, "maximum_tokens": 300, "stream": true})
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"type": "stream_chunk", "index": 0, "log_probs": nil, "completion": p, "raw_completion": nil, "completion_tokens": nil})
	}
	g.sse("", object{"type": "stream_summary", "index": 0, "model_version": ".", "finish_reason": "maximum_tokens"})
	g.sse("", object{"type": "completion_summary", "optimized_prompt": nil, "num_tokens_prompt_total": g.input, "num_tokens_generated": g.output})
}

func minimaxPro(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	var messages []any
	for _, b := range before {
		messages = append(messages, object{"sender_type": "USER", "sender_name": "Jo", "text": b.question}, object{"sender_type": "BOT", "sender_name": "Juno", "text": b.answer})
	}
	g.up("/v1/text/chatcompletion_pro?GroupId=1", object{"model": g.model, "stream": true, "tokens_to_generate": 1034, "reply_constraints": object{"sender_type": "BOT", "sender_name": "Juno"}, "bot_setting": []any{object{"bot_name": "Juno", "content": "Juno answers questions briefly and in the language of the user."}}, "messages": append(messages, object{"sender_type": "USER", "sender_name": "Jo", "text": g.question})})
	send := func(text, finish string, v object) {
		o := object{"created": 1763700000, "model": g.model, "request_id": "r1", "reply": "", "choices": []any{object{"messages": []any{object{"sender_type": "BOT", "sender_name": "Juno", "text": text}}}}, "input_sensitive": false, "output_sensitive": false, "base_resp": object{"status_code": 0, "status_msg": ""}}
		if finish != "" {
			o["choices"].([]any)[0].(object)["finish_reason"] = finish
		}
		for k, e := range v {
			o[k] = e
		}
		g.sse("", o)
	}
	for _, p := range g.parts(g.answer) {
		send(p, "", nil)
	}
	send(g.answer, "stop", object{"reply": g.answer, "usage": object{"total_tokens": g.input + g.output}})
}

func vapiChat(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/chat", object{"assistantId": g.uuid(), "input": g.question, "stream": true, "previousChatId": g.uuid()})
	id := g.uuid()
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"id": id, "sessionId": nil, "path": "chat.output[0].content", "delta": p})
	}
}

func openHands(g *apiCall) {
	g.realistic()
	g.noUsage, g.earlier, g.thinking = true, nil, ""
	g.webSocket("/socket.io/?conversation_id=c1&EIO=4&transport=websocket")
	g.download("0" + string(compactJSON(object{"sid": g.padding(), "pingInterval": 25000})))
	g.download("40" + string(compactJSON(object{"sid": g.padding()})))
	g.upload("42" + string(compactJSON([]any{"oh_user_action", object{"action": "message", "args": object{"content": g.question, "image_urls": []any{}, "timestamp": "2026-11-20T10:12:13Z"}}})))
	n := 0
	send := func(source string, v object) {
		v["id"], v["timestamp"], v["source"] = n, "2026-11-20T10:12:14", source
		n++
		g.download("42" + string(compactJSON([]any{"oh_event", v})))
	}
	send("user", object{"message": g.question, "action": "message", "args": object{"content": g.question, "image_urls": nil, "wait_for_response": false}})
	send("environment", object{"message": "", "observation": "agent_state_changed", "content": "", "extras": object{"agent_state": "running"}})
	for _, u := range g.calls {
		send("agent", object{"message": "Calling MCP tool: " + u.name, "action": "call_tool_mcp", "tool_call_metadata": object{"function_name": u.name, "tool_call_id": u.id, "total_calls_in_response": 1}, "args": object{"name": u.name, "arguments": u.args, "thought": ""}})
		send("agent", object{"message": u.result, "cause": n - 1, "observation": "mcp", "tool_call_metadata": object{"function_name": u.name, "tool_call_id": u.id, "total_calls_in_response": 1}, "content": u.result, "extras": object{"name": u.name, "arguments": u.args}})
	}
	if g.answer != "" {
		send("agent", object{"message": g.answer, "action": "message", "args": object{"content": g.answer, "image_urls": nil, "wait_for_response": true}})
	}
	send("environment", object{"message": "", "observation": "agent_state_changed", "content": "", "extras": object{"agent_state": "awaiting_user_input"}})
}

func gooseReply(g *apiCall) {
	before := g.realistic()
	message := func(role string, content ...any) object {
		return object{"id": "msg_" + g.padding(), "role": role, "created": 1763700000, "content": content, "metadata": object{"userVisible": true, "agentVisible": true}}
	}
	text := func(s string) object { return object{"type": "text", "text": s} }
	request := func(u toolUse) object {
		return object{"type": "toolRequest", "id": u.id, "toolCall": object{"status": "success", "value": object{"name": u.name, "arguments": u.args}}}
	}
	response := func(u toolUse) object {
		return object{"type": "toolResponse", "id": u.id, "toolResult": object{"status": "success", "value": []any{text(u.result)}}}
	}
	var messages []any
	for _, b := range before {
		messages = append(messages, message("user", text(b.question)), message("assistant", text(b.answer)))
	}
	messages = append(messages, message("user", text(g.question)))
	for _, u := range g.earlier {
		messages = append(messages, message("assistant", request(u)), message("user", response(u)))
	}
	g.up("/reply", object{"messages": messages, "session_id": "20261120_1", "recipe_name": nil})
	tokens := object{"inputTokens": g.input, "outputTokens": g.output, "totalTokens": g.input + g.output, "accumulatedInputTokens": g.input, "accumulatedOutputTokens": g.output, "accumulatedTotalTokens": g.input + g.output}
	id := "msg_" + g.padding()
	send := func(role string, content ...any) {
		m := message(role, content...)
		if role == "assistant" {
			m["id"] = id
		}
		g.sse("", object{"type": "Message", "message": m, "token_state": tokens})
	}
	g.sse("", object{"type": "Ping"})
	for _, p := range g.parts(g.thinking) {
		send("assistant", object{"type": "thinking", "thinking": p, "signature": ""})
	}
	for _, u := range g.calls {
		send("assistant", request(u))
		send("user", response(u))
	}
	for _, p := range g.parts(g.answer) {
		send("assistant", text(p))
	}
	g.sse("", object{"type": "Finish", "reason": "stop", "token_state": tokens})
}

func inworldSession(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/v1/session/open?session_id=s1")
	interaction := g.uuid()
	packet := func(from, to string, v object) object {
		v["timestamp"], v["type"] = "2026-11-20T10:12:13.123Z", "TEXT"
		v["packetId"] = object{"packetId": g.uuid(), "utteranceId": g.uuid(), "interactionId": interaction, "correlationId": ""}
		v["routing"] = object{"source": object{"name": from, "type": from}, "target": object{"name": to, "type": to}}
		return v
	}
	g.upload(packet("PLAYER", "AGENT", object{"text": object{"text": g.question, "sourceType": "TYPED_IN", "final": true}}))
	g.download(object{"result": packet("PLAYER", "AGENT", object{"text": object{"text": g.question, "sourceType": "TYPED_IN", "final": true}})})
	g.download(object{"result": packet("AGENT", "PLAYER", object{"type": "EMOTION", "emotion": object{"behavior": "NEUTRAL", "strength": "NORMAL"}})})
	parts := g.parts(g.answer)
	for i, p := range parts {
		g.download(object{"result": packet("AGENT", "PLAYER", object{"text": object{"text": p, "sourceType": "GENERATED", "final": i == len(parts)-1}})})
	}
	g.download(object{"result": packet("WORLD", "PLAYER", object{"type": "CONTROL", "control": object{"action": "INTERACTION_END", "description": ""}})})
}
