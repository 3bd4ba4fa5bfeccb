package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/decode/envelope"
)

// splitHeldAPIs is the second half of the set of splitTunedAPIs. Its errors were looked at once, after
// its totals were recorded.
var splitHeldAPIs = []api{
	{"DeepSeek web chat, patches", false, deepSeekWeb},
	{"assistant transport, operations on a state", false, assistantTransport},
	{"RAGFlow completion, growing texts", false, ragFlow},
	{"SGLang generate, growing texts", false, sgLangGenerate},
	{"Triton generate_stream with calls in the text", false, tritonGenerate},
	{"Strands agent events", false, strandsAgent},
	{"Z.ai chat", false, zaiChat},
	{"Yandex assistants runs, gRPC", false, yandexRuns},
	{"Retell custom model, WebSocket", false, retellModel},
	{"Character turns, WebSocket", false, characterTurns},
	{"Agent Communication Protocol runs", false, communicationRuns},
	{"Kimi chat, Connect with JSON", false, kimiConnect},
	{"GitHub Copilot chat threads", false, copilotThreads},
}

func deepSeekWeb(g *apiCall) {
	g.realistic()
	g.noUsage = true
	g.withoutTools()
	g.up("/api/v0/chat/completion", object{"chat_session_id": g.uuid(), "parent_message_id": nil, "prompt": g.question, "ref_file_ids": []any{}, "thinking_enabled": g.thinking != "", "search_enabled": false, "client_stream_id": "20261122-" + g.padding()})
	g.sse("ready", object{"request_message_id": 1, "response_message_id": 2})
	g.sse("update_session", object{"updated_at": 1763793566.476625})
	g.sse("", object{"v": object{"response": object{"message_id": 2, "parent_id": 1, "model": "", "role": "ASSISTANT", "thinking_enabled": g.thinking != "", "ban_edit": false, "status": "WIP", "accumulated_token_usage": nil, "files": []any{}, "inserted_at": 1763793566.445, "search_enabled": false, "feedback": nil, "has_pending_fragment": true, "conversation_mode": "DEFAULT", "fragments": []any{}}}})
	n := 0
	stream := func(kind, s string) {
		for i, p := range g.parts(s) {
			switch i {
			case 0:
				g.sse("", object{"v": []any{object{"v": false, "p": "has_pending_fragment"}, object{"v": []any{object{"id": n + 1, "type": kind, "content": p, "references": []any{}, "stage_id": 1}}, "p": "fragments", "o": "APPEND"}}, "p": "response", "o": "BATCH"})
			case 1:
				g.sse("", object{"v": p, "p": "response/fragments/-1/content", "o": "APPEND"})
			default:
				g.sse("", object{"v": p})
			}
		}
		n++
	}
	if g.thinking != "" {
		stream("THINK", g.thinking)
		g.sse("", object{"v": 3.25, "p": "response/fragments/-1/elapsed_secs", "o": "SET"})
	}
	stream("RESPONSE", g.answer)
	g.sse("", object{"v": []any{object{"v": g.input, "p": "accumulated_token_usage"}, object{"v": "FINISHED", "p": "quasi_status"}}, "p": "response", "o": "BATCH"})
	g.sse("", object{"v": "FINISHED", "p": "response/status", "o": "SET"})
	g.sse("finish", object{})
	g.sse("update_session", object{"updated_at": 1763793569.1})
	g.sse("title", object{"content": "About the clock"})
	g.sse("close", object{"click_behavior": "none", "auto_resume": false})
}

