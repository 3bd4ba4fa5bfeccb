package transcript

import (
	"fmt"
)

// productAPIs are chats of products, written from the types of their SDKs and from published servers after agentAPIs had
// led to corrections, before anybody looked at how the reader would treat them.
var productAPIs = []api{
	{"Empathic voice interface, WebSocket", false, empathicVoice},
	{"Watson Assistant message_stream", false, watsonStream},
	{"Botpress chat listen", false, botpressListen},
	{"Gemini interactions", false, geminiInteractions},
	{"Copilot Studio conversation", false, copilotStudio},
	{"Open WebUI, Socket.IO", false, openWebUI},
	{"LibreChat agents", false, libreChat},
	{"AnythingLLM stream-chat", false, anythingLLM},
	{"SAP orchestration completion", false, sapOrchestration},
	{"Tencent LKE chat", false, tencentLKE},
	{"Contextual AI agent query", false, contextualQuery},
	{"Dialogflow AnalyzeContent, gRPC", false, analyzeContent},
}

func empathicVoice(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/v0/evi/chat?config_id=c")
	g.download(object{"type": "chat_metadata", "chat_group_id": g.uuid(), "chat_id": g.uuid(), "request_id": g.uuid(), "custom_session_id": nil})
	g.upload(object{"type": "session_settings", "system_prompt": g.system, "audio": object{"encoding": "linear16", "sample_rate": 16000, "channels": 1}})
	g.upload(object{"type": "user_input", "text": g.question})
	models := func() object {
		return object{"prosody": object{"scores": object{"Admiration": 0.01, "Calmness": 0.4, "Interest": 0.31, "Surprise": 0.05}}}
	}
	g.download(object{"type": "user_message", "message": object{"role": "user", "content": g.question}, "models": object{"prosody": nil}, "from_text": true, "interim": false, "language": nil, "time": object{"begin": 0, "end": 0}})
	for _, u := range g.calls {
		g.download(object{"type": "tool_call", "tool_type": "function", "response_required": true, "tool_call_id": u.id, "name": u.name, "parameters": u.json()})
		g.upload(object{"type": "tool_response", "tool_call_id": u.id, "content": u.result, "tool_name": u.name, "tool_type": "function"})
		g.download(object{"type": "tool_response", "tool_call_id": u.id, "content": u.result, "tool_name": u.name, "tool_type": "function"})
	}
	if g.answer != "" {
		id := g.uuid()
		g.download(object{"type": "assistant_message", "id": id, "message": object{"role": "assistant", "content": g.answer}, "models": models(), "from_text": false, "is_quick_response": false, "language": "en"})
		for i := range 3 {
			g.download(object{"type": "audio_output", "id": id, "index": i, "data": g.audio()})
		}
		g.download(object{"type": "assistant_prosody", "id": id, "models": models()})
	}
	g.download(object{"type": "assistant_end"})
}

func watsonStream(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/v2/assistants/a/environments/e/sessions/s/message_stream?version=2024-08-25", object{"input": object{"message_type": "text", "text": g.question, "options": object{"return_context": true, "export": false}}, "context": object{"global": object{"system": object{"user_id": "u1", "turn_count": 2}}}, "user_id": "u1"})
	said := func(s string) object {
		return object{"response_type": "text", "text": s, "streaming_metadata": object{"id": 1}}
	}
	for _, p := range g.parts(g.answer) {
		g.sse("message", object{"partial_item": said(p)})
	}
	g.sse("message", object{"complete_item": said(g.answer)})
	g.sse("message", object{"final_response": object{"output": object{"intents": []any{object{"intent": "General_Question", "confidence": 0.82}}, "entities": []any{}, "generic": []any{object{"response_type": "text", "text": g.answer}}, "debug": object{"nodes_visited": []any{}}}, "context": object{"global": object{"system": object{"user_id": "u1", "turn_count": 3}, "session_id": g.uuid()}}, "user_id": "u1"}})
}

