package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// voices are tongues that were written after the weights of this version were
// set, for styles that were, too.
var voices = []tongue{
	{"English", []string{
		"The kettle takes about four minutes on the small burner.", "Your parcel left the depot this morning and should arrive tomorrow.", "Rename the column first, deploy, and only then drop the old one.",
		"That regex also matches an empty line, which is why the count is off by one.", "Most orchids want bright shade and dry roots.", "I moved `parseFlags` above the logger so the level is known early.", "The refund covers shipping as well.", "Gravity on Mars is a bit over a third of ours.",
		"Here's what changed since the last release:", "Press and hold for ten seconds to reset it.",
	}, []string{
		"Two parts to this: the lookup, and then the formatting.", "Better not to guess; the log has the exact time.", "They asked for one line, so keep it tight.", "If the flag is unset the default wins, so that is the bug.", "Counting again: three in May, five in June.",
	}, []string{"where is my parcel", "Rename the column without downtime, please", "Why is the count off by one?", "how heavy would I be on Mars?", "Can I get a refund?"}, []string{"42", "ok", "Mars", "Friday", "no", "5", "Yes, it is.", "12.5 kg", "B", "404"}, " "},
	{"Italian", []string{"Il pacco è partito stamattina.", "Rinomina prima la colonna, poi elimina quella vecchia.", "Le orchidee vogliono luce e radici asciutte.", "Il rimborso comprende la spedizione."}, []string{"Due cose: la ricerca e il formato.", "Meglio non indovinare, guardo il registro."}, []string{"dov'è il mio pacco?", "posso avere un rimborso?"}, []string{"sì", "Roma", "7"}, " "},
	{"Czech", []string{"Balík dnes ráno opustil sklad.", "Nejdřív přejmenujte sloupec, potom smažte starý.", "Orchideje chtějí světlo a suché kořeny."}, []string{"Jsou to dvě věci: hledání a formát.", "Raději nehádat."}, []string{"kde je můj balík?", "Můžu dostat peníze zpět?"}, []string{"ano", "Brno", "ne"}, " "},
	{"Hindi", []string{"आपका पार्सल आज सुबह निकल गया।", "पहले कॉलम का नाम बदलें, फिर पुराना हटाएँ।", "वापसी में डाक खर्च भी शामिल है।"}, []string{"इसमें दो बातें हैं।", "अनुमान लगाने से बेहतर है कि लॉग देखें।"}, []string{"मेरा पार्सल कहाँ है?", "क्या पैसे वापस मिलेंगे?"}, []string{"हाँ", "दिल्ली", "नहीं"}, " "},
	{"Russian", []string{"Посылка ушла со склада сегодня утром.", "Сначала переименуйте столбец, потом удалите старый.", "Возврат включает доставку.", "Орхидеям нужен яркий рассеянный свет."}, []string{"Здесь две части: поиск и вывод.", "Лучше не гадать, в журнале есть точное время."}, []string{"где моя посылка?", "почему счётчик отстаёт на единицу?"}, []string{"да", "ок", "Марс", "5"}, " "},
}

func (m *maker) voice() *tongue {
	if m.chance(0.45) {
		return &voices[0]
	}
	return &voices[m.r.IntN(len(voices))]
}

func (m *maker) rejoinder(t *tongue) string {
	switch m.r.IntN(12) {
	case 0:
		return pick(m, t.words)
	case 1:
		return m.say(t, t.sentences, 1) + "\n\n```sql\nALTER TABLE parcels RENAME COLUMN sent TO left_at;\nSELECT count(*) FROM parcels;\n```\n\n" + m.say(t, t.sentences, 1)
	case 2:
		return "1. " + pick(m, t.sentences) + "\n2. " + pick(m, t.sentences) + "\n   - " + pick(m, t.sentences)
	case 3:
		return "# " + pick(m, t.words) + "\n\n" + m.say(t, t.sentences, 3) + "\n\n> " + m.say(&voices[0], voices[0].sentences, 1)
	case 4:
		return m.say(t, t.sentences, 20+m.r.IntN(40))
	case 5:
		return "| part | n |\n| --- | --- |\n| " + pick(m, t.words) + " | 3 |\n\n" + m.say(t, t.sentences, 1)
	}
	return m.say(t, t.sentences, 1+m.r.IntN(5))
}