func assistantTransport(g *apiCall) {
	before := g.realistic()
	g.noUsage, g.earlier = true, nil
	text := func(s string) object { return object{"type": "text", "text": s} }
	message := func(role string, parts ...any) object {
		return object{"role": role, "parts": append([]any{}, parts...)}
	}
	var messages []any
	for _, b := range before {
		messages = append(messages, message("user", text(b.question)), message("assistant", text(b.answer)))
	}
	g.up("/assistant", object{"state": object{"messages": messages}, "commands": []any{object{"type": "add-message", "message": message("user", text(g.question))}}, "system": g.system, "tools": object{}, "threadId": g.uuid()})
	send := func(ops ...any) { g.sse("", object{"type": "update-state", "path": []any{}, "operations": ops}) }
	at := fmt.Sprint(len(messages) + 1)
	set := func(v any, path ...any) object { return object{"type": "set", "path": path, "value": v} }
	send(set(message("user", text(g.question)), "messages", fmt.Sprint(len(messages))))
	send(set(object{"role": "assistant", "parts": []any{}, "status": object{"type": "running"}}, "messages", at))
	n := 0
	stream := func(part object, name, s string) {
		part[name] = ""
		send(set(part, "messages", at, "parts", fmt.Sprint(n)))
		for _, p := range g.parts(s) {
			send(object{"type": "append-text", "path": []any{"messages", at, "parts", fmt.Sprint(n), name}, "value": p})
		}
		n++
	}
	if g.thinking != "" {
		stream(object{"type": "reasoning"}, "text", g.thinking)
	}
	if g.answer != "" {
		stream(object{"type": "text"}, "text", g.answer)
	}
	for _, u := range g.calls {
		stream(object{"type": "tool-call", "toolCallId": u.id, "toolName": u.name}, "argsText", u.json())
		send(set(u.result, "messages", at, "parts", fmt.Sprint(n-1), "result"))
	}
	send(set(object{"type": "complete", "reason": "stop"}, "messages", at, "status"))
	g.sse("", "[DONE]")
}

func ragFlow(g *apiCall) {
	g.realistic()
	g.noUsage = true
	g.withoutTools()
	g.up("/api/v1/chats/"+g.padding()+"/completions", object{"question": g.question, "stream": true, "session_id": g.padding()})
	id, session := g.uuid(), g.padding()
	send := func(answer string, reference object) {
		g.sse("", object{"code": 0, "message": "", "data": object{"answer": answer, "reference": reference, "audio_binary": nil, "id": id, "session_id": session}})
	}
	text := g.answer
	if g.thinking != "" {
		text = "<think>" + g.thinking + "</think>" + g.answer
	}
	said := ""
	for _, p := range g.parts(text) {
		said += p
		send(said, object{})
	}
	send(text, object{"total": 1, "chunks": []any{object{"id": g.padding(), "content": g.sentence(languages[0]) + " " + g.sentence(languages[0]), "document_id": g.padding(), "document_name": "handbook.pdf", "dataset_id": g.padding(), "similarity": 0.61, "vector_similarity": 0.52, "term_similarity": 0.7, "positions": []any{""}}}, "doc_aggs": []any{object{"doc_name": "handbook.pdf", "doc_id": g.padding(), "count": 1}}})
	g.sse("", object{"code": 0, "message": "", "data": true})
}

func sgLangGenerate(g *apiCall) {
	g.realistic()
	g.thinking = ""
	g.withoutTools()
	g.up("/generate", object{"text": g.question, "sampling_params": object{"temperature": 0.3, "max_new_tokens": 512}, "stream": true})
	id := g.padding()
	send := func(text string, finish any, out int) {
		g.sse("", object{"text": text, "output_ids": []any{g.r.IntN(99999)}, "meta_info": object{"id": id, "finish_reason": finish, "prompt_tokens": g.input, "weight_version": "default", "total_retractions": 0, "completion_tokens": out, "cached_tokens": 0, "e2e_latency": 0.3}})
	}
	said := ""
	parts := g.parts(g.answer)
	for i, p := range parts[:len(parts)-1] {
		said += p
		send(said, nil, 1+g.output*i/len(parts))
	}
	send(g.answer, object{"type": "stop", "matched": 151645}, g.output)
	g.sse("", "[DONE]")
}

