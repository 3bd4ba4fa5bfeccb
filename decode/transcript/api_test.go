package transcript

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/envelope"
)

// A published API is written here from its public schema, as bytes of an HTTP exchange. Half of them were used for
// tuning; the others were looked at once, when everything was finished.
type api struct {
	name  string
	tuned bool
	make  func(g *apiCall)
}

// A toolUse is a call of a tool with its result.
type toolUse struct {
	id, name, result string
	args             object
}

func (u toolUse) json() string { return string(compactJSON(u.args)) }

func compactJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// An apiCall is an exchange that a test constructs, with the conversation in it.
type apiCall struct {
	*maker
	ex     *captures.Exchange
	chunks []captures.Chunk

	// What is said. earlier are calls of earlier exchanges whose results the request has.
	model, system, question, thinking, answer string
	calls, earlier                            []toolUse
	input, output, cached, reasoning          int

	// What the API does not have, which the generator clears.
	noUsage bool
}

func newAPICall(seed uint64) *apiCall {
	g := &apiCall{maker: newMaker(seed)}
	g.r = rand.New(rand.NewPCG(seed, 4711))
	lang := pick(g.maker, languages)
	g.model = pick(g.maker, models)
	g.question = g.text(lang, 1+g.r.IntN(3))
	g.answer = g.text(lang, 1+g.r.IntN(6))
	if g.chance(0.3) {
		// Tokens that repeat, code and JSON are texts like others.
		g.answer += pick(g.maker, []string{" ha ha ha ha!", " no no no", "\n\n```json\n{\"name\": \"x\", \"args\": {}}\n```", "\n\n- a\n- a\n- a", " 1 1 1 1 1"})
	}
	if g.chance(0.1) {
		g.answer = pick(g.maker, []string{"Yes.", "42", "Oslo", "No, it is not."})
	}
	if g.chance(0.4) {
		g.system = systemPrompt(g.maker)
	}
	if g.chance(0.4) {
		g.thinking = g.text(lang, 1+g.r.IntN(4))
	}
	if g.chance(0.35) {
		for range 1 + g.r.IntN(3) {
			g.calls = append(g.calls, g.use())
		}
		if g.chance(0.5) {
			g.answer = ""
		}
	} else if g.chance(0.4) {
		for range 1 + g.r.IntN(3) {
			g.earlier = append(g.earlier, g.use())
		}
	}
	g.input, g.output, g.cached, g.reasoning = 20+g.r.IntN(5000), 1+g.r.IntN(900), g.r.IntN(20), g.r.IntN(50)
	g.ex = &captures.Exchange{
		ID: 1, Method: "POST", Status: 200, Outcome: captures.Complete, Transport: captures.HTTP,
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/json"}},
	}
	return g
}

func (g *apiCall) use() toolUse {
	args := object{}
	for range g.r.IntN(4) {
		name := pick(g.maker, []string{"path", "city", "query", "limit", "recursive", "options", "content"})
		args[name] = pick(g.maker, []any{pick(g.maker, filePaths), "Oslo", g.r.IntN(100), true, object{"unit": "c", "days": 3}, []any{"a", "b"}, "line 1\nline \"2\""})
	}
	result := pick(g.maker, []string{"12 degrees, rain from the west", `{"ok":true,"items":[1,2]}`, "no such file", "package main\n\nfunc main() {}\n"})
	return toolUse{id: "call_" + strings.ReplaceAll(g.uuid(), "-", "")[:20], name: pick(g.maker, toolNames), args: args, result: fmt.Sprintf("%s #%d", result, g.r.IntN(1000))}
}

// up sets the address and the request.
func (g *apiCall) up(url string, body any) {
	g.ex.URL = "https://api.example" + url
	g.chunk(captures.Up, compactJSON(body))
}

func (g *apiCall) chunk(dir captures.Direction, data []byte) {
	n := len(g.chunks)
	g.chunks = append(g.chunks, captures.Chunk{Exchange: 1, Dir: dir, Seq: int64(n), T: time.Duration(n) * time.Millisecond, Data: data})
}

