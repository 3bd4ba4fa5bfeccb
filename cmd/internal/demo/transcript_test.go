package demo

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/transcript"
	"unwire/replay/standin"
)

// A said turn is what a script has the stand-in say, and what a reader of the
// recorded exchange has to find.
type saidTurn struct {
	prompt, steps            string // no steps: a turn of the default script
	thinking, answer, result string
	code                     string // of the error that it ends in
	output                   int64  // tokens; 0 where none are told
}

const slowDown = "Too many requests. Try again in 30 seconds."

var defaultTurns = []saidTurn{
	{prompt: "What does Backoff in internal/retry/backoff.go do?", thinking: "The question is about one function.", answer: "`Backoff` says how long to wait before a retry.", result: "Package retry decides", output: 244},
	{prompt: "Look at it: fault:error", answer: "Let me look at that. ", code: "resource_exhausted"},
	{prompt: "Look at it: fault:reset", answer: "Let me look at that. "},
	{prompt: "Look at it: fault:drop-end", answer: "Let me look at that. "},
	{prompt: "Look at it: fault:drift", answer: "Let me look at that. "},
	{prompt: "Is there a script for this?", thinking: "There is no script for this prompt.", answer: "This is a stand-in without a model behind it. You wrote: Is there a script for this?", output: 18},
}

var ownTurns = []saidTurn{
	{prompt: "What is six times seven?", steps: `{"text":"42"},{"turn_ended":{}}`, answer: "42"},
	{prompt: "Ist das so richtig?", steps: `{"thinking":"Kurz prüfen, dann antworten.","split":[7]},{"text":"ja"},{"turn_ended":{}}`, thinking: "Kurz prüfen, dann antworten.", answer: "ja"},
	{prompt: "Это правда?", steps: `{"echo":true},{"text":"да"},{"turn_ended":{}}`, answer: "да"},
	{prompt: "Run it, please.", steps: `{"text":"ok"},{"checkpoint":{}},{"turn_ended":{}}`, answer: "ok"},
	{prompt: "Make a table of both.", steps: `{"text":"| a | b |\n|---|---|\n| 1 | 2 |","split":[3,5]},{"turn_ended":{}}`, answer: "| a | b |\n|---|---|\n| 1 | 2 |"},
	{prompt: "Give me JSON and a word on it.", steps: `{"text":"{\"city\": \"Porto\", \"year\": 1886}\n\nThat is when the bridge was opened.","split":[6]},{"turn_ended":{}}`, answer: "{\"city\": \"Porto\", \"year\": 1886}\n\nThat is when the bridge was opened."},
	{prompt: "为什么这么慢？", steps: `{"thinking":"先看看文件。","split":[2]},{"text":"因为时钟被读取了两次。修复后会快很多。","split":[3]},{"turn_ended":{"inputTokens":"120","outputTokens":"14"}}`, thinking: "先看看文件。", answer: "因为时钟被读取了两次。修复后会快很多。", output: 14},
	{
		prompt: "Compare both files.", steps: `{"tools":{"shuffle":true,"calls":[{"name":"read","as":"one","args":{"path":"internal/retry/backoff.go"},"require":"success"},{"name":"read","args":{"path":"go.mod"}}]}},
			{"text":"The first has ${one.success.total_lines} lines, and the second only names the module.","split":[5,9]},{"turn_ended":{}}`,
		answer: "The first has 16 lines, and the second only names the module.", result: "Package retry decides",
	},
	{
		prompt: "Read it, and say nothing.", steps: `{"thinking":"The user wants me to read the file and no more.","split":[8]},{"tool":{"name":"read","args":{"path":"internal/retry/backoff.go"},"require":"success"}},{"turn_ended":{}}`,
		thinking: "The user wants me to read the file and no more.", result: "Package retry decides",
	},
	{
		prompt: "Say it in two parts.", steps: `{"text":"I will read the file first.\n\n","split":[6]},{"tool":{"name":"read","args":{"path":"internal/retry/backoff.go"},"require":"success"}},{"text":"It never returns more than the limit.","split":[7]},{"turn_ended":{}}`,
		answer: "I will read the file first.\n\nIt never returns more than the limit.", result: "Package retry decides",
	},
	{prompt: "Where does it end?", steps: `{"thinking":"The user wants to know the end.","split":[9]},{"text":"It ends in the middle of a sent","split":[5]},{"drop_end":true}`, thinking: "The user wants to know the end.", answer: "It ends in the middle of a sent"},
}

// scriptOf is the script of turns.
func scriptOf(turns []saidTurn, sse string) string {
	list := make([]string, 0, len(turns))
	for _, t := range turns {
		list = append(list, `{"name":"`+t.prompt+`","when":"`+t.prompt+`","steps":[`+t.steps+`]}`)
	}
	return `{"v":1,"sse":"` + sse + `","turns":[` + strings.Join(list, ",") + `]}`
}

// client makes a client of a protocol. Its ids go on from turn to turn, and are
// not those of the clients of the same token before it.
func (r *recorder) client(protocol string, before int) *client {
	r.t.Helper()
	o := ClientOptions{URL: r.server.URL(), Token: token, CAFile: r.server.CAFile}
	if protocol == FallbackHex || protocol == FallbackBinary {
		o.Fallback = protocol
	}
	c, err := newClient(o)
	if err != nil {
		r.t.Fatal(err)
	}
	for range 1000 * before {
		c.id.uuid()
	}
	return c
}

