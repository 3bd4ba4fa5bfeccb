package transcript

import (
	"encoding/base64"
	"strings"
)

// heldAPIs are those that were written when the reader was finished, and looked at once.
var heldAPIs = []api{
	{"DeepSeek chat", false, deepSeekChat},
	{"OpenRouter chat", false, openRouterChat},
	{"Perplexity chat", false, perplexityChat},
	{"DashScope generation", false, dashScope},
	{"Bedrock InvokeModelWithResponseStream", false, bedrockInvoke},
	{"Ollama generate", false, ollamaGenerate},
	{"watsonx text generation", false, watsonxText},
	{"Workers AI", false, workersAI},
	{"llama.cpp completion", false, llamaCompletion},
	{"LangServe stream of messages", false, langServe},
	{"OpenAI Assistants run", false, assistantsRun},
	{"Generative Language API, gRPC", false, generativeGRPC},
	{"Dify chat messages", false, difyChat},
	{"Coze chat", false, cozeChat},
}

// withoutTools removes what an API does not have.
func (g *apiCall) withoutTools() {
	g.calls, g.earlier = nil, nil
	if g.answer == "" {
		g.answer = "Everything is ready, so the next step can begin."
	}
}

func (g *apiCall) chatChunks(path string, delta func(kind, p string) object, more func(said string) object) {
	g.up(path, object{"model": g.model, "messages": g.chatMessages(), "tools": g.toolDefinitions(), "stream": true})
	said := ""
	send := func(d object, finish any, usage any) {
		v := object{"id": "gen-1", "object": "chat.completion.chunk", "created": 1763700000, "model": g.model, "choices": []any{object{"index": 0, "delta": d, "finish_reason": finish}}, "usage": usage}
		if more != nil {
			for k, x := range more(said) {
				if k == "message" {
					v["choices"].([]any)[0].(object)[k] = x
				} else {
					v[k] = x
				}
			}
		}
		g.sse("", v)
	}
	send(object{"role": "assistant", "content": ""}, nil, nil)
	for _, p := range g.parts(g.thinking) {
		send(delta("thinking", p), nil, nil)
	}
	for _, p := range g.parts(g.answer) {
		said += p
		send(delta("text", p), nil, nil)
	}
	for i, u := range g.calls {
		send(object{"tool_calls": []any{object{"index": i, "id": u.id, "type": "function", "function": object{"name": u.name, "arguments": ""}}}}, nil, nil)
		for _, p := range g.parts(u.json()) {
			send(object{"tool_calls": []any{object{"index": i, "id": nil, "function": object{"name": nil, "arguments": p}}}}, nil, nil)
		}
	}
	send(object{"content": ""}, "stop", g.openAIUsage())
	g.sse("", "[DONE]")
}

func deepSeekChat(g *apiCall) {
	g.chatChunks("/chat/completions", func(kind, p string) object {
		if kind == "thinking" {
			return object{"content": nil, "reasoning_content": p}
		}
		return object{"content": p, "reasoning_content": nil}
	}, nil)
}

func openRouterChat(g *apiCall) {
	g.chatChunks("/api/v1/chat/completions", func(kind, p string) object {
		if kind == "thinking" {
			return object{"role": "assistant", "content": "", "reasoning": p, "reasoning_details": []any{object{"type": "reasoning.text", "text": p, "format": "anthropic-claude-v1", "index": 0}}}
		}
		return object{"role": "assistant", "content": p}
	}, func(string) object { return object{"provider": "Anthropic"} })
}

func perplexityChat(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.chatChunks("/chat/completions", func(_, p string) object { return object{"role": "assistant", "content": p} }, func(said string) object {
		return object{"message": object{"role": "assistant", "content": said}, "citations": []any{"https://example.org/a"}, "search_results": []any{object{"title": "A page about it", "url": "https://example.org/a", "snippet": "What the page says about it in two lines."}}}
	})
}