func tritonGenerate(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	for i := range g.calls {
		// Parameters in tags are texts.
		args := object{}
		for name, v := range g.calls[i].args {
			if s, ok := v.(string); ok {
				args[name] = s
			}
		}
		g.calls[i].args = args
	}
	text := g.answer
	for _, u := range g.calls {
		text += "\n<tool_call>\n<function=" + u.name + ">\n"
		for _, name := range sortedNames(u.args) {
			text += "<parameter=" + name + ">\n" + u.args[name].(string) + "\n</parameter>\n"
		}
		text += "</function>\n</tool_call>"
	}
	g.up("/v2/models/ensemble/generate_stream", object{"text_input": g.question, "stream": true, "max_tokens": 512, "bad_words": "", "stop_words": "", "temperature": 0.4})
	for _, p := range g.parts(text) {
		g.sse("", object{"model_name": "ensemble", "model_version": "1", "sequence_end": false, "sequence_id": 0, "sequence_index": 0, "text_output": p})
	}
}

func strandsAgent(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.up("/invocations", object{"prompt": g.question})
	send := func(v object) { g.sse("", v) }
	event := func(name string, v object) { send(object{"event": object{name: v}}) }
	send(object{"init_event_loop": true})
	at := 0
	var content []any
	start := func() {
		at, content = 0, nil
		send(object{"start": true})
		send(object{"start_event_loop": true})
		event("messageStart", object{"role": "assistant"})
	}
	delta := func(d, more object) {
		event("contentBlockDelta", object{"delta": d, "contentBlockIndex": at})
		more["delta"] = d
		send(more)
	}
	end := func() {
		event("contentBlockStop", object{"contentBlockIndex": at})
		at++
	}
	stop := func(reason string, in, out int) {
		event("messageStop", object{"stopReason": reason})
		event("metadata", object{"usage": object{"inputTokens": in, "outputTokens": out, "totalTokens": in + out}, "metrics": object{"latencyMs": 812}})
		send(object{"message": object{"role": "assistant", "content": content}})
	}
	start()
	if g.thinking != "" {
		for _, p := range g.parts(g.thinking) {
			delta(object{"reasoningContent": object{"text": p}}, object{"reasoningText": p, "reasoning": true})
		}
		end()
		content = append(content, object{"reasoningContent": object{"reasoningText": object{"text": g.thinking, "signature": "c2ln"}}})
	}
	if len(g.calls) > 0 {
		var results []any
		for _, u := range g.calls {
			event("contentBlockStart", object{"start": object{"toolUse": object{"toolUseId": u.id, "name": u.name}}, "contentBlockIndex": at})
			said := ""
			for _, p := range g.parts(u.json()) {
				said += p
				delta(object{"toolUse": object{"input": p}}, object{"current_tool_use": object{"toolUseId": u.id, "name": u.name, "input": said}})
			}
			end()
			content = append(content, object{"toolUse": object{"toolUseId": u.id, "name": u.name, "input": u.args}})
			results = append(results, object{"toolResult": object{"toolUseId": u.id, "status": "success", "content": []any{object{"text": u.result}}}})
		}
		if g.answer == "" {
			stop("tool_use", g.input, g.output)
			return
		}
		// The usage of the agent is the one of its last request.
		stop("tool_use", g.input, g.output)
		send(object{"message": object{"role": "user", "content": results}})
		start()
	}
	for _, p := range g.parts(g.answer) {
		delta(object{"text": p}, object{"data": p})
	}
	end()
	content = append(content, object{"text": g.answer})
	stop("end_turn", g.input, g.output)
	send(object{"result": object{"stop_reason": "end_turn", "message": object{"role": "assistant", "content": content}}})
}

