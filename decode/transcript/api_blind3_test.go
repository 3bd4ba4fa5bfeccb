package transcript

import (
	"encoding/base64"
	"fmt"

	"unwire/captures"
)

// secondBlindAPIs were written after the failures of blindAPIs had been corrected.
var secondBlindAPIs = []api{
	{"n8n chat trigger, NDJSON", false, n8nChat},
	{"Langflow run", false, langflowRun},
	{"Deepgram voice agent, WebSocket", false, deepgramAgent},
	{"ElevenLabs agents, WebSocket", false, elevenLabs},
	{"Bedrock InvokeAgent", false, bedrockAgent},
	{"Caikit text generation, gRPC", false, caikitText},
	{"Dialogflow CX, gRPC", false, dialogflowCX},
	{"Chainlit, Socket.IO", false, chainlitChat},
	{"Cloudflare Agents, WebSocket", false, cloudflareAgent},
	{"chat completions with two choices", false, twoChoices},
}

func n8nChat(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/webhook/"+g.uuid()+"/chat", object{"action": "sendMessage", "sessionId": g.uuid(), "chatInput": g.question})
	g.respond("application/json; charset=utf-8")
	send := func(kind string, v object) {
		v["type"], v["metadata"] = kind, object{"nodeId": "b1c2", "nodeName": "AI Agent", "itemIndex": 0, "runIndex": 0, "timestamp": 1763700000000 + g.r.IntN(9000)}
		g.down(append(compactJSON(v), '\n'))
	}
	send("begin", object{})
	for _, p := range g.parts(g.answer) {
		send("item", object{"content": p})
	}
	send("end", object{})
}

func langflowRun(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	session := g.uuid()
	g.up("/api/v1/run/"+g.uuid()+"?stream=true", object{"input_value": g.question, "input_type": "chat", "output_type": "chat", "session_id": session})
	g.respond("text/event-stream; charset=utf-8")
	send := func(event string, data object) {
		g.down(append(compactJSON(object{"event": event, "data": data}), "\n\n"...))
	}
	message := func(sender, name, text, id string) object {
		return object{"timestamp": "2026-11-02 10:12:13 UTC", "sender": sender, "sender_name": name, "session_id": session, "text": text, "files": []any{}, "error": false, "edit": false, "properties": object{"text_color": "", "source": object{"id": nil, "display_name": nil}, "icon": ""}, "category": "message", "content_blocks": []any{}, "id": id, "flow_id": g.uuid()}
	}
	send("add_message", message("User", "User", g.question, g.uuid()))
	id := g.uuid()
	send("add_message", message("Machine", "AI", "", id))
	for _, p := range g.parts(g.answer) {
		send("token", object{"chunk": p, "id": id, "timestamp": "2026-11-02 10:12:14 UTC"})
	}
	send("add_message", message("Machine", "AI", g.answer, id))
	send("end", object{"result": object{"session_id": session, "outputs": []any{object{"inputs": object{"input_value": g.question}, "outputs": []any{object{"results": object{"message": object{"text_key": "text", "data": object{"text": g.answer, "sender": "Machine"}}}, "messages": []any{object{"message": g.answer, "sender": "Machine", "sender_name": "AI", "type": "message"}}, "component_display_name": "Chat Output"}}}}}})
}

func deepgramAgent(g *apiCall) {
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/v1/agent/converse")
	g.download(object{"type": "Welcome", "request_id": g.uuid()})
	g.upload(object{"type": "Settings", "audio": object{"input": object{"encoding": "linear16", "sample_rate": 24000}}, "agent": object{"language": "en", "think": object{"provider": object{"type": "open_ai", "model": g.model}, "prompt": g.system}}})
	g.download(object{"type": "SettingsApplied"})
	g.download(object{"type": "ConversationText", "role": "assistant", "content": "Hello! How can I help you today?"})
	g.download(object{"type": "UserStartedSpeaking"})
	g.download(object{"type": "ConversationText", "role": "user", "content": g.question})
	for _, u := range g.calls {
		g.download(object{"type": "FunctionCallRequest", "functions": []any{object{"id": u.id, "name": u.name, "arguments": u.json(), "client_side": true}}})
		g.upload(object{"type": "FunctionCallResponse", "id": u.id, "name": u.name, "content": u.result})
	}
	if g.answer != "" {
		g.download(object{"type": "AgentStartedSpeaking", "total_latency": 1.2, "tts_latency": 0.3, "ttt_latency": 0.9})
		g.download(object{"type": "ConversationText", "role": "assistant", "content": g.answer})
		for range 3 {
			sound, _ := base64.StdEncoding.DecodeString(g.audio())
			g.say(captures.Down, string(sound))
			g.chunks[len(g.chunks)-1].Opcode = captures.OpBinary | captures.OpFinal
		}
	}
	g.download(object{"type": "AgentAudioDone"})
}