// blockEvents are a protobuf stream of starts, deltas and stops of numbered blocks,
// with signatures, metrics and at times an exception in the middle.
func blockEvents(m *maker) labelled {
	var l labelled
	t := m.voice()
	ask := m.question(t)
	up := msg{{"model", "anthropic." + pick(m, models)}}
	if m.chance(0.5) {
		sys := m.briefing()
		up = append(up, field{"system", msg{{"text", sys}}})
		l.want(roleSystem, sys)
	}
	up = append(up, field{"message", msg{{"role", 1}, {"block", msg{{"text", ask}}}}}, field{"limits", msg{{"max", 4096}, {"temperature", float32(0.2)}}})
	l.want(User, ask)
	m.send(captures.Up, up)
	m.send(captures.Down, msg{{"start", msg{{"role", 2}}}})
	index := 0
	block := func(kind, text string, start msg) {
		if start != nil {
			m.send(captures.Down, msg{{"block_start", append(msg{{"index", index}}, start...)}})
		}
		for _, p := range m.tokens(text) {
			m.send(captures.Down, msg{{"block_delta", msg{{"index", index}, {"delta", msg{{kind, p}}}}}})
		}
		m.send(captures.Down, msg{{"block_stop", msg{{"index", index}}}})
		index++
	}
	if m.chance(0.4) {
		th := m.musing(t)
		block("reasoning", th, nil)
		m.send(captures.Down, msg{{"block_delta", msg{{"index", index - 1}, {"delta", msg{{"signature", strings.Repeat(m.id(), 4)}}}}}})
		l.want(Thinking, th)
	}
	if m.chance(0.92) {
		l.answer = m.rejoinder(t)
		tokens := m.interrupted(m.tokens(l.answer))
		l.answer = strings.Join(tokens, "")
		block("text", l.answer, nil)
	}
	l.want(Assistant, l.answer)
	if l.answer == "" || m.chance(0.3) {
		name, args := m.call()
		block("tool_input", args, msg{{"use", msg{{"id", "tooluse_" + m.uuid()}, {"name", name}}}})
		l.want(roleToolCall, args)
	}
	if m.chance(0.1) {
		m.send(captures.Down, msg{{"fault", msg{{"message", "Too many tokens, please wait before trying again."}, {"kind", "throttlingException"}}}})
		l.ex = m.ex
		return l
	}
	m.send(captures.Down, msg{{"stop", msg{{"reason", pick(m, []string{"end_turn", "tool_use"})}}}})
	m.send(captures.Down, msg{{"metadata", msg{{"usage", msg{{"in", 20 + m.r.IntN(900)}, {"out", 1 + len(l.answer)/4}, {"all", 21 + len(l.answer)/4}}}, {"latency", msg{{"ms", 300 + m.r.IntN(3000)}}}}}})
	l.ex = m.ex
	return l
}

// sessionUpdates are notifications of JSON-RPC, a line each, both ways: what the
// user said comes back, plans and calls are updated.
func sessionUpdates(m *maker) labelled {
	var l labelled
	t := m.voice()
	ask := m.question(t)
	session := "sess_" + fmt.Sprintf("%016x", m.r.Uint64())
	m.emit(captures.Up, "", object{"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": object{"sessionId": session, "prompt": []any{object{"type": "text", "text": ask}, object{"type": "resource", "resource": object{"uri": "file:///home/me/app/main.py", "mimeType": "text/x-python", "text": m.python()}}}}})
	l.want(User, ask)
	update := func(kind string, o object) {
		o["sessionUpdate"] = kind
		m.emit(captures.Down, "", object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": session, "update": o}})
	}
	chunk := func(kind, text string) {
		for _, p := range m.tokens(text) {
			update(kind, object{"content": object{"type": "text", "text": p}})
		}
	}
	if m.chance(0.3) {
		update("plan", object{"entries": []any{object{"content": "Look at the log", "priority": "high", "status": "pending"}, object{"content": "Fix the count", "priority": "medium", "status": "pending"}}})
	}
	if m.chance(0.5) {
		th := m.musing(t)
		chunk("agent_thought_chunk", th)
		l.want(Thinking, th)
	}
	if m.chance(0.5) {
		id := "call_" + fmt.Sprintf("%03d", m.r.IntN(1000))
		update("tool_call", object{"toolCallId": id, "title": "Reading main.py", "kind": "read", "status": "pending", "rawInput": object{"path": "/home/me/app/main.py"}})
		result := m.python()
		update("tool_call_update", object{"toolCallId": id, "status": "completed", "content": []any{object{"type": "content", "content": object{"type": "text", "text": result}}}})
		l.want(roleToolCall, "/home/me/app/main.py")
		l.want(roleToolResult, result)
	}
	l.answer = m.rejoinder(t)
	chunk("agent_message_chunk", l.answer)
	l.want(Assistant, l.answer)
	m.emit(captures.Down, "", object{"jsonrpc": "2.0", "id": 2, "result": object{"stopReason": "end_turn"}})
	l.ex = m.ex
	return l
}

// voiceTurns are what was heard, as it is understood better and better, and the
// spoken answer with its sound.
func voiceTurns(m *maker) labelled {
	var l labelled
	t := m.voice()
	ask := m.question(t)
	m.send(captures.Up, msg{{"config", msg{{"language", "en-US"}, {"rate", 16000}, {"device", m.uuid()}}}})
	for range 3 + m.r.IntN(6) {
		m.send(captures.Up, msg{{"audio", m.noise(40 + m.r.IntN(200))}})
	}
	heard := m.deltasOr(ask, true)
	for i, p := range heard {
		final := 0
		if i == len(heard)-1 {
			final = 1
		}
		m.send(captures.Down, msg{{"heard", msg{{"transcript", p}, {"final", final}, {"stability", float32(0.1 * float32(i%10))}}}})
	}
	l.answer = m.rejoinder(t)
	for _, p := range m.tokens(l.answer) {
		m.send(captures.Down, msg{{"reply", msg{{"text", p}}}})
		if m.chance(0.3) {
			m.send(captures.Down, msg{{"sound", msg{{"pcm", m.noise(60 + m.r.IntN(300))}}}})
		}
	}
	l.want(Assistant, l.answer)
	if m.chance(0.6) {
		m.send(captures.Down, msg{{"ended", msg{{"reason", "complete"}}}})
	}
	l.ex = m.ex
	return l
}

func (m *maker) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.r.IntN(256))
	}
	return b
}

