package transcript

import (
	"encoding/binary"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// realAPIs are APIs that are in wide use, written without knowledge of the reader.
var realAPIs = []api{
	{"OpenAI responses with built-in tools", false, responsesBuiltIn},
	{"Azure OpenAI chat with content filters", false, azureChat},
	{"Anthropic messages with server tools", false, anthropicServerTools},
	{"SageMaker endpoint, bytes cut anywhere", false, sageMaker},
	{"Triton ModelStreamInfer, gRPC", false, tritonStream},
	{"Data Analytics chat, gRPC", false, dataAnalytics},
	{"Dapr ConverseAlpha2, gRPC", false, daprConverse},
	{"text generation service of watsonx, gRPC", false, fmaasGenerate},
	{"ADK run_sse", false, adkRun},
	{"LangChain stream of events v2", false, langChainEvents},
	{"Mastra agent stream", false, mastraStream},
	{"OpenAI legacy completions", false, legacyCompletions},
}

// An exchangeBefore is an earlier turn of a conversation, which the request repeats.
type exchangeBefore struct{ question, answer string }

// realistic replaces the texts by whole sentences and returns earlier turns.
func (g *apiCall) realistic() []exchangeBefore {
	t := pick(g.maker, []*tongue{g.speech(), g.speaker(), g.stranger()})
	question := func() string { return g.maker.say(t, t.questions, 1) }
	reply := func() string {
		s := g.maker.say(t, t.sentences, 1+g.r.IntN(7))
		switch {
		case g.chance(0.15):
			s += "\n\n```go\n" + g.code() + "```\n" + g.maker.say(t, t.sentences, 1)
		case g.chance(0.1):
			s += "\n\n1. " + g.maker.say(t, t.sentences, 1) + "\n2. " + g.maker.say(t, t.sentences, 1)
		}
		return s
	}
	g.question = question()
	if g.thinking != "" {
		g.thinking = g.maker.say(t, t.thoughts, 1+g.r.IntN(5))
	}
	if g.answer != "" {
		g.answer = reply()
		if g.chance(0.08) {
			g.answer = pick(g.maker, t.words)
		}
	}
	var before []exchangeBefore
	if g.chance(0.5) {
		for range 1 + g.r.IntN(3) {
			before = append(before, exchangeBefore{question(), reply()})
		}
	}
	return before
}

// dialogueMessages is a list of messages with earlier turns.
func (g *apiCall) dialogueMessages(before []exchangeBefore) []any {
	messages := g.chatMessages()
	at := 0
	if g.system != "" {
		at = 1
	}
	var turns []any
	for _, b := range before {
		turns = append(turns, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
	}
	return append(append(append([]any{}, messages[:at]...), turns...), messages[at:]...)
}

// awsRaw sends bytes as an event of an AWS event stream.
func (g *apiCall) awsRaw(event string, payload []byte) {
	if g.ex.ResponseHeaders == nil {
		g.respond("application/vnd.amazon.eventstream")
	}
	g.down(awsMessage(event, "application/octet-stream", payload))
}

func responsesBuiltIn(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	var input []any
	for _, b := range before {
		input = append(input, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
	}
	input = append(input, object{"role": "user", "content": []any{object{"type": "input_text", "text": g.question}}})
	tools := []any{object{"type": "web_search"}, object{"type": "mcp", "server_label": "files", "server_url": "https://mcp.example/sse", "require_approval": "never"}}
	g.up("/v1/responses", object{"model": g.model, "instructions": g.system, "input": input, "tools": tools, "reasoning": object{"effort": "medium", "summary": "auto"}, "stream": true})
	n, index := 0, 0
	var output []any
	send := func(kind string, v object) {
		v["type"], v["sequence_number"] = kind, n
		n++
		g.sse(kind, v)
	}
	response := func(status string, usage any) object {
		return object{"id": "resp_1", "object": "response", "created_at": 1763700000, "status": status, "error": nil, "instructions": g.system, "model": g.model, "output": output, "parallel_tool_calls": true, "reasoning": object{"effort": "medium", "summary": "detailed"}, "store": true, "temperature": 1, "text": object{"format": object{"type": "text"}}, "tool_choice": "auto", "tools": tools, "usage": usage}
	}
	send("response.created", object{"response": response("in_progress", nil)})
	send("response.in_progress", object{"response": response("in_progress", nil)})
	item := func(started, done object, between func(id string)) {
		id := "item_" + g.padding()
		started["id"], done["id"] = id, id
		send("response.output_item.added", object{"output_index": index, "item": started})
		between(id)
		send("response.output_item.done", object{"output_index": index, "item": done})
		output = append(output, done)
		index++
	}
	item(object{"type": "mcp_list_tools", "server_label": "files", "tools": []any{}}, object{"type": "mcp_list_tools", "server_label": "files", "tools": []any{object{"name": "read_file", "description": toolAbout(g.maker), "input_schema": object{"type": "object", "properties": object{"path": object{"type": "string"}}}, "annotations": nil}}}, func(id string) {
		send("response.mcp_list_tools.in_progress", object{"item_id": id, "output_index": index})
		send("response.mcp_list_tools.completed", object{"item_id": id, "output_index": index})
	})
	if g.thinking != "" {
		summary := []any{object{"type": "summary_text", "text": g.thinking}}
		item(object{"type": "reasoning", "summary": []any{}}, object{"type": "reasoning", "summary": summary}, func(id string) {
			send("response.reasoning_summary_part.added", object{"item_id": id, "output_index": index, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
			for _, p := range g.parts(g.thinking) {
				send("response.reasoning_summary_text.delta", object{"item_id": id, "output_index": index, "summary_index": 0, "delta": p, "obfuscation": g.padding()})
			}
			send("response.reasoning_summary_text.done", object{"item_id": id, "output_index": index, "summary_index": 0, "text": g.thinking})
			send("response.reasoning_summary_part.done", object{"item_id": id, "output_index": index, "summary_index": 0, "part": summary[0]})
		})
	}
	if g.chance(0.5) {
		item(object{"type": "web_search_call", "status": "in_progress"}, object{"type": "web_search_call", "status": "completed"}, func(id string) {
			for _, s := range []string{"in_progress", "searching", "completed"} {
				send("response.web_search_call."+s, object{"item_id": id, "output_index": index})
			}
		})
	}
	for _, u := range g.calls {
		item(object{"type": "mcp_call", "server_label": "files", "name": u.name, "arguments": "", "output": nil, "error": nil, "approval_request_id": nil}, object{"type": "mcp_call", "server_label": "files", "name": u.name, "arguments": u.json(), "output": u.result, "error": nil, "approval_request_id": nil}, func(id string) {
			send("response.mcp_call.in_progress", object{"item_id": id, "output_index": index})
			for _, p := range g.parts(u.json()) {
				send("response.mcp_call_arguments.delta", object{"item_id": id, "output_index": index, "delta": p})
			}
			send("response.mcp_call_arguments.done", object{"item_id": id, "output_index": index, "arguments": u.json()})
			send("response.mcp_call.completed", object{"item_id": id, "output_index": index})
		})
	}
	if g.answer != "" {
		cited := []any{object{"type": "url_citation", "start_index": 2, "end_index": 9, "title": "A page about it", "url": "https://example.org/a"}}
		part := object{"type": "output_text", "annotations": cited, "text": g.answer}
		item(object{"type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}, object{"type": "message", "status": "completed", "role": "assistant", "content": []any{part}}, func(id string) {
			at := object{"item_id": id, "output_index": index, "content_index": 0}
			with := func(more object) object {
				for k, v := range at {
					more[k] = v
				}
				return more
			}
			send("response.content_part.added", with(object{"part": object{"type": "output_text", "annotations": []any{}, "text": ""}}))
			for _, p := range g.parts(g.answer) {
				send("response.output_text.delta", with(object{"delta": p, "logprobs": []any{}}))
			}
			send("response.output_text.annotation.added", with(object{"annotation_index": 0, "annotation": cited[0]}))
			send("response.output_text.done", with(object{"text": g.answer, "logprobs": []any{}}))
			send("response.content_part.done", with(object{"part": part}))
		})
	}
	send("response.completed", object{"response": response("completed", object{"input_tokens": g.input, "input_tokens_details": object{"cached_tokens": g.cached}, "output_tokens": g.output, "output_tokens_details": object{"reasoning_tokens": g.reasoning}, "total_tokens": g.input + g.output})})
}

func azureChat(g *apiCall) {
	before := g.realistic()
	g.thinking = ""
	g.up("/openai/deployments/chat/chat/completions?api-version=2025-01-01-preview", object{"messages": g.dialogueMessages(before), "stream": true, "stream_options": object{"include_usage": true}, "tools": g.toolDefinitions()})
	safe := object{"hate": object{"filtered": false, "severity": "safe"}, "self_harm": object{"filtered": false, "severity": "safe"}, "sexual": object{"filtered": false, "severity": "safe"}, "violence": object{"filtered": false, "severity": "safe"}}
	g.sse("", object{"choices": []any{}, "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": []any{object{"prompt_index": 0, "content_filter_results": safe}}})
	send := func(delta object, finish any) {
		g.sse("", object{"choices": []any{object{"content_filter_results": safe, "delta": delta, "finish_reason": finish, "index": 0, "logprobs": nil}}, "created": 1763700000, "id": "chatcmpl-1", "model": g.model, "object": "chat.completion.chunk", "system_fingerprint": "fp_1", "usage": nil})
	}
	send(object{"content": "", "refusal": nil, "role": "assistant"}, nil)
	for i, p := range g.parts(g.answer) {
		send(object{"content": p}, nil)
		if i%20 == 7 {
			// The asynchronous filter reports on ranges of the text.
			g.sse("", object{"id": "", "object": "", "created": 0, "model": "", "choices": []any{object{"index": 0, "finish_reason": nil, "content_filter_results": safe, "content_filter_offsets": object{"check_offset": 44, "start_offset": 44, "end_offset": 198}}}})
		}
	}
	for i, u := range g.calls {
		send(object{"tool_calls": []any{object{"function": object{"arguments": "", "name": u.name}, "id": u.id, "index": i, "type": "function"}}}, nil)
		for _, p := range g.parts(u.json()) {
			send(object{"tool_calls": []any{object{"function": object{"arguments": p}, "index": i}}}, nil)
		}
	}
	send(object{}, "stop")
	g.sse("", object{"choices": []any{}, "created": 1763700000, "id": "chatcmpl-1", "model": g.model, "object": "chat.completion.chunk", "usage": g.openAIUsage()})
	g.sse("", "[DONE]")
}

func anthropicServerTools(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	var messages []any
	for _, b := range before {
		messages = append(messages, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": []any{object{"type": "text", "text": b.answer}}})
	}
	messages = append(messages, object{"role": "user", "content": []any{object{"type": "text", "text": g.question, "cache_control": object{"type": "ephemeral"}}}})
	g.up("/v1/messages", object{"model": g.model, "max_tokens": 4096, "system": []any{object{"type": "text", "text": g.system}}, "messages": messages, "stream": true, "thinking": object{"type": "enabled", "budget_tokens": 2048}, "tools": []any{object{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}}})
	send := func(kind string, v object) {
		v["type"] = kind
		g.sse(kind, v)
	}
	send("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": g.model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": g.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard"}}})
	send("ping", object{})
	index := 0
	block := func(start object, deltas ...object) {
		send("content_block_start", object{"index": index, "content_block": start})
		for _, d := range deltas {
			send("content_block_delta", object{"index": index, "delta": d})
		}
		send("content_block_stop", object{"index": index})
		index++
	}
	if g.thinking != "" {
		var deltas []object
		for _, p := range g.parts(g.thinking) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": p})
		}
		block(object{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, object{"type": "signature_delta", "signature": g.padding() + g.padding()})...)
		if g.chance(0.2) {
			block(object{"type": "redacted_thinking", "data": g.padding() + g.padding() + "=="})
		}
	}
	for i, u := range g.calls {
		kind := "server_tool_use"
		if i == len(g.calls)-1 && g.answer == "" {
			kind = "tool_use"
		}
		var deltas []object
		for _, p := range append([]string{""}, g.parts(u.json())...) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		block(object{"type": kind, "id": u.id, "name": u.name, "input": object{}}, deltas...)
		if kind == "server_tool_use" {
			block(object{"type": "web_search_tool_result", "tool_use_id": u.id, "content": []any{object{"type": "web_search_result", "title": "A page about it", "url": "https://example.org/a", "encrypted_content": g.padding(), "page_age": "April 30, 2025"}}})
		}
	}
	// A text is cut into blocks where a part of it is cited.
	for rest := []rune(g.answer); len(rest) > 0; {
		n := min(len(rest), 10+g.r.IntN(120))
		var deltas []object
		if g.chance(0.4) {
			deltas = append(deltas, object{"type": "citations_delta", "citation": object{"type": "web_search_result_location", "cited_text": "What the page says about it, in a line.", "url": "https://example.org/a", "title": "A page about it", "encrypted_index": g.padding()}})
		}
		for _, p := range g.parts(string(rest[:n])) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
		block(object{"type": "text", "text": ""}, deltas...)
		rest = rest[n:]
	}
	send("message_delta", object{"delta": object{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": object{"output_tokens": g.output, "server_tool_use": object{"web_search_requests": len(g.calls)}}})
	send("message_stop", object{})
}

func sageMaker(g *apiCall) {
	g.realistic()
	g.thinking = ""
	g.withoutTools()
	g.up("/endpoints/llama-3/invocations-response-stream", object{"inputs": g.question, "parameters": object{"max_new_tokens": 512, "temperature": 0.6, "details": true}, "stream": true})
	g.noUsage = true
	var b strings.Builder
	parts := g.parts(g.answer)
	for i, p := range parts {
		v := object{"index": i + 1, "token": object{"id": g.r.IntN(120000), "text": p, "logprob": -0.5, "special": false}, "generated_text": nil, "details": nil}
		fmt.Fprintf(&b, "data:%s\n\n", compactJSON(v))
	}
	fmt.Fprintf(&b, "data:%s\n\n", compactJSON(object{"index": len(parts) + 1, "token": object{"id": 2, "text": "<|eot_id|>", "logprob": -0.1, "special": true}, "generated_text": g.answer, "details": object{"finish_reason": "eos_token", "generated_tokens": len(parts) + 1, "seed": nil}}))
	for rest := []byte(b.String()); len(rest) > 0; {
		n := min(len(rest), 20+g.r.IntN(300))
		g.awsRaw("PayloadPart", rest[:n])
		rest = rest[n:]
	}
}

func tritonStream(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	bytesTensor := func(s string) []byte { return append(binary.LittleEndian.AppendUint32(nil, uint32(len(s))), s...) }
	tensor := func(n int, name, kind string) []byte {
		return pbMsg(n, pbText(1, name), pbText(2, kind), pbMsg(3, []byte{1}))
	}
	request := pbText(1, "vllm_model")
	request = append(append(request, pbText(3, g.uuid())...), tensor(5, "text_input", "BYTES")...)
	request = append(append(request, tensor(5, "stream", "BOOL")...), tensor(5, "sampling_parameters", "BYTES")...)
	request = append(append(request, pbMsg(6, pbText(1, "text_output"))...), pbMsg(7, bytesTensor(g.question))...)
	request = append(append(request, pbMsg(7, []byte{1})...), pbMsg(7, bytesTensor(`{"temperature":"0.1","top_p":"0.95","max_tokens":"256"}`))...)
	g.grpc("inference.GRPCInferenceService/ModelStreamInfer", request)
	final := func(v int) []byte { return pbMsg(4, pbText(1, "triton_final_response"), pbMsg(2, num(1, v))) }
	for _, p := range g.parts(g.answer) {
		g.message(pbMsg(2, pbText(1, "vllm_model"), pbText(2, "1"), final(0), tensor(5, "text_output", "BYTES"), pbMsg(6, bytesTensor(p))))
	}
	g.message(pbMsg(2, pbText(1, "vllm_model"), pbText(2, "1"), final(1)))
}

func dataAnalytics(g *apiCall) {
	before := g.realistic()
	g.noUsage = true
	g.withoutTools()
	user := func(s string) []byte { return pbMsg(2, pbMsg(2, pbText(1, s))) }
	var request []byte
	for _, b := range before {
		request = append(append(request, user(b.question)...), pbMsg(2, pbMsg(3, pbMsg(1, pbText(1, b.answer), num(2, 1))))...)
	}
	request = append(append(request, user(g.question)...), pbText(3, "projects/shop-1/locations/global")...)
	g.grpc("google.cloud.geminidataanalytics.v1beta.DataChatService/Chat", append(request, pbMsg(104, pbText(1, "projects/shop-1/locations/global/dataAgents/agent_1"))...))
	at := 1763700000
	send := func(group int, kind ...[]byte) {
		at += g.r.IntN(3)
		g.message(append(pbMsg(1, num(1, at), num(2, g.r.IntN(1e9))), pbMsg(3, append(kind, num(12, group))...)...))
	}
	for _, thought := range strings.SplitAfter(g.thinking, ". ") {
		if thought != "" {
			send(0, pbMsg(1, pbText(1, thought), num(2, 2)))
		}
	}
	send(1, pbMsg(2, pbMsg(1, pbText(1, g.question))))
	send(1, pbMsg(2, pbMsg(2, pbMsg(1, pbMsg(1, pbText(1, "shop-1"), pbText(3, "sales"), pbText(4, "orders"))))))
	send(2, pbMsg(3, pbText(2, "SELECT city, SUM(total) AS total\nFROM `shop-1.sales.orders`\nGROUP BY city")))
	send(2, pbMsg(3, pbMsg(3, pbText(3, "total_by_city"), pbMsg(2, pbStruct(object{"city": "Oslo", "total": 12})), pbMsg(2, pbStruct(object{"city": "Lima", "total": 9})))))
	send(3, pbMsg(1, pbText(1, g.answer), num(2, 1)))
}

func daprConverse(g *apiCall) {
	before := g.realistic()
	g.thinking, g.noUsage = "", true
	content := func(n int, s string) []byte { return pbMsg(n, pbText(1, s)) }
	call := func(n int, u toolUse) []byte {
		return pbMsg(n, pbText(1, u.id), pbMsg(2, pbText(1, u.name), pbText(2, u.json())))
	}
	message := func(kind int, fields ...[]byte) []byte { return pbMsg(1, pbMsg(kind, fields...)) }
	var messages [][]byte
	if g.system != "" {
		messages = append(messages, message(2, content(2, g.system)))
	}
	for _, b := range before {
		messages = append(messages, message(3, content(2, b.question)), message(4, content(2, b.answer)))
	}
	messages = append(messages, message(3, content(2, g.question)))
	if len(g.earlier) > 0 {
		var calls [][]byte
		for _, u := range g.earlier {
			calls = append(calls, call(3, u))
		}
		messages = append(messages, message(4, calls...))
		for _, u := range g.earlier {
			messages = append(messages, message(5, pbText(1, u.id), pbText(2, u.name), content(3, u.result)))
		}
	}
	request := append(pbText(1, "openai"), pbMsg(3, messages...)...)
	for _, name := range toolNames[:3] {
		request = append(request, pbMsg(8, pbMsg(1, pbText(1, name), pbText(2, toolAbout(g.maker)), pbMsg(3, pbStruct(object{"type": "object", "properties": object{"path": object{"type": "string"}}}))))...)
	}
	g.grpc("dapr.proto.runtime.v1.Dapr/ConverseAlpha2", append(request, pbText(9, "auto")...))
	reply, finish := pbText(1, g.answer), "stop"
	if g.answer == "" {
		reply = nil
	}
	for _, u := range g.calls {
		reply, finish = append(reply, call(2, u)...), "tool_calls"
	}
	g.message(append(pbText(1, g.uuid()), pbMsg(2, pbMsg(1, pbText(1, finish), pbMsg(3, reply)))...))
}

func fmaasGenerate(g *apiCall) {
	g.realistic()
	g.thinking = ""
	g.withoutTools()
	g.tokens()
	params := pbMsg(10, num(1, 1), pbMsg(3, num(1, 300), num(2, 1)), pbMsg(4, num(2, 1), num(4, 1)))
	g.grpc("fmaas.GenerationService/GenerateStream", append(append(pbText(1, "ibm-granite/granite-3.1-8b-instruct"), pbMsg(3, pbText(2, g.question))...), params...))
	withTokens := g.chance(0.5)
	parts := g.parts(g.answer)
	g.output = len(parts) + 1
	g.message(num(6, g.input))
	for i, p := range parts {
		v := append(num(2, i+1), pbText(4, p)...)
		if withTokens {
			logprob := protowire.AppendFixed32(protowire.AppendTag(nil, 3, protowire.Fixed32Type), 0xbe800000+uint32(g.r.IntN(1e6)))
			v = append(v, pbMsg(8, pbText(2, p), logprob)...)
		}
		g.message(v)
	}
	g.message(append(num(2, g.output), num(7, 2)...))
}

func adkRun(g *apiCall) {
	g.realistic()
	g.earlier = nil
	if g.answer == "" {
		g.answer = "I have looked, and all of it is there."
	}
	g.up("/run_sse", object{"appName": "assistant", "userId": "u_1", "sessionId": g.uuid(), "newMessage": object{"role": "user", "parts": []any{object{"text": g.question}}}, "streaming": true})
	invocation := "e-" + g.uuid()
	send := func(role string, parts []any, more object) {
		v := object{"content": object{"parts": parts, "role": role}, "invocationId": invocation, "author": "assistant", "actions": object{"stateDelta": object{}, "artifactDelta": object{}, "requestedAuthConfigs": object{}}, "id": g.uuid(), "timestamp": 1763700000.25 + float64(g.r.IntN(90))}
		for k, x := range more {
			v[k] = x
		}
		g.sse("", v)
	}
	if len(g.calls) > 0 {
		var calls, results []any
		for _, u := range g.calls {
			calls = append(calls, object{"functionCall": object{"id": u.id, "args": u.args, "name": u.name}})
			results = append(results, object{"functionResponse": object{"id": u.id, "name": u.name, "response": object{"result": u.result}}})
		}
		send("model", calls, object{"longRunningToolIds": []any{}})
		send("user", results, nil)
	}
	var whole []any
	stream := func(text string, thought bool) {
		if text == "" {
			return
		}
		part := func(s string) object {
			if thought {
				return object{"text": s, "thought": true}
			}
			return object{"text": s}
		}
		for _, p := range g.parts(text) {
			send("model", []any{part(p)}, object{"partial": true})
		}
		whole = append(whole, part(text))
	}
	stream(g.thinking, true)
	stream(g.answer, false)
	send("model", whole, object{"finishReason": "STOP", "usageMetadata": object{"candidatesTokenCount": g.output, "promptTokenCount": g.input, "totalTokenCount": g.input + g.output}})
}

func langChainEvents(g *apiCall) {
	before := g.realistic()
	g.thinking, g.earlier = "", nil
	if g.answer == "" {
		g.answer = "I have looked, and all of it is there."
	}
	var history []any
	for _, b := range before {
		history = append(history, object{"type": "human", "content": b.question}, object{"type": "ai", "content": b.answer})
	}
	g.up("/agent/stream_events", object{"input": object{"input": g.question, "chat_history": history}, "config": object{}, "version": "v2"})
	runID := g.uuid()
	send := func(event, name string, data object) {
		g.sse("data", object{"event": event, "name": name, "run_id": runID, "tags": []any{"seq:step:1"}, "metadata": object{"ls_provider": "openai", "ls_model_name": g.model, "ls_model_type": "chat", "ls_temperature": 0}, "data": data, "parent_ids": []any{g.uuid()}})
	}
	message := func(kind, text string, more object) object {
		v := object{"content": text, "additional_kwargs": object{}, "response_metadata": object{}, "type": kind, "name": nil, "id": "run-" + runID}
		for k, x := range more {
			v[k] = x
		}
		return v
	}
	chunk := func(text string, chunks []any, usage any) object {
		return object{"chunk": message("AIMessageChunk", text, object{"example": false, "tool_calls": []any{}, "invalid_tool_calls": []any{}, "usage_metadata": usage, "tool_call_chunks": chunks})}
	}
	usage := object{"input_tokens": g.input, "output_tokens": g.output, "total_tokens": g.input + g.output}
	input := object{"messages": []any{[]any{message("system", g.system, nil), message("human", g.question, nil)}}}
	send("on_chain_start", "agent", object{"input": object{"input": g.question, "chat_history": history}})
	send("on_chat_model_start", "ChatOpenAI", object{"input": input})
	if len(g.calls) > 0 {
		var whole []any
		for i, u := range g.calls {
			send("on_chat_model_stream", "ChatOpenAI", chunk("", []any{object{"name": u.name, "args": "", "id": u.id, "index": i, "type": "tool_call_chunk"}}, nil))
			for _, p := range g.parts(u.json()) {
				send("on_chat_model_stream", "ChatOpenAI", chunk("", []any{object{"name": nil, "args": p, "id": nil, "index": i, "type": "tool_call_chunk"}}, nil))
			}
			whole = append(whole, object{"name": u.name, "args": u.args, "id": u.id, "type": "tool_call"})
		}
		send("on_chat_model_end", "ChatOpenAI", object{"output": message("ai", "", object{"tool_calls": whole}), "input": input})
		for _, u := range g.calls {
			send("on_tool_start", u.name, object{"input": u.args})
			send("on_tool_end", u.name, object{"output": message("tool", u.result, object{"tool_call_id": u.id, "name": u.name, "status": "success"}), "input": u.args})
		}
		runID = g.uuid()
		send("on_chat_model_start", "ChatOpenAI", object{"input": input})
	}
	for _, p := range g.parts(g.answer) {
		send("on_chat_model_stream", "ChatOpenAI", chunk(p, []any{}, nil))
	}
	send("on_chat_model_stream", "ChatOpenAI", chunk("", []any{}, usage))
	send("on_chat_model_end", "ChatOpenAI", object{"output": message("ai", g.answer, object{"tool_calls": []any{}, "usage_metadata": usage}), "input": input})
	send("on_chain_stream", "agent", object{"chunk": object{"output": g.answer}})
	send("on_chain_end", "agent", object{"output": object{"output": g.answer}, "input": object{"input": g.question}})
}

func mastraStream(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	if g.answer == "" {
		g.answer = "I have looked, and all of it is there."
	}
	g.up("/api/agents/helper/stream", object{"messages": g.dialogueMessages(before), "runId": g.uuid(), "threadId": g.uuid(), "resourceId": "r1"})
	run := g.uuid()
	send := func(kind string, payload object) {
		g.sse("", object{"type": kind, "runId": run, "from": "AGENT", "payload": payload})
	}
	send("start", object{"id": "helper", "messageId": g.uuid()})
	send("step-start", object{"messageId": g.uuid(), "request": object{"body": string(compactJSON(object{"model": g.model, "stream": true}))}, "warnings": []any{}})
	text := func(kind, s string) {
		if s == "" {
			return
		}
		id := kind + "-" + g.padding()
		send(kind+"-start", object{"id": id})
		for _, p := range g.parts(s) {
			send(kind+"-delta", object{"id": id, "text": p})
		}
		send(kind+"-end", object{"id": id})
	}
	text("reasoning", g.thinking)
	for _, u := range g.calls {
		send("tool-call-input-streaming-start", object{"toolCallId": u.id, "toolName": u.name})
		for _, p := range g.parts(u.json()) {
			send("tool-call-delta", object{"argsTextDelta": p, "toolCallId": u.id, "toolName": u.name})
		}
		send("tool-call-input-streaming-end", object{"toolCallId": u.id})
		send("tool-call", object{"toolCallId": u.id, "toolName": u.name, "args": u.args})
		send("tool-result", object{"toolCallId": u.id, "toolName": u.name, "args": u.args, "result": object{"output": u.result}})
	}
	text("text", g.answer)
	usage := object{"inputTokens": g.input, "outputTokens": g.output, "totalTokens": g.input + g.output, "reasoningTokens": g.reasoning, "cachedInputTokens": g.cached}
	send("step-finish", object{"stepResult": object{"reason": "stop", "warnings": []any{}, "isContinued": false}, "output": object{"usage": usage}, "metadata": object{"modelId": g.model, "timestamp": "2026-11-02T10:12:13.000Z"}})
	send("finish", object{"stepResult": object{"reason": "stop"}, "output": object{"usage": usage}, "metadata": object{}, "messages": object{"all": []any{}, "user": []any{}, "nonUser": []any{}}})
	g.sse("", "[DONE]")
}

func legacyCompletions(g *apiCall) {
	before := g.realistic()
	g.thinking = ""
	g.withoutTools()
	var prompt strings.Builder
	for _, b := range before {
		prompt.WriteString("Human: " + b.question + "\nAI: " + b.answer + "\n")
	}
	prompt.WriteString("Human: " + g.question + "\nAI:")
	g.up("/v1/completions", object{"model": "gpt-3.5-turbo-instruct", "prompt": prompt.String(), "max_tokens": 256, "temperature": 0.7, "stop": []any{"\nHuman:"}, "stream": true, "stream_options": object{"include_usage": true}})
	send := func(choices []any, usage any) {
		g.sse("", object{"id": "cmpl-1", "object": "text_completion", "created": 1763700000, "choices": choices, "model": "gpt-3.5-turbo-instruct:20230824-v2", "usage": usage})
	}
	for _, p := range g.parts(" " + g.answer) {
		send([]any{object{"text": p, "index": 0, "logprobs": nil, "finish_reason": nil}}, nil)
	}
	send([]any{object{"text": "", "index": 0, "logprobs": nil, "finish_reason": "stop"}}, nil)
	send([]any{}, object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output})
	g.sse("", "[DONE]")
}