func botpressListen(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.ex.URL, g.ex.Method = "https://chat.example/w1/conversations/c1/listen", "GET"
	g.ex.RequestHeaders = nil
	user, bot := "user_"+g.padding(), "user_"+g.padding()
	message := func(by, text string) {
		g.sse("message", object{"type": "message_created", "data": object{"id": "msg_" + g.padding(), "createdAt": "2026-11-20T10:12:13.123Z", "conversationId": "c1", "userId": by, "isBot": by == bot, "payload": object{"type": "text", "text": text}}})
	}
	g.sse("message", object{"type": "init"})
	message(user, g.question)
	g.sse("message", object{"type": "event_created", "data": object{"id": nil, "createdAt": "2026-11-20T10:12:14.123Z", "conversationId": "c1", "userId": bot, "payload": object{"type": "typing_started"}}})
	message(bot, g.answer)
}

func geminiInteractions(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	text := func(s string) []any { return []any{object{"type": "text", "text": s}} }
	var input []any
	for _, b := range before {
		input = append(input, object{"type": "user_input", "content": text(b.question)}, object{"type": "model_output", "content": text(b.answer)})
	}
	input = append(input, object{"type": "user_input", "content": text(g.question)})
	g.up("/v1beta/interactions", object{"model": g.model, "input": input, "system_instruction": g.system, "stream": true, "generation_config": object{"thinking_level": "high"}})
	n := 0
	send := func(kind string, v object) {
		n++
		v["event_type"], v["event_id"] = kind, fmt.Sprintf("ev_%d", n)
		g.sse(kind, v)
	}
	interaction := func(status string, usage any) object {
		return object{"id": "v1_abc", "object": "interaction", "model": g.model, "status": status, "created": "2026-11-20T10:12:13Z", "updated": "2026-11-20T10:12:14Z", "usage": usage}
	}
	send("interaction.created", object{"interaction": interaction("in_progress", nil)})
	at := 0
	step := func(start object, deltas ...object) {
		send("step.start", object{"index": at, "step": start})
		for _, d := range deltas {
			send("step.delta", object{"index": at, "delta": d})
		}
		send("step.stop", object{"index": at})
		at++
	}
	var deltas []object
	for _, p := range g.parts(g.thinking) {
		deltas = append(deltas, object{"type": "thought_summary", "content": object{"type": "text", "text": p}})
	}
	if deltas != nil {
		step(object{"type": "thought"}, append(deltas, object{"type": "thought_signature", "signature": g.padding() + g.padding()})...)
	}
	for _, u := range g.calls {
		deltas = nil
		for _, p := range g.parts(u.json()) {
			deltas = append(deltas, object{"type": "arguments_delta", "arguments": p})
		}
		step(object{"type": "function_call", "id": u.id, "name": u.name, "arguments": object{}}, deltas...)
	}
	deltas = nil
	for _, p := range g.parts(g.answer) {
		deltas = append(deltas, object{"type": "text", "text": p})
	}
	if deltas != nil {
		step(object{"type": "model_output"}, deltas...)
	}
	send("interaction.completed", object{"interaction": interaction("completed", object{"total_input_tokens": g.input, "total_output_tokens": g.output, "total_thought_tokens": g.reasoning, "total_cached_tokens": g.cached, "total_tokens": g.input + g.output + g.reasoning, "input_tokens_by_modality": []any{object{"modality": "text", "tokens": g.input}}})})
	g.sse("done", "[DONE]")
}

func copilotStudio(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/copilotstudio/dataverse-backed/authenticated/bots/b/conversations/c?api-version=2022-03-01-preview", object{"activity": object{"type": "message", "text": g.question, "textFormat": "plain", "conversation": object{"id": "c"}, "locale": "en-US"}})
	id, seq := g.uuid(), 0
	send := func(kind, text, stream string) {
		seq++
		g.sse("activity", object{"type": kind, "id": g.uuid(), "timestamp": "2026-11-20T10:12:13.1Z", "channelId": "pva-studio", "from": object{"id": "b", "name": "Helper", "role": "bot"}, "conversation": object{"id": "c"}, "recipient": object{"id": "u", "role": "user"}, "text": text, "textFormat": "markdown", "inputHint": "acceptingInput", "attachments": []any{}, "entities": []any{object{"type": "streaminfo", "streamId": id, "streamType": stream, "streamSequence": seq}}, "channelData": object{"streamId": id, "streamType": stream, "streamSequence": seq}, "replyToId": "q"})
	}
	send("typing", "Looking through the knowledge base…", "informative")
	said := ""
	for _, p := range g.parts(g.answer) {
		said += p
		send("typing", said, "streaming")
	}
	send("message", g.answer, "final")
	g.sse("end", "end")
}