func zaiChat(g *apiCall) {
	before := g.realistic()
	g.withoutTools()
	g.system = ""
	g.up("/api/chat/completions?timestamp=1763700000123&requestId="+g.uuid(), object{"stream": true, "model": g.model, "messages": g.dialogueMessages(before), "signature_prompt": g.question, "params": object{}, "features": object{"image_generation": false, "web_search": false, "enable_thinking": g.thinking != ""}, "variables": object{"{{USER_NAME}}": "Guest"}, "chat_id": g.uuid(), "id": g.uuid()})
	send := func(data object) { g.sse("", object{"type": "chat:completion", "data": data}) }
	for _, p := range g.parts(g.thinking) {
		send(object{"delta_content": p, "phase": "thinking"})
	}
	for _, p := range g.parts(g.answer) {
		send(object{"delta_content": p, "phase": "answer"})
	}
	send(object{"phase": "other", "usage": object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output, "prompt_tokens_details": object{"cached_tokens": g.cached}}})
	send(object{"done": true, "delta_content": "", "phase": "done"})
	g.sse("", "[DONE]")
}

func yandexRuns(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	if len(g.calls) > 0 {
		g.answer = ""
	}
	run := "fvt" + g.padding()
	g.grpc("yandex.cloud.ai.assistants.v1.runs.RunService/Listen", pbText(1, run))
	n := 0
	content := func(at int, s string) []byte { return pbMsg(at, pbMsg(1, pbMsg(1, pbText(1, s)))) }
	send := func(kind int, fields ...[]byte) {
		n++
		message := append(num(1, kind), pbMsg(2, num(1, n))...)
		for _, f := range fields {
			message = append(message, f...)
		}
		g.message(message)
	}
	said := ""
	for _, p := range g.parts(g.answer) {
		said += p
		send(1, content(4, said))
	}
	if g.answer != "" {
		send(3, pbMsg(5, pbText(1, "fvt"+g.padding()), pbText(2, "fvt"+g.padding()), pbText(3, "ajeoit"), pbMsg(4, num(1, 1763700000), num(2, 123000000)), pbMsg(5, pbText(1, "fvt"+g.padding()), pbText(2, "ASSISTANT")), content(7, g.answer), num(8, 1)))
		return
	}
	var calls [][]byte
	for _, u := range g.calls {
		calls = append(calls, pbMsg(1, pbMsg(1, pbText(1, u.name), pbMsg(2, pbStruct(u.args)))))
	}
	send(4, pbMsg(6, calls...))
}

func retellModel(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/llm-websocket/call_" + g.padding())
	g.download(object{"response_type": "config", "config": object{"auto_reconnect": true, "call_details": true}})
	g.upload(object{"interaction_type": "call_details", "call": object{"call_id": "call_1", "agent_id": "agent_1", "call_type": "web_call", "call_status": "ongoing", "retell_llm_dynamic_variables": object{}}})
	var transcript []any
	for _, b := range before {
		transcript = append(transcript, object{"role": "user", "content": b.question}, object{"role": "agent", "content": b.answer})
	}
	transcript = append(transcript, object{"role": "user", "content": g.question})
	g.upload(object{"interaction_type": "ping_pong", "timestamp": 1763700000123})
	g.download(object{"response_type": "ping_pong", "timestamp": 1763700000124})
	g.upload(object{"interaction_type": "update_only", "transcript": transcript, "turntaking": "agent_turn"})
	g.upload(object{"interaction_type": "response_required", "response_id": len(before) + 1, "transcript": transcript})
	send := func(s string, complete bool) {
		g.download(object{"response_type": "response", "response_id": len(before) + 1, "content": s, "content_complete": complete, "end_call": false})
	}
	for _, u := range g.calls {
		g.download(object{"response_type": "tool_call_invocation", "tool_call_id": u.id, "name": u.name, "arguments": u.json()})
		g.download(object{"response_type": "tool_call_result", "tool_call_id": u.id, "content": u.result})
	}
	for _, p := range g.parts(g.answer) {
		send(p, false)
	}
	send("", true)
}

