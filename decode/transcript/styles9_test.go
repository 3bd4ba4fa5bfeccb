package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// passers are tongues of the second first look.
var passers = []tongue{
	{"English", []string{
		"The ferry runs every forty minutes until ten.", "Your lease ends on the last day of June.", "`retry_after` is in seconds, not milliseconds.", "Feed the starter twice before you bake with it.", "Both parties signed the amendment in April.",
		"I split the module in two and kept the old import path.", "The gauge reads low when the sensor is cold.", "It's cheaper on weekdays.", "Nothing was deleted; the files were moved to `archive/`.", "Allow a week for the paint to cure.", "Here are the totals you asked for:",
	}, []string{"The amendment changes the end date, so check that first.", "Could be the cold sensor.", "I have to convert the units before comparing.", "Weekday fares only, apparently.", "So June it is, unless the amendment says otherwise."}, []string{
		"when does my lease end?", "How often does the ferry run?", "why is the gauge low in the morning", "Split this module for me.",
	}, []string{"June", "40", "No.", "yes", "weekdays", "7 days", "A4"}, " "},
	{"Spanish", []string{"El ferri sale cada cuarenta minutos.", "Su contrato termina el último día de junio.", "El sensor marca de menos cuando hace frío.", "Dividí el módulo en dos.", "Entre semana es más barato."}, []string{"La enmienda cambia la fecha, hay que mirarla primero.", "Podría ser el sensor."}, []string{"¿cuándo termina mi contrato?", "¿Cada cuánto sale el ferri?"}, []string{"sí", "Junio", "40"}, " "},
	{"Greek", []string{"Το πλοίο φεύγει κάθε σαράντα λεπτά.", "Το συμβόλαιό σας λήγει τον Ιούνιο.", "Ο αισθητήρας δείχνει λιγότερο στο κρύο.", "Τις καθημερινές είναι φθηνότερα."}, []string{"Πρέπει πρώτα να δω την τροποποίηση.", "Ίσως φταίει ο αισθητήρας."}, []string{"πότε λήγει το συμβόλαιό μου;"}, []string{"ναι", "Ιούνιος"}, " "},
	{"Korean", []string{"페리는 사십 분마다 출발합니다.", "임대 계약은 유월 말일에 끝납니다.", "센서가 차가우면 값이 낮게 나옵니다.", "평일이 더 저렴합니다."}, []string{"먼저 수정된 계약을 확인해야 한다.", "센서 때문일 수도 있다."}, []string{"계약은 언제 끝나나요?"}, []string{"네", "유월"}, " "},
	{"Chinese", []string{"渡轮每四十分钟一班。", "您的租约在六月最后一天到期。", "传感器受冷时读数偏低。", "工作日更便宜。"}, []string{"要先看补充协议。", "可能是传感器的问题。"}, []string{"我的租约什么时候到期？"}, []string{"六月", "是的"}, ""},
}

func (m *maker) passer() *tongue {
	if m.chance(0.4) {
		return &passers[0]
	}
	return &passers[m.r.IntN(len(passers))]
}

// parting is an answer of a passer.
func (m *maker) parting(t *tongue) string {
	switch m.r.IntN(18) {
	case 0, 1:
		return pick(m, t.words)
	case 2:
		return "```yaml\nretry_after: " + fmt.Sprint(m.r.IntN(90)) + "\npaths:\n  - archive/\n```"
	case 3:
		return quoted(object{"end": "2026-06-30", "days": m.r.IntN(400)})
	case 4:
		return "1) " + pick(m, t.sentences) + "\n2) " + pick(m, t.sentences)
	case 5:
		return m.say(t, t.sentences, 25+m.r.IntN(50))
	}
	return m.say(t, t.sentences, 1+m.r.IntN(6))
}