func openWebUI(g *apiCall) {
	g.realistic()
	g.earlier, g.calls = nil, nil
	if g.answer == "" {
		g.answer = g.text(languages[0], 2)
	}
	g.webSocket("/ws/socket.io/?EIO=4&transport=websocket")
	g.download("0" + string(compactJSON(object{"sid": g.padding(), "upgrades": []any{}, "pingInterval": 25000, "pingTimeout": 20000})))
	g.upload("40" + string(compactJSON(object{"token": g.padding()})))
	g.download("40" + string(compactJSON(object{"sid": g.padding()})))
	g.upload("42" + string(compactJSON([]any{"user-join", object{"auth": object{"token": g.padding()}}})))
	chat, message := g.uuid(), g.uuid()
	send := func(kind string, data object) {
		g.download("42" + string(compactJSON([]any{"events", object{"chat_id": chat, "message_id": message, "data": object{"type": kind, "data": data}}})))
	}
	chunk := func(delta object) {
		send("chat:completion", object{"id": "c1", "object": "chat.completion.chunk", "model": g.model, "choices": []any{object{"index": 0, "delta": delta, "finish_reason": nil}}})
	}
	send("status", object{"action": "web_search", "description": "Searching the web", "done": false})
	for _, p := range g.parts(g.thinking) {
		chunk(object{"reasoning_content": p})
	}
	for _, p := range g.parts(g.answer) {
		chunk(object{"content": p})
	}
	send("chat:completion", object{"usage": object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output}})
	g.download("2")
	g.upload("3")
	send("chat:completion", object{"done": true, "content": g.answer, "title": "A short title"})
	send("chat:title", object{"title": "🕰 A short title"})
	send("chat:tags", object{"tags": []any{"Science", "General"}})
}

func libreChat(g *apiCall) {
	before := g.realistic()
	g.earlier, g.noUsage = nil, true
	conversation, parent, asked, reply := g.uuid(), g.uuid(), g.uuid(), g.uuid()
	g.up("/api/agents/chat/openAI", object{"text": g.question, "sender": "User", "clientTimestamp": "2026-11-20T10:12:13", "isCreatedByUser": true, "parentMessageId": parent, "conversationId": conversation, "messageId": asked, "error": false, "endpoint": "openAI", "model": g.model, "isTemporary": false, "key": "never", "promptPrefix": g.system})
	send := func(kind string, data object) { g.sse("message", object{"event": kind, "data": data}) }
	request := object{"messageId": asked, "parentMessageId": parent, "conversationId": conversation, "sender": "User", "text": g.question, "isCreatedByUser": true, "tokenCount": 31 + len(before)}
	g.sse("message", object{"message": request, "created": true})
	var content []any
	at := 0
	step := func(details object) string {
		id := "step_" + g.padding()
		send("on_run_step", object{"stepIndex": at, "id": id, "type": details["type"], "index": at, "stepDetails": details, "runId": reply})
		at++
		return id
	}
	if g.thinking != "" {
		id := step(object{"type": "message_creation", "message_creation": object{"message_id": "msg_" + g.padding()}})
		for _, p := range g.parts(g.thinking) {
			send("on_reasoning_delta", object{"id": id, "delta": object{"content": []any{object{"type": "think", "think": p}}}})
		}
		content = append(content, object{"type": "think", "think": g.thinking})
	}
	for _, u := range g.calls {
		id := step(object{"type": "tool_calls", "tool_calls": []any{object{"name": u.name, "args": "", "id": u.id, "type": "tool_call"}}})
		for _, p := range g.parts(u.json()) {
			send("on_run_step_delta", object{"id": id, "delta": object{"type": "tool_calls", "tool_calls": []any{object{"args": p, "type": "tool_call_chunk", "index": 0}}}})
		}
		call := object{"name": u.name, "args": u.json(), "id": u.id, "output": u.result, "progress": 1}
		send("on_run_step_completed", object{"result": object{"id": id, "index": at - 1, "type": "tool_call", "tool_call": call}})
		content = append(content, object{"type": "tool_call", "tool_call": call})
	}
	if g.answer != "" {
		id := step(object{"type": "message_creation", "message_creation": object{"message_id": "msg_" + g.padding()}})
		for _, p := range g.parts(g.answer) {
			send("on_message_delta", object{"id": id, "delta": object{"content": []any{object{"type": "text", "text": p}}}})
		}
		content = append(content, object{"type": "text", "text": g.answer})
	}
	g.sse("message", object{"final": true, "conversation": object{"conversationId": conversation, "title": "New Chat", "endpoint": "openAI", "model": g.model, "promptPrefix": g.system}, "title": "A short title", "requestMessage": request, "responseMessage": object{"messageId": reply, "conversationId": conversation, "parentMessageId": asked, "isCreatedByUser": false, "sender": "Assistant", "endpoint": "openAI", "iconURL": nil, "content": content, "promptTokens": 44}})
}