func (g *apiCall) down(data []byte) { g.chunk(captures.Down, data) }

// respond sets the content type of the response.
func (g *apiCall) respond(contentType string) {
	g.ex.ResponseHeaders = captures.Headers{{Name: "content-type", Value: contentType}}
}

// sse sends an event; name may be "".
func (g *apiCall) sse(name string, data any) {
	if g.ex.ResponseHeaders == nil {
		g.respond("text/event-stream; charset=utf-8")
	}
	text, ok := data.(string)
	if !ok {
		text = string(compactJSON(data))
	}
	out := ""
	if name != "" {
		out = "event: " + name + "\n"
	}
	for line := range strings.SplitSeq(text, "\n") {
		out += "data: " + line + "\n"
	}
	g.down([]byte(out + "\n"))
}

// line sends a line of JSON.
func (g *apiCall) line(v any) {
	if g.ex.ResponseHeaders == nil {
		g.respond("application/x-ndjson")
	}
	g.down(append(compactJSON(v), '\n'))
}

// aws sends a message of an AWS event stream.
func (g *apiCall) aws(event string, v any) {
	if g.ex.ResponseHeaders == nil {
		g.respond("application/vnd.amazon.eventstream")
	}
	g.down(awsMessage(event, "application/json", compactJSON(v)))
}

