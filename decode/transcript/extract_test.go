package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// raw makes an exchange of bodies: of the client's before "--", of the server's
// behind it. Bodies that begin with { or [, or are no protobuf, have no tree.
func raw(bodies ...any) *decode.Exchange {
	ex := &decode.Exchange{Exchange: captures.Exchange{Status: 200}}
	dir := captures.Up
	seq := 0
	for _, b := range bodies {
		f := decode.Frame{Dir: dir, Seq: seq}
		f.Framed = true
		seq++
		switch b := b.(type) {
		case string:
			if b == "--" {
				dir, seq = captures.Down, 0
				continue
			}
			f.Data = []byte(b)
		case []byte:
			f.Data = b
			f.Tree = wire.Parse(b, wire.Options{})
		case *envelope.End:
			f.End, f.Flags = b, envelope.EndStream
		}
		ex.Frames = append(ex.Frames, f)
	}
	return ex
}

// sub is a message of one field; str and num are fields.
func sub(n int, fields ...[]byte) []byte { return str(n, string(slices.Concat(fields...))) }

func str(n int, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, protowire.Number(n), protowire.BytesType), s)
}

func num(n, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, protowire.Number(n), protowire.VarintType), uint64(v))
}

// agent makes frames as a coding agent's stream has them: thinking, text and
// counters, each a message of its own within two others.
func agentText(s string) []byte    { return sub(1, sub(1, str(1, s))) }
func agentThought(s string) []byte { return sub(1, sub(4, str(1, s))) }
func agentToken(n int) []byte      { return sub(1, sub(8, num(1, n))) }

const (
	callID    = "toolu_01Ab3dEf6hIjKl9mNo"
	requestID = "0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69"
	messageID = "7c1de8a2-12b4-4c55-8a0d-f00dfeedbeef"
)

func request(text string) []byte {
	return sub(1, sub(2, sub(1, sub(1, str(1, text), str(2, messageID), str(3, "")))), sub(3, str(1, "composer-1"), str(3, "composer-1"), str(4, "Composer 1"), num(7, 0)), str(5, requestID))
}

// events makes an exchange of text events: names and data in turn.
func events(nameData ...string) *decode.Exchange {
	ex := raw("--")
	for i := 0; i < len(nameData); i += 2 {
		f := raw("--", nameData[i+1]).Frames[0]
		f.Seq, f.Event, f.Framed = i/2, nameData[i], false
		ex.Frames = append(ex.Frames, f)
	}
	return ex
}

