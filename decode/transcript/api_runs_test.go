package transcript

import (
	"fmt"

	"unwire/captures"
	"unwire/decode/envelope"
)

// runAPIs are further agents and assistants, written from public documentation after serverAPIs had led to corrections,
// before anybody looked at how the reader would treat them.
var runAPIs = []api{
	{"Agno AgentOS run", false, agnoRun},
	{"Llama Stack agent turn", false, llamaStackTurn},
	{"ChatKit thread", false, chatKitThread},
	{"Pipecat RTVI, WebSocket", false, pipecatRTVI},
	{"Kibana Agent Builder converse", false, kibanaConverse},
	{"Codeium RawGetChatMessage, Connect", false, codeiumRaw},
}

func agnoRun(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.up("/agents/assistant/runs", object{"message": g.question, "stream": true, "session_id": "s-1", "user_id": "jo"})
	run := g.uuid()
	send := func(event string, v object) {
		o := object{"created_at": 1763700000, "event": event, "agent_id": "assistant", "agent_name": "Assistant", "run_id": run, "session_id": "s-1"}
		for k, x := range v {
			o[k] = x
		}
		g.sse(event, o)
	}
	tool := func(u toolUse, result any) object {
		return object{"tool_call_id": u.id, "tool_name": u.name, "tool_args": u.args, "tool_call_error": nil, "result": result, "metrics": nil, "child_run_id": nil, "stop_after_tool_call": false, "created_at": 1763700001, "requires_confirmation": nil}
	}
	send("RunStarted", object{"model": g.model, "model_provider": "OpenAI"})
	for _, p := range g.parts(g.thinking) {
		send("RunContent", object{"content": "", "content_type": "str", "reasoning_content": p})
	}
	for _, u := range g.calls {
		send("ToolCallStarted", object{"tool": tool(u, nil)})
		send("ToolCallCompleted", object{"content": fmt.Sprintf("%s(...) completed in 0.0012s.", u.name), "tool": tool(u, u.result), "images": nil})
	}
	for _, p := range g.parts(g.answer) {
		send("RunContent", object{"content": p, "content_type": "str", "reasoning_content": ""})
	}
	send("RunContentCompleted", nil)
	send("RunCompleted", object{"content": g.answer, "content_type": "str", "reasoning_content": g.thinking, "metrics": object{"input_tokens": g.input, "output_tokens": g.output, "total_tokens": g.input + g.output, "time_to_first_token": 0.61, "duration": 2.2}, "session_state": object{}})
}

func llamaStackTurn(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.up("/v1/agents/"+g.uuid()+"/session/"+g.uuid()+"/turn", object{"messages": []any{object{"role": "user", "content": g.question, "context": nil}}, "stream": true, "toolgroups": []any{"builtin::websearch"}})
	send := func(kind string, v object) {
		v["event_type"] = kind
		g.sse("", object{"event": object{"payload": v}})
	}
	turn := g.uuid()
	call := func(u toolUse) object {
		return object{"call_id": u.id, "tool_name": u.name, "arguments": u.args, "arguments_json": u.json()}
	}
	message := func(content string, calls []any) object {
		return object{"role": "assistant", "content": content, "stop_reason": "end_of_turn", "tool_calls": calls}
	}
	send("turn_start", object{"turn_id": turn})
	var steps []any
	step := func(kind string, progress func(delta func(object)), details object) {
		id := g.uuid()
		send("step_start", object{"step_type": kind, "step_id": id, "metadata": object{}})
		progress(func(d object) {
			send("step_progress", object{"step_type": kind, "step_id": id, "delta": d})
		})
		details["turn_id"], details["step_id"], details["step_type"] = turn, id, kind
		details["started_at"], details["completed_at"] = "2026-11-20T10:12:13.123456+00:00", "2026-11-20T10:12:14.123456+00:00"
		steps = append(steps, details)
		send("step_complete", object{"step_type": kind, "step_id": id, "step_details": details})
	}
	if len(g.calls) > 0 {
		var calls, responses []any
		for _, u := range g.calls {
			calls = append(calls, call(u))
			responses = append(responses, object{"call_id": u.id, "tool_name": u.name, "content": u.result, "metadata": nil})
		}
		step("inference", func(delta func(object)) {
			for _, u := range g.calls {
				delta(object{"type": "tool_call", "tool_call": "", "parse_status": "started"})
				for _, p := range g.parts(u.json()) {
					delta(object{"type": "tool_call", "tool_call": p, "parse_status": "in_progress"})
				}
				delta(object{"type": "tool_call", "tool_call": call(u), "parse_status": "succeeded"})
			}
		}, object{"model_response": message("", calls)})
		step("tool_execution", func(func(object)) {}, object{"tool_calls": calls, "tool_responses": responses})
	}
	if g.answer != "" {
		step("inference", func(delta func(object)) {
			for _, p := range g.parts(g.answer) {
				delta(object{"type": "text", "text": p})
			}
		}, object{"model_response": message(g.answer, []any{})})
	}
	send("turn_complete", object{"turn": object{"turn_id": turn, "session_id": g.uuid(), "input_messages": []any{object{"role": "user", "content": g.question, "context": nil}}, "steps": steps, "output_message": message(g.answer, []any{}), "output_attachments": []any{}, "started_at": "2026-11-20T10:12:13.123456+00:00", "completed_at": "2026-11-20T10:12:15.123456+00:00"}})
}

