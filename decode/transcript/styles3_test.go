package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// wrappedValues have each text in a message of its own, as StringValue has it,
// times beside them, maps, and a flag far from the text that says that it is
// thinking.
func wrappedValues(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	l.want(User, ask)
	up := msg{{"meta", msg{{"key", "client"}, {"value", "cli/2.4.1"}}}, {"meta", msg{{"key", "zone"}, {"value", "Europe/Paris"}}}, {"at", msg{{"s", 1763700000}, {"n", m.r.IntN(1e9)}}}, {"prompt", msg{{"value", ask}}}}
	if m.chance(0.5) {
		sys := systemPrompt(m)
		up = append(up, field{"persona", msg{{"value", sys}}})
		l.want(roleSystem, sys)
	}
	m.send(captures.Up, up)
	n := 0
	send := func(inner int, text string) {
		n++
		out := msg{{"event_id", m.uuid()}, {"at", msg{{"s", 1763700000 + n}, {"n", m.r.IntN(1e9)}}}}
		if inner > 0 {
			out = append(out, field{"inner", inner})
		}
		out = append(out, field{"content", msg{{"part", msg{{"text", msg{{"value", text}}}}}}})
		m.send(captures.Down, out)
	}
	if m.chance(0.5) {
		th := m.thought(t)
		for _, p := range m.tokens(th) {
			send(1, p)
		}
		l.want(Thinking, th)
	}
	l.answer = m.reply(t)
	tokens := m.interrupted(m.tokens(l.answer))
	l.answer = strings.Join(tokens, "")
	for _, p := range tokens {
		send(0, p)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.6) {
		m.send(captures.Down, msg{{"event_id", m.uuid()}, {"closing", msg{{"label", "stop"}, {"spent", msg{{"in", 20 + m.r.IntN(900)}, {"out", 1 + len(l.answer)/4}}}}}})
		m.end()
	}
	l.ex = m.ex
	return l
}

// subscription replays a conversation message by message, then streams the new
// one, all as messages with an author.
func subscription(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.4)
	m.named = m.json && m.chance(0.7)
	t := m.speech()
	m.send(captures.Up, msg{{"channel", m.uuid()}, {"since", m.r.IntN(1000)}})
	whole := func(author int, text string) {
		m.send(captures.Down, msg{{"message", msg{{"id", m.uuid()}, {"author", author}, {"body", text}, {"done", 1}}}})
	}
	for range 1 + m.r.IntN(3) {
		whole(1, m.question(t))
		whole(2, m.reply(t))
	}
	ask := m.question(t)
	whole(1, ask)
	l.want(User, ask)
	if m.chance(0.3) {
		m.send(captures.Down, msg{{"typing", msg{{"id", m.uuid()}}}})
	}
	l.answer = m.reply(t)
	id := m.uuid()
	for _, p := range m.tokens(l.answer) {
		m.send(captures.Down, msg{{"patch", msg{{"id", id}, {"append", p}}}})
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// finals are deltas of one field and then the whole with its notes, numbered and
// timed, with progress of a plan between.
func finals(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	l.want(User, ask)
	up := msg{{"params", msg{{"temperature", 7}, {"top", 40}}}, {"dialog", msg{{"utterance", ask}}}}
	for range m.r.IntN(4) {
		up = append(up, field{"document", msg{{"title", m.title(languages[0])}, {"text", m.snippet()}, {"mime", "text/plain"}}})
	}
	m.send(captures.Up, up)
	deep := m.wrapping("ev", 0, 2)
	n := 0
	down := func(body msg) {
		n++
		m.send(captures.Down, append(wrap(deep, body), field{"n", n}, field{"ms", 1763700000000 + n*17}))
	}
	if m.chance(0.5) {
		down(msg{{"opened", msg{{"trace", m.id()}, {"engine", pick(m, models)}}}})
	}
	if m.chance(0.4) {
		for i := range 2 + m.r.IntN(3) {
			down(msg{{"plan", msg{{"item", []string{"Find the sources", "Read the files", "Compare both", "Write it down", "Check it"}[i]}, {"state", 1 + i%3}}}})
		}
	}
	thought := ""
	if m.chance(0.4) {
		thought = m.thought(t)
		for _, p := range m.tokens(thought) {
			down(msg{{"reason", p}})
		}
	}
	if m.chance(0.4) {
		name, args := m.call()
		id := m.id()
		down(msg{{"act", msg{{"ref", id}, {"fn", name}, {"input", args}}}})
		result := m.snippet()
		down(msg{{"acted", msg{{"ref", id}, {"output", result}, {"ok", 1}}}})
		l.want(roleToolCall, args)
		l.want(roleToolResult, result)
	}
	l.want(Thinking, thought)
	l.answer = m.reply(t)
	for _, p := range m.tokens(l.answer) {
		down(msg{{"delta", p}})
	}
	l.want(Assistant, l.answer)
	if m.chance(0.7) {
		end := msg{{"text", l.answer}, {"finish", "complete"}, {"spent", msg{{"in", 20 + m.r.IntN(900)}, {"out", 1 + len(l.answer)/4}}}}
		for range m.r.IntN(3) {
			end = append(end, field{"note", msg{{"from", m.r.IntN(50)}, {"to", 50 + m.r.IntN(50)}, {"link", "https://example.net/" + m.id()}}})
		}
		down(msg{{"final", end}})
		m.end()
	}
	l.ex = m.ex
	return l
}

// carriedJSON has the events as JSON inside a string of a protobuf message.
func carriedJSON(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	l.want(User, ask)
	m.send(captures.Up, msg{{"topic", "chat"}, {"payload", fmt.Sprintf(`{"kind":"ask","text":%q}`, ask)}})
	put := func(kind, text string) {
		m.send(captures.Down, msg{{"topic", "chat"}, {"payload", fmt.Sprintf(`{"kind":%q,"text":%q}`, kind, text)}, {"offset", m.seq[1]}})
	}
	if m.chance(0.4) {
		th := m.thought(t)
		for _, p := range m.tokens(th) {
			put("think", p)
		}
		l.want(Thinking, th)
	}
	l.answer = m.reply(t)
	for _, p := range m.tokens(l.answer) {
		put("say", p)
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}
