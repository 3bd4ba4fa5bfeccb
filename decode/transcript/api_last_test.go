package transcript

import (
	"encoding/base64"
	"strings"
)

// lastAPIs were written after the first look at the held ones had led to corrections. Nothing was corrected on them.
var lastAPIs = []api{
	{"Hunyuan ChatCompletions", false, hunyuanChat},
	{"Qianfan chat", false, qianfanChat},
	{"Cohere chat v1", false, cohereV1},
	{"AG-UI events", false, agUI},
	{"LangGraph stream of messages", false, langGraph},
	{"Cortex complete", false, cortexComplete},
	{"Bedrock Nova, InvokeModel", false, bedrockNova},
	{"A2A message stream", false, a2aStream},
	{"OCI generative AI chat", false, ociChat},
	{"Anthropic text completions", false, anthropicText},
}

func hunyuanChat(g *apiCall) {
	var messages []any
	for _, m := range g.chatMessages() {
		o := m.(object)
		v := object{"Role": o["role"], "Content": o["content"]}
		if o["content"] == nil {
			v["Content"] = ""
		}
		if calls, ok := o["tool_calls"].([]any); ok {
			var list []any
			for _, c := range calls {
				f := c.(object)["function"].(object)
				list = append(list, object{"Id": c.(object)["id"], "Type": "function", "Function": object{"Name": f["name"], "Arguments": f["arguments"]}})
			}
			v["ToolCalls"] = list
		}
		if id, ok := o["tool_call_id"]; ok {
			v["ToolCallId"] = id
		}
		messages = append(messages, v)
	}
	g.up("/", object{"Model": g.model, "Messages": messages, "Stream": true})
	send := func(delta object, finish string) {
		delta["Role"] = "assistant"
		g.sse("", object{"Created": 1763700000, "Usage": object{"PromptTokens": g.input, "CompletionTokens": g.output, "TotalTokens": g.input + g.output}, "Note": "以上内容为AI生成", "Id": "7a", "Choices": []any{object{"Index": 0, "Delta": delta, "FinishReason": finish}}})
	}
	for _, p := range g.parts(g.thinking) {
		send(object{"Content": "", "ReasoningContent": p}, "")
	}
	for _, p := range g.parts(g.answer) {
		send(object{"Content": p}, "")
	}
	for i, u := range g.calls {
		for k, p := range g.parts(u.json()) {
			f := object{"Name": "", "Arguments": p}
			if k == 0 {
				f["Name"] = u.name
			}
			send(object{"Content": "", "ToolCalls": []any{object{"Index": i, "Id": u.id, "Type": "function", "Function": f}}}, "")
		}
	}
	send(object{"Content": ""}, "stop")
}

func qianfanChat(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.up("/rpc/2.0/ai_custom/v1/wenxinworkshop/chat/completions_pro", object{"messages": []any{object{"role": "user", "content": g.question}}, "stream": true, "system": g.system})
	parts := g.parts(g.answer)
	for i, p := range parts {
		g.sse("", object{"id": "as-1", "object": "chat.completion", "created": 1763700000, "sentence_id": i, "is_end": i == len(parts)-1, "is_truncated": false, "result": p, "need_clear_history": false, "usage": object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output}})
	}
}

func cohereV1(g *apiCall) {
	g.thinking, g.earlier = "", nil
	if len(g.calls) > 0 {
		g.answer = ""
	}
	g.up("/v1/chat", object{"message": g.question, "preamble": g.system, "chat_history": []any{object{"role": "USER", "message": "Hello there, are you ready for a question?"}, object{"role": "CHATBOT", "message": "Yes, ask me anything you like."}}, "stream": true, "model": g.model})
	g.line(object{"is_finished": false, "event_type": "stream-start", "generation_id": g.uuid()})
	for _, p := range g.parts(g.answer) {
		g.line(object{"is_finished": false, "event_type": "text-generation", "text": p})
	}
	var calls []any
	for _, u := range g.calls {
		calls = append(calls, object{"name": u.name, "parameters": u.args})
	}
	if calls != nil {
		g.line(object{"is_finished": false, "event_type": "tool-calls-generation", "tool_calls": calls})
	}
	g.line(object{"is_finished": true, "event_type": "stream-end", "finish_reason": "COMPLETE", "response": object{"response_id": "r", "text": g.answer, "generation_id": "g", "chat_history": []any{object{"role": "USER", "message": g.question}, object{"role": "CHATBOT", "message": g.answer}}, "tool_calls": calls, "meta": object{"billed_units": object{"input_tokens": 3, "output_tokens": 4}, "tokens": object{"input_tokens": g.input, "output_tokens": g.output}}}})
}