// ask records a turn, and returns the exchange that it goes by. That a turn breaks
// is part of it.
func (r *recorder) ask(c *client, prompt, protocol string) (id int64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	c.sc.Prompt = prompt
	var err error
	switch protocol {
	case "grpc":
		err = c.turnOver(ctx, connect.WithGRPC())
	case "grpc-web":
		err = c.turnOver(ctx, connect.WithGRPCWeb())
	default:
		err = c.turn(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		r.t.Fatal(err)
	}
	for !r.ended(&id) {
		if ctx.Err() != nil {
			r.t.Fatal("the turn was not recorded to its end")
		}
		time.Sleep(2 * time.Millisecond)
	}
	return id
}

func (c *client) turnOver(ctx context.Context, protocol connect.ClientOption) error {
	rpc, md, err := c.method(agentService, "Run", protocol)
	if err != nil {
		return err
	}
	stream := rpc.CallBidiStream(ctx)
	c.headers(stream.RequestHeader())
	t := &turn{c: c, stream: stream, input: md.Input(), blobs: map[string][]byte{}}
	defer stream.CloseResponse()
	if err := t.ask(); err != nil {
		return err
	}
	return t.listen()
}

// transcript is what is found in the recorded exchange, or in the conversation
// that goes by it.
func (r *recorder) transcript(id int64) *transcript.Transcript {
	r.t.Helper()
	if c, err := conversation.Decode(r.t.Context(), r.store, id, decode.Options{}); err == nil && c != nil {
		return transcript.Extract(c.Exchange, transcript.Options{})
	}
	ex, err := decode.Decode(r.t.Context(), r.store, id, decode.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return transcript.Extract(ex, transcript.Options{})
}

// wrong lists what of a turn was not found as it was said.
func (s *saidTurn) wrong(tr *transcript.Transcript) (list []string) {
	check := func(what, got, want string, whole bool) {
		if whole && strings.TrimSpace(got) != strings.TrimSpace(want) || !whole && !strings.HasPrefix(got, want) {
			list = append(list, what+": "+got)
		}
	}
	check("answer", tr.Answer, s.answer, s.steps != "" || s.code != "")
	check("thinking", tr.Thinking, s.thinking, false)
	if s.thinking == "" && tr.Thinking != "" {
		list = append(list, "thinking of a turn without: "+tr.Thinking)
	}
	var asked []string
	for _, turn := range tr.Turns {
		if turn.Role == transcript.User && turn.Dir == captures.Up.String() {
			asked = append(asked, turn.Text)
		}
	}
	if !slices.Equal(asked, []string{s.prompt}) {
		list = append(list, "asked: "+strings.Join(asked, " | "))
	}
	found := s.result == ""
	for _, tool := range tr.Tools {
		found = found || strings.Contains(tool.Result, s.result) && strings.Contains(tool.Arguments, ".go")
	}
	if !found {
		list = append(list, "no call with its result")
	}
	if s.output > 0 && (tr.Usage == nil || tr.Usage.Output == nil || *tr.Usage.Output != s.output) {
		list = append(list, "usage")
	}
	if s.code != "" && (tr.Error == nil || tr.Error.Code != s.code || len(tr.Error.Details) == 0 || !strings.Contains(string(tr.Error.Details[0].Value), slowDown)) {
		list = append(list, "error")
	}
	return list
}

// TestEvalStandin demands that each turn of the stand-in's script, and of others
// that answer in a word, with tools or not at all, is read whole, over each
// protocol that carries it.
func TestEvalStandin(t *testing.T) {
	all := []string{"connect", "grpc", "grpc-web", FallbackHex, FallbackBinary}
	for _, run := range []struct {
		sse       string
		protocols []string
		turns     []saidTurn
	}{
		{"raw", all, defaultTurns},
		{"raw", all, ownTurns},
		{"base64", all[3:], ownTurns},
		{"connect", all[3:], ownTurns},
	} {
		if os.Getenv("UNWIRE_EVAL") == "" {
			if run.turns[0].steps == "" || run.sse != "raw" {
				continue // make eval takes the time
			}
			run.protocols = []string{"connect", FallbackHex}
		}
		script := ""
		if run.turns[0].steps != "" {
			script = scriptOf(run.turns, run.sse)
		} else if run.sse == "raw" {
			script = string(standin.DefaultScript())
		}
		name := "own turns, SSE " + run.sse
		if run.turns[0].steps == "" {
			name = "default script"
		}
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, script)
			for i, protocol := range run.protocols {
				right, c := 0, r.client(protocol, i)
				for _, turn := range run.turns {
					tr := r.transcript(r.ask(c, turn.prompt, protocol))
					wrong := turn.wrong(tr)
					if len(wrong) == 0 {
						right++
					}
					for _, w := range wrong {
						t.Errorf("%s: %q: %.300s", protocol, turn.prompt, w)
					}
				}
				c.http.CloseIdleConnections()
				t.Logf("%-8s %d of %d turns read whole", protocol, right, len(run.turns))
			}
		})
	}
}