func dashScope(g *apiCall) {
	grows := g.chance(0.5)
	g.up("/api/v1/services/aigc/text-generation/generation", object{"model": g.model, "input": object{"messages": g.chatMessages()}, "parameters": object{"result_format": "message", "incremental_output": !grows, "enable_thinking": true}})
	id, at, said, thought := g.uuid(), 0, "", ""
	send := func(text, thinking string, calls []any, finish string) {
		m := object{"role": "assistant", "content": text}
		if g.thinking != "" {
			m["reasoning_content"] = thinking
		}
		if calls != nil {
			m["tool_calls"] = calls
		}
		at++
		v := object{"output": object{"choices": []any{object{"message": m, "finish_reason": finish}}}, "usage": object{"input_tokens": g.input, "output_tokens": min(at, g.output), "total_tokens": g.input + min(at, g.output)}, "request_id": id}
		if finish != "null" {
			v["usage"] = object{"input_tokens": g.input, "output_tokens": g.output, "total_tokens": g.input + g.output}
		}
		g.sse("result", v)
	}
	for _, p := range g.parts(g.thinking) {
		if thought += p; grows {
			p = thought
		}
		send("", p, nil, "null")
	}
	kept := func(s string) string {
		if grows {
			return s
		}
		return ""
	}
	for _, p := range g.parts(g.answer) {
		if said += p; grows {
			p = said
		}
		send(p, kept(thought), nil, "null")
	}
	var calls []any
	for i, u := range g.calls {
		calls = append(calls, object{"index": i, "id": u.id, "type": "function", "function": object{"name": u.name, "arguments": u.json()}})
	}
	send(kept(said), kept(thought), calls, "stop")
}

func bedrockInvoke(g *apiCall) {
	inner := newAPICall(0)
	*inner = *g
	copied := *g.ex
	inner.ex, inner.chunks = &copied, nil
	anthropicMessages(inner)
	g.up("/model/"+g.model+"/invoke-with-response-stream", object{"anthropic_version": "bedrock-2023-05-31", "max_tokens": 512, "system": g.system, "messages": inner.bodyOf(0)["messages"]})
	g.ex.ResponseHeaders = nil
	for _, c := range inner.chunks[1:] {
		_, data, _ := strings.Cut(string(c.Data), "data: ")
		g.aws("chunk", object{"bytes": base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(data))), "p": "abcdef"[:1+g.r.IntN(5)]})
	}
}

func ollamaGenerate(g *apiCall) {
	g.withoutTools()
	g.up("/api/generate", object{"model": g.model, "prompt": g.question, "system": g.system, "think": true})
	send := func(response, thinking string, more object) {
		v := object{"model": g.model, "created_at": "2026-11-02T10:12:13.1Z", "response": response, "done": false}
		if thinking != "" {
			v["thinking"] = thinking
		}
		for k, x := range more {
			v[k] = x
		}
		g.line(v)
	}
	for _, p := range g.parts(g.thinking) {
		send("", p, nil)
	}
	for _, p := range g.parts(g.answer) {
		send(p, "", nil)
	}
	send("", "", object{"done": true, "done_reason": "stop", "context": []any{1, 2, 3}, "total_duration": 4883583458, "prompt_eval_count": g.input, "eval_count": g.output, "eval_duration": 4535599000})
}

func watsonxText(g *apiCall) {
	g.withoutTools()
	g.thinking = ""
	g.up("/ml/v1/text/generation_stream?version=2026-05-01", object{"model_id": g.model, "input": g.question, "parameters": object{"max_new_tokens": 200}, "project_id": g.uuid()})
	parts := g.parts(g.answer)
	for i, p := range parts {
		r := object{"generated_text": p, "generated_token_count": 0, "input_token_count": 0, "stop_reason": "not_finished"}
		if i == len(parts)-1 {
			r = object{"generated_text": p, "generated_token_count": g.output, "input_token_count": g.input, "stop_reason": "eos_token"}
		}
		g.sse("message", object{"model_id": g.model, "model_version": "1.1.0", "created_at": "2026-11-02T10:12:13.1Z", "results": []any{r}})
	}
}

func workersAI(g *apiCall) {
	g.thinking = ""
	if len(g.calls) > 0 {
		g.answer = ""
	}
	g.up("/client/v4/accounts/1/ai/run/@cf/meta/"+g.model, object{"messages": g.chatMessages(), "stream": true, "tools": g.toolDefinitions()})
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"response": p, "p": "abcdefghijk"[:1+g.r.IntN(9)]})
	}
	var calls []any
	for _, u := range g.calls {
		calls = append(calls, object{"name": u.name, "arguments": u.args})
	}
	if calls != nil {
		g.sse("", object{"response": "", "tool_calls": calls, "p": "abc"})
	}
	g.sse("", object{"response": "", "usage": object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output}, "p": "abc"})
	g.sse("", "[DONE]")
}

