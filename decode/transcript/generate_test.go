package transcript

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// A truth is what a made exchange says.
type truth struct {
	answer, thinking, user string
	calls                  []string // arguments
	history                []string // what either has said before
	about                  string   // how it was made, for messages
}

// A maker makes exchanges of random schemas. Fields are written by what they
// mean; the schema gives each meaning a random number or name.
type maker struct {
	r      *rand.Rand
	json   bool
	named  bool // JSON members have telling names
	number map[string]int
	used   map[string]map[int]bool
	ex     *decode.Exchange
	seq    [2]int
	notes  []string
}

// A field is a member of a message: a string, an int, a float32, bytes, or a msg.
type field struct {
	name  string
	value any
}

type msg []field

func newMaker(seed uint64) *maker {
	return &maker{
		r: rand.New(rand.NewPCG(seed, 99)), number: make(map[string]int), used: make(map[string]map[int]bool),
		ex: &decode.Exchange{Exchange: captures.Exchange{Status: 200}},
	}
}

func (m *maker) chance(p float64) bool { return m.r.Float64() < p }

func (m *maker) note(format string, a ...any) { m.notes = append(m.notes, fmt.Sprintf(format, a...)) }

func pick[T any](m *maker, list []T) T { return list[m.r.IntN(len(list))] }

// fieldNumber is the number of a name within its enclosing path.
func (m *maker) fieldNumber(path, name string) int {
	key := path + "." + name
	if n, ok := m.number[key]; ok {
		return n
	}
	if m.used[path] == nil {
		m.used[path] = make(map[int]bool)
	}
	for {
		n := 1 + m.r.IntN(12)
		if m.chance(0.2) {
			n = 1 + m.r.IntN(60)
		}
		if m.chance(0.03) {
			n = 1 + m.r.IntN(3000)
		}
		if !m.used[path][n] {
			m.used[path][n], m.number[key] = true, n
			return n
		}
	}
}

func (m *maker) proto(path string, fields msg) []byte {
	var b []byte
	for _, f := range fields {
		n := protowire.Number(m.fieldNumber(path, f.name))
		switch v := f.value.(type) {
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
		case float32:
			b = protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), math.Float32bits(v))
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
		case msg:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), m.proto(path+"."+f.name, v))
		}
	}
	return b
}

// value makes JSON of fields; a name that repeats becomes an array.
func (m *maker) value(path string, fields msg) map[string]any {
	out := make(map[string]any)
	for _, f := range fields {
		name := f.name
		if !m.named {
			name = "f" + fmt.Sprint(m.fieldNumber(path, f.name))
		}
		var v any = f.value
		if sub, ok := f.value.(msg); ok {
			v = m.value(path+"."+f.name, sub)
		}
		if old, ok := out[name]; ok {
			if list, ok := old.([]any); ok {
				out[name] = append(list, v)
			} else {
				out[name] = []any{old, v}
			}
			continue
		}
		out[name] = v
	}
	return out
}

func (m *maker) send(dir captures.Direction, fields msg) {
	f := decode.Frame{Dir: dir, Seq: m.seq[dir]}
	m.seq[dir]++
	f.Framed = true
	root := dir.String()
	if m.json {
		f.Data, _ = json.Marshal(m.value(root, fields))
	} else {
		f.Data = m.proto(root, fields)
		f.Tree = wire.Parse(f.Data, wire.Options{})
	}
	f.Raw = f.Data
	m.ex.Frames = append(m.ex.Frames, f)
}

func (m *maker) end() {
	f := decode.Frame{Dir: captures.Down, Seq: m.seq[captures.Down], End: &envelope.End{}}
	f.Framed, f.Flags, f.Data = true, envelope.EndStream, []byte("{}")
	m.ex.Frames = append(m.ex.Frames, f)
}

// wrap puts fields into messages, one in the other.
func wrap(names []string, fields msg) msg {
	for i := len(names) - 1; i >= 0; i-- {
		fields = msg{{names[i], fields}}
	}
	return fields
}

func (m *maker) uuid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", m.r.Uint32(), m.r.IntN(1<<16), m.r.IntN(1<<12), m.r.IntN(1<<12), m.r.Uint64()>>16)
}

func (m *maker) id() string {
	switch m.r.IntN(4) {
	case 0:
		return fmt.Sprintf("%016x%016x", m.r.Uint64(), m.r.Uint64())
	case 1:
		const chars = "ABCDEFGHJKMNPQRSTVWXYZabcdefghijkmnpqrstvwxyz0123456789"
		b := make([]byte, 22)
		for i := range b {
			b[i] = chars[m.r.IntN(len(chars))]
			if i%5 == 3 {
				b[i] = '0' + byte(m.r.IntN(10))
			}
		}
		return pick(m, []string{"call_", "toolu_", "msg_", "req-"}) + string(b)
	}
	return m.uuid()
}