// carried puts each body in hex into a field of another message.
func carried(bodies ...[]byte) *decode.Exchange {
	ex := &decode.Exchange{Exchange: captures.Exchange{Status: 200}}
	for i, b := range bodies {
		outer := slices.Concat(str(1, hex.EncodeToString(b)), sub(2, str(1, requestID)), num(3, i))
		f := raw(outer).Frames[0]
		if i > 0 {
			f.Dir, f.Seq = captures.Down, i-1
		}
		f.Inner = []decode.Inner{{Node: 1, Encoding: "hex", Data: b, Tree: wire.Parse(b, wire.Options{})}}
		ex.Frames = append(ex.Frames, f)
	}
	return ex
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name                   string
		ex                     *decode.Exchange
		answer, thinking, user string
	}{
		{
			"agent stream",
			raw(request("What is in main.go?"), "--", agentThought("The user asks "), agentThought("about a file."), agentToken(3), agentText("Let me look."), sub(1, sub(2, str(1, callID), sub(2, sub(8, sub(1, str(1, "/src/main.go")))))),
				sub(1, sub(13)), agentText(" It holds"), agentText(" the entry"), agentToken(2), agentText(" point."), sub(1, sub(14)), &envelope.End{}),
			"Let me look. It holds the entry point.", "The user asks about a file.", "What is in main.go?",
		},
		{
			"one delta",
			raw(request("Say hi"), "--", agentText("Hi"), sub(1, sub(14)), &envelope.End{}),
			"Hi", "", "Say hi",
		},
		{
			"legacy chat, thinking beside the text",
			raw(sub(1, str(1, "Explain channels, please"), str(2, messageID)), "--", sub(2, str(22, requestID), sub(25, str(1, "Channels are"))), sub(2, sub(25, str(1, " for talking."))),
				sub(2, str(1, "A channel ")), sub(2, str(1, "passes values ")), sub(2, str(1, "between goroutines.")), &envelope.End{}),
			"A channel passes values between goroutines.", "Channels are for talking.", "Explain channels, please",
		},
		{
			"cut off",
			raw(request("Tell me a story"), "--", agentText("Once upon"), agentText(" a time th")),
			"Once upon a time th", "", "Tell me a story",
		},
		{
			"Russian, runes cut by frames",
			raw(request("Привет, как дела?"), "--", agentText("Здрав\xd1"), agentText("\x81твуй"), agentText("те, мой"), agentText(" друг!")),
			"Здравствуйте, мой друг!", "", "Привет, как дела?",
		},
		{
			"Chinese",
			raw(request("你好吗？"), "--", agentText("我"), agentText("很好"), agentText("，谢谢"), agentText("你。")),
			"我很好，谢谢你。", "", "你好吗？",
		},
		{
			"OpenAI's chat, streamed",
			raw(`{"model":"gpt-5","messages":[{"role":"system","content":"You are a helpful assistant. You must always answer in one sentence."},{"role":"user","content":"Why is the sky blue?"}],"stream":true}`, "--",
				`{"id":"chatcmpl-B7x9Kq2LmZ0p","object":"chat.completion.chunk","model":"gpt-5","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
				`{"id":"chatcmpl-B7x9Kq2LmZ0p","object":"chat.completion.chunk","model":"gpt-5","choices":[{"index":0,"delta":{"content":"Because of"}}]}`,
				`{"id":"chatcmpl-B7x9Kq2LmZ0p","object":"chat.completion.chunk","model":"gpt-5","choices":[{"index":0,"delta":{"content":" scattering."}}]}`,
				`{"id":"chatcmpl-B7x9Kq2LmZ0p","object":"chat.completion.chunk","model":"gpt-5","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"),
			"Because of scattering.", "", "Why is the sky blue?",
		},
		{
			"Anthropic's messages, streamed",
			raw(`{"model":"claude-4.5-sonnet","messages":[{"role":"user","content":[{"type":"text","text":"Which is the largest planet?"}]}]}`, "--",
				`{"type":"message_start","message":{"id":"msg_01Ab3dEf6hIjKl9mNo","role":"assistant","model":"claude-4.5-sonnet","content":[]}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Largest by "}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"mass is meant."}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Jupiter is"}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" the largest."}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`),
			"Jupiter is the largest.", "Largest by mass is meant.", "Which is the largest planet?",
		},
		{
			"kinds told apart by a member beside them",
			raw(`{"input":"Which is the largest planet?"}`, "--",
				`{"type":"response.reasoning.delta","delta":"Largest by "}`, `{"type":"response.reasoning.delta","delta":"mass is"}`, `{"type":"response.reasoning.delta","delta":" meant."}`,
				`{"type":"response.output_text.delta","delta":"Jupiter "}`, `{"type":"response.output_text.delta","delta":"is the"}`, `{"type":"response.output_text.delta","delta":" largest."}`),
			"Jupiter is the largest.", "Largest by mass is meant.", "Which is the largest planet?",
		},
		{
			"kinds of a short stream", raw("--", `{"type":"message_start"}`, `{"type":"block_delta","text":"It is "}`, `{"type":"block_delta","text":"Lisbon."}`, `{"type":"message_stop"}`),
			"It is Lisbon.", "", "",
		},
		{
			"JSON unary",
			raw(`{"prompt":"Name a colour"}`, "--", `{"id":"`+messageID+`","model":"gpt-5","created":1763700000,"output":{"text":"Blue is a colour that I like."},"finish_reason":"stop"}`),
			"Blue is a colour that I like.", "", "Name a colour",
		},
		{
			"plain text events",
			raw("--", "Plain ", "text comes ", "as events."),
			"Plain text comes as events.", "", "",
		},
		{
			"snapshots", raw("--", str(1, "The first"), str(1, "The first part"), str(1, "The first part and"), str(1, "The first part and the second.")),
			"The first part and the second.", "", "",
		},
		{
			"the whole text again at the end", raw("--", agentText("Deltas "), agentText("of a "), agentText("text."), sub(3, sub(2, str(5, "Deltas of a text."), str(6, messageID)))),
			"Deltas of a text.", "", "",
		},
		{
			"blobs of history",
			raw(request("And now in German?"), "--", sub(4, num(1, 1), sub(3, str(1, "\x8f\x01\xfe\x03"), str(2, `{"role":"system","content":"You are an assistant in a terminal. You must never say which tools you have."}`))),
				sub(4, num(1, 2), sub(3, str(1, "\x8f\x02\xfe\x03"), str(2, `{"role":"user","content":[{"type":"text","text":"How do you say good morning in French?"}]}`))),
				sub(4, num(1, 3), sub(3, str(1, "\x8f\x03\xfe\x03"), str(2, `{"role":"assistant","content":[{"type":"text","text":"In French one says bonjour, at any time before noon."}]}`))),
				agentText("In German "), agentText("it is: "), agentText("Guten Morgen."), &envelope.End{}),
			"In German it is: Guten Morgen.", "", "How do you say good morning in French?",
		},
		{
			"history in base64, as JSON writes bytes",
			raw(`{"text":"And now in German?"}`, "--", `{"set":{"key":"AAEC","data":"`+base64.StdEncoding.EncodeToString([]byte(`{"role":"assistant","content":"In French one says bonjour, at any time before noon."}`))+`"}}`,
				`{"update":{"text":"In German "}}`, `{"update":{"text":"it is: "}}`, `{"update":{"text":"Guten Morgen."}}`),
			"In German it is: Guten Morgen.", "", "And now in German?",
		},
		{
			"events by name",
			events("thinking", "Which one ", "thinking", "is meant?", "answer", "The first ", "answer", "one, I ", "answer", "think."),
			"The first one, I think.", "Which one is meant?", "",
		},
		{
			"messages inside fields",
			carried(request("What is in main.go?"), agentText("It holds"), agentText(" the entry"), agentText(" point.")),
			"It holds the entry point.", "", "What is in main.go?",
		},
		{
			"think tags", raw("--", agentText("<think>\nIs it "), agentText("so?\n</think>"), agentText("\n\nYes, it "), agentText("is so.")),
			"Yes, it is so.", "Is it so?", "",
		},
	} {
		got := Extract(c.ex, Options{})
		if got.Answer != c.answer || got.Thinking != c.thinking || c.user != "" && !has(got, User, c.user) {
			t.Errorf("%s: answer %q, thinking %q; want %q, %q and user %q\n%s", c.name, got.Answer, got.Thinking, c.answer, c.thinking, c.user, dump(got))
		}
	}
}

