package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/decode"
)

// A wanted text is what a reader of an exchange has to find, with its role.
type wanted struct {
	role Role
	text string
}

// A labelled exchange is one whose conversation is known.
type labelled struct {
	ex     *decode.Exchange
	answer string
	roles  []wanted
}

func (l *labelled) want(role Role, text string) {
	if strings.TrimSpace(text) != "" {
		l.roles = append(l.roles, wanted{role, text})
	}
}

// A style makes exchanges of one family of protocols.
type style_ struct {
	name  string
	tuned bool // the weights were corrected on it
	make  func(m *maker) labelled
}

var styles = []style_{
	{"typed chunks", true, typedChunks},
	{"completions, SSE JSON", true, completions},
	{"unary question", true, unaryQuestion},
	{"agent, nested oneofs", true, nestedAgent},
	{"messages, SSE JSON", false, messagesJSON},
	{"IDE chat with history", false, ideChat},
	{"search with citations", false, searchAnswer},
	{"steps, upserted", false, upserts},
	{"short names, lines", false, shortNames},
	{"wrapped values", false, wrappedValues},
	{"subscription", false, subscription},
	{"deltas and a final", false, finals},
	{"JSON in protobuf", false, carriedJSON},
	{"candidate parts, protobuf", false, vertexParts},
	{"completions, protobuf", false, protoCompletions},
	{"runs of a graph", false, graphRuns},
	{"editing agent", false, editingAgent},
	{"patches of a document", false, patches},
	{"whole states", false, wholeStates},
	{"block events, protobuf", false, blockEvents},
	{"session updates, lines", false, sessionUpdates},
	{"voice", false, voiceTurns},
	{"summaries", false, summaries},
	{"JSON in JSON in protobuf", false, nestedStrings},
	{"support room", false, supportRoom},
	{"embeddings", false, vectors},
	{"runs of a thread, SSE", false, threadRuns},
	{"code agent, protobuf", false, codeAgent},
	{"ranked replies, unary", false, rankedReplies},
	{"snapshots, then a title", false, windowed},
	{"events of a response", true, responseEvents},
	{"updates of a state", true, stateUpdates},
	{"candidates, mixed", true, candidatesApart},
	{"live transcript", true, liveTranscript},
	{"pieces with offsets", true, offsets},
	{"answer in a log", true, loggedAnswer},
	{"server of tokens", false, tokenServer},
	{"inline completion", true, inlineCompletion},
	{"detected intent", false, detectedIntent},
	{"chat of an editor", false, editorChat},
	{"second try", false, secondTry},
	{"tagged deltas", false, taggedDeltas},
	{"a team hands over", false, handOver},
	{"late answer", false, lateAnswer},
	{"grounded answer", false, groundedAnswer},
	{"broken off", true, brokenOff},
	{"timeline", true, timeline},
	{"named outputs", true, namedOutputs},
}

// emit sends a JSON value as one frame, with the name of an event or without.
func (m *maker) emit(dir captures.Direction, event string, v any) {
	f := decode.Frame{Dir: dir, Seq: m.seq[dir]}
	m.seq[dir]++
	f.Event = event
	f.Data, _ = json.Marshal(v)
	f.Raw = f.Data
	m.ex.Frames = append(m.ex.Frames, f)
}

// line sends text that is no JSON.
func (m *maker) line(text string) {
	f := decode.Frame{Dir: captures.Down, Seq: m.seq[captures.Down]}
	m.seq[captures.Down]++
	f.Data = []byte(text)
	f.Raw = f.Data
	m.ex.Frames = append(m.ex.Frames, f)
}

type object = map[string]any

// tokens cuts a text as a tokenizer would: in words with the space before, or
// in few runes.
func (m *maker) tokens(text string) []string {
	if m.chance(0.15) {
		return m.pieces(text, style{size: 20})
	}
	var out []string
	start := 0
	for i, r := range text {
		if i > start && (r == ' ' || r == '\n' || r > 0x2e80 && m.chance(0.5) || m.chance(0.08)) {
			out = append(out, text[start:i])
			start = i
		}
	}
	return append(out, text[start:])
}

// deltasOr are the tokens, or snapshots that grow.
func (m *maker) deltasOr(text string, grow bool) []string {
	out := m.tokens(text)
	if grow {
		for i := 1; i < len(out); i++ {
			out[i] = out[i-1] + out[i]
		}
	}
	return out
}

// cutOff drops the end of the exchange at times, and says what is left of text
// that was sent as tokens.
func (m *maker) interrupted(tokens []string) []string {
	if m.chance(0.12) && len(tokens) > 4 {
		return tokens[:2+m.r.IntN(len(tokens)-2)]
	}
	return tokens
}

