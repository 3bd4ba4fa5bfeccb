package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// tokenServer is a server of a bare model: a prompt in a template, a token an event
// with its number, its likelihood and the tokens that were likely, too; the whole in
// the end.
func tokenServer(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	prompt := "<|im_start|>system\n" + m.policy() + "<|im_end|>\n<|im_start|>user\n" + ask + "<|im_end|>\n<|im_start|>assistant\n"
	m.send(captures.Up, msg{{"inputs", prompt}, {"params", msg{{"max", 512}, {"top_p", float32(0.9)}, {"stop", "<|im_end|>"}, {"stop", "</s>"}}}, {"adapter", "base"}, {"request", m.r.IntN(1 << 30)}})
	l.answer = m.reaction(t)
	likely := m.chance(0.5)
	pieces := m.bitsOr(l.answer)
	for _, p := range pieces {
		tok := msg{{"id", 100 + m.r.IntN(100000)}, {"text", p}, {"logprob", float32(-m.r.Float64())}}
		body := msg{{"token", tok}}
		if likely {
			for range 2 {
				body = append(body, field{"top", msg{{"id", 100 + m.r.IntN(100000)}, {"text", pick(m, m.tokens(pick(m, t.sentences)))}, {"logprob", float32(-1 - m.r.Float64())}}})
			}
		}
		m.send(captures.Down, body)
	}
	last := msg{{"token", msg{{"id", 2}, {"text", "<|im_end|>"}, {"logprob", float32(-0.001)}, {"special", 1}}}}
	if m.chance(0.7) {
		last = append(last, field{"whole", l.answer}, field{"details", msg{{"finish", "eos_token"}, {"count", len(pieces)}, {"prefill", len(prompt) / 4}}})
	}
	m.send(captures.Down, last)
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// inlineCompletion is code for the place of a cursor: more of the file goes up than
// comes down.
func inlineCompletion(m *maker) labelled {
	var l labelled
	prefix := strings.Repeat(m.rust(), 1+m.r.IntN(8))
	up := msg{{"document", msg{{"uri", "file:///home/me/app/src/page.rs"}, {"language", "rust"}, {"before", prefix}, {"after", m.rust()}, {"line", m.r.IntN(400)}, {"column", m.r.IntN(80)}}}, {"editor", msg{{"name", "zed"}, {"version", "0.211.4"}}}, {"key", m.uuid()}}
	for range m.r.IntN(4) {
		up = append(up, field{"neighbour", msg{{"uri", "file:///home/me/app/src/" + pick(m, []string{"row", "lib", "cell"}) + ".rs"}, {"text", m.rust()}, {"score", float32(m.r.Float64())}}})
	}
	m.send(captures.Up, up)
	var b strings.Builder
	for range 1 + m.r.IntN(5) {
		fmt.Fprintf(&b, "        rows.push(page.row(%d)?.%s());\n", m.r.IntN(90), pick(m, []string{"clone", "to_owned", "into_inner"}))
	}
	l.answer = strings.TrimSuffix(b.String(), "\n")
	id := m.uuid()
	pieces := []string{l.answer}
	switch m.r.IntN(3) {
	case 0:
		pieces = m.bitsOr(l.answer)
	case 1:
		pieces = m.deltasOr(l.answer, true)
	}
	for i, p := range pieces {
		item := msg{{"id", id}, {"text", p}, {"range", msg{{"from", len(prefix)}, {"to", len(prefix) + 3}}}}
		if len(pieces) == 1 {
			item = append(item, field{"score", float32(m.r.Float64())}, field{"origin", pick(m, []string{"CLOUD", "LOCAL"})})
		}
		m.send(captures.Down, msg{{"completion", item}, {"tick", i}})
	}
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		m.send(captures.Down, msg{{"stats", msg{{"model", "swe-fast-2"}, {"latency_ms", m.r.IntN(900)}, {"cached", 1}}}})
	}
	l.ex = m.ex
	return l
}

