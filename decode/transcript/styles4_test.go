package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"unwire/captures"
)

// vertexParts are candidates of contents of parts, as protobuf, with ratings,
// citations, functions that are declared and called, and roles in words.
func vertexParts(m *maker) labelled {
	var l labelled
	t := m.speaker()
	ask := m.question(t)
	up := msg{{"model", "projects/p/locations/us-central1/publishers/google/models/" + pick(m, models)}}
	for range m.r.IntN(3) {
		up = append(up, field{"contents", msg{{"role", "user"}, {"parts", msg{{"text", m.question(t)}}}}}, field{"contents", msg{{"role", "model"}, {"parts", msg{{"text", m.retort(t)}}}}})
	}
	up = append(up, field{"contents", msg{{"role", "user"}, {"parts", msg{{"text", ask}}}}})
	l.want(User, ask)
	if m.chance(0.5) {
		sys := m.briefing()
		up = append(up, field{"system_instruction", msg{{"parts", msg{{"text", sys}}}}})
		l.want(roleSystem, sys)
	}
	if m.chance(0.4) {
		up = append(up, field{"tools", msg{{"declared", msg{{"name", "get_weather"}, {"description", toolAbout(m)}, {"parameters", m.schema()}}}}})
	}
	up = append(up, field{"config", msg{{"temperature", float32(0.7)}, {"max_tokens", 8192}}})
	m.send(captures.Up, up)
	id := m.id()
	version := pick(m, models)
	down := func(part msg, last bool) {
		c := msg{{"content", msg{{"role", "model"}, {"parts", part}}}}
		for i := range 4 {
			c = append(c, field{"ratings", msg{{"category", i + 1}, {"probability", 1}, {"score", float32(m.r.Float64())}}})
		}
		if last {
			c = append(c, field{"finish", 1})
		}
		out := msg{{"candidates", c}, {"usage", msg{{"in", 31}, {"out", 1 + m.seq[1]}, {"all", 32 + m.seq[1]}}}, {"version", version}, {"id", id}}
		m.send(captures.Down, out)
	}
	if m.chance(0.4) {
		th := m.musing(t)
		for _, p := range m.tokens(th) {
			down(msg{{"thought", 1}, {"text", p}}, false)
		}
		l.want(Thinking, th)
	}
	l.answer = m.retort(t)
	tokens := m.interrupted(m.tokens(l.answer))
	l.answer = strings.Join(tokens, "")
	for i, p := range tokens {
		down(msg{{"text", p}}, i == len(tokens)-1)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.3) {
		down(msg{{"call", msg{{"name", "get_weather"}, {"args", msg{{"fields", msg{{"key", "city"}, {"value", msg{{"string", "Porto Alegre"}}}}}}}}}}, true)
	}
	l.ex = m.ex
	return l
}

// protoCompletions are chunks of choices as protobuf, at times with the log
// probabilities of each token and of those that it was chosen from.
func protoCompletions(m *maker) labelled {
	var l labelled
	t := m.speaker()
	ask := m.question(t)
	up := msg{{"model", pick(m, models)}}
	if m.chance(0.6) {
		sys := m.briefing()
		up = append(up, field{"messages", msg{{"role", "system"}, {"content", sys}}})
		l.want(roleSystem, sys)
	}
	up = append(up, field{"messages", msg{{"role", "user"}, {"content", ask}}}, field{"user", m.uuid()}, field{"stream", 1})
	l.want(User, ask)
	m.send(captures.Up, up)
	id, likely := "cmpl-"+m.uuid(), m.chance(0.3)
	chunk := func(delta msg, text string) {
		choice := msg{{"delta", delta}}
		if likely && text != "" {
			lp := msg{{"token", text}, {"p", float32(-m.r.Float64())}}
			for range 2 {
				lp = append(lp, field{"top", msg{{"token", pick(m, []string{" the", " a", " is", "The", " of", "."})}, {"p", float32(-3)}}})
			}
			choice = append(choice, field{"logprobs", msg{{"content", lp}}})
		}
		m.send(captures.Down, msg{{"id", id}, {"created", 1763700000}, {"model", "qwen3-32b"}, {"choices", choice}})
	}
	chunk(msg{{"role", "assistant"}}, "")
	if m.chance(0.4) {
		th := m.musing(t)
		for _, p := range m.tokens(th) {
			chunk(msg{{"reasoning", p}}, "")
		}
		l.want(Thinking, th)
	}
	if m.chance(0.9) {
		l.answer = m.retort(t)
		for _, p := range m.tokens(l.answer) {
			chunk(msg{{"content", p}}, p)
		}
	}
	if l.answer == "" || m.chance(0.2) {
		name, args := m.call()
		for i, p := range m.pieces(args, style{size: 5}) {
			call := msg{{"function", msg{{"arguments", p}}}}
			if i == 0 {
				call = msg{{"id", "call_" + m.uuid()}, {"type", "function"}, {"function", msg{{"name", name}, {"arguments", p}}}}
			}
			chunk(msg{{"calls", call}}, "")
		}
		l.want(roleToolCall, args)
	}
	l.want(Assistant, l.answer)
	m.send(captures.Down, msg{{"id", id}, {"created", 1763700000}, {"model", "qwen3-32b"}, {"choices", msg{{"finish", "stop"}}}})
	if m.chance(0.5) {
		m.send(captures.Down, msg{{"id", id}, {"created", 1763700000}, {"model", "qwen3-32b"}, {"usage", msg{{"in", 81}, {"out", 1 + len(l.answer)/4}, {"all", 82 + len(l.answer)/4}}}})
	}
	l.ex = m.ex
	return l
}