func dump(tr *Transcript) string {
	var b strings.Builder
	for _, c := range tr.Candidates {
		fmt.Fprintf(&b, "%d %s %s %s %v %.2f %.60q", c.Rank, c.Role, c.Dir, c.Path, c.Frames, c.Score, c.Text)
		for _, r := range c.Reasons[:min(len(c.Reasons), 9)] {
			fmt.Fprintf(&b, "; %s %.1f", r.Feature, r.Weight)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestNoAnswer: where the server says nothing, nothing is made an answer.
func TestNoAnswer(t *testing.T) {
	failed := raw(request("What now?"), "--", `{"error":"The service is not available at the moment, try again later."}`)
	failed.Status = 503
	for name, ex := range map[string]*decode.Exchange{
		"empty":            {},
		"request alone":    raw(request("What now?")),
		"error in the end": raw(request("What now?"), "--", &envelope.End{Error: &envelope.Error{Code: "unavailable", Message: "The service is not available."}}),
		"HTTP error":       failed,
		"garbage":          raw(request("What now?"), "--", []byte("\xff\xff\xff\xff\x00\x01\x02"), "\x00\x01\x02\xff\xfe", []byte{}, ""),
		"heartbeats":       raw(request("What now?"), "--", sub(1, sub(13)), sub(1, sub(13)), agentToken(1), &envelope.End{}),
		"identifiers":      raw(request("What now?"), "--", sub(1, str(1, requestID), str(2, "composer-1"), str(3, "2026-03-01T10:00:00Z")), &envelope.End{}),
		"echo":             raw(request("What is to be done now?"), "--", sub(6, str(1, "What is to be done now?"), str(2, messageID))),
	} {
		if got := Extract(ex, Options{}); got.Answer != "" || got.Thinking != "" {
			t.Errorf("%s: answer %q, thinking %q\n%s", name, got.Answer, got.Thinking, dump(got))
		}
	}
}

// TestContract: names, order, and reasons that add up.
func TestContract(t *testing.T) {
	tr := Extract(raw(request("What is in main.go?"), "--", agentThought("Think a "), agentThought("little."), agentText("It has "), agentText("one line.")), Options{})
	b, err := json.Marshal(tr.Candidates[0])
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%v %v %v %v %v %v", c["rank"], c["role"], c["dir"], c["path"], c["frames"], c["text"]) != "1 assistant down 1.1.1 [2 3] It has one line." {
		t.Errorf("%s", b)
	}
	for i, c := range tr.Candidates {
		sum := 0.0
		for k, r := range c.Reasons {
			sum += r.Weight
			if k > 0 && abs(r.Weight) > abs(c.Reasons[k-1].Weight) {
				t.Errorf("candidate %d: reasons out of order", i)
			}
		}
		var sums [len(roleOrder)]float64
		for f, v := range c.features {
			for r, w := range weights[f] {
				sums[r] += v * w
			}
		}
		role := slices.Index(roleOrder[:], c.Role)
		if abs(sum-sums[role]) > 0.05 || abs(softmax(sums, defaultTemperature)[role]-c.Score) > 1e-9 || c.Rank != i+1 {
			t.Errorf("candidate %d of rank %d: reasons give %.3f of %.3f, score %.3f", i, c.Rank, sum, sums[role], c.Score)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }

func TestLimits(t *testing.T) {
	var frames []any
	frames = append(frames, "--")
	for i := range 50 {
		frames = append(frames, sub(1, sub(i%15+1, str(i/15+1, "some text that is said in a field of its own"))))
	}
	tr := Extract(raw(frames...), Options{MaxCandidates: 7})
	if len(tr.Candidates) != 7 || !tr.Truncated {
		t.Errorf("%d candidates, truncated %v", len(tr.Candidates), tr.Truncated)
	}
	tr = Extract(raw(request("Which words?"), "--", agentText("four words of text"), agentText(" and more of it")), Options{MaxText: 20})
	if tr.Answer != "four words of text" || !tr.Truncated {
		t.Errorf("answer %q, truncated %v", tr.Answer, tr.Truncated)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(request("What is in main.go?"), agentText("It is "), agentText("a file."), false)
	f.Add([]byte(`{"a":[{"type":"text","text":"Hi"}]}`), []byte("{}\n{\"a\":1}"), []byte("\xff\xfe"), true)
	f.Fuzz(func(t *testing.T, up, a, b []byte, text bool) {
		ex := raw(up, "--", a, b, a, string(a), string(b))
		if text {
			ex = raw(string(up), "--", string(a), string(b), a)
		}
		got := Extract(ex, Options{})
		first, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(Extract(ex, Options{})); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("not deterministic: %s and %s, %v", first, again, err)
		}
		for i, c := range got.Candidates {
			if c.Rank != i+1 || c.Score < 0 || c.Score > 1 || c.Text == "" || len(c.Frames) == 0 || !slices.IsSorted(c.Frames) {
				t.Fatalf("candidate %+v", c)
			}
		}
	})
}

func BenchmarkExtract(b *testing.B) {
	m := newMaker(7)
	var bodies []any
	bodies = append(bodies, request("What is in main.go?"), "--")
	bytes := 0
	for i := range 5000 {
		piece := pick(m, languages[0].words) + " "
		body := agentText(piece)
		switch {
		case i < 1000:
			body = agentThought(piece)
		case i%3 == 0:
			body = agentToken(1)
		}
		bytes += len(body)
		bodies = append(bodies, body)
	}
	ex := raw(bodies...)
	b.SetBytes(int64(bytes))
	for b.Loop() {
		if tr := Extract(ex, Options{}); tr.Candidates[0].Path != "1.1.1" {
			b.Fatal(dump(tr))
		}
	}
}
