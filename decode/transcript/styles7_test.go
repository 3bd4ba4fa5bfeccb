package transcript

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"google.golang.org/protobuf/proto"

	"unwire/captures"
)

// structOf is a message of type google.protobuf.Struct.
func structOf(o object) []byte {
	s, err := structpb.NewStruct(o)
	if err != nil {
		panic(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// responseEvents are numbered events of a response: items begin, come in deltas and
// come again whole; the prompt and the tools are told with the first event and the
// last; thinking is summarised, and sealed.
func responseEvents(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	sys := m.policy()
	tools := msg{}
	for range m.r.IntN(4) {
		tools = append(tools, field{"tool", msg{{"name", pick(m, toolNames)}, {"about", toolAbout(m)}, {"schema", m.schema()}}})
	}
	m.send(captures.Up, append(msg{{"model", pick(m, models)}, {"prompt", sys}, {"input", msg{{"role", "user"}, {"part", msg{{"kind", "input_text"}, {"text", ask}}}}}, {"store", 1}}, tools...))
	l.want(User, ask)
	l.want(roleSystem, sys)
	seq := 0
	id := "resp_" + strings.ReplaceAll(m.uuid(), "-", "")
	event := func(name string, body msg) {
		m.send(captures.Down, msg{{"seq", seq}, {"name", "response." + name}, {name, body}})
		seq++
	}
	response := func(state string, items msg) msg {
		r := msg{{"id", id}, {"state", state}, {"created", 1763700000}, {"model", "gpt-5.1"}, {"instructions", sys}, {"temperature", float32(1)}}
		return msg{{"response", append(append(r, tools...), items...)}}
	}
	event("created", response("in_progress", nil))
	var items msg
	if m.chance(0.5) {
		th := m.ponder(t)
		item := "rs_" + m.id()
		event("item.added", msg{{"index", 0}, {"item", msg{{"id", item}, {"type", "reasoning"}}}})
		for _, p := range m.bitsOr(th) {
			event("summary.delta", msg{{"item", item}, {"index", 0}, {"delta", p}})
		}
		event("summary.done", msg{{"item", item}, {"index", 0}, {"text", th}})
		done := msg{{"id", item}, {"type", "reasoning"}, {"summary", th}, {"sealed", strings.Repeat(m.id()+m.id(), 8)}}
		event("item.done", msg{{"index", 0}, {"item", done}})
		items = append(items, field{"output", done})
		l.want(Thinking, th)
	}
	if m.chance(0.3) {
		name, args := m.call()
		item, call := "fc_"+m.id(), "call_"+strings.ReplaceAll(m.uuid(), "-", "")[:24]
		event("item.added", msg{{"index", 1}, {"item", msg{{"id", item}, {"type", "function_call"}, {"call", call}, {"function", name}}}})
		for _, p := range m.bits(args) {
			event("arguments.delta", msg{{"item", item}, {"index", 1}, {"delta", p}})
		}
		event("arguments.done", msg{{"item", item}, {"index", 1}, {"arguments", args}})
		l.want(roleToolCall, args)
	}
	l.answer = m.reaction(t)
	item := "msg_" + m.id()
	event("item.added", msg{{"index", 2}, {"item", msg{{"id", item}, {"type", "message"}, {"status", "in_progress"}, {"role", "assistant"}}}})
	pieces := m.bitsOr(l.answer)
	cut := m.chance(0.1) && len(pieces) > 5
	if cut {
		pieces = pieces[:len(pieces)/2]
		l.answer = strings.Join(pieces, "")
	}
	for _, p := range pieces {
		event("output_text.delta", msg{{"item", item}, {"index", 2}, {"content", 0}, {"delta", p}, {"pad", m.padding()}})
	}
	l.want(Assistant, l.answer)
	if !cut {
		event("output_text.done", msg{{"item", item}, {"index", 2}, {"content", 0}, {"text", l.answer}})
		done := msg{{"id", item}, {"type", "message"}, {"status", "completed"}, {"role", "assistant"}, {"part", msg{{"type", "output_text"}, {"text", l.answer}}}}
		event("item.done", msg{{"index", 2}, {"item", done}})
		items = append(items, field{"output", done})
		event("completed", response("completed", append(items, field{"usage", msg{{"in", 80 + m.r.IntN(4000)}, {"out", 1 + len(l.answer)/4}, {"all", 90 + m.r.IntN(5000)}}})))
	}
	l.ex = m.ex
	return l
}

// padding hides the length of a delta.
func (m *maker) padding() string {
	const chars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, 6+m.r.IntN(12))
	for i := range b {
		b[i] = chars[m.r.IntN(len(chars))]
	}
	return string(b)
}

// stateUpdates are the messages that each node of a graph adds, with the whole
// state at the end: messages of four authors, told apart by an enum or a word.
func stateUpdates(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	words := m.chance(0.5)
	author := func(n int) field {
		if words {
			return field{"type", []string{"human", "ai", "tool", "system"}[n]}
		}
		return field{"type", n + 1}
	}
	m.send(captures.Up, msg{{"graph", "agent"}, {"thread", m.uuid()}, {"input", msg{{"message", msg{author(0), {"content", ask}}}}}, {"mode", "updates"}, {"limit", 25}})
	l.want(User, ask)
	said := []msg{{author(0), {"content", ask}, {"id", m.uuid()}}}
	step := 0
	node := func(name string, message msg) {
		said = append(said, message)
		step++
		m.send(captures.Down, msg{{"update", msg{{"node", name}, {"step", step}, {"message", message}}}, {"at_ms", 1763700000000 + step*733}})
	}
	if m.chance(0.3) {
		sys := m.policy()
		node("prepare", msg{author(3), {"content", sys}, {"id", m.uuid()}})
		l.want(roleSystem, sys)
	}
	for range m.r.IntN(4) {
		name, args := m.call()
		id := "call_" + fmt.Sprintf("%012x", m.r.Uint64()>>16)
		call := msg{author(1), {"id", m.uuid()}, {"call", msg{{"id", id}, {"name", name}, {"args", args}}}, {"spent", msg{{"in", 90 + m.r.IntN(900)}, {"out", 20}}}}
		node("agent", call)
		result := m.article()
		if m.chance(0.4) {
			result = strings.Repeat(m.output(), 1+m.r.IntN(30))
		}
		node("tools", msg{author(2), {"content", result}, {"id", m.uuid()}, {"for", id}, {"name", name}})
		l.want(roleToolCall, args)
		l.want(roleToolResult, result)
	}
	l.answer = m.reaction(t)
	node("agent", msg{author(1), {"content", l.answer}, {"id", m.uuid()}, {"spent", msg{{"in", 90 + m.r.IntN(900)}, {"out", 1 + len(l.answer)/4}}}})
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		var all msg
		for _, s := range said {
			all = append(all, field{"message", s})
		}
		m.send(captures.Down, msg{{"values", all}, {"at_ms", 1763700099000}})
	}
	l.ex = m.ex
	return l
}

// candidatesApart are two or three answers at once, their deltas mixed, told apart
// by an index: the first of them is the answer.
func candidatesApart(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	m.send(captures.Up, msg{{"deployment", "prod-" + fmt.Sprint(m.r.IntN(9))}, {"content", msg{{"part", msg{{"text", ask}}}}}, {"n", 3}, {"seed", m.r.IntN(1 << 30)}})
	l.want(User, ask)
	n := 2 + m.r.IntN(2)
	var queues [][]string
	for range n {
		queues = append(queues, m.tokens(m.reaction(t)))
	}
	l.answer = strings.Join(queues[0], "")
	l.want(Assistant, l.answer)
	together := m.chance(0.4) // each event has a piece of each
	id := m.uuid()
	sent := 0
	for {
		var body msg
		for i := range queues {
			if len(queues[i]) == 0 || !together && len(body) > 0 || !together && m.chance(0.5) {
				continue
			}
			c := msg{{"part", msg{{"text", queues[i][0]}}}}
			if i > 0 {
				c = append(c, field{"index", i})
			}
			sent += len(queues[i][0])
			if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
				c = append(c, field{"finish", 1})
			}
			body = append(body, field{"candidate", c})
		}
		left := 0
		for _, q := range queues {
			left += len(q)
		}
		if len(body) > 0 {
			m.send(captures.Down, append(body, field{"usage", msg{{"in", 17}, {"out", 1 + sent/4}}}, field{"response", id}))
		}
		if left == 0 {
			break
		}
	}
	l.ex = m.ex
	return l
}

