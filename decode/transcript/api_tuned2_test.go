package transcript

func ollamaChat(g *apiCall) {
	messages := []any{}
	if g.system != "" {
		messages = append(messages, object{"role": "system", "content": g.system})
	}
	messages = append(messages, object{"role": "user", "content": g.question})
	if len(g.earlier) > 0 {
		var calls []any
		for _, u := range g.earlier {
			calls = append(calls, object{"function": object{"name": u.name, "arguments": u.args}})
		}
		messages = append(messages, object{"role": "assistant", "content": "", "tool_calls": calls})
		for _, u := range g.earlier {
			messages = append(messages, object{"role": "tool", "tool_name": u.name, "content": u.result})
		}
	}
	g.up("/api/chat", object{"model": g.model, "messages": messages, "think": true, "options": object{"temperature": 0.2}, "tools": g.toolDefinitions()})
	send := func(m, more object) {
		m["role"] = "assistant"
		v := object{"model": g.model, "created_at": "2026-11-02T10:12:13.1Z", "message": m, "done": false}
		for k, x := range more {
			v[k] = x
		}
		g.line(v)
	}
	for _, p := range g.parts(g.thinking) {
		send(object{"content": "", "thinking": p}, nil)
	}
	for _, p := range g.parts(g.answer) {
		send(object{"content": p}, nil)
	}
	for i, u := range g.calls {
		send(object{"content": "", "tool_calls": []any{object{"function": object{"index": i, "name": u.name, "arguments": u.args}}}}, nil)
	}
	send(object{"content": ""}, object{"done": true, "done_reason": "stop", "total_duration": 4883583458, "load_duration": 1334875, "prompt_eval_count": g.input, "prompt_eval_duration": 342546000, "eval_count": g.output, "eval_duration": 4535599000})
}

func cohereChat(g *apiCall) {
	g.up("/v2/chat", object{"model": g.model, "messages": g.chatMessages(), "stream": true, "tools": g.toolDefinitions()})
	g.sse("message-start", object{"type": "message-start", "id": g.uuid(), "delta": object{"message": object{"role": "assistant", "content": []any{}, "tool_plan": "", "tool_calls": []any{}, "citations": []any{}}}})
	at := 0
	text := func(kind, member, s string) {
		g.sse("content-start", object{"type": "content-start", "index": at, "delta": object{"message": object{"content": object{"type": kind, member: ""}}}})
		for _, p := range g.parts(s) {
			g.sse("content-delta", object{"type": "content-delta", "index": at, "delta": object{"message": object{"content": object{member: p}}}})
			if g.chance(0.05) && kind == "text" {
				g.sse("citation-start", object{"type": "citation-start", "index": 0, "delta": object{"message": object{"citations": object{"start": 1, "end": 4, "text": "cited words", "sources": []any{}, "type": "TEXT_CONTENT"}}}})
			}
		}
		g.sse("content-end", object{"type": "content-end", "index": at})
		at++
	}
	if g.thinking != "" && len(g.calls) == 0 {
		text("thinking", "thinking", g.thinking)
	}
	for _, p := range g.parts(g.thinking) {
		if len(g.calls) > 0 {
			g.sse("tool-plan-delta", object{"type": "tool-plan-delta", "delta": object{"message": object{"tool_plan": p}}})
		}
	}
	if g.answer != "" {
		text("text", "text", g.answer)
	}
	for i, u := range g.calls {
		g.sse("tool-call-start", object{"type": "tool-call-start", "index": i, "delta": object{"message": object{"tool_calls": object{"id": u.id, "type": "function", "function": object{"name": u.name, "arguments": ""}}}}})
		for _, p := range g.parts(u.json()) {
			g.sse("tool-call-delta", object{"type": "tool-call-delta", "index": i, "delta": object{"message": object{"tool_calls": object{"function": object{"arguments": p}}}}})
		}
		g.sse("tool-call-end", object{"type": "tool-call-end", "index": i})
	}
	g.sse("message-end", object{"type": "message-end", "delta": object{"finish_reason": "COMPLETE", "usage": object{"billed_units": object{"input_tokens": 7, "output_tokens": 8}, "tokens": object{"input_tokens": g.input, "output_tokens": g.output}}}})
}