// graphRuns are the events of runs within runs, each with its input and, at its
// end, its output: the question and the answer come many times.
func graphRuns(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.6)
	m.named = m.json
	t := m.speaker()
	ask := m.question(t)
	m.send(captures.Up, msg{{"input", msg{{"input", ask}, {"thread", m.uuid()}}}, {"config", msg{{"recursion", 25}}}})
	l.want(User, ask)
	chain, model := m.uuid(), m.uuid()
	ev := func(event, name, run string, data msg) {
		m.send(captures.Down, msg{{"event", event}, {"name", name}, {"run_id", run}, {"tags", "seq:step:2"}, {"data", data}})
	}
	ev("on_chain_start", "AgentExecutor", chain, msg{{"input", msg{{"input", ask}}}})
	if m.chance(0.5) {
		ev("on_prompt_end", "ChatPromptTemplate", m.uuid(), msg{{"output", msg{{"value", m.briefing()}}}})
	}
	ev("on_chat_model_start", "ChatModel", model, msg{{"input", msg{{"messages", msg{{"content", ask}, {"kind", "human"}}}}}})
	if m.chance(0.4) {
		name, args := m.call()
		run := m.uuid()
		result := m.snippet()
		ev("on_tool_start", name, run, msg{{"args", args}})
		ev("on_tool_end", name, run, msg{{"result", result}})
		l.want(roleToolCall, args)
		l.want(roleToolResult, result)
	}
	l.answer = m.retort(t)
	for _, p := range m.tokens(l.answer) {
		ev("on_chat_model_stream", "ChatModel", model, msg{{"chunk", msg{{"content", p}, {"id", "run-" + model}}}})
	}
	l.want(Assistant, l.answer)
	if m.chance(0.8) {
		ev("on_chat_model_end", "ChatModel", model, msg{{"output", msg{{"content", l.answer}, {"id", "run-" + model}}}})
		ev("on_chain_end", "AgentExecutor", chain, msg{{"output", msg{{"output", l.answer}}}})
	}
	l.ex = m.ex
	return l
}