func anythingLLM(g *apiCall) {
	g.realistic()
	g.withoutTools()
	g.thinking = ""
	g.up("/api/v1/workspace/w/stream-chat", object{"message": g.question, "mode": "chat", "sessionId": "s1", "attachments": []any{}, "reset": false})
	id := g.uuid()
	source := object{"id": g.uuid(), "url": "file://handbook.txt", "title": "handbook.txt", "docAuthor": "Unknown", "description": "Unknown", "docSource": "a text file", "chunkSource": "localfile://handbook.txt", "published": "11/20/2026, 10:12:13 AM", "wordCount": 520, "token_count_estimate": 800, "text": g.sentence(languages[0]) + " " + g.sentence(languages[0]) + " " + g.sentence(languages[0]), "_distance": 0.41, "score": 0.59}
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"uuid": id, "sources": []any{}, "type": "textResponseChunk", "textResponse": p, "close": false, "error": false})
	}
	g.sse("", object{"uuid": id, "sources": []any{source}, "type": "textResponseChunk", "textResponse": "", "close": true, "error": false})
	g.sse("", object{"uuid": id, "type": "finalizeResponseStream", "close": true, "error": false, "chatId": 12, "metrics": object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output, "outputTps": 31.5, "duration": 2.1}})
}

func sapOrchestration(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	var history []any
	for _, b := range before {
		history = append(history, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
	}
	g.up("/v2/inference/deployments/d/v2/completion", object{"config": object{"stream": object{"enabled": true, "chunk_size": 100}, "modules": object{"prompt_templating": object{"prompt": object{"template": []any{object{"role": "system", "content": g.system}, object{"role": "user", "content": "{{?question}}"}}}, "model": object{"name": g.model, "params": object{"max_tokens": 300, "temperature": 0.1}}}}}, "placeholder_values": object{"question": g.question}, "messages_history": history})
	n := 0
	send := func(delta object, finish string, usage any) {
		result := func(d object) object {
			o := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1763700000, "model": g.model, "system_fingerprint": "fp_1", "choices": []any{object{"index": 0, "delta": d, "finish_reason": finish}}}
			if usage != nil {
				o["usage"] = usage
			}
			return o
		}
		modules := object{"llm": result(delta)}
		if n == 0 {
			modules["templating"] = []any{object{"role": "system", "content": g.system}, object{"role": "user", "content": g.question}}
		}
		n++
		g.sse("", object{"request_id": "r1", "intermediate_results": modules, "final_result": result(delta)})
	}
	send(object{"role": "assistant", "content": ""}, "", nil)
	for _, p := range g.parts(g.thinking) {
		send(object{"reasoning_content": p}, "", nil)
	}
	for _, p := range g.parts(g.answer) {
		send(object{"content": p}, "", nil)
	}
	for i, u := range g.calls {
		for k, p := range g.parts(u.json()) {
			call := object{"index": i, "function": object{"arguments": p}}
			if k == 0 {
				call = object{"index": i, "id": u.id, "type": "function", "function": object{"name": u.name, "arguments": p}}
			}
			send(object{"tool_calls": []any{call}}, "", nil)
		}
	}
	send(object{"content": ""}, "stop", object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output})
	g.sse("", "[DONE]")
}