// detectedIntent is one message each way: what was asked is told again beside the
// answer, with the names of intents, parameters and contexts.
func detectedIntent(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	session := "projects/acme-bot/agent/sessions/" + m.uuid()
	m.send(captures.Up, msg{{"session", session}, {"input", msg{{"text", msg{{"text", ask}, {"language", "en"}}}}}, {"params", msg{{"zone", "Europe/Lisbon"}, {"payload", structOf(object{"tier": "gold", "visits": 4})}}}})
	l.want(User, ask)
	l.answer = m.reaction(t)
	result := msg{{"query", ask}, {"language", "en"}, {"complete", 1}, {"fulfilment", l.answer}, {"parameters", structOf(object{"month": "March", "doc": "invoice"})}}
	for range m.r.IntN(3) {
		result = append(result, field{"context", msg{{"name", session + "/contexts/invoice-followup"}, {"lifespan", 5}}})
	}
	if m.chance(0.5) {
		result = append(result, field{"message", msg{{"text", msg{{"text", l.answer}}}}})
	}
	result = append(result, field{"intent", msg{{"name", "projects/acme-bot/agent/intents/" + m.uuid()}, {"display", "billing.invoice_date"}}}, field{"confidence", float32(0.83)})
	m.send(captures.Down, msg{{"id", m.uuid() + "-2f1ac4"}, {"result", result}, {"status", msg{{"note", "Webhook execution successful"}}}})
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// editorChat is a chat of an editor: what it is doing, files that it refers to with
// their text, the answer in deltas, code it may be a copy of, and what to ask next.
func editorChat(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	sys := m.policy()
	up := msg{{"turn", msg{{"id", m.uuid()}, {"request", ask}}}, {"system", sys}, {"capabilities", msg{{"skills", "project-labels"}, {"skills", "current-editor"}}}}
	for range m.r.IntN(3) {
		up = append(up, field{"reference", msg{{"uri", "file:///w/src/" + fmt.Sprint(m.r.IntN(99)) + ".rs"}, {"text", m.rust()}}})
	}
	m.send(captures.Up, up)
	l.want(User, ask)
	token := m.uuid()
	value := func(kind int, v msg) {
		m.send(captures.Down, msg{{"token", token}, {"value", append(msg{{"kind", kind}}, v...)}})
	}
	value(1, msg{{"title", m.title(languages[0])}, {"conversation", m.uuid()}})
	for range m.r.IntN(3) {
		value(2, msg{{"step", msg{{"id", "collect-context"}, {"title", pick(m, []string{"Collecting context", "Generating response", "Analyzing page.rs", "Searching workspace"})}, {"status", "running"}}}})
	}
	for range m.r.IntN(3) {
		value(3, msg{{"reference", msg{{"uri", "file:///w/src/" + fmt.Sprint(m.r.IntN(99)) + ".rs"}, {"text", strings.Repeat(m.rust(), 1+m.r.IntN(3))}, {"status", "included"}}}})
	}
	l.answer = m.reaction(t)
	for i, p := range m.bitsOr(l.answer) {
		value(4, msg{{"reply", p}, {"round", 1}, {"hidden", b2i(false)}})
		if i%9 == 8 && m.chance(0.1) {
			value(5, msg{{"citation", msg{{"licence", "MIT"}, {"url", "https://github.com/example/page/blob/main/src/lib.rs"}, {"snippet", m.rust()}}}})
		}
	}
	l.want(Assistant, l.answer)
	if m.chance(0.6) {
		value(6, msg{{"follow", msg{{"message", pick(m, []string{"How do I write a test for this?", "What about pages without rows?"})}, {"id", m.uuid()}}}, {"suggested", pick(m, []string{"Page rows", "Invoice date"})}})
	}
	m.send(captures.Down, msg{{"token", token}, {"end", msg{{"reason", "done"}}}})
	l.ex = m.ex
	return l
}

// secondTry begins an answer, gives it up and begins again.
func secondTry(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	m.send(captures.Up, msg{{"ask", msg{{"text", ask}, {"key", m.uuid()}}}, {"model", pick(m, models)}})
	l.want(User, ask)
	l.answer = m.reaction(t)
	first := m.bitsOr(m.reaction(t))
	if m.chance(0.5) {
		first = m.bitsOr(l.answer) // the same, from the beginning
	}
	first = first[:max(1, len(first)/2)]
	run := m.uuid()
	say := func(try int, run, text string) {
		m.send(captures.Down, msg{{"chunk", msg{{"attempt", try}, {"run", run}, {"text", text}}}})
	}
	for _, p := range first {
		say(1, run, p)
	}
	m.send(captures.Down, msg{{"retry", msg{{"attempt", 1}, {"cause", "upstream connection reset before the response was complete"}, {"wait_ms", 250}}}})
	run = m.uuid()
	for _, p := range m.bitsOr(l.answer) {
		say(2, run, p)
	}
	m.send(captures.Down, msg{{"done", msg{{"attempt", 2}, {"in", 90}, {"out", 1 + len(l.answer)/4}}}})
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// taggedDeltas have the thinking in the text, in a tag; arguments are a Struct, and
// the numbers of tokens come with each event.
func taggedDeltas(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	m.send(captures.Up, msg{{"contents", msg{{"author", 1}, {"text", ask}}}, {"system", m.policy()}, {"model", pick(m, models)}})
	l.want(User, ask)
	deep := m.wrapping("stream", 0, 2)
	sent := 0
	put := func(text string) {
		sent += len(text)
		m.send(captures.Down, wrap(deep, msg{{"delta", msg{{"text", text}}}, {"usage", msg{{"in", 120}, {"out", 1 + sent/4}}}}))
	}
	if m.chance(0.4) {
		th := m.ponder(t)
		for _, p := range m.bitsOr("<think>\n" + th + "\n</think>\n\n") {
			put(p)
		}
	}
	if m.chance(0.35) {
		id := "call_" + m.padding()
		call := object{"path": pick(m, filePaths), "depth": 3}
		m.send(captures.Down, wrap(deep, msg{{"call", msg{{"id", id}, {"function", pick(m, toolNames)}, {"input", structOf(call)}}}}))
		result := m.article()
		m.send(captures.Up, msg{{"contents", msg{{"author", 3}, {"result", msg{{"id", id}, {"output", result}}}}}})
		l.want(roleToolResult, result)
	}
	l.answer = m.reaction(t)
	for _, p := range m.bitsOr(l.answer) {
		put(p)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		m.send(captures.Down, wrap(deep, msg{{"seal", m.noise(200)}, {"stop", 1}}))
	}
	l.ex = m.ex
	return l
}