// editingAgent writes a file in deltas that are longer than what it says, shows
// what a terminal prints, and keeps a list of what it has to do.
func editingAgent(m *maker) labelled {
	var l labelled
	t := m.speaker()
	ask := m.question(t)
	l.want(User, ask)
	m.send(captures.Up, wrap(m.wrapping("run", 0, 2), msg{{"ask", msg{{"text", ask}, {"nonce", m.uuid()}}}, {"cwd", "/home/me/app"}, {"open", msg{{"file", pick(m, filePaths)}, {"body", m.script()}}}}))
	deep := m.wrapping("out", 0, 2)
	down := func(kind string, body msg) { m.send(captures.Down, wrap(deep, msg{{kind, body}})) }
	say := func(text string, kind string) {
		for _, p := range m.tokens(text) {
			down(kind, msg{{"text", p}})
		}
	}
	if m.chance(0.5) {
		th := m.musing(t)
		say(th, "musing")
		l.want(Thinking, th)
	}
	if m.chance(0.5) {
		l.answer = m.say(t, t.sentences, 1) + "\n\n"
		say(l.answer, "prose")
	}
	if m.chance(0.4) {
		todo := msg{}
		for i, item := range []string{"Read the handler", "Fix the route", "Add a test"} {
			todo = append(todo, field{"item", msg{{"title", item}, {"state", i % 3}}})
		}
		down("todo", todo)
	}
	id := m.id()
	args := `{"target":` + fmt.Sprintf("%q", pick(m, filePaths)) + `}`
	down("call", msg{{"id", id}, {"name", "edit_file"}, {"args", args}})
	l.want(roleToolCall, args)
	code := strings.Repeat(m.script(), 1+m.r.IntN(5))
	for _, p := range m.pieces(code, style{size: 20}) {
		down("edit", msg{{"id", id}, {"piece", p}})
	}
	if m.chance(0.5) {
		for range 1 + m.r.IntN(9) {
			down("terminal", msg{{"id", id}, {"data", m.output()}})
		}
	}
	result := "applied 1 edit to 1 file"
	if m.chance(0.5) {
		result = m.snippet()
	}
	m.send(captures.Up, msg{{"done", msg{{"id", id}, {"result", result}}}})
	l.want(roleToolResult, result)
	rest := m.retort(t)
	tokens := m.interrupted(m.tokens(rest))
	for _, p := range tokens {
		l.answer += p
		down("prose", msg{{"text", p}})
	}
	l.want(Assistant, l.answer)
	if m.chance(0.4) {
		down("checkpoint", msg{{"blob", []byte{0, 1, 0xfe, byte(m.r.IntN(256)), 0x80, 0x81, 3, 4}}, {"hash", fmt.Sprintf("%016x%016x", m.r.Uint64(), m.r.Uint64())}})
	}
	l.ex = m.ex
	return l
}

// patches change a document: the first event is the message, the others append
// to a place in it that they name once.
func patches(m *maker) labelled {
	var l labelled
	t := m.speaker()
	ask := m.question(t)
	m.emit(captures.Up, "", object{"action": "next", "messages": []any{object{"id": m.uuid(), "author": object{"role": "user"}, "content": object{"content_type": "text", "parts": []any{ask}}}}, "parent": m.uuid(), "model": "auto", "timezone": "Europe/Paris"})
	l.want(User, ask)
	id := m.uuid()
	m.emit(captures.Down, "delta", object{"o": "add", "p": "", "v": object{"conversation": m.uuid(), "message": object{"id": id, "author": object{"role": "assistant"}, "content": object{"content_type": "text", "parts": []any{""}}, "status": "in_progress"}}})
	l.answer = m.retort(t)
	for i, p := range m.tokens(l.answer) {
		if i == 0 {
			m.emit(captures.Down, "delta", object{"o": "append", "p": "/message/content/parts/0", "v": p})
		} else {
			m.emit(captures.Down, "delta", object{"v": p})
		}
	}
	l.want(Assistant, l.answer)
	m.emit(captures.Down, "delta", object{"o": "patch", "p": "", "v": []any{object{"o": "replace", "p": "/message/status", "v": "finished_successfully"}}})
	if m.chance(0.5) {
		m.emit(captures.Down, "", object{"type": "title_generation", "title": m.title(languages[0]), "conversation": m.uuid()})
	}
	l.ex = m.ex
	return l
}

// wholeStates send all of the conversation again with each word that comes.
func wholeStates(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.4)
	m.named = m.json
	t := m.speaker()
	ask := m.question(t)
	m.send(captures.Up, msg{{"ask", ask}, {"room", m.uuid()}})
	l.want(User, ask)
	thinks := m.chance(0.4)
	thought := ""
	if thinks {
		thought = m.musing(t)
		l.want(Thinking, thought)
	}
	l.answer = m.retort(t)
	mine, yours := m.uuid(), m.uuid()
	state := func(thought, answer string, done int) {
		reply := msg{{"id", mine}, {"from", "assistant"}}
		if thought != "" {
			reply = append(reply, field{"reasoning", thought})
		}
		if answer != "" {
			reply = append(reply, field{"text", answer})
		}
		m.send(captures.Down, msg{{"room", msg{{"item", msg{{"id", yours}, {"from", "user"}, {"text", ask}}}, {"item", reply}, {"done", done}}}})
	}
	for _, p := range m.deltasOr(thought, true) {
		state(p, "", 0)
	}
	for _, p := range m.deltasOr(l.answer, true) {
		state(thought, p, 0)
	}
	state(thought, l.answer, 1)
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// quoted is the JSON of a value, as a string.
func quoted(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
