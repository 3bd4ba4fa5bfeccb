package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// messagesJSON are three JSON APIs by events: content blocks, parts of
// candidates, and responses of items.
func messagesJSON(m *maker) labelled {
	switch m.r.IntN(3) {
	case 0:
		return contentBlocks(m)
	case 1:
		return candidateParts(m)
	}
	return responseItems(m)
}

func contentBlocks(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	sys := systemPrompt(m)
	m.emit(captures.Up, "", object{"model": "claude-4.5-sonnet", "max_tokens": 1024, "system": sys, "messages": []any{object{"role": "user", "content": []any{object{"type": "text", "text": ask}}}}, "stream": true})
	l.want(User, ask)
	l.want(roleSystem, sys)
	m.emit(captures.Down, "message_start", object{"type": "message_start", "message": object{"id": "msg_" + fmt.Sprintf("%x", m.r.Uint64()), "type": "message", "role": "assistant", "model": "claude-4.5-sonnet", "content": []any{}, "usage": object{"input_tokens": 25, "output_tokens": 1}}})
	index := 0
	block := func(kind, member, text string, extra object) {
		start := object{"type": kind}
		for k, v := range extra {
			start[k] = v
		}
		m.emit(captures.Down, "content_block_start", object{"type": "content_block_start", "index": index, "content_block": start})
		for _, p := range m.tokens(text) {
			m.emit(captures.Down, "content_block_delta", object{"type": "content_block_delta", "index": index, "delta": object{"type": map[string]string{"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}[kind], member: p}})
		}
		m.emit(captures.Down, "content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
		if m.chance(0.3) {
			m.emit(captures.Down, "ping", object{"type": "ping"})
		}
	}
	if m.chance(0.5) {
		th := m.thought(t)
		block("thinking", "thinking", th, object{"thinking": "", "signature": ""})
		l.want(Thinking, th)
	}
	if m.chance(0.9) {
		l.answer = m.reply(t)
		block("text", "text", l.answer, object{"text": ""})
		l.want(Assistant, l.answer)
	}
	if m.chance(0.35) {
		name, args := m.call()
		block("tool_use", "partial_json", args, object{"id": "toolu_" + fmt.Sprintf("%x", m.r.Uint64()), "name": name, "input": object{}})
		l.want(roleToolCall, args)
	}
	m.emit(captures.Down, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": 15}})
	m.emit(captures.Down, "message_stop", object{"type": "message_stop"})
	l.ex = m.ex
	return l
}

func candidateParts(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	m.emit(captures.Up, "", object{"contents": []any{object{"role": "user", "parts": []any{object{"text": ask}}}}, "generationConfig": object{"temperature": 1}})
	l.want(User, ask)
	chunk := func(part object) {
		m.emit(captures.Down, "", object{"candidates": []any{object{"content": object{"parts": []any{part}, "role": "model"}, "index": 0}}, "usageMetadata": object{"promptTokenCount": 8, "totalTokenCount": m.seq[1] * 7}, "modelVersion": "gemini-3-pro", "responseId": "aBcD3fGh1jKl"})
	}
	if m.chance(0.5) {
		th := m.thought(t)
		for _, p := range m.tokens(th) {
			chunk(object{"text": p, "thought": true})
		}
		l.want(Thinking, th)
	}
	l.answer = m.reply(t)
	for _, p := range m.tokens(l.answer) {
		chunk(object{"text": p})
	}
	l.want(Assistant, l.answer)
	if m.chance(0.3) {
		chunk(object{"functionCall": object{"name": "open_file", "args": object{"path": "src/server/handler.ts"}}})
		l.want(roleToolCall, "src/server/handler.ts")
	}
	l.ex = m.ex
	return l
}

func responseItems(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	sys := systemPrompt(m)
	m.emit(captures.Up, "", object{"model": "gpt-5.1-codex", "instructions": sys, "input": []any{object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": ask}}}}, "stream": true})
	l.want(User, ask)
	l.want(roleSystem, sys)
	rid := "resp_" + fmt.Sprintf("%x", m.r.Uint64())
	seq := 0
	ev := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, seq
		seq++
		m.emit(captures.Down, kind, o)
	}
	ev("response.created", object{"response": object{"id": rid, "object": "response", "status": "in_progress", "instructions": sys, "model": "gpt-5.1-codex", "output": []any{}}})
	if m.chance(0.5) {
		th := m.thought(t)
		for _, p := range m.tokens(th) {
			ev("response.reasoning_summary_text.delta", object{"item_id": "rs_68a1b2c3d4", "output_index": 0, "summary_index": 0, "delta": p})
		}
		ev("response.reasoning_summary_text.done", object{"item_id": "rs_68a1b2c3d4", "output_index": 0, "text": th})
		l.want(Thinking, th)
	}
	l.answer = m.reply(t)
	mid := "msg_" + fmt.Sprintf("%x", m.r.Uint64())
	ev("response.output_item.added", object{"output_index": 1, "item": object{"id": mid, "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}})
	for _, p := range m.tokens(l.answer) {
		ev("response.output_text.delta", object{"item_id": mid, "output_index": 1, "content_index": 0, "delta": p, "obfuscation": "xK2j9"})
	}
	ev("response.output_text.done", object{"item_id": mid, "output_index": 1, "content_index": 0, "text": l.answer})
	l.want(Assistant, l.answer)
	ev("response.completed", object{"response": object{"id": rid, "object": "response", "status": "completed", "instructions": sys, "output": []any{object{"id": mid, "type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": l.answer}}}}, "usage": object{"input_tokens": 37, "output_tokens": 11}}})
	l.ex = m.ex
	return l
}

// ideChat sends the history with the question and replays it in the answer.
func ideChat(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.25)
	m.named = m.json && m.chance(0.6)
	t := m.speech()
	ask := m.question(t)
	var past []msg
	for range m.r.IntN(4) {
		past = append(past, msg{{"role", 1}, {"content", m.question(t)}, {"bubble", m.uuid()}}, msg{{"role", 2}, {"content", m.reply(t)}, {"bubble", m.uuid()}})
	}
	body := msg{}
	for _, p := range past {
		body = append(body, field{"turn", p})
	}
	body = append(body, field{"turn", msg{{"role", 1}, {"content", ask}, {"bubble", m.uuid()}}})
	l.want(User, ask)
	for range m.r.IntN(3) {
		body = append(body, field{"code", msg{{"file", pick(m, filePaths)}, {"text", m.snippet()}, {"start", m.r.IntN(100)}}})
	}
	if m.chance(0.4) {
		sys := systemPrompt(m)
		body = append(body, field{"explicit_rules", sys})
		l.want(roleSystem, sys)
	}
	body = append(body, field{"workspace", "/home/me/project"}, field{"model", pick(m, models)})
	m.send(captures.Up, wrap(m.wrapping("chat", 0, 1), body))
	if m.chance(0.4) {
		for _, p := range past {
			m.send(captures.Down, msg{{"replayed", p}})
		}
	}
	if m.chance(0.3) {
		m.send(captures.Down, msg{{"filled_prompt", systemPrompt(m)}})
	}
	if m.chance(0.4) {
		th := m.thought(t)
		for _, p := range m.tokens(th) {
			m.send(captures.Down, msg{{"thinking", msg{{"text", p}}}})
		}
		m.send(captures.Down, msg{{"thinking", msg{{"signature", strings.Repeat(m.id(), 3)}}}})
		l.want(Thinking, th)
	}
	l.answer = m.reply(t)
	tokens := m.interrupted(m.tokens(l.answer))
	l.answer = strings.Join(tokens, "")
	for i, p := range tokens {
		out := msg{{"text", p}}
		if i == 0 {
			out = append(out, field{"server_bubble", m.uuid()})
		}
		m.send(captures.Down, out)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.3) {
		m.send(captures.Down, msg{{"suggested", msg{{"item", pick(m, t.questions)}}}})
	}
	if m.chance(0.3) {
		m.send(captures.Down, msg{{"conversation_title", m.title(languages[0])}})
	}
	m.end()
	l.ex = m.ex
	return l
}

// searchAnswer finds pages, then answers with citations and further questions.
func searchAnswer(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.5)
	m.named = m.json && m.chance(0.7)
	t := m.speech()
	ask := m.question(t)
	m.send(captures.Up, msg{{"query", ask}, {"focus", "web"}, {"language", "en-US"}, {"visitor", m.uuid()}})
	l.want(User, ask)
	deep := m.wrapping("block", 0, 2)
	for _, s := range []string{"Searching the web", "Reading sources", "Writing"}[:m.r.IntN(4)] {
		m.send(captures.Down, wrap(deep, msg{{"progress", msg{{"label", s}}}}))
	}
	var results []msg
	for range 1 + m.r.IntN(6) {
		results = append(results, msg{{"url", "https://example.com/" + pick(m, toolNames) + "/" + m.id()}, {"title", m.title(languages[0])}, {"snippet", m.say(&tongues[0], tongues[0].sentences, 2)}})
	}
	found := msg{}
	for _, r := range results {
		found = append(found, field{"result", r})
	}
	m.send(captures.Down, wrap(deep, msg{{"results", found}}))
	l.answer = m.reply(t)
	if m.chance(0.5) {
		l.answer += " [1]"
	}
	grow := m.chance(0.25)
	tokens := m.tokens(l.answer)
	sent := ""
	for _, p := range tokens {
		if grow {
			sent += p
			p = sent
		}
		m.send(captures.Down, wrap(deep, msg{{"markdown", msg{{"chunk", p}, {"id", "block_0"}}}}))
	}
	l.want(Assistant, l.answer)
	if m.chance(0.6) {
		more := msg{}
		for range 3 {
			more = append(more, field{"related", pick(m, t.questions)})
		}
		m.send(captures.Down, wrap(deep, more))
	}
	if m.chance(0.5) {
		m.send(captures.Down, wrap(deep, msg{{"done", msg{{"status", "completed"}, {"ms", m.r.IntN(9000)}, {"in", 1 + m.r.IntN(5000)}, {"out", 1 + m.r.IntN(900)}}}}))
	}
	l.ex = m.ex
	return l
}

// upserts sends each step whole, or again and longer, under an id.
func upserts(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.4)
	m.named = m.json && m.chance(0.6)
	t := m.speech()
	ask := m.question(t)
	l.want(User, ask)
	m.send(captures.Up, msg{{"input", msg{{"text", ask}, {"attachments", msg{{"image", strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 1+m.r.IntN(40))}}}}}, {"thread", m.uuid()}})
	step := func(kind, text string, whole bool) {
		id := m.uuid()
		pieces := m.deltasOr(text, true)
		if whole {
			pieces = []string{text}
		}
		for _, p := range pieces {
			m.send(captures.Down, msg{{"step", msg{{"id", id}, {kind, msg{{"body", p}}}}}})
		}
	}
	whole := m.chance(0.4)
	thought := ""
	if m.chance(0.5) {
		thought = m.thought(t)
		step("plan", thought, whole)
		l.want(Thinking, thought)
	}
	if m.chance(0.5) {
		name, args := m.call()
		id := m.uuid()
		m.send(captures.Down, msg{{"step", msg{{"id", id}, {"tool", msg{{"name", name}, {"args", args}, {"state", 1}}}}}})
		result := m.snippet()
		m.send(captures.Down, msg{{"step", msg{{"id", id}, {"tool", msg{{"name", name}, {"args", args}, {"state", 2}, {"result", result}}}}}})
		l.want(roleToolCall, args)
		l.want(roleToolResult, result)
	}
	l.answer = m.reply(t)
	step("message", l.answer, whole)
	l.want(Assistant, l.answer)
	m.send(captures.Down, msg{{"finished", msg{{"thread", m.uuid()}, {"total", msg{{"in", 1 + m.r.IntN(9000)}, {"out", 1 + m.r.IntN(900)}}}}}})
	l.ex = m.ex
	return l
}

// shortNames are lines of JSON whose members say little or nothing.
func shortNames(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	names := []string{"d", "x", "c", "r", "k", "p", "q", "z"}
	m.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	m.emit(captures.Up, "", object{names[0]: ask, "sid": m.uuid(), "v": 3})
	l.want(User, ask)
	kind := m.chance(0.5)
	put := func(k, text string) {
		if kind {
			m.emit(captures.Down, "", object{"t": k, names[1]: text})
		} else {
			m.emit(captures.Down, "", object{names[2]: object{k: text}})
		}
	}
	if m.chance(0.4) {
		th := m.thought(t)
		for _, p := range m.tokens(th) {
			put("r", p)
		}
		l.want(Thinking, th)
	}
	l.answer = m.reply(t)
	for _, p := range m.tokens(l.answer) {
		put("a", p)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		put("e", m.uuid())
	}
	l.ex = m.ex
	return l
}
