package transcript

import (
	"encoding/base64"
	"fmt"
	"strings"

	"unwire/captures"
)

// blindAPIs were written before anybody looked at how the reader would treat them.
var blindAPIs = []api{
	{"Yandex Foundation Models, gRPC", false, yandexCompletion},
	{"GigaChat, gRPC", false, gigaChat},
	{"A2A SendStreamingMessage, gRPC", false, a2aGRPC},
	{"LocalAI PredictStream, gRPC", false, localAI},
	{"OpenAI Realtime, WebSocket", false, openAIRealtime},
	{"Gemini Live, WebSocket", false, geminiLive},
	{"Agent Client Protocol, WebSocket", false, agentClient},
	{"Bot Framework Direct Line, WebSocket", false, directLine},
	{"SignalR stream, WebSocket", false, signalRStream},
	{"AI SDK data stream v1", false, dataStream},
	{"CopilotKit, GraphQL incremental delivery", false, copilotKit},
	{"LangServe stream of log patches", false, langServeLog},
	{"Amazon Q GenerateAssistantResponse", false, amazonQ},
	{"Replicate output stream", false, replicateStream},
	{"Letta messages", false, lettaMessages},
	{"Cody completions", false, codyCompletions},
	{"Poe bot query", false, poeQuery},
	{"Discovery Engine streamAnswer", false, discoveryAnswer},
	{"Flowise prediction", false, flowisePrediction},
}

// webSocket makes the exchange a WebSocket; messages are sent by say.
func (g *apiCall) webSocket(url string) {
	g.ex.URL, g.ex.Method, g.ex.Status, g.ex.Transport = "wss://api.example"+url, "GET", 101, captures.WebSocket
	g.ex.RequestHeaders = nil
}

// say sends a message of a WebSocket: text, or a value as JSON.
func (g *apiCall) say(dir captures.Direction, v any) {
	text, ok := v.(string)
	if !ok {
		text = string(compactJSON(v))
	}
	g.chunk(dir, []byte(text))
	g.chunks[len(g.chunks)-1].Opcode = captures.OpText | captures.OpFinal
}

func (g *apiCall) upload(v any)   { g.say(captures.Up, v) }
func (g *apiCall) download(v any) { g.say(captures.Down, v) }

func yandexCompletion(g *apiCall) {
	g.thinking = ""
	if len(g.calls) > 0 {
		g.answer = ""
	}
	g.tokens()
	text := func(role, s string) []byte { return pbMsg(3, pbText(1, role), pbText(2, s)) }
	call := func(u toolUse) []byte { return pbMsg(1, pbMsg(1, pbText(1, u.name), pbMsg(2, pbStruct(u.args)))) }
	request := append(pbText(1, "gpt://b1g/"+g.model+"/latest"), pbMsg(2, num(1, 1), pbMsg(2, pbDouble(1, 0.3)), pbMsg(3, num(1, 2000)))...)
	if g.system != "" {
		request = append(request, text("system", g.system)...)
	}
	request = append(request, text("user", g.question)...)
	if len(g.earlier) > 0 {
		var calls, results []byte
		for _, u := range g.earlier {
			calls = append(calls, call(u)...)
			results = append(results, pbMsg(1, pbMsg(1, pbText(1, u.name), pbText(2, u.result)))...)
		}
		request = append(request, pbMsg(3, pbText(1, "assistant"), pbMsg(3, calls))...)
		request = append(request, pbMsg(3, pbText(1, "user"), pbMsg(4, results))...)
	}
	g.grpc("yandex.cloud.ai.foundation_models.v1.TextGenerationService/Completion", request)
	send := func(content []byte, status, output int) {
		usage := pbMsg(2, num(1, g.input), num(2, output), num(3, g.input+output), pbMsg(4))
		g.message(append(append(pbMsg(1, pbMsg(1, pbText(1, "assistant"), content), num(2, status)), usage...), pbText(3, "23.10.2024")...))
	}
	said, parts := "", g.parts(g.answer)
	for i, p := range parts {
		said += p
		send(pbText(2, said), 1, 1+i*max(g.output-1, 0)/len(parts))
	}
	if len(g.calls) > 0 {
		var calls []byte
		for _, u := range g.calls {
			calls = append(calls, call(u)...)
		}
		send(pbMsg(3, calls), 5, g.output)
		return
	}
	send(pbText(2, said), 3, g.output)
}