// summaries are of a document that is longer than all else, in another language
// than that of the answer, in snapshots or at once.
func summaries(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.5)
	m.named = m.json && m.chance(0.7)
	t := m.voice()
	doc := m.say(m.speech(), tongues[0].sentences, 40+m.r.IntN(80))
	m.send(captures.Up, msg{{"task", 3}, {"document", msg{{"title", m.title(languages[0])}, {"body", doc}, {"mime", "text/plain"}}}, {"target", "it-IT"}, {"request", m.uuid()}})
	l.answer = m.say(t, t.sentences, 2+m.r.IntN(6))
	pieces := m.deltasOr(l.answer, true)
	if m.chance(0.4) {
		pieces = []string{l.answer}
	}
	for i, p := range pieces {
		m.send(captures.Down, msg{{"summary", msg{{"text", p}, {"progress", 100 * (i + 1) / len(pieces)}}}, {"request", m.uuid()}})
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// nestedStrings have JSON in a string of JSON in a field of protobuf, in one of
// three ways to tell text and thinking apart.
func nestedStrings(m *maker) labelled {
	var l labelled
	t := m.voice()
	ask := m.question(t)
	m.send(captures.Up, msg{{"op", 7}, {"body", quoted(object{"op": "ask", "args": quoted(object{"q": ask, "lang": "en"})})}})
	l.want(User, ask)
	n := 0
	put := func(kind, text string) {
		n++
		m.send(captures.Down, msg{{"op", 8}, {"n", n}, {"body", quoted(object{"op": "push", "data": quoted(object{"t": kind, "c": text})})}})
	}
	if m.chance(0.4) {
		th := m.musing(t)
		for _, p := range m.tokens(th) {
			put("reasoning", p)
		}
		l.want(Thinking, th)
	}
	l.answer = m.rejoinder(t)
	for _, p := range m.tokens(l.answer) {
		put("answer", p)
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// supportRoom is polled for messages of people and of a bot, each whole.
func supportRoom(m *maker) labelled {
	var l labelled
	m.json = m.chance(0.4)
	m.named = m.json
	t := m.voice()
	ask := m.question(t)
	m.send(captures.Up, msg{{"room", m.uuid()}, {"send", msg{{"text", ask}, {"client_id", m.uuid()}, {"at", 1763700000 + m.r.IntN(1000)}}}})
	l.want(User, ask)
	if m.chance(0.5) {
		m.send(captures.Down, msg{{"ack", msg{{"client_id", m.uuid()}, {"server_id", 7000000 + m.r.IntN(1000000)}}}})
	}
	if m.chance(0.5) {
		m.send(captures.Down, msg{{"typing", msg{{"name", "Nora"}}}})
	}
	l.answer = m.rejoinder(t)
	m.send(captures.Down, msg{{"message", msg{{"id", 7000000 + m.r.IntN(1000000)}, {"sender", msg{{"name", "Nora"}, {"avatar", "https://cdn.example.com/a/" + m.uuid() + ".png"}}}, {"text", l.answer}, {"at", 1763700010}}}})
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		quick := msg{}
		for _, s := range []string{"Track my parcel", "Talk to a person", "Something else"} {
			quick = append(quick, field{"reply", msg{{"title", s}, {"payload", strings.ToUpper(strings.ReplaceAll(s, " ", "_"))}}})
		}
		m.send(captures.Down, msg{{"quick", quick}})
	}
	l.ex = m.ex
	return l
}

// vectors are embeddings: there is no answer in words.
func vectors(m *maker) labelled {
	var l labelled
	t := m.voice()
	up := msg{{"model", "text-embedding-3-small"}, {"dimensions", 256}}
	for range 1 + m.r.IntN(4) {
		up = append(up, field{"input", m.say(t, t.sentences, 1)})
	}
	m.send(captures.Up, up)
	out := msg{{"object", "list"}, {"model", "text-embedding-3-small"}}
	for i := range 1 + m.r.IntN(4) {
		out = append(out, field{"data", msg{{"index", i}, {"vector", m.noise(4 * 256)}, {"object", "embedding"}}})
	}
	m.send(captures.Down, append(out, field{"usage", msg{{"in", 20 + m.r.IntN(100)}, {"all", 20 + m.r.IntN(100)}}}))
	l.ex = m.ex
	return l
}