// make makes one exchange.
func (m *maker) make() truth {
	var t truth
	lang := pick(m, languages)
	m.json = m.chance(0.25)
	m.named = m.json && m.chance(0.8)
	unary := m.chance(0.12)
	m.note("%s json=%v named=%v unary=%v", lang.name, m.json, m.named, unary)

	// The request.
	t.user = m.text(lang, 1+m.r.IntN(3))
	if m.chance(0.3) {
		t.user = strings.TrimRight(t.user, ".!。") + "?"
	}
	prompt := ""
	if m.chance(0.3) {
		prompt = systemPrompt(m)
		m.note("system prompt")
	}
	m.send(captures.Up, m.request(&t, prompt, lang))

	deep := m.wrapping("event", 0, 3)
	if unary {
		t.answer = m.text(lang, 1+m.r.IntN(12))
		body := msg{{"id", m.id()}, {"model", pick(m, models)}, {"text", t.answer}, {"created_ms", 1763700000000 + m.r.IntN(1e9)}}
		if m.chance(0.3) {
			body = append(body, field{"status", pick(m, []string{"done", "success", "stop"})})
		}
		m.r.Shuffle(len(body), func(i, j int) { body[i], body[j] = body[j], body[i] })
		m.send(captures.Down, wrap(deep, body))
	} else {
		m.stream(&t, deep, lang, prompt)
		if m.chance(0.7) {
			m.end()
		}
	}
	t.about = strings.Join(m.notes, ", ")
	return t
}

func (m *maker) wrapping(name string, lo, hi int) []string {
	var names []string
	for i := range lo + m.r.IntN(hi-lo+1) {
		names = append(names, fmt.Sprintf("%s%d", name, i))
	}
	return names
}

// request makes the client's first message, with decoys.
func (m *maker) request(t *truth, prompt string, lang language_) msg {
	said := msg{{"text", t.user}}
	if m.chance(0.7) {
		said = append(said, field{"message_id", m.uuid()})
	}
	body := msg{{"message", said}}
	if m.chance(0.4) {
		for range 1 + m.r.IntN(3) {
			body = append(body, field{"file", msg{{"path", pick(m, filePaths)}, {"source", m.code()}}})
		}
	}
	if prompt != "" {
		body = append(body, field{"instructions", prompt})
	}
	if m.chance(0.3) {
		for range 2 + m.r.IntN(4) {
			body = append(body, field{"tool", msg{{"name", pick(m, toolNames)}, {"description", toolAbout(m)}, {"schema", m.schema()}}})
		}
	}
	if m.chance(0.25) {
		body = append(body, field{"config", m.schema()})
	}
	if m.chance(0.5) {
		body = append(body, field{"env", msg{{"os", pick(m, []string{"linux 6.1.0", "darwin 25.1.0"})}, {"shell", "/bin/zsh"}, {"zone", "Europe/Berlin"}, {"folder", "/home/me/project"}}})
	}
	if m.chance(0.2) {
		m.note("history")
		for range 1 + m.r.IntN(4) {
			said := m.text(lang, 2)
			t.history = append(t.history, said)
			body = append(body, field{"turn", msg{{"said_by", 1 + m.r.IntN(2)}, {"said", said}, {"turn_id", m.uuid()}}})
		}
	}
	out := wrap(m.wrapping("request", 0, 3), body)
	out = append(out, field{"model", msg{{"name", pick(m, models)}, {"display_name", pick(m, models)}}}, field{"conversation_id", m.uuid()})
	return out
}