func awsMessage(event, contentType string, payload []byte) []byte {
	var h []byte
	for _, kv := range [][2]string{{":event-type", event}, {":content-type", contentType}, {":message-type", "event"}} {
		h = append(append(append(h, byte(len(kv[0]))), kv[0]...), 7)
		h = append(binary.BigEndian.AppendUint16(h, uint16(len(kv[1]))), kv[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// grpc makes the exchange a call of gRPC and sends the request.
func (g *apiCall) grpc(method string, request []byte) {
	g.ex.URL = "https://api.example/" + method
	g.ex.RequestHeaders = captures.Headers{{Name: "content-type", Value: "application/grpc"}}
	g.respond("application/grpc")
	g.ex.ResponseTrailers = captures.Headers{{Name: "grpc-status", Value: "0"}}
	g.chunk(captures.Up, envelope.Append(nil, 0, request))
}

func (g *apiCall) message(b []byte) { g.down(envelope.Append(nil, 0, b)) }

// parts cuts a text into parts.
func (g *apiCall) parts(text string) []string {
	if text == "" {
		return nil
	}
	return g.pieces(text, style{size: pick(g.maker, []int{2, 4, 8, 20})})
}

// decoded returns the exchange as decoded from its bytes.
func (g *apiCall) decoded() *decode.Exchange {
	ex, err := decode.DecodeRecord(context.Background(), g, g.ex, decode.Options{Profile: &profile.Profile{}, NoChoices: true})
	if err != nil {
		panic(err)
	}
	return ex
}

// The methods of captures.Source.

func (g *apiCall) Profile() *profile.Profile { return nil }

func (g *apiCall) Exchange(context.Context, int64) (*captures.Exchange, error) { return g.ex, nil }

func (g *apiCall) Chunks(context.Context, int64, int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range g.chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// An apiScore counts what was read right, and of how many.
type apiScore struct {
	answer, thinking, calls, results, usage [2]int
	wrong                                   []string
}

func (s *apiScore) add(o *apiScore) {
	for i := range 2 {
		s.answer[i] += o.answer[i]
		s.thinking[i] += o.thinking[i]
		s.calls[i] += o.calls[i]
		s.results[i] += o.results[i]
		s.usage[i] += o.usage[i]
	}
}

func (s *apiScore) row(name string) string {
	cell := func(n [2]int) string {
		if n[1] == 0 {
			return "   -"
		}
		return fmt.Sprintf("%.3f", share(n))
	}
	return fmt.Sprintf("%-44s answer %s · thinking %s · calls %s · results %s · usage %s", name, cell(s.answer), cell(s.thinking), cell(s.calls), cell(s.results), cell(s.usage))
}

// judge compares what was read from an exchange with what it says.
func (s *apiScore) judge(name string, seed uint64, g *apiCall, o Options) {
	got := Extract(g.decoded(), o)
	check := func(n *[2]int, right bool, what string, found, want any) {
		if count(n, right); !right {
			s.wrong = append(s.wrong, fmt.Sprintf("%s seed %d: %s: %.300q, want %.300q", name, seed, what, fmt.Sprint(found), fmt.Sprint(want)))
		}
	}
	same := func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }
	check(&s.answer, same(got.Answer, g.answer), "answer", got.Answer, g.answer)
	// Thinking that is not there must not be found, either.
	check(&s.thinking, same(got.Thinking, g.thinking), "thinking", got.Thinking, g.thinking)

	var made, repeated []Tool
	for _, t := range got.Tools {
		if t.Earlier {
			repeated = append(repeated, t)
		} else {
			made = append(made, t)
		}
	}
	if len(g.calls) > 0 || len(made) > 0 {
		check(&s.calls, sameCalls(made, g.calls), "calls", made, g.calls)
	}
	if len(g.earlier) > 0 {
		right := len(repeated) == len(g.earlier) && sameCalls(repeated, g.earlier)
		for i := range repeated {
			right = right && i < len(g.earlier) && sameResultText(repeated[i].Result, g.earlier[i].result)
		}
		check(&s.results, right, "earlier calls", repeated, g.earlier)
	}
	if !g.noUsage {
		right := got.Usage != nil && got.Usage.Input != nil && got.Usage.Output != nil && *got.Usage.Input == int64(g.input) && *got.Usage.Output == int64(g.output)
		found := "none"
		if got.Usage != nil {
			found = string(compactJSON(got.Usage))
		}
		check(&s.usage, right, "usage", found, []int{g.input, g.output})
	}
}

// sameCalls reports whether the calls have the names and arguments, in order.
func sameCalls(got []Tool, want []toolUse) bool {
	if len(got) != len(want) {
		return false
	}
	for i, w := range want {
		var a any
		if got[i].Name != w.name || json.Unmarshal([]byte(got[i].Arguments), &a) != nil {
			return false
		}
		var b any
		_ = json.Unmarshal([]byte(w.json()), &b)
		if !reflect.DeepEqual(a, b) {
			return false
		}
	}
	return true
}

// sameResultText reports whether a result was found: its text, or an object with only that text in it.
func sameResultText(got, want string) bool {
	if strings.TrimSpace(got) == strings.TrimSpace(want) {
		return true
	}
	var o object
	if json.Unmarshal([]byte(got), &o) != nil || len(o) != 1 {
		return false
	}
	return slices.ContainsFunc([]string{"output", "result", "content", "text"}, func(name string) bool { return o[name] == want })
}

// fields of protobuf messages.
func pbText(n int, s string) []byte { return str(n, s) }

func pbMsg(n int, fields ...[]byte) []byte { return sub(n, fields...) }

func pbDouble(n int, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, protowire.Number(n), protowire.Fixed64Type), floatBits(v))
}

// pbStruct is a google.protobuf.Struct.
func pbStruct(o object) []byte {
	var b []byte
	for _, k := range sortedNames(o) {
		b = append(b, pbMsg(1, pbText(1, k), pbMsg(2, pbValue(o[k])))...)
	}
	return b
}

// pbValue is a google.protobuf.Value.
func pbValue(v any) []byte {
	switch v := v.(type) {
	case string:
		return pbText(3, v)
	case int:
		return pbDouble(2, float64(v))
	case bool:
		n := 0
		if v {
			n = 1
		}
		return num(4, n)
	case object:
		return pbMsg(5, pbStruct(v))
	case []any:
		var b []byte
		for _, e := range v {
			b = append(b, pbMsg(1, pbValue(e))...)
		}
		return pbMsg(6, b)
	}
	return num(1, 0)
}

// bodyOf returns the JSON of a chunk.
func (g *apiCall) bodyOf(i int) object {
	var o object
	if err := json.Unmarshal(g.chunks[i].Data, &o); err != nil {
		panic(err)
	}
	return o
}