func llamaCompletion(g *apiCall) {
	g.withoutTools()
	g.thinking = ""
	prompt := "<|im_start|>user\n" + g.question + "<|im_end|>\n<|im_start|>assistant\n"
	g.up("/completion", object{"prompt": prompt, "n_predict": 128, "stream": true})
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"index": 0, "content": p, "tokens": []any{g.r.IntN(32000)}, "stop": false, "id_slot": -1, "tokens_predicted": 1, "tokens_evaluated": g.input})
	}
	g.sse("", object{
		"index": 0, "content": "", "tokens": []any{}, "id_slot": 0, "stop": true, "model": g.model, "tokens_predicted": g.output, "tokens_evaluated": g.input,
		"generation_settings": object{"temperature": 0.8, "samplers": []any{"top_k", "temperature"}, "grammar": ""}, "prompt": prompt, "has_new_line": true, "truncated": false, "stop_type": "eos", "stopping_word": "", "tokens_cached": 12,
		"timings": object{"prompt_n": g.input, "prompt_ms": 33.1, "predicted_n": g.output, "predicted_ms": 812.1},
	})
}

func langServe(g *apiCall) {
	g.thinking, g.earlier = "", nil
	g.up("/chat/stream", object{"input": object{"messages": []any{object{"type": "human", "content": g.question}}}, "config": object{}, "kwargs": object{}})
	g.sse("metadata", object{"run_id": g.uuid()})
	id := "run-" + g.uuid()
	send := func(content string, chunks []any, usage any) {
		g.sse("data", object{"content": content, "additional_kwargs": object{}, "response_metadata": object{}, "type": "AIMessageChunk", "name": nil, "id": id, "example": false, "tool_calls": []any{}, "invalid_tool_calls": []any{}, "usage_metadata": usage, "tool_call_chunks": chunks})
	}
	send("", []any{}, nil)
	for _, p := range g.parts(g.answer) {
		send(p, []any{}, nil)
	}
	for i, u := range g.calls {
		send("", []any{object{"name": u.name, "args": "", "id": u.id, "index": i, "type": "tool_call_chunk"}}, nil)
		for _, p := range g.parts(u.json()) {
			send("", []any{object{"name": nil, "args": p, "id": nil, "index": i, "type": "tool_call_chunk"}}, nil)
		}
	}
	send("", []any{}, object{"input_tokens": g.input, "output_tokens": g.output, "total_tokens": g.input + g.output})
	g.down([]byte("event: end\n\n"))
}

func assistantsRun(g *apiCall) {
	g.thinking, g.earlier = "", nil
	g.up("/v1/threads/runs", object{"assistant_id": "asst_" + g.padding(), "thread": object{"messages": []any{object{"role": "user", "content": g.question}}}, "stream": true})
	run := object{"id": "run_" + g.uuid(), "object": "thread.run", "status": "queued", "instructions": g.system, "tools": g.toolDefinitions(), "model": g.model, "usage": nil, "tool_choice": "auto", "response_format": "auto"}
	g.sse("thread.run.created", run)
	msg := "msg_" + g.uuid()
	if g.answer != "" {
		g.sse("thread.message.created", object{"id": msg, "object": "thread.message", "role": "assistant", "content": []any{}, "status": "in_progress"})
		for _, p := range g.parts(g.answer) {
			g.sse("thread.message.delta", object{"id": msg, "object": "thread.message.delta", "delta": object{"content": []any{object{"index": 0, "type": "text", "text": object{"value": p, "annotations": []any{}}}}}})
		}
		g.sse("thread.message.completed", object{"id": msg, "object": "thread.message", "role": "assistant", "status": "completed", "content": []any{object{"type": "text", "text": object{"value": g.answer, "annotations": []any{}}}}})
	}
	step := "step_" + g.uuid()
	var calls []any
	for i, u := range g.calls {
		delta := func(f object, first bool) {
			c := object{"index": i, "type": "function", "function": f}
			if first {
				c["id"] = u.id
			}
			g.sse("thread.run.step.delta", object{"id": step, "object": "thread.run.step.delta", "delta": object{"step_details": object{"type": "tool_calls", "tool_calls": []any{c}}}})
		}
		delta(object{"name": u.name, "arguments": "", "output": nil}, true)
		for _, p := range g.parts(u.json()) {
			delta(object{"arguments": p}, false)
		}
		calls = append(calls, object{"id": u.id, "type": "function", "function": object{"name": u.name, "arguments": u.json()}})
	}
	done := object{}
	for k, v := range run {
		done[k] = v
	}
	done["usage"] = object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output}
	if calls != nil {
		done["required_action"] = object{"type": "submit_tool_outputs", "submit_tool_outputs": object{"tool_calls": calls}}
		g.sse("thread.run.requires_action", done)
	} else {
		g.sse("thread.run.completed", done)
	}
	g.sse("done", "[DONE]")
}