// typedChunks has one message for everything; a number or a flag says what its
// text is.
func typedChunks(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.2)
	m.named = m.json
	t := m.speech()
	ask := m.question(t)
	l.want(User, ask)
	m.send(captures.Up, msg{{"session", m.uuid()}, {"query", ask}, {"model", pick(m, models)}})
	kinds := m.r.Perm(6)
	flag := m.chance(0.3)
	deep := m.wrapping("env", 0, 2)
	seq := 0
	numbered := m.chance(0.3)
	send := func(kind int, text string) {
		seq++
		body := msg{{"text", text}}
		switch {
		case flag && kind == 0:
			body = append(msg{{"thought", 1}}, body...)
		case flag && kind == 1:
		default:
			if k := kinds[kind]; k > 0 {
				body = append(msg{{"kind", k}}, body...)
			}
		}
		if numbered {
			body = append(body, field{"seq", seq})
		}
		m.send(captures.Down, wrap(deep, body))
	}
	if m.chance(0.3) && !flag {
		send(2, m.uuid())
	}
	thought := ""
	if m.chance(0.6) {
		thought = m.thought(t)
		for _, p := range m.tokens(thought) {
			send(0, p)
		}
	}
	if m.chance(0.2) && !flag {
		send(3, pick(m, []string{"Searching…", "Reading files", "Thinking", "Running tests…"}))
	}
	l.answer = m.reply(t)
	if m.chance(0.08) {
		l.answer = ""
	} else {
		tokens := m.interrupted(m.tokens(l.answer))
		l.answer = strings.Join(tokens, "")
		for _, p := range tokens {
			send(1, p)
		}
	}
	l.want(Thinking, thought)
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		m.send(captures.Down, msg{{"usage", msg{{"in", m.r.IntN(9000)}, {"out", m.r.IntN(900)}}}})
	}
	l.ex = m.ex
	return l
}