func gigaChat(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.tokens()
	message := func(role, s string) []byte { return pbMsg(3, pbText(1, role), pbText(2, s)) }
	request := append(pbMsg(1, num(4, 512)), pbText(2, "GigaChat:latest")...)
	if g.system != "" {
		request = append(request, message("system", g.system)...)
	}
	if g.chance(0.3) {
		request = append(append(request, message("user", "Hello, can you help me?")...), message("assistant", "Of course, what do you need?")...)
	}
	g.grpc("gigachat.v1.ChatService/ChatStream", append(request, message("user", g.question)...))
	at := 1763700000
	for _, p := range g.parts(g.answer) {
		at += g.r.IntN(2)
		g.message(append(append(pbMsg(1, pbMsg(1, pbText(1, "assistant"), pbText(2, p))), pbMsg(3, pbText(1, "GigaChat"), pbText(2, "2.0.28.2"))...), num(4, at)...))
	}
	end := append(pbMsg(1, pbMsg(1, pbText(1, "assistant")), pbText(2, "stop")), pbMsg(2, num(1, g.input), num(2, g.output), num(3, g.input+g.output))...)
	g.message(append(append(end, pbMsg(3, pbText(1, "GigaChat"), pbText(2, "2.0.28.2"))...), num(4, at)...))
}

func a2aGRPC(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	task, ctx := g.uuid(), g.uuid()
	stamp := func() []byte { return pbMsg(3, num(1, 1763700000+g.r.IntN(9)), num(2, g.r.IntN(1e9))) }
	message := func(n, role int, text string) []byte {
		return pbMsg(n, pbText(1, g.uuid()), pbText(2, ctx), pbText(3, task), num(4, role), pbMsg(5, pbText(1, text)))
	}
	g.grpc("a2a.v1.A2AService/SendStreamingMessage", append(message(1, 1, g.question), pbMsg(2, pbText(1, "text/plain"))...))
	g.message(pbMsg(1, pbText(1, task), pbText(2, ctx), pbMsg(3, num(1, 1), stamp()), message(5, 1, g.question)))
	for _, s := range []string{"Looking at the request", "Writing the answer"} {
		if g.chance(0.5) {
			g.message(pbMsg(3, pbText(1, task), pbText(2, ctx), pbMsg(3, num(1, 2), message(2, 2, s), stamp())))
		}
	}
	parts := g.parts(g.answer)
	artifact := g.uuid()
	for i, p := range parts {
		flags := []byte{}
		if i > 0 {
			flags = num(4, 1)
		}
		if i == len(parts)-1 {
			flags = append(flags, num(5, 1)...)
		}
		g.message(pbMsg(4, pbText(1, task), pbText(2, ctx), pbMsg(3, pbText(1, artifact), pbText(3, "answer"), pbMsg(5, pbText(1, p))), flags))
	}
	g.message(pbMsg(3, pbText(1, task), pbText(2, ctx), pbMsg(3, num(1, 3), stamp()), num(4, 1)))
}

func localAI(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.tokens()
	request := pbText(1, "<|im_start|>user\n"+g.question+"<|im_end|>\n<|im_start|>assistant\n")
	for _, f := range [][2]int{{3, 4}, {4, 2048}, {5, 40}, {7, 512}, {19, 2}, {26, 1}} {
		request = append(request, num(f[0], f[1])...)
	}
	request = append(request, pbMsg(44, pbText(1, "user"), pbText(2, g.question))...)
	g.grpc("backend.Backend/PredictStream", append(request, pbText(47, g.uuid())...))
	parts := g.parts(g.answer)
	for i, p := range parts {
		tokens := 1 + i
		if i == len(parts)-1 {
			tokens = g.output
		}
		g.message(append(append(append(pbText(1, p), num(2, tokens)...), num(3, g.input)...), append(pbDouble(4, 88.25), pbDouble(5, 912.5+float64(i))...)...))
	}
}