// stream makes the server's frames, and the client's answers to tool calls.
func (m *maker) stream(t *truth, deep []string, lang language_, prompt string) {
	inSame := m.chance(0.25) // thinking and text in one message
	textName, thoughtName := []string{"text_delta"}, []string{"thinking_delta"}
	if inSame {
		textName, thoughtName = []string{"chunk"}, []string{"chunk"}
	}
	style := style{grow: m.chance(0.15), size: pick(m, []int{3, 6, 12, 40}), bytes: !m.json && m.chance(0.15), id: ""}
	if m.chance(0.3) {
		style.id = m.uuid()
	}
	style.index = m.chance(0.3)
	thinks, tools := m.chance(0.5), m.chance(0.4)
	m.note("same=%v %+v thinks=%v tools=%v", inSame, style, thinks, tools)
	if m.chance(0.4) {
		m.send(captures.Down, wrap(deep, msg{{"started", msg{{"request_id", m.uuid()}, {"model", pick(m, models)}}}}))
	}
	if m.chance(0.25) {
		m.note("echo")
		m.send(captures.Down, wrap(deep, msg{{"user_appended", msg{{"text", t.user}, {"id", m.uuid()}}}}))
	}
	if prompt != "" && m.chance(0.4) || m.chance(0.1) {
		m.note("leak")
		m.send(captures.Down, wrap(deep, msg{{"state", msg{{"prompt", systemPrompt(m)}, {"sum", m.id()}}}}))
	}
	if m.chance(0.2) {
		m.note("title")
		m.send(captures.Down, wrap(deep, msg{{"title", m.title(lang)}}))
	}
	rounds := 1
	if tools {
		rounds += 1 + m.r.IntN(3)
	}
	textSent, thoughtSent := "", ""
	for round := range rounds {
		if thinks && (round == 0 || m.chance(0.6)) {
			thought := m.text(lang, 1+m.r.IntN(5))
			thoughtSent = m.deltas(deep, thoughtName, pick(m, []string{"thought"}), thoughtSent, thought, style)
			t.thinking += thought
			if m.chance(0.3) {
				m.send(captures.Down, wrap(deep, msg{{"thought_done", msg{{"ms", m.r.IntN(9000)}}}}))
			}
		}
		last := round == rounds-1
		if last || m.chance(0.5) {
			text := m.text(lang, 1+m.r.IntN(8))
			if t.answer != "" {
				text = "\n\n" + text
			}
			textSent = m.deltas(deep, textName, "text", textSent, text, style)
			t.answer += text
		}
		if !last {
			m.toolCall(t, deep, lang)
		}
	}
	if m.chance(0.15) {
		m.note("final")
		m.send(captures.Down, wrap(deep, msg{{"final", msg{{"whole", t.answer}, {"id", m.uuid()}}}}))
	}
	if m.chance(0.2) {
		m.send(captures.Down, wrap(deep, msg{{"usage", msg{{"in", m.r.IntN(9000)}, {"out", m.r.IntN(900)}}}}))
	}
}

// A style is how a schema's deltas are sent.
type style struct {
	grow  bool // snapshots
	size  int  // runes of a delta, about
	bytes bool // splits do not mind runes
	id    string
	index bool
}

// deltas sends text in pieces, with heartbeats and counters between. It returns
// all that was sent in snapshots.
func (m *maker) deltas(deep, names []string, leaf, sent, text string, s style) string {
	for i, p := range m.pieces(text, s) {
		sent += p
		v := p
		if s.grow {
			v = sent
		}
		fields := msg{{leaf, v}}
		if s.id != "" {
			fields = append(fields, field{"message_id", s.id})
		}
		if s.index {
			fields = append(fields, field{"index", i})
		}
		m.send(captures.Down, wrap(deep, wrap(names, fields)))
		if m.chance(0.15) {
			m.send(captures.Down, wrap(deep, msg{{"tokens", msg{{"n", 1 + m.r.IntN(3)}}}}))
		}
		if m.chance(0.03) {
			m.send(captures.Down, wrap(deep, msg{{"heartbeat", msg{}}}))
		}
	}
	return sent
}

func (m *maker) pieces(text string, s style) []string {
	var out []string
	if s.bytes {
		for len(text) > 0 {
			n := min(len(text), 1+m.r.IntN(s.size*2))
			out = append(out, text[:n])
			text = text[n:]
		}
		return out
	}
	runes := []rune(text)
	for len(runes) > 0 {
		n := min(len(runes), 1+m.r.IntN(s.size*2))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

// toolCall sends a call in one of three ways, and its result in one of two.
func (m *maker) toolCall(t *truth, deep []string, lang language_) {
	id, name := m.id(), pick(m, toolNames)
	args := m.args()
	way, ok := m.number["way of calls"]
	if !ok {
		way = m.r.IntN(3)
		m.number["way of calls"] = way
		m.note("call way %d", way)
	}
	switch way {
	case 0:
		m.send(captures.Down, wrap(deep, msg{{"call", msg{{"call_id", id}, {"tool_name", name}, {"args", args}}}}))
	case 1: // arguments in deltas
		m.send(captures.Down, wrap(deep, msg{{"call_started", msg{{"call_id", id}, {"tool_name", name}}}}))
		for _, p := range m.pieces(args, style{size: 6}) {
			m.send(captures.Down, wrap(deep, msg{{"call_delta", msg{{"call_id", id}, {"args", p}}}}))
		}
	case 2: // arguments as fields
		args = pick(m, filePaths)
		m.send(captures.Down, wrap(deep, msg{{"call", msg{{"call_id", id}, {"tool", msg{{name, msg{{"args", msg{{"target", args}}}}}}}}}}))
	}
	t.calls = append(t.calls, args)
	if m.chance(0.2) {
		m.note("shell output")
		for range 1 + m.r.IntN(12) {
			m.send(captures.Down, wrap(deep, msg{{"shell", msg{{"stdout", m.output()}}}}))
		}
	}
	result := m.code()
	if m.chance(0.5) {
		result = m.text(lang, 2)
	}
	if m.chance(0.6) {
		m.send(captures.Up, msg{{"exec_result", msg{{"call_id", id}, {"output", result}}}})
	} else {
		m.send(captures.Down, wrap(deep, msg{{"call_done", msg{{"call_id", id}, {"output", result}}}}))
	}
}