func elevenLabs(g *apiCall) {
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/v1/convai/conversation?agent_id=" + g.padding())
	g.upload(object{"type": "conversation_initiation_client_data", "conversation_config_override": object{"agent": object{"language": "en"}}})
	g.download(object{"type": "conversation_initiation_metadata", "conversation_initiation_metadata_event": object{"conversation_id": "conv_" + g.padding(), "agent_output_audio_format": "pcm_16000"}})
	g.upload(object{"user_audio_chunk": g.audio()})
	g.download(object{"type": "ping", "ping_event": object{"event_id": 1, "ping_ms": 50}})
	g.upload(object{"type": "pong", "event_id": 1})
	g.upload(object{"user_audio_chunk": g.audio()})
	g.download(object{"type": "user_transcript", "user_transcription_event": object{"user_transcript": g.question}})
	for _, u := range g.calls {
		g.download(object{"type": "client_tool_call", "client_tool_call": object{"tool_name": u.name, "tool_call_id": u.id, "parameters": u.args}})
		g.upload(object{"type": "client_tool_result", "tool_call_id": u.id, "result": u.result, "is_error": false})
	}
	if g.answer != "" {
		g.download(object{"type": "agent_response", "agent_response_event": object{"agent_response": g.answer}})
		for i := range 3 {
			g.download(object{"type": "audio", "audio_event": object{"audio_base_64": g.audio(), "event_id": i + 2}})
		}
	}
}

func bedrockAgent(g *apiCall) {
	g.noUsage, g.earlier, g.calls = true, nil, nil
	g.withoutTools()
	session := g.uuid()
	g.up("/agents/A1/agentAliases/B2/sessions/"+session+"/text", object{"inputText": g.question, "enableTrace": true, "endSession": false, "streamingConfigurations": object{"streamFinalResponse": true}})
	trace := func(v object) {
		g.aws("trace", object{"agentId": "A1", "agentAliasId": "B2", "sessionId": session, "agentVersion": "1", "trace": object{"orchestrationTrace": v}})
	}
	trace(object{"modelInvocationInput": object{"traceId": g.uuid(), "type": "ORCHESTRATION", "text": string(compactJSON(object{"system": "You are a helpful agent.", "messages": []any{object{"role": "user", "content": g.question}}}))}})
	if g.thinking != "" {
		trace(object{"rationale": object{"traceId": g.uuid(), "text": g.thinking}})
	}
	for _, p := range g.parts(g.answer) {
		g.aws("chunk", object{"bytes": base64.StdEncoding.EncodeToString([]byte(p))})
	}
	trace(object{"observation": object{"traceId": g.uuid(), "type": "FINISH", "finalResponse": object{"text": g.answer}}})
}

func caikitText(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.tokens()
	g.grpc("caikit.runtime.Nlp.NlpService/ServerStreamingTextGenerationTaskPredict", append(append(pbText(1, g.question), num(6, 200)...), pbText(8, "greedy")...))
	g.message(pbMsg(3, num(4, g.input)))
	parts := g.parts(g.answer)
	for i, p := range parts {
		reason := 0
		n := i + 1
		if i == len(parts)-1 {
			reason, n = 2, g.output
		}
		details := pbMsg(3, num(2, n), num(3, 7), num(4, g.input))
		if reason > 0 {
			details = pbMsg(3, num(1, reason), num(2, n), num(3, 7), num(4, g.input))
		}
		g.message(append(append(pbText(1, p), pbMsg(2, pbText(1, p), pbDouble(3, -0.25))...), details...))
	}
}

func dialogflowCX(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	session := "projects/p/locations/global/agents/" + g.uuid() + "/sessions/" + g.padding()
	g.grpc("google.cloud.dialogflow.cx.v3.Sessions/ServerStreamingDetectIntent", append(pbText(1, session), pbMsg(3, pbMsg(1, pbText(1, g.question)), pbText(4, "en"))...))
	page := pbMsg(7, pbText(1, session[:60]+"/flows/1/pages/2"), pbText(2, "Start Page"))
	send := func(kind int, text string) {
		result := pbMsg(2, pbText(1, g.question), pbText(2, "en"), pbMsg(4, pbMsg(1, pbText(1, text))), page)
		g.message(append(append(pbText(1, g.uuid()), result...), num(6, kind)...))
	}
	send(1, "Let me look that up for you.")
	send(2, g.answer)
	g.answer = "Let me look that up for you.\n" + g.answer
}