func openAIRealtime(g *apiCall) {
	g.thinking = ""
	g.webSocket("/v1/realtime?model=gpt-realtime")
	at := 0
	send := func(typ string, v object) {
		at++
		v["type"], v["event_id"] = typ, fmt.Sprintf("event_%s%d", g.padding(), at)
		g.download(v)
	}
	session := object{"id": "sess_" + g.padding(), "object": "realtime.session", "model": "gpt-realtime", "instructions": "Your knowledge cutoff is 2023-10. You are a helpful, witty, and friendly AI. Act like a human.", "tools": []any{}, "tool_choice": "auto", "output_modalities": []any{"text"}, "max_output_tokens": "inf"}
	send("session.created", object{"session": session})
	g.upload(object{"type": "session.update", "session": object{"type": "realtime", "instructions": g.system, "tools": g.toolDefinitions()}})
	send("session.updated", object{"session": session})
	items := []object{{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": g.question}}}}
	for _, u := range g.earlier {
		items = append(items, object{"type": "function_call", "call_id": u.id, "name": u.name, "arguments": u.json()})
	}
	for _, u := range g.earlier {
		items = append(items, object{"type": "function_call_output", "call_id": u.id, "output": u.result})
	}
	for _, item := range items {
		g.upload(object{"type": "conversation.item.create", "item": item})
		echo := object{"id": "item_" + g.padding(), "object": "realtime.item", "status": "completed"}
		for k, v := range item {
			echo[k] = v
		}
		send("conversation.item.added", object{"previous_item_id": nil, "item": echo})
		send("conversation.item.done", object{"previous_item_id": nil, "item": echo})
	}
	g.upload(object{"type": "response.create"})
	id := "resp_" + g.padding()
	send("response.created", object{"response": object{"object": "realtime.response", "id": id, "status": "in_progress", "output": []any{}, "usage": nil}})
	kind, partKind := "output_text", object{"type": "text"}
	name := "text"
	if g.chance(0.4) {
		kind, name, partKind = "output_audio_transcript", "transcript", object{"type": "audio"}
	}
	var output []any
	index := 0
	if g.answer != "" {
		item := "item_" + g.padding()
		send("response.output_item.added", object{"response_id": id, "output_index": index, "item": object{"id": item, "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}})
		partKind[name] = ""
		send("response.content_part.added", object{"response_id": id, "item_id": item, "output_index": index, "content_index": 0, "part": partKind})
		for _, p := range g.parts(g.answer) {
			send("response."+kind+".delta", object{"response_id": id, "item_id": item, "output_index": index, "content_index": 0, "delta": p})
			if name == "transcript" {
				send("response.output_audio.delta", object{"response_id": id, "item_id": item, "output_index": index, "content_index": 0, "delta": g.audio()})
			}
		}
		send("response."+kind+".done", object{"response_id": id, "item_id": item, "output_index": index, "content_index": 0, name: g.answer})
		done := object{"id": item, "type": "message", "status": "completed", "role": "assistant", "content": []any{object{"type": kind, name: g.answer}}}
		send("response.output_item.done", object{"response_id": id, "output_index": index, "item": done})
		output, index = append(output, done), index+1
	}
	for _, u := range g.calls {
		item := "item_" + g.padding()
		send("response.output_item.added", object{"response_id": id, "output_index": index, "item": object{"id": item, "type": "function_call", "status": "in_progress", "name": u.name, "call_id": u.id, "arguments": ""}})
		for _, p := range g.parts(u.json()) {
			send("response.function_call_arguments.delta", object{"response_id": id, "item_id": item, "output_index": index, "call_id": u.id, "delta": p})
		}
		send("response.function_call_arguments.done", object{"response_id": id, "item_id": item, "output_index": index, "call_id": u.id, "name": u.name, "arguments": u.json()})
		done := object{"id": item, "type": "function_call", "status": "completed", "name": u.name, "call_id": u.id, "arguments": u.json()}
		send("response.output_item.done", object{"response_id": id, "output_index": index, "item": done})
		output, index = append(output, done), index+1
	}
	send("response.done", object{"response": object{"object": "realtime.response", "id": id, "status": "completed", "output": output, "usage": object{
		"total_tokens": g.input + g.output, "input_tokens": g.input, "output_tokens": g.output,
		"input_token_details": object{"text_tokens": g.input - 10, "audio_tokens": 10, "cached_tokens": 0}, "output_token_details": object{"text_tokens": g.output, "audio_tokens": 0},
	}}})
	send("rate_limits.updated", object{"rate_limits": []any{object{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60}, object{"name": "tokens", "limit": 50000, "remaining": 49950, "reset_seconds": 60}}})
}

// audio is a piece of sound in base64.
func (g *apiCall) audio() string {
	b := make([]byte, 60+g.r.IntN(300))
	for i := range b {
		b[i] = byte(g.r.IntN(256))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func geminiLive(g *apiCall) {
	g.earlier = nil
	g.webSocket("/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent")
	spoken := g.chance(0.4)
	modality := "TEXT"
	if spoken {
		modality = "AUDIO"
	}
	setup := object{"model": "models/" + g.model, "generationConfig": object{"responseModalities": []any{modality}}, "outputAudioTranscription": object{}}
	if g.system != "" {
		setup["systemInstruction"] = object{"parts": []any{object{"text": g.system}}}
	}
	send := func(v object) {
		g.download(v)
		g.chunks[len(g.chunks)-1].Opcode = captures.OpBinary | captures.OpFinal
	}
	g.upload(object{"setup": setup})
	send(object{"setupComplete": object{}})
	g.upload(object{"clientContent": object{"turns": []any{object{"role": "user", "parts": []any{object{"text": g.question}}}}, "turnComplete": true}})
	part := func(p object) { send(object{"serverContent": object{"modelTurn": object{"parts": []any{p}}}}) }
	for _, p := range g.parts(g.thinking) {
		part(object{"text": p, "thought": true})
	}
	for _, p := range g.parts(g.answer) {
		if spoken {
			part(object{"inlineData": object{"mimeType": "audio/pcm;rate=24000", "data": g.audio()}})
			send(object{"serverContent": object{"outputTranscription": object{"text": p}}})
		} else {
			part(object{"text": p})
		}
	}
	if len(g.calls) > 0 {
		var calls []any
		for _, u := range g.calls {
			calls = append(calls, object{"id": u.id, "name": u.name, "args": u.args})
		}
		send(object{"toolCall": object{"functionCalls": calls}})
	}
	send(object{"sessionResumptionUpdate": object{"newHandle": g.uuid(), "resumable": true}})
	send(object{"serverContent": object{"generationComplete": true}})
	send(object{"serverContent": object{"turnComplete": true}, "usageMetadata": object{"promptTokenCount": g.input, "responseTokenCount": g.output, "totalTokenCount": g.input + g.output, "promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": g.input}}}})
}

func agentClient(g *apiCall) {
	g.noUsage = true
	g.earlier = nil
	g.webSocket("/acp")
	session := "sess_" + g.padding()
	g.upload(object{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": object{"protocolVersion": 1, "clientCapabilities": object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": true}, "clientInfo": object{"name": "my-editor", "title": "My Editor", "version": "1.0.0"}}})
	g.download(object{"jsonrpc": "2.0", "id": 0, "result": object{"protocolVersion": 1, "agentCapabilities": object{"loadSession": true}, "agentInfo": object{"name": "coder", "title": "Coder", "version": "0.3.1"}, "authMethods": []any{}}})
	g.upload(object{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": object{"cwd": "/home/me/project", "mcpServers": []any{}}})
	g.download(object{"jsonrpc": "2.0", "id": 1, "result": object{"sessionId": session, "modes": object{"currentModeId": "ask", "availableModes": []any{object{"id": "ask", "name": "Ask", "description": "Request permission before making any changes"}}}}})
	update := func(kind string, v object) {
		v["sessionUpdate"] = kind
		g.download(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": session, "update": v}})
	}
	update("available_commands_update", object{"availableCommands": []any{object{"name": "web", "description": "Search the web for information", "input": object{"hint": "query to search for"}}}})
	g.upload(object{"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": object{"sessionId": session, "prompt": []any{object{"type": "text", "text": g.question}, object{"type": "resource", "resource": object{"uri": "file:///home/me/main.go", "mimeType": "text/x-go", "text": "package main\n\nfunc main() {}\n"}}}}})
	for _, p := range g.parts(g.thinking) {
		update("agent_thought_chunk", object{"content": object{"type": "text", "text": p}})
	}
	if g.chance(0.3) {
		update("plan", object{"entries": []any{object{"content": "Check for syntax errors", "priority": "high", "status": "pending"}, object{"content": "Write the tests", "priority": "low", "status": "pending"}}})
	}
	for _, u := range g.calls {
		update("tool_call", object{"toolCallId": u.id, "title": u.name, "kind": "other", "status": "pending", "rawInput": u.args})
	}
	for _, u := range g.calls {
		update("tool_call_update", object{"toolCallId": u.id, "status": "in_progress"})
		update("tool_call_update", object{"toolCallId": u.id, "status": "completed", "content": []any{object{"type": "content", "content": object{"type": "text", "text": u.result}}}})
	}
	for _, p := range g.parts(g.answer) {
		update("agent_message_chunk", object{"content": object{"type": "text", "text": p}})
	}
	g.download(object{"jsonrpc": "2.0", "id": 2, "result": object{"stopReason": "end_turn"}})
}

func directLine(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/v3/directline/conversations/7hU/stream?watermark=-&t=x")
	conv, mark := g.uuid(), 0
	send := func(v object, from object) {
		v["id"], v["timestamp"], v["channelId"], v["conversation"], v["from"] = fmt.Sprintf("%s|%07d", conv, mark), fmt.Sprintf("2026-11-02T10:12:%02d.1234567Z", mark%60), "directline", object{"id": conv}, from
		mark++
		g.download(object{"activities": []any{v}, "watermark": fmt.Sprint(mark)})
	}
	bot := object{"id": "helper", "name": "Helper", "role": "bot"}
	send(object{"type": "message", "text": "Hello! How can I help you today?", "textFormat": "plain", "locale": "en-US"}, bot)
	g.download("")
	send(object{"type": "message", "text": g.question, "textFormat": "plain", "locale": "en-US", "channelData": object{"clientActivityID": g.padding()}}, object{"id": "u-" + g.padding(), "name": "", "role": "user"})
	stream := "a-" + g.padding()
	send(object{"type": "typing", "text": "Searching through documents...", "channelData": object{"streamType": "informative", "streamSequence": 1}}, bot)
	said := ""
	for i, p := range g.parts(g.answer) {
		said += p
		send(object{"type": "typing", "text": said, "channelData": object{"streamId": stream, "streamType": "streaming", "streamSequence": i + 2}}, bot)
	}
	send(object{"type": "message", "text": said, "textFormat": "markdown", "inputHint": "acceptingInput", "channelData": object{"streamId": stream, "streamType": "final"}, "suggestedActions": object{"actions": []any{object{"type": "imBack", "title": "Tell me more", "value": "Tell me more"}, object{"type": "imBack", "title": "Thanks", "value": "Thanks"}}}}, bot)
}

func signalRStream(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/hubs/chat?id=" + g.padding())
	g.upload("{\"protocol\":\"json\",\"version\":1}\x1e")
	g.download("{}\x1e")
	record := func(v object) string { return string(compactJSON(v)) + "\x1e" }
	g.upload(record(object{"type": 4, "invocationId": "0", "target": "StreamReply", "arguments": []any{g.question}}))
	out := ""
	for _, p := range g.parts(g.answer) {
		out += record(object{"type": 2, "invocationId": "0", "item": p})
		if g.chance(0.05) {
			out += record(object{"type": 6})
		}
		if g.chance(0.7) {
			g.download(out)
			out = ""
		}
	}
	g.download(out + record(object{"type": 3, "invocationId": "0"}))
}

func replicateStream(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.ex.URL, g.ex.Method, g.ex.RequestHeaders = "https://stream.example/v1/files/"+g.padding(), "GET", captures.Headers{{Name: "accept", Value: "text/event-stream"}}
	g.respond("text/event-stream")
	for i, p := range g.parts(g.answer) {
		data := "data: " + strings.ReplaceAll(p, "\n", "\ndata: ")
		g.down(fmt.Appendf(nil, "event: output\nid: 1690212292:%d\n%s\n\n", i, data))
	}
	g.down([]byte("event: done\nid: 1690212293:0\ndata: {}\n\n"))
}