func agUI(g *apiCall) {
	g.noUsage = true
	g.earlier = nil
	g.up("/agent", object{"threadId": g.uuid(), "runId": g.uuid(), "messages": []any{object{"id": "1", "role": "user", "content": g.question}}, "tools": []any{}, "context": []any{}, "state": object{}})
	send := func(typ string, v object) {
		v["type"] = typ
		g.sse("", v)
	}
	send("RUN_STARTED", object{"threadId": "t", "runId": "r"})
	if g.thinking != "" {
		send("THINKING_START", object{})
		send("THINKING_TEXT_MESSAGE_START", object{})
		for _, p := range g.parts(g.thinking) {
			send("THINKING_TEXT_MESSAGE_CONTENT", object{"delta": p})
		}
		send("THINKING_TEXT_MESSAGE_END", object{})
		send("THINKING_END", object{})
	}
	if g.answer != "" {
		id := g.uuid()
		send("TEXT_MESSAGE_START", object{"messageId": id, "role": "assistant"})
		for _, p := range g.parts(g.answer) {
			send("TEXT_MESSAGE_CONTENT", object{"messageId": id, "delta": p})
		}
		send("TEXT_MESSAGE_END", object{"messageId": id})
	}
	for _, u := range g.calls {
		send("TOOL_CALL_START", object{"toolCallId": u.id, "toolCallName": u.name, "parentMessageId": "m"})
		for _, p := range g.parts(u.json()) {
			send("TOOL_CALL_ARGS", object{"toolCallId": u.id, "delta": p})
		}
		send("TOOL_CALL_END", object{"toolCallId": u.id})
	}
	send("RUN_FINISHED", object{"threadId": "t", "runId": "r"})
}

func langGraph(g *apiCall) {
	g.thinking, g.earlier = "", nil
	g.up("/runs/stream", object{"assistant_id": "agent", "input": object{"messages": []any{object{"role": "human", "content": g.question}}}, "stream_mode": []any{"messages-tuple"}})
	g.sse("metadata", object{"run_id": g.uuid(), "attempt": 1})
	id := "run--" + g.uuid()
	send := func(content string, chunks []any, usage any) {
		g.sse("messages", []any{
			object{"content": content, "additional_kwargs": object{}, "response_metadata": object{}, "type": "AIMessageChunk", "name": nil, "id": id, "tool_calls": []any{}, "invalid_tool_calls": []any{}, "usage_metadata": usage, "tool_call_chunks": chunks},
			object{"langgraph_step": 1, "langgraph_node": "agent", "langgraph_triggers": []any{"start:agent"}, "ls_provider": "x", "ls_model_name": g.model, "thread_id": "t"},
		})
	}
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
}

func cortexComplete(g *apiCall) {
	g.thinking, g.earlier = "", nil
	g.up("/api/v2/cortex/inference:complete", object{"model": g.model, "messages": []any{object{"role": "user", "content": g.question}}, "max_tokens": 4096, "stream": true})
	send := func(delta, usage object) {
		g.sse("", object{"id": "c1", "model": g.model, "choices": []any{object{"delta": delta}}, "usage": usage})
	}
	for _, p := range g.parts(g.answer) {
		send(object{"type": "text", "content": p, "content_list": []any{object{"type": "text", "text": p}}, "text": p}, object{})
	}
	for _, u := range g.calls {
		send(object{"type": "tool_use", "tool_use_id": u.id, "name": u.name, "content_list": []any{object{"tool_use_id": u.id, "name": u.name}}, "text": ""}, object{})
		for _, p := range g.parts(u.json()) {
			send(object{"type": "tool_use", "input": p, "content_list": []any{object{"input": p}}, "text": ""}, object{})
		}
	}
	send(object{"type": "text", "content": "", "text": ""}, object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output})
}