func mistralChat(g *apiCall) {
	g.up("/v1/chat/completions", object{"model": g.model, "messages": g.chatMessages(), "stream": true, "tools": g.toolDefinitions(), "tool_choice": "any"})
	send := func(delta object, finish any, more object) {
		v := object{"id": "cmpl-1", "object": "chat.completion.chunk", "created": 1, "model": g.model, "choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}
		for k, x := range more {
			v[k] = x
		}
		g.sse("", v)
	}
	send(object{"role": "assistant", "content": ""}, nil, nil)
	for _, p := range g.parts(g.thinking) {
		send(object{"content": []any{object{"type": "thinking", "thinking": []any{object{"type": "text", "text": p}}}}}, nil, nil)
	}
	for _, p := range g.parts(g.answer) {
		content := any(p)
		if g.thinking != "" {
			content = []any{object{"type": "text", "text": p}}
		}
		send(object{"content": content}, nil, nil)
	}
	usage := object{"usage": object{"prompt_tokens": g.input, "total_tokens": g.input + g.output, "completion_tokens": g.output}}
	if len(g.calls) == 0 {
		send(object{"content": ""}, "stop", usage)
	} else {
		var calls []any
		for i, u := range g.calls {
			calls = append(calls, object{"id": u.id[:9], "function": object{"name": u.name, "arguments": u.json()}, "index": i})
		}
		send(object{"content": "", "tool_calls": calls}, "tool_calls", usage)
	}
	g.sse("", "[DONE]")
}

func aiSDKStream(g *apiCall) {
	g.noUsage = true
	parts := []any{object{"type": "text", "text": g.question}}
	messages := []any{object{"id": "m1", "role": "user", "parts": parts}}
	if len(g.earlier) > 0 {
		said := []any{object{"type": "step-start"}}
		for _, u := range g.earlier {
			said = append(said, object{"type": "tool-" + u.name, "toolCallId": u.id, "state": "output-available", "input": u.args, "output": u.result})
		}
		messages = append(messages, object{"id": "m2", "role": "assistant", "parts": said})
	}
	g.up("/api/chat", object{"id": g.uuid(), "messages": messages, "trigger": "submit-message"})
	send := func(typ string, v object) {
		v["type"] = typ
		g.sse("", v)
	}
	send("start", object{"messageId": g.uuid()})
	send("start-step", object{})
	text := func(kind, id, s string) {
		send(kind+"-start", object{"id": id})
		for _, p := range g.parts(s) {
			send(kind+"-delta", object{"id": id, "delta": p})
		}
		send(kind+"-end", object{"id": id})
	}
	if g.thinking != "" {
		text("reasoning", "reasoning-0", g.thinking)
	}
	if g.answer != "" {
		text("text", "0", g.answer)
	}
	for _, u := range g.calls {
		send("tool-input-start", object{"toolCallId": u.id, "toolName": u.name})
	}
	// Parallel calls arrive interleaved.
	longest := 0
	inputs := make([][]string, len(g.calls))
	for i, u := range g.calls {
		inputs[i] = g.parts(u.json())
		longest = max(longest, len(inputs[i]))
	}
	for at := range longest {
		for i, u := range g.calls {
			if at < len(inputs[i]) {
				send("tool-input-delta", object{"toolCallId": u.id, "inputTextDelta": inputs[i][at]})
			}
		}
	}
	for _, u := range g.calls {
		send("tool-input-available", object{"toolCallId": u.id, "toolName": u.name, "input": u.args})
	}
	send("finish-step", object{})
	send("finish", object{})
	g.sse("", "[DONE]")
}

func textGeneration(g *apiCall) {
	g.thinking, g.calls, g.earlier, g.noUsage = "", nil, nil, true
	if g.answer == "" {
		g.answer = "It is done."
	}
	g.up("/generate_stream", object{"inputs": g.question, "parameters": object{"max_new_tokens": 200, "return_full_text": false}})
	parts := g.parts(g.answer)
	for i, p := range parts {
		g.sse("", object{"index": i + 1, "token": object{"id": g.r.IntN(32000), "text": p, "logprob": -0.25, "special": false}, "generated_text": nil, "details": nil})
	}
	g.sse("", object{"index": len(parts) + 1, "token": object{"id": 2, "text": "</s>", "logprob": -0.1, "special": true}, "generated_text": g.answer, "details": object{"finish_reason": "eos_token", "generated_tokens": len(parts) + 1, "seed": nil}})
}