// completions are chunks with choices, reasoning beside content, and tool calls
// whose arguments come in pieces.
func completions(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	messages := []any{}
	if m.chance(0.6) {
		sys := systemPrompt(m)
		messages = append(messages, object{"role": "system", "content": sys})
		l.want(roleSystem, sys)
	}
	for range m.r.IntN(3) {
		messages = append(messages, object{"role": "user", "content": m.question(t)}, object{"role": "assistant", "content": m.reply(t)})
	}
	messages = append(messages, object{"role": "user", "content": ask})
	l.want(User, ask)
	model := pick(m, models)
	m.emit(captures.Up, "", object{"model": model, "messages": messages, "stream": true, "temperature": 0.2})
	id := "chatcmpl-" + fmt.Sprintf("%x", m.r.Uint64())
	chunk := func(delta object) {
		m.emit(captures.Down, "", object{"id": id, "object": "chat.completion.chunk", "created": 1763700000, "model": model, "system_fingerprint": "fp_44709d6fcb", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": nil}}})
	}
	chunk(object{"role": "assistant", "content": ""})
	if m.chance(0.4) {
		thought := m.thought(t)
		for _, p := range m.tokens(thought) {
			chunk(object{"reasoning_content": p})
		}
		l.want(Thinking, thought)
	}
	toolOnly := m.chance(0.12)
	if !toolOnly {
		l.answer = m.reply(t)
		for _, p := range m.tokens(l.answer) {
			chunk(object{"content": p})
		}
	}
	if toolOnly || m.chance(0.2) {
		name, args := m.call()
		for i, p := range m.pieces(args, style{size: 5}) {
			call := object{"index": 0, "function": object{"arguments": p}}
			if i == 0 {
				call["id"], call["type"] = "call_"+fmt.Sprintf("%x", m.r.Uint64()), "function"
				call["function"] = object{"name": name, "arguments": p}
			}
			chunk(object{"tool_calls": []any{call}})
		}
		l.want(roleToolCall, args)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.7) {
		m.emit(captures.Down, "", object{"id": id, "object": "chat.completion.chunk", "created": 1763700000, "model": model, "choices": []any{}, "usage": object{"prompt_tokens": 81, "completion_tokens": 40, "total_tokens": 121}})
		m.line("[DONE]")
	}
	l.ex = m.ex
	return l
}

// unaryQuestion is one message each way.
func unaryQuestion(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.4)
	m.named = m.json && m.chance(0.7)
	t := m.speech()
	ask := m.question(t)
	l.answer = m.reply(t)
	l.want(User, ask)
	l.want(Assistant, l.answer)
	body := msg{{"question", ask}, {"locale", "en-GB"}, {"request_id", m.uuid()}}
	if m.chance(0.3) {
		sys := systemPrompt(m)
		body = append(body, field{"system_prompt", sys})
		l.want(roleSystem, sys)
	}
	m.send(captures.Up, wrap(m.wrapping("req", 0, 2), body))
	out := msg{{"answer", l.answer}, {"response_id", m.uuid()}, {"model", pick(m, models)}, {"confidence", m.r.IntN(100)}}
	if m.chance(0.3) {
		out = append(out, field{"title", m.title(languages[0])})
	}
	for range m.r.IntN(3) * m.r.IntN(2) {
		out = append(out, field{"source", msg{{"url", "https://example.com/" + m.id()}, {"title", m.title(languages[0])}}})
	}
	if m.chance(0.2) {
		out = append(out, field{"question", ask})
	}
	out = append(out, field{"usage", msg{{"in", 1 + m.r.IntN(9000)}, {"out", 1 + m.r.IntN(900)}}})
	m.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	m.send(captures.Down, wrap(m.wrapping("res", 0, 2), out))
	if m.chance(0.5) {
		m.end()
	}
	l.ex = m.ex
	return l
}

// nestedAgent is a bidirectional stream of oneofs in oneofs, with what an agent
// sends besides: status lines, lists of things to do, blobs, a title.
func nestedAgent(m *maker) labelled {
	var l labelled
	t := m.speech()
	ask := m.question(t)
	l.want(User, ask)
	body := msg{{"said", msg{{"text", ask}, {"id", m.uuid()}}}, {"mode", 1 + m.r.IntN(4)}}
	if m.chance(0.4) {
		sys := systemPrompt(m)
		body = append(body, field{"rules", msg{{"body", sys}, {"name", "base"}}})
		l.want(roleSystem, sys)
	}
	for range m.r.IntN(3) {
		body = append(body, field{"open_file", msg{{"path", pick(m, filePaths)}, {"content", m.snippet()}}})
	}
	m.send(captures.Up, wrap(m.wrapping("open", 1, 2), body))
	deep := m.wrapping("srv", 1, 3)
	down := func(kind string, body msg) { m.send(captures.Down, wrap(deep, msg{{kind, body}})) }
	if m.chance(0.5) {
		down("hello", msg{{"run", m.uuid()}, {"model", pick(m, models)}})
	}
	if m.chance(0.3) {
		down("title", msg{{"text", m.title(languages[0])}})
	}
	grow := m.chance(0.15)
	rounds := 1 + m.r.IntN(4)*m.r.IntN(2)
	silent := m.chance(0.1)
	thinking, sentThought, sent := "", "", ""
	for round := range rounds {
		if m.chance(0.5) {
			th := m.thought(t)
			for _, p := range m.deltasOr(th, grow) {
				down("think", msg{{"piece", msg{{"text", sentThought + p}}}})
			}
			if grow {
				sentThought += th
			}
			thinking += th
		}
		if m.chance(0.3) {
			down("status", msg{{"line", pick(m, []string{"Searching the code…", "Reading 3 files", "Planning", "Almost there"})}})
		}
		if !silent && (round == rounds-1 || m.chance(0.5)) {
			text := m.reply(t)
			if l.answer != "" {
				text = "\n\n" + text
			}
			tokens := m.tokens(text)
			if round == rounds-1 {
				tokens = m.interrupted(tokens)
			}
			for _, p := range tokens {
				l.answer += p
				if grow {
					sent += p
					p = sent
				}
				down("say", msg{{"piece", msg{{"text", p}}}})
			}
		}
		if round < rounds-1 || silent {
			m.nestedCall(&l, deep)
		}
	}
	l.want(Thinking, thinking)
	l.want(Assistant, l.answer)
	if m.chance(0.3) {
		for range 2 + m.r.IntN(2) {
			down("suggest", msg{{"text", pick(m, t.questions)}})
		}
	}
	if m.chance(0.5) {
		down("usage", msg{{"in", 1 + m.r.IntN(90000)}, {"out", 1 + m.r.IntN(900)}, {"cached", m.r.IntN(9000)}})
	}
	if m.chance(0.6) {
		m.end()
	}
	l.ex = m.ex
	return l
}

func (m *maker) nestedCall(l *labelled, deep []string) {
	id := m.id()
	name, args := m.call()
	result := m.snippet()
	down := func(kind string, body msg) { m.send(captures.Down, wrap(deep, msg{{kind, body}})) }
	if m.number["fields"] == 0 {
		m.number["fields"] = 1 + m.r.IntN(2)
		m.number["back"] = 1 + m.r.IntN(2)
	}
	if m.number["fields"] == 1 {
		down("invoke", msg{{"id", id}, {"name", name}, {"arguments", args}})
		l.want(roleToolCall, args)
	} else {
		p := pick(m, filePaths)
		down("invoke", msg{{"id", id}, {name, msg{{"path", p}, {"lines", m.r.IntN(100)}}}})
		l.want(roleToolCall, p)
	}
	if m.number["back"] == 1 {
		m.send(captures.Up, msg{{"tool_answer", msg{{"id", id}, {"ok", msg{{"output", result}, {"code", 0}}}}}})
	} else {
		down("outcome", msg{{"id", id}, {"output", result}})
	}
	l.want(roleToolResult, result)
}