func generativeGRPC(g *apiCall) {
	googleContent(g, "google.ai.generativelanguage.v1beta.GenerativeService/StreamGenerateContent", googleFields{
		candidates: 1, usage: 3, version: 4, content: 1, finish: 2, role: 2, parts: 1, text: 2, call: 4, response: 5, thought: 11, contents: 2, model: 1, system: 8,
	})
}

func difyChat(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.up("/v1/chat-messages", object{"inputs": object{}, "query": g.question, "response_mode": "streaming", "conversation_id": "", "user": "abc-123"})
	task, msg, conv := g.uuid(), g.uuid(), g.uuid()
	base := func(event string) object {
		return object{"event": event, "task_id": task, "message_id": msg, "id": msg, "conversation_id": conv, "created_at": 1763700000}
	}
	for _, p := range g.parts(g.answer) {
		v := base("message")
		v["answer"] = p
		g.sse("", v)
	}
	v := base("message_end")
	v["metadata"] = object{"usage": object{"prompt_tokens": g.input, "prompt_unit_price": "0.001", "completion_tokens": g.output, "total_tokens": g.input + g.output, "total_price": "0.0012", "currency": "USD", "latency": 0.9}, "retriever_resources": []any{object{"dataset_name": "help", "content": "What the document says about it, in a long line of text.", "score": 0.9}}}
	g.sse("", v)
}

func cozeChat(g *apiCall) {
	g.earlier = nil
	if len(g.calls) > 1 {
		g.calls = g.calls[:1]
	}
	g.up("/v3/chat?conversation_id=7", object{"bot_id": "734", "user_id": "u1", "stream": true, "additional_messages": []any{object{"role": "user", "content": g.question, "content_type": "text"}}})
	chat, conv := "74"+g.padding(), "75"+g.padding()
	g.sse("conversation.chat.created", object{"id": chat, "conversation_id": conv, "bot_id": "734", "created_at": 1763700000, "last_error": object{"code": 0, "msg": ""}, "status": "created", "usage": object{"token_count": 0, "output_count": 0, "input_count": 0}})
	message := func(event, typ, id, content, reasoning string) {
		v := object{"id": id, "conversation_id": conv, "bot_id": "734", "role": "assistant", "type": typ, "content": content, "content_type": "text", "chat_id": chat}
		if reasoning != "" {
			v["reasoning_content"] = reasoning
		}
		g.sse(event, v)
	}
	id := "76" + g.padding()
	for _, p := range g.parts(g.thinking) {
		message("conversation.message.delta", "answer", id, "", p)
	}
	for _, u := range g.calls {
		message("conversation.message.completed", "function_call", "77"+g.padding(), string(compactJSON(object{"name": u.name, "arguments": u.args})), "")
	}
	for _, p := range g.parts(g.answer) {
		message("conversation.message.delta", "answer", id, p, "")
	}
	if g.answer != "" {
		message("conversation.message.completed", "answer", id, g.answer, "")
		message("conversation.message.completed", "follow_up", "78"+g.padding(), "What else can it do?", "")
	}
	g.sse("conversation.chat.completed", object{"id": chat, "conversation_id": conv, "bot_id": "734", "status": "completed", "usage": object{"token_count": g.input + g.output, "output_count": g.output, "input_count": g.input}})
	g.sse("done", `"[DONE]"`)
}