// liveTranscript is what was heard from a person and what an agent says, in segments
// of one form that name whose they are; both from the server.
func liveTranscript(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	person, agent := "caller-"+fmt.Sprintf("%06x", m.r.IntN(1<<24)), "agent-"+fmt.Sprintf("%06x", m.r.IntN(1<<24))
	m.send(captures.Up, msg{{"join", msg{{"room", "support-" + fmt.Sprint(m.r.IntN(999))}, {"identity", person}, {"codec", "opus"}}}})
	m.send(captures.Down, msg{{"joined", msg{{"room", "RM_" + m.padding()}, {"peer", msg{{"identity", agent}, {"state", 2}}}}}})
	for range 4 + m.r.IntN(8) {
		m.send(captures.Up, msg{{"media", msg{{"seq", m.r.IntN(60000)}, {"opus", m.noise(60 + m.r.IntN(100))}}}})
	}
	segment := func(who, id, text string, at, final int) {
		s := msg{{"id", id}, {"text", text}, {"from_ms", at}, {"to_ms", at + 400}, {"lang", "en"}}
		if final > 0 {
			s = append(s, field{"final", 1})
		}
		m.send(captures.Down, msg{{"transcription", msg{{"identity", who}, {"track", "TR_" + who[:3] + "x91"}, {"segment", s}}}})
	}
	heard := m.deltasOr(ask, true)
	id := "SG_" + m.padding()
	for i, p := range heard {
		segment(person, id, p, 1200, b2i(i == len(heard)-1))
	}
	l.want(User, ask)
	l.answer = m.reaction(t)
	grow := m.chance(0.5)
	said := m.deltasOr(l.answer, grow)
	id = "SG_" + m.padding()
	for i, p := range said {
		segment(agent, id, p, 5200, b2i(i == len(said)-1))
		if m.chance(0.3) {
			m.send(captures.Down, msg{{"media", msg{{"seq", m.r.IntN(60000)}, {"opus", m.noise(60 + m.r.IntN(100))}}}})
		}
	}
	l.want(Assistant, l.answer)
	l.ex = m.ex
	return l
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// offsets are pieces with the place in the answer that they are written at; after a
// break some are sent again.
func offsets(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	m.send(captures.Up, msg{{"op", msg{{"buffer", m.r.IntN(1 << 20)}, {"say", ask}}}, {"replica", 1 + m.r.IntN(8)}})
	l.want(User, ask)
	l.answer = m.reaction(t)
	deep := m.wrapping("ops", 0, 2)
	buffer := 1 + m.r.IntN(1<<20)
	clock := 0
	write := func(at int, text string) {
		clock++
		m.send(captures.Down, wrap(deep, msg{{"edit", msg{{"buffer", buffer}, {"clock", clock}, {"at", at}, {"text", text}}}}))
	}
	if m.chance(0.4) {
		th := m.ponder(t)
		at := 0
		for _, p := range m.bitsOr(th) {
			m.send(captures.Down, wrap(deep, msg{{"aside", msg{{"buffer", buffer + 1}, {"at", at}, {"text", p}}}}))
			at += len(p)
		}
		l.want(Thinking, th)
	}
	pieces := m.bitsOr(l.answer)
	again := -1
	if m.chance(0.4) && len(pieces) > 6 {
		again = 3 + m.r.IntN(len(pieces)-4)
	}
	starts := []int{0}
	for _, p := range pieces {
		starts = append(starts, starts[len(starts)-1]+len(p))
	}
	for i, p := range pieces {
		if i == again {
			m.send(captures.Down, wrap(deep, msg{{"resumed", msg{{"token", m.id()}}}}))
			for k := i - 3; k < i; k++ {
				write(starts[k], pieces[k])
			}
		}
		write(starts[i], p)
	}
	l.want(Assistant, l.answer)
	if m.chance(0.5) {
		m.send(captures.Down, wrap(deep, msg{{"saved", msg{{"buffer", buffer}, {"bytes", len(l.answer)}, {"digest", fmt.Sprintf("%064x", rand.New(rand.NewPCG(uint64(clock), 1)).Uint64())}}}}))
	}
	l.ex = m.ex
	return l
}

// loggedAnswer is a short or structured answer among lines of a log, steps with
// their progress and messages that keep the line open.
func loggedAnswer(m *maker) labelled {
	var l labelled
	t := m.stranger()
	ask := m.question(t)
	up := msg{{"job", msg{{"kind", "ask"}, {"input", ask}}}, {"trace", fmt.Sprintf("%032x", m.r.Uint64())}}
	if m.chance(0.5) {
		up = append(up, field{"attachment", msg{{"name", "report.txt"}, {"data", m.article()}}})
	}
	m.send(captures.Up, up)
	l.want(User, ask)
	log := func() {
		level := m.r.IntN(3)
		m.send(captures.Down, msg{{"log", msg{{"level", level}, {"at", 1763700000000 + m.r.IntN(1e6)}, {"line", fmt.Sprintf(pick(m, []string{
			"[worker-%d] loaded tokenizer in 13 ms", "GET /internal/rank 200 %dms", "cache miss for shard %d, falling back to origin", "scheduler: job accepted, queue depth %d", "retrying upstream (attempt %d of 5) after timeout",
		}), m.r.IntN(90))}}}})
	}
	ping := func() {
		if m.chance(0.3) {
			m.send(captures.Down, msg{{"ping", msg{{"note", pick(m, []string{"keep-alive", "still here"})}}}})
		}
	}
	for i := range 2 + m.r.IntN(12) {
		log()
		ping()
		if m.chance(0.3) {
			m.send(captures.Down, msg{{"progress", msg{{"done", i}, {"of", 14}, {"label", pick(m, []string{"Collecting sources", "Ranking passages", "Drafting", "Checking figures"})}}}})
		}
	}
	l.answer = m.reaction(t)
	pieces := []string{l.answer}
	if m.chance(0.6) {
		pieces = m.bitsOr(l.answer)
	}
	for _, p := range pieces {
		m.send(captures.Down, msg{{"output", msg{{"value", p}}}})
		if m.chance(0.15) {
			log()
		}
		ping()
	}
	l.want(Assistant, l.answer)
	if m.chance(0.7) {
		m.send(captures.Down, msg{{"finished", msg{{"status", "SUCCEEDED"}, {"spent_ms", m.r.IntN(9000)}, {"in", 300 + m.r.IntN(900)}, {"out", 1 + len(l.answer)/4}}}})
	}
	l.ex = m.ex
	return l
}