// handOver is a team of agents in one stream: a researcher says what it found, and
// a writer answers.
func handOver(m *maker) labelled {
	var l labelled
	t := m.passer()
	ask := m.question(t)
	m.send(captures.Up, msg{{"team", "desk-" + fmt.Sprint(m.r.IntN(99))}, {"task", msg{{"id", m.uuid()}, {"goal", ask}}}})
	l.want(User, ask)
	turn := 0
	speak := func(agent, text string) {
		turn++
		for _, p := range m.bitsOr(text) {
			m.send(captures.Down, msg{{"agent", agent}, {"turn", turn}, {"piece", msg{{"text", p}}}})
		}
		m.send(captures.Down, msg{{"agent", agent}, {"turn", turn}, {"ended", msg{{"spent", 1 + len(text)/4}}}})
	}
	speak("researcher", m.say(t, t.thoughts, 1)+t.space+m.say(t, t.sentences, 2))
	m.send(captures.Down, msg{{"handoff", msg{{"from", "researcher"}, {"to", "writer"}}}})
	l.answer = m.parting(t)
	speak("writer", l.answer)
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// lateAnswer keeps the line open with notes and shares, and answers at once in the end.
func lateAnswer(m *maker) labelled {
	var l labelled
	t := m.passer()
	ask := m.question(t)
	m.send(captures.Up, msg{{"query", msg{{"words", ask}, {"locale", "en-GB"}}}, {"depth", 2}, {"document", m.article()}})
	l.want(User, ask)
	for i := range 3 + m.r.IntN(15) {
		m.send(captures.Down, msg{{"beat", msg{{"share", float32(i) / 20}, {"note", pick(m, []string{"Still working on it", "Reading page " + fmt.Sprint(i), "Comparing sources", "Almost there"})}, {"eta_ms", m.r.IntN(9000)}}}})
	}
	l.answer = m.parting(t)
	m.send(captures.Down, msg{{"outcome", msg{{"answer", l.answer}, {"grade", float32(0.9)}, {"source", msg{{"url", "https://ferry.example.org/" + m.padding()}, {"title", m.title(languages[0])}}}}}, {"spent", msg{{"in", 900}, {"out", 1 + len(l.answer)/4}, {"all", 901 + len(l.answer)/4}}}})
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// groundedAnswer sends the passages that it found, each longer than the answer, and
// then the answer with marks, and what to ask next.
func groundedAnswer(m *maker) labelled {
	var l labelled
	t := m.passer()
	ask := m.question(t)
	m.send(captures.Up, msg{{"search", ask}, {"corpus", "corpora/" + m.padding()}, {"top", 5}})
	l.want(User, ask)
	for range 2 + m.r.IntN(4) {
		m.send(captures.Down, msg{{"passage", msg{{"rank", m.r.IntN(99)}, {"doc", "doc-" + fmt.Sprint(m.r.IntN(9999))}, {"text", m.article()}, {"relevance", float32(m.r.Float64())}}}})
	}
	l.answer = m.parting(t)
	for _, p := range m.deltasOr(l.answer, m.chance(0.5)) {
		m.send(captures.Down, msg{{"answer", msg{{"text", p}, {"grounded", float32(0.7)}}}})
		if m.chance(0.08) {
			m.send(captures.Down, msg{{"mark", msg{{"from", 3}, {"to", 40}, {"doc", "doc-" + fmt.Sprint(m.r.IntN(9999))}}}})
		}
	}
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		next := msg{}
		for range 3 {
			next = append(next, field{"ask", pick(m, t.questions)})
		}
		m.send(captures.Down, msg{{"next", next}})
	}
	l.ex = m.ex
	return l
}

// brokenOff is an agent whose stream ends in an error that it tells in the stream:
// what it had said is the answer. Arguments are a Struct, thinking is sealed at times.
func brokenOff(m *maker) labelled {
	var l labelled
	t := m.passer()
	ask := m.question(t)
	m.send(captures.Up, msg{{"open", msg{{"session", m.uuid()}, {"prompt", msg{{"text", ask}}}, {"rules", m.policy()}}}})
	l.want(User, ask)
	deep := m.wrapping("server", 0, 2)
	down := func(kind string, body msg) { m.send(captures.Down, wrap(deep, msg{{kind, body}})) }
	if m.chance(0.4) {
		th := m.ponder(t)
		for _, p := range m.bitsOr(th) {
			down("reason", msg{{"text", p}})
		}
		down("sealed", msg{{"data", m.noise(300)}})
		l.want(Thinking, th)
	}
	if m.chance(0.5) {
		id := "tu_" + m.padding()
		down("invoke", msg{{"id", id}, {"tool", pick(m, toolNames)}, {"arguments", structOf(object{"pattern": "retry", "dir": "/srv/app"})}})
		result := strings.Repeat(m.output(), 1+m.r.IntN(20))
		m.send(captures.Up, msg{{"outcome", msg{{"id", id}, {"content", result}}}})
		l.want(roleToolResult, result)
	}
	pieces := m.bitsOr(m.parting(t))
	broken := m.chance(0.5) && len(pieces) > 3
	if broken {
		pieces = pieces[:2+m.r.IntN(len(pieces)-2)]
	}
	l.answer = strings.Join(pieces, "")
	for i, p := range pieces {
		down("say", msg{{"text", p}})
		if i%7 == 6 {
			down("meter", msg{{"out", i}})
		}
	}
	l.want(Assistant, l.answer)
	if broken {
		down("problem", msg{{"code", 529}, {"message", "The model is overloaded right now. Please try again in a moment."}, {"retry", 1}})
	} else {
		down("over", msg{{"reason", 1}})
	}
	l.ex = m.ex
	return l
}

// timeline is a list of entries that is sent again as it grows: of a person, a bot
// and the system that tells what has happened.
func timeline(m *maker) labelled {
	var l labelled
	t := m.passer()
	ask := m.question(t)
	m.send(captures.Up, msg{{"case", 7000 + m.r.IntN(999)}, {"post", msg{{"body", ask}, {"nonce", m.uuid()}}}})
	l.want(User, ask)
	var entries msg
	add := func(kind int, who, body string) {
		entries = append(entries, field{"entry", msg{{"id", 100 + len(entries)}, {"kind", kind}, {"by", msg{{"name", who}}}, {"body", body}, {"at", 1763700000 + len(entries)}}})
		m.send(captures.Down, append(msg{{"case", 7000}, {"version", len(entries)}}, entries...))
	}
	add(1, "Dana Cole", ask)
	if m.chance(0.6) {
		add(3, "system", "Case assigned to Harbour Bot")
	}
	l.answer = m.parting(t)
	add(2, "Harbour Bot", l.answer)
	if m.chance(0.3) {
		add(3, "system", "Case marked as waiting")
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

// namedOutputs are the outputs of a model server: tensors of bytes with a name,
// cut at any byte, and a flag with the last.
func namedOutputs(m *maker) labelled {
	var l labelled
	t := m.passer()
	ask := m.question(t)
	id := fmt.Sprint(m.r.IntN(1 << 30))
	m.send(captures.Up, msg{{"model", "ensemble"}, {"version", "1"}, {"id", id}, {"input", msg{{"name", "text_input"}, {"type", "BYTES"}, {"data", []byte(ask)}}}, {"input", msg{{"name", "max_tokens"}, {"type", "INT32"}, {"data", []byte{0, 2, 0, 0}}}}})
	l.want(User, ask)
	reasons := m.chance(0.3)
	out := func(name, text string) {
		for _, p := range m.pieces(text, style{size: 4, bytes: m.chance(0.5)}) {
			m.send(captures.Down, msg{{"model", "ensemble"}, {"version", "1"}, {"id", id}, {"output", msg{{"name", name}, {"type", "BYTES"}, {"shape", 1}, {"data", []byte(p)}}}})
		}
	}
	if reasons {
		th := m.ponder(t)
		out("reasoning_output", th)
		l.want(Thinking, th)
	}
	l.answer = m.parting(t)
	out("text_output", l.answer)
	l.want(Assistant, l.answer)
	m.send(captures.Down, msg{{"model", "ensemble"}, {"version", "1"}, {"id", id}, {"final", 1}})
	l.ex = m.ex
	return l
}