func tencentLKE(g *apiCall) {
	g.realistic()
	g.withoutTools()
	g.up("/v1/qbot/chat/sse", object{"request_id": g.uuid(), "content": g.question, "bot_app_key": g.padding(), "visitor_biz_id": "v1", "session_id": g.uuid(), "streaming_throttle": 5, "custom_variables": object{}, "system_role": g.system})
	session, record := g.uuid(), g.padding()
	reply := func(text string, self, final bool, id string) {
		g.sse("reply", object{"type": "reply", "payload": object{"can_feedback": !self, "can_rating": !self, "content": text, "file_infos": []any{}, "from_avatar": "", "from_name": "Helper", "intent_category": "", "is_evil": false, "is_final": final, "is_from_self": self, "is_llm_generated": !self, "knowledge": []any{}, "quote_infos": []any{}, "record_id": id, "related_record_id": "", "reply_method": 1, "request_id": "r1", "session_id": session, "timestamp": 1763700000, "trace_id": "t1"}, "message_id": g.padding()})
	}
	reply(g.question, true, true, g.padding())
	stat := func(input, output int, status string) {
		g.sse("token_stat", object{"type": "token_stat", "payload": object{"elapsed": 2100, "free_count": 0, "order_count": 0, "procedures": []any{object{"count": input + output, "input_count": input, "output_count": output, "name": "large_language_model", "status": status, "title": "大模型回复"}}, "record_id": record, "request_id": "r1", "session_id": session, "status_summary": status, "status_summary_title": "回复", "token_count": input + output, "trace_id": "t1", "used_count": 0}, "message_id": g.padding()})
	}
	stat(0, 0, "processing")
	said := ""
	for _, p := range g.parts(g.thinking) {
		said += p
		g.sse("thought", object{"type": "thought", "payload": object{"elapsed": 900, "is_workflow": false, "procedures": []any{object{"index": 0, "name": "thought", "title": "思考", "status": "processing", "icon": "", "debugging": object{"content": said}, "elapsed": 900}}, "record_id": record, "request_id": "r1", "session_id": session, "trace_id": "t1"}, "message_id": g.padding()})
	}
	said = ""
	for _, p := range g.parts(g.answer) {
		said += p
		reply(said, false, said == g.answer, record)
	}
	stat(g.input, g.output, "success")
}

func contextualQuery(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	var messages []any
	for _, b := range before {
		messages = append(messages, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
	}
	g.up("/v1/agents/a/query?include_retrieval_content_text=true", object{"messages": append(messages, object{"role": "user", "content": g.question}), "stream": true, "conversation_id": nil})
	send := func(event string, data object) { g.sse("", object{"event": event, "data": data}) }
	send("metadata", object{"conversation_id": g.uuid(), "message_id": g.uuid()})
	var contents []any
	for i := range 2 {
		contents = append(contents, object{"number": i + 1, "type": "file", "format": "pdf", "content_id": g.uuid(), "doc_id": g.uuid(), "doc_name": "handbook.pdf", "page": i + 3, "content_text": g.sentence(languages[0]) + " " + g.sentence(languages[0]), "ctxl_metadata": object{"file_name": "handbook.pdf"}})
	}
	send("retrievals", object{"contents": contents})
	for _, p := range g.parts(g.answer) {
		send("message_delta", object{"delta": p})
	}
	send("message_complete", object{"final_message": g.answer})
	send("attributions", object{"attributions": []any{object{"start_idx": 0, "end_idx": 12, "content_ids": []any{g.uuid()}}}})
	send("end", object{})
}

func analyzeContent(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	participant := "projects/p/conversations/c/participants/"
	g.grpc("google.cloud.dialogflow.v2.Participants/AnalyzeContent", append(pbText(1, participant+"u"), pbMsg(6, pbText(1, g.question), pbText(2, "en-US"))...))
	message := pbMsg(5, pbText(1, "projects/p/conversations/c/messages/m1"), pbText(2, g.question), pbText(3, "en-US"), pbText(4, participant+"u"), num(5, 3), pbMsg(6, num(1, 1763700000), num(2, 5000)))
	fulfilment := pbMsg(2, pbText(1, g.question), num(5, 1), pbText(6, g.answer), pbMsg(7, pbMsg(1, pbText(1, g.answer))), pbMsg(11, pbText(1, "projects/p/agent/intents/i"), pbText(2, "help.topic")), pbDouble(12, 0.82), pbText(15, "en"))
	automated := pbMsg(3, pbMsg(1, append(pbText(1, g.uuid()), fulfilment...)))
	g.message(append(append(pbText(1, g.answer), automated...), message...))
}
