package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// threadRuns are the objects of threads, runs and steps as JSON events: each comes
// when it is made, in deltas, and whole when it is done.
func threadRuns(m *maker) labelled {
	var l labelled
	t := m.voice()
	ask := m.question(t)
	m.emit(captures.Up, "", object{"assistant_id": "asst_" + m.uuid(), "thread": object{"messages": []any{object{"role": "user", "content": ask}}}, "stream": true})
	l.want(User, ask)
	run, msgID := "run_"+m.uuid(), "msg_"+m.uuid()
	m.emit(captures.Down, "thread.run.created", object{"id": run, "object": "thread.run", "status": "queued", "model": "gpt-5.1", "instructions": "You are a helpful assistant. Always answer in one paragraph. Do not use tools that you were not given."})
	m.emit(captures.Down, "thread.message.created", object{"id": msgID, "object": "thread.message", "role": "assistant", "status": "in_progress", "content": []any{}})
	l.answer = m.rejoinder(t)
	tokens := m.interrupted(m.tokens(l.answer))
	l.answer = strings.Join(tokens, "")
	for _, p := range tokens {
		m.emit(captures.Down, "thread.message.delta", object{"id": msgID, "object": "thread.message.delta", "delta": object{"content": []any{object{"index": 0, "type": "text", "text": object{"value": p, "annotations": []any{}}}}}})
	}
	if m.chance(0.6) {
		m.emit(captures.Down, "thread.message.completed", object{"id": msgID, "object": "thread.message", "role": "assistant", "status": "completed", "content": []any{object{"type": "text", "text": object{"value": l.answer, "annotations": []any{}}}}})
		m.emit(captures.Down, "thread.run.completed", object{"id": run, "object": "thread.run", "status": "completed", "usage": object{"prompt_tokens": 20, "completion_tokens": 11, "total_tokens": 31}})
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// codeAgent is an agent over protobuf whose prompt of the system comes back, whose
// tools give more than it says, and whose questions come with the files of a project.
func codeAgent(m *maker) labelled {
	var l labelled
	t := m.voice()
	ask := m.question(t)
	sys := m.briefing()
	up := msg{{"system", sys}, {"turn", msg{{"text", ask}, {"uuid", m.uuid()}}}, {"cwd", "/srv/repo"}, {"git", msg{{"branch", "fix/off-by-one"}, {"commit", fmt.Sprintf("%040x", m.r.Uint64())}}}}
	for range m.r.IntN(4) {
		up = append(up, field{"file", msg{{"path", pick(m, filePaths)}, {"text", m.script()}}})
	}
	m.send(captures.Up, up)
	l.want(User, ask)
	l.want(roleSystem, sys)
	deep := m.wrapping("frame", 0, 2)
	down := func(kind string, body msg) { m.send(captures.Down, wrap(deep, msg{{kind, body}})) }
	down("init", msg{{"session", m.uuid()}, {"model", pick(m, models)}, {"tools", msg{{"name", "Bash"}}}, {"tools", msg{{"name", "Read"}}}, {"tools", msg{{"name", "Edit"}}}})
	rounds := m.r.IntN(4)
	thinking := ""
	for range rounds {
		if m.chance(0.5) {
			th := m.musing(t)
			for _, p := range m.tokens(th) {
				down("thinking", msg{{"d", p}})
			}
			thinking += th
		}
		id := "toolu_" + strings.ReplaceAll(m.uuid(), "-", "")
		name, args := m.call()
		down("use", msg{{"id", id}, {"name", name}, {"input", args}})
		result := strings.Repeat(m.output(), 1+m.r.IntN(30))
		down("result", msg{{"for", id}, {"text", result}, {"failed", m.r.IntN(2)}})
		l.want(roleToolCall, args)
		l.want(roleToolResult, result)
	}
	l.want(Thinking, thinking)
	if m.chance(0.92) || thinking != "" {
		l.answer = m.rejoinder(t)
		for _, p := range m.tokens(l.answer) {
			down("text", msg{{"d", p}})
		}
	}
	l.want(Assistant, l.answer)
	down("done", msg{{"cost", float32(0.013)}, {"ms", m.r.IntN(90000)}, {"in", 900 + m.r.IntN(9000)}, {"out", 1 + len(l.answer)/4}})
	l.ex = m.ex
	return l
}

// rankedReplies are a unary answer with alternatives, their scores and what they
// were taken from.
func rankedReplies(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.5)
	m.named = m.json && m.chance(0.7)
	t := m.voice()
	ask := m.question(t)
	m.send(captures.Up, msg{{"utterance", ask}, {"session", m.uuid()}, {"params", msg{{"zone", "Europe/Rome"}, {"lang", "it"}}}})
	l.want(User, ask)
	l.answer = m.rejoinder(t)
	out := msg{{"reply", msg{{"text", l.answer}}}, {"intent", msg{{"name", "projects/p/agent/intents/" + m.uuid()}, {"display", "order.status"}}}, {"confidence", float32(0.87)}, {"response_id", m.uuid()}}
	if m.chance(0.4) {
		out = append(out, field{"knowledge", msg{{"source", "https://help.example.com/" + m.id()}, {"score", float32(0.5)}}})
	}
	m.send(captures.Down, out)
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// windowed are snapshots of an answer's last line with the lines that are final.
func windowed(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.5)
	m.named = m.json && m.chance(0.5)
	t := m.voice()
	ask := m.question(t)
	m.send(captures.Up, msg{{"ask", msg{{"body", ask}, {"nonce", m.r.IntN(60000)}}}, {"client", "web/9.1.0"}})
	l.want(User, ask)
	l.answer = m.rejoinder(t)
	sent := ""
	id := m.uuid()
	for i, p := range m.tokens(l.answer) {
		sent += p
		m.send(captures.Down, msg{{"message", msg{{"id", id}, {"state", 1}, {"text", sent}, {"version", i}}}})
	}
	m.send(captures.Down, msg{{"message", msg{{"id", id}, {"state", 2}, {"text", sent}, {"title", m.title(languages[0])}}}})
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}