func chatKitThread(g *apiCall) {
	g.realistic()
	g.noUsage, g.earlier = true, nil
	g.up("/chatkit", object{"type": "threads.create", "params": object{"input": object{"content": []any{object{"type": "input_text", "text": g.question}}, "attachments": []any{}, "quoted_text": nil, "inference_options": object{"tool_choice": nil, "model": nil}}}})
	thread := "thr_" + g.padding()
	item := func(id, kind string, v object) object {
		v["id"], v["thread_id"], v["created_at"], v["type"] = id, thread, "2026-11-20T10:12:13.123456", kind
		return v
	}
	send := func(kind string, v object) {
		v["type"] = kind
		g.sse("", v)
	}
	update := func(id, kind string, v object) {
		v["type"] = kind
		send("thread.item.updated", object{"item_id": id, "update": v})
	}
	send("thread.created", object{"thread": object{"id": thread, "created_at": "2026-11-20T10:12:13", "title": nil, "status": object{"type": "active"}, "metadata": object{}, "items": object{"data": []any{}, "has_more": false}}})
	send("thread.item.done", object{"item": item("msg_1", "user_message", object{"content": []any{object{"type": "input_text", "text": g.question}}, "attachments": []any{}, "quoted_text": nil, "inference_options": object{}})})
	send("stream_options", object{"stream_options": object{"allow_cancel": true}})
	if g.thinking != "" {
		task := func(s string) object {
			return object{"type": "thought", "title": nil, "content": s, "status_indicator": "none"}
		}
		flow := func(tasks ...any) object {
			return item("wf_1", "workflow", object{"workflow": object{"type": "reasoning", "tasks": append([]any{}, tasks...), "summary": nil, "expanded": false}})
		}
		send("thread.item.added", object{"item": flow()})
		said := ""
		for i, p := range g.parts(g.thinking) {
			said += p
			kind := "workflow.task.updated"
			if i == 0 {
				kind = "workflow.task.added"
			}
			update("wf_1", kind, object{"task_index": 0, "task": task(said)})
		}
		send("thread.item.done", object{"item": flow(task(said))})
	}
	if g.answer != "" {
		content := func(s string) object { return object{"type": "output_text", "text": s, "annotations": []any{}} }
		send("thread.item.added", object{"item": item("msg_2", "assistant_message", object{"content": []any{}})})
		update("msg_2", "assistant_message.content_part.added", object{"content_index": 0, "content": content("")})
		for _, p := range g.parts(g.answer) {
			update("msg_2", "assistant_message.content_part.text_delta", object{"content_index": 0, "delta": p})
		}
		update("msg_2", "assistant_message.content_part.done", object{"content_index": 0, "content": content(g.answer)})
		send("thread.item.done", object{"item": item("msg_2", "assistant_message", object{"content": []any{content(g.answer)}})})
	}
	for i, u := range g.calls {
		send("thread.item.done", object{"item": item(fmt.Sprintf("tc_%d", i), "client_tool_call", object{"status": "pending", "call_id": u.id, "name": u.name, "arguments": u.args, "output": nil})})
	}
}

