package transcript

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
)

// agentAPIs are streams of agent services, written from the types of their SDKs before anybody looked at the reader.
var agentAPIs = []api{
	{"Mistral conversations", false, mistralConversation},
	{"Amazon Q Business chat, event stream in both directions", false, qBusinessChat},
	{"Lex V2 StartConversation, event stream in both directions", false, lexConversation},
	{"Cortex agents run", false, cortexAgents},
	{"Agentforce messages", false, agentforce},
	{"Amplify AI conversation, AppSync subscription", false, amplifyConversation},
	{"Spark chat, WebSocket", false, sparkChat},
	{"Hugging Face chat-ui conversation", false, chatUI},
	{"Dust agent message events", false, dustEvents},
	{"opencode server events", false, openCode},
	{"Codex app server, WebSocket", false, codexServer},
	{"Reasoning engine StreamQuery, gRPC with JSON bodies", false, reasoningEngine},
}

func mistralConversation(g *apiCall) {
	before := g.realistic()
	g.thinking, g.earlier = "", nil
	if len(g.calls) > 0 {
		g.answer = ""
	}
	var inputs []any
	for _, b := range before {
		inputs = append(inputs, object{"object": "entry", "type": "message.input", "role": "user", "content": b.question, "prefix": false}, object{"object": "entry", "type": "message.output", "role": "assistant", "content": b.answer})
	}
	inputs = append(inputs, object{"object": "entry", "type": "message.input", "role": "user", "content": g.question, "prefix": false})
	g.up("/v1/conversations#stream", object{"model": g.model, "instructions": g.system, "inputs": inputs, "stream": true, "store": true, "tools": []any{object{"type": "web_search"}, object{"type": "function", "function": object{"name": "read_file", "description": toolAbout(g.maker), "parameters": object{"type": "object", "properties": object{"path": object{"type": "string"}}}}}}})
	send := func(kind string, v object) {
		v["type"], v["created_at"] = kind, "2026-11-20T10:12:13.123456Z"
		g.sse(kind, v)
	}
	send("conversation.response.started", object{"conversation_id": "conv_0198"})
	at := 0
	if g.answer != "" && g.chance(0.5) {
		id := "tool_exec_" + g.padding()
		u := toolUse{name: "web_search", args: object{"query": "when does the train leave"}}
		send("tool.execution.started", object{"output_index": at, "id": id, "name": u.name, "arguments": ""})
		for _, p := range g.parts(u.json()) {
			send("tool.execution.delta", object{"output_index": at, "id": id, "name": u.name, "arguments": p})
		}
		send("tool.execution.done", object{"output_index": at, "id": id, "name": u.name, "info": object{}})
		at++
		g.calls = append(g.calls, u)
	}
	id := "msg_" + g.padding()
	for i, p := range g.parts(g.answer) {
		send("message.output.delta", object{"output_index": at, "id": id, "content_index": 0, "model": g.model, "agent_id": nil, "role": "assistant", "content": p})
		if i == 4 && g.chance(0.3) {
			send("message.output.delta", object{"output_index": at, "id": id, "content_index": 1, "model": g.model, "agent_id": nil, "role": "assistant", "content": object{"type": "tool_reference", "tool": "web_search", "title": "A page about it", "url": "https://example.org/a", "source": "brave"}})
		}
	}
	if g.answer == "" {
		for _, u := range g.calls {
			fc := "fc_" + g.padding()
			for _, p := range g.parts(u.json()) {
				send("function.call.delta", object{"output_index": at, "id": fc, "model": g.model, "agent_id": nil, "name": u.name, "tool_call_id": u.id, "arguments": p})
			}
			at++
		}
	}
	send("conversation.response.done", object{"usage": object{"prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output + 12, "connector_tokens": 12, "connectors": object{"web_search": 1}}})
}

// awsUp sends an event of a request that is an AWS event stream.
func (g *apiCall) awsUp(event string, v any) {
	g.chunk(captures.Up, awsMessage(event, "application/json", compactJSON(v)))
}

func qBusinessChat(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.ex.URL = "https://qbusiness.example/applications/0d1e/conversations?userId=u"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/vnd.amazon.eventstream"}}
	g.awsUp("configurationEvent", object{"chatMode": "RETRIEVAL_MODE", "attributeFilter": nil})
	g.awsUp("textEvent", object{"userMessage": g.question})
	g.awsUp("endOfInputEvent", object{})
	conv, user, system := g.uuid(), g.uuid(), g.uuid()
	for _, p := range g.parts(g.answer) {
		g.aws("textEvent", object{"systemMessageType": "RESPONSE", "conversationId": conv, "userMessageId": user, "systemMessageId": system, "systemMessage": p})
	}
	source := object{"title": "Handbook, chapter 4", "snippet": g.sentence(languages[0]) + " " + g.sentence(languages[0]), "url": "https://wiki.example/handbook", "citationNumber": 1, "updatedAt": 1763700000, "textMessageSegments": []any{object{"beginOffset": 0, "endOffset": 20, "snippetExcerpt": object{"text": g.sentence(languages[0])}}}}
	g.aws("metadataEvent", object{"conversationId": conv, "userMessageId": user, "systemMessageId": system, "sourceAttributions": []any{source}, "finalTextMessage": g.answer})
}

func lexConversation(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.ex.URL = "https://runtime-v2-lex.example/bots/B/botAliases/A/botLocales/en_US/sessions/s/conversation"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/vnd.amazon.eventstream"}}
	g.awsUp("ConfigurationEvent", object{"responseContentType": "text/plain; charset=utf-8", "eventId": "0", "clientTimestampMillis": 1763700000000})
	g.awsUp("TextInputEvent", object{"text": g.question, "eventId": "1", "clientTimestampMillis": 1763700000100})
	g.aws("HeartbeatEvent", object{"eventId": "RESPONSE-1"})
	intent := func(name, state string) object {
		return object{"name": name, "slots": object{"City": object{"shape": "Scalar", "value": object{"originalValue": "oslo", "interpretedValue": "Oslo", "resolvedValues": []any{"Oslo"}}}, "Date": nil}, "state": state, "confirmationState": "None"}
	}
	g.aws("IntentResultEvent", object{"inputMode": "Text", "interpretations": []any{object{"intent": intent("BookHotel", "InProgress"), "nluConfidence": object{"score": 0.91}, "interpretationSource": "Lex"}, object{"intent": intent("FallbackIntent", "ReadyForFulfillment")}}, "sessionState": object{"intent": intent("BookHotel", "InProgress"), "dialogAction": object{"type": "ElicitSlot", "slotToElicit": "Date"}, "sessionAttributes": object{"tier": "gold"}, "originatingRequestId": g.uuid()}, "sessionId": "s", "eventId": "RESPONSE-2"})
	g.aws("TextResponseEvent", object{"messages": []any{object{"content": g.answer, "contentType": "PlainText"}}, "eventId": "RESPONSE-3"})
	g.aws("HeartbeatEvent", object{"eventId": "RESPONSE-4"})
}

func cortexAgents(g *apiCall) {
	before := g.realistic()
	message := func(role string, content ...any) object { return object{"role": role, "content": content} }
	text := func(s string) object { return object{"type": "text", "text": s} }
	var messages []any
	for _, b := range before {
		messages = append(messages, message("user", text(b.question)), message("assistant", text(b.answer)))
	}
	messages = append(messages, message("user", text(g.question)))
	for _, u := range g.earlier {
		messages = append(messages,
			message("assistant", object{"type": "tool_use", "tool_use": object{"tool_use_id": u.id, "type": "generic", "name": u.name, "input": u.args, "client_side_execute": true}}),
			message("user", object{"type": "tool_result", "tool_result": object{"tool_use_id": u.id, "type": "generic", "name": u.name, "status": "success", "content": []any{text(u.result)}}}))
	}
	g.up("/api/v2/databases/d/schemas/s/agents/a:run", object{"thread_id": 12, "parent_message_id": 0, "messages": messages, "tool_choice": object{"type": "auto", "name": []any{}}, "instructions": object{"response": g.system}, "models": object{"orchestration": g.model}})
	at, n := 0, 0
	send := func(kind string, v object) {
		n++
		v["sequence_number"] = n
		g.sse(kind, v)
	}
	var content []any
	send("response.status", object{"status": "planning", "message": "Planning the next steps"})
	block := func(kind, s string) {
		for _, p := range g.parts(s) {
			send("response."+kind+".delta", object{"content_index": at, "text": p})
		}
		send("response."+kind, object{"content_index": at, "text": s})
		at++
	}
	if g.thinking != "" {
		block("thinking", g.thinking)
		content = append(content, object{"type": "thinking", "thinking": object{"text": g.thinking}})
	}
	for _, u := range g.calls {
		send("response.tool_use", object{"content_index": at, "tool_use_id": u.id, "type": "generic", "name": u.name, "input": u.args, "client_side_execute": false})
		at++
		send("response.tool_result.status", object{"tool_use_id": u.id, "tool_type": "generic", "status": "running", "message": "Executing the tool"})
		result := []any{object{"type": "json", "json": object{"output": u.result}}}
		send("response.tool_result", object{"content_index": at, "tool_use_id": u.id, "type": "generic", "name": u.name, "status": "success", "content": result})
		at++
		content = append(content,
			object{"type": "tool_use", "tool_use": object{"tool_use_id": u.id, "type": "generic", "name": u.name, "input": u.args, "client_side_execute": false}},
			object{"type": "tool_result", "tool_result": object{"tool_use_id": u.id, "type": "generic", "name": u.name, "status": "success", "content": result}})
	}
	if g.answer != "" {
		send("response.status", object{"status": "proceeding_to_answer", "message": "Forming the answer"})
		block("text", g.answer)
		content = append(content, text(g.answer))
	}
	send("response", object{"role": "assistant", "content": content, "metadata": object{"usage": object{"tokens_consumed": []any{object{"model_name": g.model, "input_tokens": object{"cache_read": 0, "cache_write": 0, "uncached": g.input, "total": g.input}, "output_tokens": object{"total": g.output}, "context_window": 200000}}}}})
	g.sse("done", "[DONE]")
}

func agentforce(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage = "", true
	g.withoutTools()
	g.up("/einstein/ai-agent/v1/sessions/57904eb6/messages/stream", object{"message": object{"sequenceId": 2, "type": "Text", "text": g.question}, "variables": []any{}})
	origin, trace, at := "1763700000000-REQ", strings.ReplaceAll(g.uuid(), "-", ""), 0
	send := func(kind string, message object) {
		g.sse(kind, object{"timestamp": 1763700000000 + at, "originEventId": origin, "traceId": trace, "offset": at, "message": message})
		at++
	}
	send("PROGRESS_INDICATOR", object{"type": "ProgressIndicator", "id": g.uuid(), "indicatorType": "ACTION", "message": "Getting the record details"})
	id := g.uuid()
	for i, p := range g.parts(g.answer) {
		send("TEXT_CHUNK", object{"type": "TextChunk", "id": id, "offset": i, "message": p})
	}
	send("INFORM", object{"type": "Inform", "id": id, "feedbackId": g.uuid(), "planId": g.uuid(), "isContentSafe": true, "message": g.answer, "result": []any{}, "citedReferences": []any{}})
	send("END_OF_TURN", object{"type": "EndOfTurn", "id": g.uuid()})
}

func amplifyConversation(g *apiCall) {
	g.realistic()
	g.thinking, g.noUsage, g.earlier = "", true, nil
	g.webSocket("/graphql/realtime")
	sub, conv, asked, reply := g.uuid(), g.uuid(), g.uuid(), g.uuid()
	g.upload(object{"type": "connection_init"})
	g.download(object{"type": "connection_ack", "payload": object{"connectionTimeoutMs": 300000}})
	query := "subscription OnChat($conversationId: ID) { onCreateAssistantResponseChat(conversationId: $conversationId) { id conversationId associatedUserMessageId contentBlockIndex contentBlockText contentBlockDeltaIndex contentBlockDoneAtIndex contentBlockToolUse { toolUseId name input } stopReason errors { errorType message } } }"
	g.upload(object{"id": sub, "type": "start", "payload": object{"data": string(compactJSON(object{"query": query, "variables": object{"conversationId": conv}})), "extensions": object{"authorization": object{"host": "x.appsync-api.example", "Authorization": g.padding()}}}})
	g.download(object{"id": sub, "type": "start_ack"})
	n := 0
	send := func(v object) {
		o := object{"id": fmt.Sprintf("%s#stream-%d", reply, n), "conversationId": conv, "associatedUserMessageId": asked, "contentBlockIndex": nil, "contentBlockText": nil, "contentBlockDeltaIndex": nil, "contentBlockDoneAtIndex": nil, "contentBlockToolUse": nil, "stopReason": nil, "errors": nil, "owner": "o::o", "__typename": "ConversationMessageStreamPart"}
		for k, e := range v {
			o[k] = e
		}
		n++
		g.download(object{"id": sub, "type": "data", "payload": object{"data": object{"onCreateAssistantResponseChat": o}}})
		if n == 7 {
			g.download(object{"type": "ka"})
		}
	}
	block := 0
	if parts := g.parts(g.answer); len(parts) > 0 {
		for i, p := range parts {
			send(object{"contentBlockIndex": block, "contentBlockText": p, "contentBlockDeltaIndex": i})
		}
		send(object{"contentBlockIndex": block, "contentBlockDoneAtIndex": len(parts) - 1})
		block++
	}
	for _, u := range g.calls {
		send(object{"contentBlockIndex": block, "contentBlockToolUse": object{"toolUseId": u.id, "name": u.name, "input": u.json(), "__typename": "AmplifyAIToolUseBlock"}})
		block++
	}
	stop := "end_turn"
	if len(g.calls) > 0 {
		stop = "tool_use"
	}
	send(object{"stopReason": stop})
}

func sparkChat(g *apiCall) {
	before := g.realistic()
	g.earlier = nil
	if len(g.calls) > 0 {
		g.calls, g.answer = g.calls[:1], ""
	}
	g.webSocket("/v3.5/chat?authorization=aG1hYw&date=x&host=spark-api.example")
	text := []any{}
	if g.system != "" {
		text = append(text, object{"role": "system", "content": g.system})
	}
	for _, b := range before {
		text = append(text, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
	}
	text = append(text, object{"role": "user", "content": g.question})
	g.upload(object{"header": object{"app_id": "12ab34cd", "uid": g.padding()}, "parameter": object{"chat": object{"domain": "generalv3.5", "temperature": 0.5, "max_tokens": 4096}}, "payload": object{"message": object{"text": text}}})
	sid, seq := "cht000b"+g.padding(), 0
	send := func(status int, said object, usage any) {
		said["role"], said["index"] = "assistant", 0
		payload := object{"choices": object{"status": status, "seq": seq, "text": []any{said}}}
		if usage != nil {
			payload["usage"] = object{"text": usage}
		}
		seq++
		g.download(object{"header": object{"code": 0, "message": "Success", "sid": sid, "status": status}, "payload": payload})
	}
	status := func() int { return min(seq, 1) }
	for _, p := range g.parts(g.thinking) {
		send(status(), object{"content": "", "reasoning_content": p}, nil)
	}
	for _, p := range g.parts(g.answer) {
		send(status(), object{"content": p}, nil)
	}
	last := object{"content": ""}
	for _, u := range g.calls {
		last["content_type"], last["function_call"] = "text", object{"name": u.name, "arguments": u.json()}
	}
	send(2, last, object{"question_tokens": 4, "prompt_tokens": g.input, "completion_tokens": g.output, "total_tokens": g.input + g.output})
}

func chatUI(g *apiCall) {
	g.realistic()
	g.noUsage, g.earlier = true, nil
	g.ex.URL = "https://chat.example/conversation/66f0"
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "multipart/form-data; boundary=----b7"}}
	data := compactJSON(object{"inputs": g.question, "id": g.uuid(), "is_retry": false, "is_continue": false, "selectedMcpServerNames": []any{}, "selectedMcpServers": []any{}})
	g.chunk(captures.Up, []byte("------b7\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n"+string(data)+"\r\n------b7--\r\n"))
	g.respond("application/jsonl")
	pad := func(s string) string { return s + strings.Repeat("\x00", max(0, 16-len([]rune(s)))) }
	g.line(object{"type": "status", "status": "started"})
	g.line(object{"type": "title", "title": "A short title"})
	for _, p := range g.parts(g.thinking) {
		g.line(object{"type": "reasoning", "subtype": "stream", "token": p})
	}
	if g.thinking != "" {
		g.line(object{"type": "reasoning", "subtype": "status", "status": "Done in 3.2s."})
	}
	for _, u := range g.calls {
		id := g.uuid()
		g.line(object{"type": "tool", "subtype": "call", "uuid": id, "call": object{"name": u.name, "parameters": u.args}})
		g.line(object{"type": "tool", "subtype": "eta", "uuid": id, "eta": 4})
		g.line(object{"type": "tool", "subtype": "result", "uuid": id, "result": object{"status": "success", "call": object{"name": u.name, "parameters": u.args}, "outputs": []any{object{"content": u.result}}, "display": true}})
	}
	for _, p := range g.parts(g.answer) {
		g.line(object{"type": "stream", "token": pad(p)})
	}
	g.line(object{"type": "finalAnswer", "text": g.answer, "interrupted": false})
	g.down([]byte(strings.Repeat(" ", 4096) + "\n"))
	g.line(object{"type": "status", "status": "finished"})
}

func dustEvents(g *apiCall) {
	g.realistic()
	g.noUsage, g.earlier = true, nil
	g.ex.URL, g.ex.Method = "https://dust.example/api/v1/w/w1/assistant/conversations/c1/messages/m1/events", "GET"
	g.ex.RequestHeaders = nil
	n := 0
	send := func(kind string, v object) {
		v["type"], v["created"], v["configurationId"], v["messageId"] = kind, 1763700000000+n, "dust", "m1"
		n++
		g.sse("", object{"eventId": fmt.Sprintf("17637000%05d-0", n), "data": v})
	}
	tokens := func(class, s string) {
		for _, p := range g.parts(s) {
			send("generation_tokens", object{"text": p, "classification": class})
		}
	}
	tokens("chain_of_thought", g.thinking)
	var actions []any
	for i, u := range g.calls {
		action := object{"id": 100 + i, "sId": "act_" + g.padding(), "createdAt": 1763700000000, "updatedAt": 1763700000000, "mcpServerId": "mcp_1", "internalMCPServerName": nil, "functionCallName": u.name, "functionCallId": u.id, "params": u.args, "status": "running", "step": i, "output": nil, "toolName": u.name, "agentMessageId": 7, "generatedFiles": []any{}}
		send("tool_params", object{"action": action})
		done := object{}
		for k, v := range action {
			done[k] = v
		}
		done["status"], done["output"] = "succeeded", []any{object{"type": "text", "text": u.result}}
		send("agent_action_success", object{"action": done})
		actions = append(actions, done)
	}
	tokens("tokens", g.answer)
	var thought any
	if g.thinking != "" {
		thought = g.thinking
	}
	send("agent_message_success", object{"runIds": []any{g.uuid()}, "message": object{"id": 7, "agentMessageId": 7, "created": 1763700000000, "type": "agent_message", "sId": "m1", "visibility": "visible", "version": 0, "parentMessageId": "m0", "status": "succeeded", "content": g.answer, "chainOfThought": thought, "rawContents": []any{object{"step": 0, "content": g.answer}}, "actions": actions, "error": nil, "configuration": object{"sId": "dust", "name": "dust", "description": "An assistant with context on your company data.", "pictureUrl": "https://dust.example/p.png", "status": "active", "model": object{"providerId": "anthropic", "modelId": g.model, "temperature": 0.7}}, "citations": object{}, "contents": []any{}, "parsedContents": object{}, "rank": 1}})
	g.sse("", "done")
}

func openCode(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.ex.URL, g.ex.Method = "https://opencode.example/event", "GET"
	g.ex.RequestHeaders = nil
	session, user, reply := "ses_"+g.padding(), "msg_a"+g.padding(), "msg_b"+g.padding()
	send := func(kind string, v object) { g.sse("", object{"type": kind, "properties": v}) }
	part := func(message, kind, id string, v object, delta string) {
		v["id"], v["sessionID"], v["messageID"], v["type"] = id, session, message, kind
		o := object{"part": v}
		if delta != "" {
			o["delta"] = delta
		}
		send("message.part.updated", o)
	}
	send("server.connected", object{})
	send("message.updated", object{"info": object{"id": user, "sessionID": session, "role": "user", "time": object{"created": 1763700000000}, "agent": "build", "model": object{"providerID": "anthropic", "modelID": g.model}}})
	part(user, "text", "prt_"+g.padding(), object{"text": g.question}, "")
	info := func(input, output int, done bool) object {
		at := object{"created": 1763700000200}
		if done {
			at["completed"] = 1763700009000
		}
		return object{"info": object{"id": reply, "sessionID": session, "role": "assistant", "time": at, "parentID": user, "modelID": g.model, "providerID": "anthropic", "mode": "build", "path": object{"cwd": "/home/u/p", "root": "/home/u/p"}, "cost": 0.012, "tokens": object{"input": input, "output": output, "reasoning": 0, "cache": object{"read": g.cached, "write": 0}}}}
	}
	send("message.updated", info(0, 0, false))
	part(reply, "step-start", "prt_"+g.padding(), object{"snapshot": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}, "")
	growing := func(kind, s string) {
		if s == "" {
			return
		}
		id, said := "prt_"+g.padding(), ""
		for _, p := range g.parts(s) {
			said += p
			part(reply, kind, id, object{"text": said, "time": object{"start": 1763700000300}}, p)
		}
		part(reply, kind, id, object{"text": s, "time": object{"start": 1763700000300, "end": 1763700001300}}, "")
	}
	growing("reasoning", g.thinking)
	for _, u := range g.calls {
		id := "prt_" + g.padding()
		part(reply, "tool", id, object{"callID": u.id, "tool": u.name, "state": object{"status": "pending", "input": object{}, "raw": ""}}, "")
		part(reply, "tool", id, object{"callID": u.id, "tool": u.name, "state": object{"status": "running", "input": u.args, "time": object{"start": 1763700002000}}}, "")
		part(reply, "tool", id, object{"callID": u.id, "tool": u.name, "state": object{"status": "completed", "input": u.args, "output": u.result, "title": "src/main.go", "metadata": object{"truncated": false}, "time": object{"start": 1763700002000, "end": 1763700002100}}}, "")
	}
	growing("text", g.answer)
	part(reply, "step-finish", "prt_"+g.padding(), object{"reason": "stop", "cost": 0.012, "tokens": object{"input": g.input, "output": g.output, "reasoning": 0, "cache": object{"read": g.cached, "write": 0}}}, "")
	send("message.updated", info(g.input, g.output, true))
	send("session.idle", object{"sessionID": session})
}

func codexServer(g *apiCall) {
	g.realistic()
	g.earlier = nil
	g.webSocket("/")
	thread, turn := g.uuid(), g.uuid()
	g.upload(object{"method": "initialize", "id": 0, "params": object{"clientInfo": object{"name": "editor", "title": "Editor", "version": "1.2.0"}}})
	g.download(object{"id": 0, "result": object{"userAgent": "codex/0.98.0 (Linux; x86_64)"}})
	g.upload(object{"method": "initialized"})
	g.upload(object{"method": "thread/start", "id": 1, "params": object{"model": g.model, "cwd": "/home/u/p", "approvalPolicy": "never", "sandbox": "workspaceWrite"}})
	g.download(object{"id": 1, "result": object{"thread": object{"id": thread, "preview": "", "modelProvider": "openai", "createdAt": 1763700000, "turns": []any{}}, "model": g.model}})
	g.upload(object{"method": "turn/start", "id": 2, "params": object{"threadId": thread, "input": []any{object{"type": "text", "text": g.question}}}})
	g.download(object{"id": 2, "result": object{"turn": object{"id": turn, "status": "inProgress", "items": []any{}, "error": nil}}})
	send := func(method string, params object) {
		params["threadId"], params["turnId"] = thread, turn
		g.download(object{"method": method, "params": params})
	}
	item := func(id string, started, done object, between func()) {
		started["id"], done["id"] = id, id
		send("item/started", object{"item": started})
		between()
		send("item/completed", object{"item": done})
	}
	said := []any{object{"type": "text", "text": g.question}}
	item("item-0", object{"type": "userMessage", "content": said}, object{"type": "userMessage", "content": said}, func() {})
	if g.thinking != "" {
		id := "rs_" + g.padding()
		item(id, object{"type": "reasoning", "summary": []any{}, "content": []any{}}, object{"type": "reasoning", "summary": []any{g.thinking}, "content": []any{}}, func() {
			send("item/reasoning/summaryPartAdded", object{"itemId": id, "summaryIndex": 0})
			for _, p := range g.parts(g.thinking) {
				send("item/reasoning/summaryTextDelta", object{"itemId": id, "delta": p, "summaryIndex": 0})
			}
		})
	}
	for _, u := range g.calls {
		call := func(status string, result any, ms any) object {
			return object{"type": "mcpToolCall", "server": "files", "tool": u.name, "status": status, "arguments": u.args, "result": result, "error": nil, "durationMs": ms}
		}
		item(u.id, call("inProgress", nil, nil), call("completed", object{"content": []any{object{"type": "text", "text": u.result}}, "structuredContent": nil}, 210), func() {})
	}
	if g.answer != "" {
		id := "msg_" + g.padding()
		item(id, object{"type": "agentMessage", "text": ""}, object{"type": "agentMessage", "text": g.answer}, func() {
			for _, p := range g.parts(g.answer) {
				send("item/agentMessage/delta", object{"itemId": id, "delta": p})
			}
		})
	}
	tokens := object{"totalTokens": g.input + g.output, "inputTokens": g.input, "cachedInputTokens": g.cached, "outputTokens": g.output, "reasoningOutputTokens": g.reasoning}
	send("thread/tokenUsage/updated", object{"tokenUsage": object{"total": tokens, "last": tokens, "modelContextWindow": 272000}})
	g.download(object{"method": "turn/completed", "params": object{"threadId": thread, "turn": object{"id": turn, "status": "completed", "items": []any{}, "error": nil}}})
}

func reasoningEngine(g *apiCall) {
	g.realistic()
	g.thinking, g.earlier = "", nil
	if g.answer == "" {
		g.answer = g.text(languages[0], 2)
	}
	request := append(pbText(1, "projects/p/locations/us-central1/reasoningEngines/123456"), pbMsg(2, pbStruct(object{"message": g.question, "user_id": "u1", "session_id": "77"}))...)
	g.grpc("google.cloud.aiplatform.v1.ReasoningEngineExecutionService/StreamQueryReasoningEngine", append(request, pbText(3, "stream_query")...))
	invocation := "e-" + g.uuid()
	send := func(role string, partial bool, usage any, parts ...any) {
		event := object{"model_version": g.model, "content": object{"parts": parts, "role": role}, "invocation_id": invocation, "author": "helper_agent", "actions": object{"state_delta": object{}, "artifact_delta": object{}, "requested_auth_configs": object{}}, "id": g.uuid(), "timestamp": 1763700000.25}
		if partial {
			event["partial"] = true
		}
		if usage != nil {
			event["usage_metadata"] = usage
		}
		body := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), append(compactJSON(event), '\n'))
		g.message(append(pbText(1, "application/json"), body...))
	}
	for _, u := range g.calls {
		send("model", false, nil, object{"function_call": object{"id": u.id, "args": u.args, "name": u.name}})
		send("user", false, nil, object{"function_response": object{"id": u.id, "name": u.name, "response": object{"result": u.result}}})
	}
	usage := object{"candidates_token_count": g.output, "prompt_token_count": g.input, "total_token_count": g.input + g.output, "traffic_type": "ON_DEMAND"}
	if g.chance(0.6) {
		for _, p := range g.parts(g.answer) {
			send("model", true, nil, object{"text": p})
		}
	}
	send("model", false, usage, object{"text": g.answer})
}