func bedrockNova(g *apiCall) {
	g.thinking, g.earlier = "", nil
	g.up("/model/amazon.nova/invoke-with-response-stream", object{"messages": []any{object{"role": "user", "content": []any{object{"text": g.question}}}}, "system": []any{object{"text": g.system}}, "inferenceConfig": object{"maxTokens": 500}})
	send := func(v object) {
		g.aws("chunk", object{"bytes": base64.StdEncoding.EncodeToString(compactJSON(v))})
	}
	send(object{"messageStart": object{"role": "assistant"}})
	at := 0
	for _, p := range g.parts(g.answer) {
		send(object{"contentBlockDelta": object{"delta": object{"text": p}, "contentBlockIndex": at}})
	}
	for _, u := range g.calls {
		at++
		send(object{"contentBlockStart": object{"start": object{"toolUse": object{"toolUseId": u.id, "name": u.name}}, "contentBlockIndex": at}})
		send(object{"contentBlockDelta": object{"delta": object{"toolUse": object{"input": u.json()}}, "contentBlockIndex": at}})
		send(object{"contentBlockStop": object{"contentBlockIndex": at}})
	}
	send(object{"messageStop": object{"stopReason": "end_turn"}})
	send(object{"metadata": object{"usage": object{"inputTokens": g.input, "outputTokens": g.output, "cacheReadInputTokenCount": 0, "cacheWriteInputTokenCount": 0}, "metrics": object{}, "trace": object{}}, "amazon-bedrock-invocationMetrics": object{"inputTokenCount": g.input, "outputTokenCount": g.output, "invocationLatency": 900, "firstByteLatency": 300}})
}

func a2aStream(g *apiCall) {
	g.noUsage, g.thinking = true, ""
	g.withoutTools()
	task, ctx := g.uuid(), g.uuid()
	g.up("/", object{"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": object{"message": object{"role": "user", "kind": "message", "messageId": g.uuid(), "parts": []any{object{"kind": "text", "text": g.question}}}}})
	send := func(result object) { g.sse("", object{"jsonrpc": "2.0", "id": 1, "result": result}) }
	send(object{"kind": "task", "id": task, "contextId": ctx, "status": object{"state": "submitted", "timestamp": "2026-11-02T10:12:13Z"}, "history": []any{object{"role": "user", "kind": "message", "messageId": "m", "parts": []any{object{"kind": "text", "text": g.question}}}}})
	send(object{"kind": "status-update", "taskId": task, "contextId": ctx, "status": object{"state": "working"}, "final": false})
	parts := g.parts(g.answer)
	for i, p := range parts {
		send(object{"kind": "artifact-update", "taskId": task, "contextId": ctx, "artifact": object{"artifactId": "a1", "name": "answer", "parts": []any{object{"kind": "text", "text": p}}}, "append": i > 0, "lastChunk": i == len(parts)-1})
	}
	send(object{"kind": "status-update", "taskId": task, "contextId": ctx, "status": object{"state": "completed"}, "final": true})
}

func ociChat(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.up("/20231130/actions/chat", object{"compartmentId": "c", "servingMode": object{"modelId": g.model, "servingType": "ON_DEMAND"}, "chatRequest": object{"apiFormat": "GENERIC", "messages": []any{object{"role": "USER", "content": []any{object{"type": "TEXT", "text": g.question}}}}, "isStream": true, "maxTokens": 600}})
	for _, p := range g.parts(g.answer) {
		g.sse("", object{"index": 0, "message": object{"role": "ASSISTANT", "content": []any{object{"type": "TEXT", "text": p}}}, "pad": strings.Repeat("a", 1+g.r.IntN(9))})
	}
	g.sse("", object{"finishReason": "stop", "usage": object{"promptTokens": g.input, "completionTokens": g.output, "totalTokens": g.input + g.output}, "pad": "aa"})
}

func anthropicText(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/v1/complete", object{"model": "claude-2.1", "max_tokens_to_sample": 256, "prompt": "\n\nHuman: " + g.question + "\n\nAssistant:", "stream": true})
	for i, p := range g.parts(g.answer) {
		if i == 3 {
			g.sse("ping", object{"type": "ping"})
		}
		g.sse("completion", object{"type": "completion", "id": "compl_1", "completion": p, "stop_reason": nil, "model": "claude-2.1", "log_id": "l"})
	}
	g.sse("completion", object{"type": "completion", "id": "compl_1", "completion": "", "stop_reason": "stop_sequence", "model": "claude-2.1", "stop": "\n\nHuman:", "log_id": "l"})
}