func characterTurns(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/ws/")
	chat, request := g.uuid(), g.uuid()
	turn := func(author object, candidate object) object {
		return object{"turn_key": object{"chat_id": chat, "turn_id": g.uuid()}, "create_time": "2026-11-20T10:12:13.123Z", "last_update_time": "2026-11-20T10:12:13.123Z", "state": "STATE_OK", "author": author, "candidates": []any{candidate}, "primary_candidate_id": candidate["candidate_id"]}
	}
	candidate := func(id, s string, final bool) object {
		c := object{"candidate_id": id, "create_time": "2026-11-20T10:12:13.123Z", "raw_content": s, "base_candidate_id": nil}
		if final {
			c["is_final"] = true
		}
		return c
	}
	person := object{"author_id": "12345678", "is_human": true, "name": "guest"}
	asked := turn(person, candidate(g.uuid(), g.question, false))
	g.upload(object{"command": "create_and_generate_turn", "origin_id": "web-next", "request_id": request, "payload": object{"chat_type": "TYPE_ONE_ON_ONE", "num_candidates": 1, "tts_enabled": false, "selected_language": "", "character_id": g.padding(), "user_name": "guest", "turn": asked, "previous_annotations": object{}}})
	g.download(object{"command": "add_turn", "request_id": request, "turn": asked})
	id := g.uuid()
	answer := turn(object{"author_id": g.padding(), "name": "Sherlock"}, candidate(id, "", false))
	said := ""
	update := func(final bool) {
		answer["candidates"] = []any{candidate(id, said, final)}
		g.download(object{"command": "update_turn", "request_id": request, "turn": answer, "chat_info": object{"type": "TYPE_ONE_ON_ONE"}})
	}
	for _, p := range g.parts(g.answer) {
		said += p
		update(false)
	}
	update(true)
	g.download(object{"command": "ok", "request_id": request})
}

func communicationRuns(g *apiCall) {
	before := g.realistic()
	g.noUsage, g.earlier = true, nil
	g.thinking = ""
	part := func(s any, metadata any) object {
		return object{"name": nil, "content_type": "text/plain", "content": s, "content_encoding": "plain", "content_url": nil, "metadata": metadata}
	}
	message := func(role string, parts ...any) object {
		return object{"role": role, "parts": append([]any{}, parts...), "created_at": "2026-11-20T10:12:13.123Z", "completed_at": "2026-11-20T10:12:13.323Z"}
	}
	var input []any
	for _, b := range before {
		input = append(input, message("user", part(b.question, nil)), message("agent", part(b.answer, nil)))
	}
	g.up("/runs", object{"agent_name": "chat", "session_id": g.uuid(), "mode": "stream", "input": append(input, message("user", part(g.question, nil)))})
	id, session := g.uuid(), g.uuid()
	run := func(event, status string, output ...any) {
		g.sse("", object{"type": "run." + event, "run": object{"run_id": id, "agent_name": "chat", "session_id": session, "status": status, "await_request": nil, "output": append([]any{}, output...), "error": nil, "created_at": "2026-11-20T10:12:13.123Z", "finished_at": nil}})
	}
	run("created", "created")
	run("in-progress", "in-progress")
	g.sse("", object{"type": "message.created", "message": message("agent/chat")})
	var parts []any
	for _, u := range g.calls {
		p := part(nil, object{"kind": "trajectory", "message": nil, "tool_name": u.name, "tool_input": u.args, "tool_output": object{"result": u.result}})
		g.sse("", object{"type": "message.part", "part": p})
		parts = append(parts, p)
	}
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"type": "message.part", "part": part(p, nil)})
	}
	if g.answer != "" {
		parts = append(parts, part(g.answer, nil))
	}
	whole := message("agent/chat", parts...)
	g.sse("", object{"type": "message.completed", "message": whole})
	run("completed", "completed", whole)
}