func chainlitChat(g *apiCall) {
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.webSocket("/ws/socket.io/?EIO=4&transport=websocket")
	g.download(`0{"sid":"` + g.padding() + `","upgrades":[],"pingTimeout":20000,"pingInterval":25000,"maxPayload":1000000}`)
	g.upload("40")
	g.download(`40{"sid":"` + g.padding() + `"}`)
	emit := func(dir captures.Direction, event string, v any) {
		g.say(dir, "42"+string(compactJSON([]any{event, v})))
	}
	emit(captures.Up, "connection_successful", object{})
	emit(captures.Up, "client_message", object{"message": object{"id": g.uuid(), "threadId": "", "name": "user", "type": "user_message", "output": g.question, "createdAt": "2026-11-02T10:12:13.000Z"}, "fileReferences": []any{}})
	emit(captures.Down, "task_start", object{})
	id := g.uuid()
	step := func(text string) object {
		return object{"id": id, "threadId": "t", "parentId": nil, "name": "Assistant", "type": "assistant_message", "input": "", "output": text, "createdAt": "2026-11-02T10:12:14.000Z", "streaming": text == "", "isError": false, "waitForAnswer": false}
	}
	emit(captures.Down, "stream_start", step(""))
	for i, p := range g.parts(g.answer) {
		if i == 5 {
			g.download("2")
			g.upload("3")
		}
		emit(captures.Down, "stream_token", object{"id": id, "token": p, "isSequence": false, "isInput": false})
	}
	emit(captures.Down, "update_message", step(g.answer))
	emit(captures.Down, "task_end", object{})
}

func cloudflareAgent(g *apiCall) {
	g.noUsage, g.earlier = true, nil
	g.webSocket("/agents/chat/" + g.padding())
	id := g.padding()
	g.download(object{"type": "cf_agent_mcp_servers", "mcp": object{"prompts": []any{}, "resources": []any{}, "servers": object{}, "tools": []any{}}})
	g.upload(object{"type": "cf_agent_use_chat_request", "id": id, "init": object{"method": "POST", "body": string(compactJSON(object{"messages": []any{object{"id": g.padding(), "role": "user", "parts": []any{object{"type": "text", "text": g.question}}}}}))}})
	send := func(v object) {
		g.download(object{"type": "cf_agent_use_chat_response", "id": id, "body": string(compactJSON(v)), "done": false})
	}
	send(object{"type": "start"})
	part := func(kind, text string) {
		if text == "" {
			return
		}
		send(object{"type": kind + "-start", "id": kind})
		for _, p := range g.parts(text) {
			send(object{"type": kind + "-delta", "id": kind, "delta": p})
		}
		send(object{"type": kind + "-end", "id": kind})
	}
	part("reasoning", g.thinking)
	part("text", g.answer)
	for _, u := range g.calls {
		send(object{"type": "tool-input-start", "toolCallId": u.id, "toolName": u.name})
		for _, p := range g.parts(u.json()) {
			send(object{"type": "tool-input-delta", "toolCallId": u.id, "inputTextDelta": p})
		}
		send(object{"type": "tool-input-available", "toolCallId": u.id, "toolName": u.name, "input": u.args})
	}
	send(object{"type": "finish"})
	g.download(object{"type": "cf_agent_use_chat_response", "id": id, "body": "", "done": true})
}

func twoChoices(g *apiCall) {
	g.thinking = ""
	g.withoutTools()
	g.up("/chat/completions", object{"model": g.model, "messages": g.chatMessages(), "n": 2, "stream": true, "stream_options": object{"include_usage": true}})
	send := func(index int, delta object, finish any) {
		g.sse("", object{"choices": []any{object{"index": index, "delta": delta, "finish_reason": finish, "content_filter_offsets": object{"check_offset": 44, "start_offset": 44, "end_offset": 77}, "content_filter_results": object{"hate": object{"filtered": false, "severity": "safe"}}}}, "created": 1763700000, "id": "c1", "model": g.model, "copilot_references": nil})
	}
	g.sse("", object{"choices": []any{}, "created": 0, "id": "", "prompt_filter_results": []any{object{"content_filter_results": object{"hate": object{"filtered": false, "severity": "safe"}}, "prompt_index": 0}}})
	other := g.parts("Another answer to the same question, " + fmt.Sprint(g.r.IntN(100)) + " words long.")
	for _, p := range g.parts(g.answer) {
		send(0, object{"content": p, "role": "assistant"}, nil)
		if len(other) > 0 {
			send(1, object{"content": other[0], "role": "assistant"}, nil)
			other = other[1:]
		}
	}
	for _, p := range other {
		send(1, object{"content": p, "role": "assistant"}, nil)
	}
	send(0, object{"content": nil}, "stop")
	send(1, object{"content": nil}, "stop")
	g.sse("", object{"choices": []any{}, "created": 1763700000, "id": "c1", "model": g.model, "usage": g.openAIUsage()})
	g.sse("", "[DONE]")
}