func pipecatRTVI(g *apiCall) {
	g.realistic()
	g.thinking, g.earlier = "", nil
	g.webSocket("/ws")
	message := func(kind string, data any) object {
		o := object{"label": "rtvi-ai", "type": kind}
		if data != nil {
			o["data"] = data
		}
		return o
	}
	ready := message("client-ready", object{"version": "1.0.0", "about": object{"library": "@pipecat-ai/client-js", "library_version": "1.4.0", "platform": "linux"}})
	ready["id"] = "a1"
	g.upload(ready)
	answer := message("bot-ready", object{"version": "1.0.0", "about": object{"library": "pipecat-ai", "library_version": "0.0.95"}})
	answer["id"] = "a1"
	g.download(answer)
	ask := message("send-text", object{"content": g.question, "options": object{"run_immediately": true, "audio_response": false}})
	ask["id"] = "a2"
	g.upload(ask)
	g.download(message("bot-llm-started", nil))
	for _, u := range g.calls {
		g.download(message("llm-function-call", object{"function_name": u.name, "tool_call_id": u.id, "args": u.args}))
		g.upload(message("llm-function-call-result", object{"function_name": u.name, "tool_call_id": u.id, "arguments": u.args, "result": u.result}))
	}
	for _, p := range g.parts(g.answer) {
		g.download(message("bot-llm-text", object{"text": p}))
	}
	if g.answer != "" {
		g.download(message("bot-transcription", object{"text": g.answer}))
	}
	g.download(message("metrics", object{"ttfb": []any{object{"processor": "OpenAILLMService#0", "model": g.model, "value": 0.42}}}))
	g.download(message("metrics", object{"tokens": []any{object{"processor": "OpenAILLMService#0", "model": g.model, "prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output, "cache_read_input_tokens": g.cached, "reasoning_tokens": nil}}}))
	g.download(message("bot-llm-stopped", nil))
}

func kibanaConverse(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.up("/api/agent_builder/converse/async", object{"input": g.question, "agent_id": "elastic-ai-agent", "connector_id": "c-1"})
	send := func(event string, v object) { g.sse(event, object{"data": v}) }
	send("conversation_id_set", object{"conversation_id": g.uuid()})
	var steps []any
	if g.thinking != "" {
		send("reasoning", object{"reasoning": g.thinking, "transient": false})
		steps = append(steps, object{"type": "reasoning", "reasoning": g.thinking})
	}
	for _, u := range g.calls {
		results := []any{object{"tool_result_id": g.padding(), "type": "other", "data": object{"text": u.result}}}
		send("tool_call", object{"tool_call_id": u.id, "tool_id": u.name, "params": u.args})
		send("tool_progress", object{"tool_call_id": u.id, "message": "Selecting the best target for this query"})
		send("tool_result", object{"tool_call_id": u.id, "tool_id": u.name, "results": results})
		steps = append(steps, object{"type": "tool_call", "tool_call_id": u.id, "tool_id": u.name, "params": u.args, "progression": []any{object{"message": "Selecting the best target for this query"}}, "results": results})
	}
	message := g.uuid()
	for _, p := range g.parts(g.answer) {
		send("message_chunk", object{"message_id": message, "text_chunk": p})
	}
	if g.answer != "" {
		send("message_complete", object{"message_id": message, "message_content": g.answer})
	}
	send("round_complete", object{"round": object{"id": g.uuid(), "status": "completed", "input": object{"message": g.question}, "steps": steps, "response": object{"message": g.answer}, "started_at": "2026-11-20T10:12:13.123Z", "time_to_first_token": 2910, "time_to_last_token": 4023, "trace_id": g.padding(), "model_usage": object{"connector_id": "c-1", "llm_calls": 1 + len(g.calls), "input_tokens": g.input, "output_tokens": g.output}}, "resumed": false})
}

func codeiumRaw(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	conversation := g.uuid()
	stamp := pbMsg(3, num(1, 1763700000), num(2, 123000000))
	sent := func(source int, text string) []byte {
		if source == 1 {
			return pbMsg(2, pbText(1, g.uuid()), num(2, source), stamp, pbText(4, conversation), pbMsg(5, pbMsg(1, pbText(1, text))))
		}
		return pbMsg(2, pbText(1, g.uuid()), num(2, source), stamp, pbText(4, conversation), pbMsg(6, pbMsg(3, pbText(1, text))))
	}
	request := pbMsg(1, pbText(1, "jetbrains"), pbText(2, "1.30.1"), pbText(3, g.padding()), pbText(4, "en"), pbText(7, "2026.1"), num(9, 14))
	for _, b := range before {
		request = append(append(request, sent(1, b.question)...), sent(2, b.answer)...)
	}
	request = append(append(request, sent(1, g.question)...), num(5, 5)...)
	g.ex.URL = "https://server.example/exa.language_server_pb.LanguageServerService/RawGetChatMessage"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	g.respond("application/connect+proto")
	g.chunk(captures.Up, envelope.Append(nil, 0, request))
	id, said := "bot-"+g.uuid(), ""
	parts := g.parts(g.answer)
	for i, p := range parts {
		said += p
		fields := [][]byte{pbText(1, id), num(2, 2), stamp, pbText(4, conversation), pbText(5, said)}
		if i < len(parts)-1 {
			fields = append(fields, num(6, 1))
		}
		g.message(pbMsg(1, fields...))
	}
	g.down(envelope.Append(nil, envelope.EndStream, []byte("{}")))
}