func kimiConnect(g *apiCall) {
	g.realistic()
	g.noUsage, g.earlier = true, nil
	g.ex.URL = "https://www.example/apiv2/kimi.gateway.chat.v1.ChatService/Chat"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/connect+json"}}
	g.respond("application/connect+json")
	g.chunk(captures.Up, envelope.Append(nil, 0, compactJSON(object{"scenario": "SCENARIO_K2", "tools": []any{object{"type": "TOOL_TYPE_SEARCH", "search": object{}}}, "message": object{"parent_id": "", "role": "user", "blocks": []any{object{"message_id": "", "text": object{"content": g.question}}}, "scenario": "SCENARIO_K2"}, "options": object{"thinking": g.thinking != ""}})))
	n := 0
	send := func(v object) {
		n++
		v["eventOffset"] = n
		g.message(compactJSON(v))
	}
	g.message(compactJSON(object{"heartbeat": object{}}))
	chat, asked, id := g.uuid(), g.uuid(), g.uuid()
	send(object{"op": "set", "mask": "chat", "chat": object{"id": chat, "name": "About the clock"}})
	send(object{"op": "set", "mask": "message", "message": object{"id": asked, "role": "user", "status": "MESSAGE_STATUS_COMPLETED", "blocks": []any{object{"id": "0", "text": object{"content": g.question}, "createTime": "2026-11-20T10:12:13.123Z"}}, "scenario": "SCENARIO_K2"}})
	send(object{"op": "set", "mask": "message", "message": object{"id": id, "parentId": asked, "role": "assistant", "status": "MESSAGE_STATUS_GENERATING", "scenario": "SCENARIO_K2"}})
	at := 0
	stream := func(kind, name, s string, more object) {
		op, mask := "set", "block."+kind
		for i, p := range g.parts(s) {
			v := object{name: p}
			if i == 0 {
				for k, x := range more {
					v[k] = x
				}
			}
			send(object{"op": op, "mask": mask, "block": object{"id": fmt.Sprint(at), "messageId": id, kind: v}})
			op, mask = "append", "block."+kind+"."+name
		}
		at++
	}
	stream("think", "content", g.thinking, nil)
	for _, u := range g.calls {
		stream("tool", "args", u.json(), object{"toolCallId": u.id, "name": u.name})
		send(object{"op": "set", "mask": "block.tool.contents", "block": object{"id": fmt.Sprint(at - 1), "messageId": id, "tool": object{"contents": []any{object{"text": object{"content": u.result}}}}}})
	}
	stream("text", "content", g.answer, nil)
	send(object{"op": "set", "mask": "message.status", "message": object{"id": id, "status": "MESSAGE_STATUS_COMPLETED"}})
	send(object{"done": object{}})
	g.down(envelope.Append(nil, 2, []byte("{}")))
}

func copilotThreads(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	if g.answer == "" {
		g.answer = "Done."
	}
	g.up("/github/chat/threads/"+g.uuid()+"/messages", object{"responseMessageID": g.uuid(), "content": g.question, "intent": "conversation", "references": []any{}, "context": []any{}, "currentURL": "https://www.example/copilot", "streaming": true, "confirmations": []any{}, "customInstructions": []any{}, "model": g.model, "mode": "immersive"})
	for _, u := range g.calls {
		for _, status := range []string{"started", "completed"} {
			g.sse("", object{"type": "functionCall", "name": u.name, "arguments": u.json(), "status": status, "errorMessage": "", "references": []any{}})
		}
	}
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"type": "content", "body": p})
	}
	g.sse("", object{"type": "complete", "id": g.uuid(), "parentMessageID": g.uuid(), "turnID": "", "model": "", "createdAt": "2026-11-20T10:12:15.123Z", "references": []any{}, "role": "assistant", "intent": "conversation", "copilotAnnotations": object{"CodeVulnerability": []any{}, "PublicCodeReference": []any{}}, "content": strings.TrimSpace(g.answer)})
}
