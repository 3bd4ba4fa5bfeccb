package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode/envelope"
)

// outline is the turns of a transcript, a line each.
func outline(tr *Transcript) string {
	var b strings.Builder
	for _, t := range tr.Turns {
		if t.Tool == 0 {
			fmt.Fprintf(&b, "%s %s %v %q\n", t.Role, t.Dir, t.Frames, t.Text)
			continue
		}
		tool := tr.Tools[t.Tool-1]
		fmt.Fprintf(&b, "call %s %s %v %s -> %v %s %q\n", tool.Name, tool.Arguments, tool.Frames, tool.Paired, tool.ResultFrames, tool.ResultDir, tool.Result)
	}
	return b.String()
}

func TestTurns(t *testing.T) {
	const second = "toolu_02Zz9yXw8vUt7sRq6pOn"
	call := func(id, name, args string) []byte {
		return sub(1, sub(7, str(1, id), str(2, name), str(3, args)))
	}
	result := func(id, text string) []byte { return sub(2, str(1, id), sub(3, str(4, text))) }
	for _, c := range []struct {
		name, want string
		bodies     []any
	}{
		{
			"thinking, call, result, answer", "user up [0] \"What is in main.go?\"\nthinking down [0 1] \"I should read the file first.\"\n" +
				"call read_file {\"path\":\"main.go\"} [2] id -> [1] up \"package main\\n\\nfunc main() {}\\n\"\nassistant down [3 4 5] \"It holds the entry point.\"\n",
			[]any{
				request("What is in main.go?"), "--", agentThought("I should read "), agentThought("the file first."), call(callID, "read_file", `{"path":"main.go"}`),
				"++", result(callID, "package main\n\nfunc main() {}\n"), "--", agentText("It holds"), agentText(" the entry"), agentText(" point."),
			},
		},
		{
			"two calls answered in another order",
			"user up [0] \"What is in both files?\"\ncall read_file {\"path\":\"a.go\"} [0] id -> [2] up \"this is what the first file says\"\n" +
				"call read_file {\"path\":\"b.go\"} [1] id -> [1] up \"and this is what stands in the second\"\nassistant down [2 3 4] \"Both say little of it.\"\n",
			[]any{
				request("What is in both files?"), "--", call(callID, "read_file", `{"path":"a.go"}`), call(second, "read_file", `{"path":"b.go"}`),
				"++", result(second, "and this is what stands in the second"), result(callID, "this is what the first file says"), "--", agentText("Both say"), agentText(" little"), agentText(" of it."),
			},
		},
		{
			"a call that was cut off", "user up [0] \"What is in main.go?\"\nassistant down [0 1 2] \"I will look at it.\"\ncall grep {\"pattern\":\"func mai [3]  -> []  \"\"\n",
			[]any{request("What is in main.go?"), "--", agentText("I will"), agentText(" look at"), agentText(" it."), call(callID, "grep", `{"pattern":"func mai`)},
		},
	} {
		ex := raw()
		seq := [2]int{}
		dir := captures.Up
		for _, b := range c.bodies {
			if s, ok := b.(string); ok && (s == "--" || s == "++") {
				dir = map[string]captures.Direction{"--": captures.Down, "++": captures.Up}[s]
				continue
			}
			f := raw(b).Frames[0]
			f.Dir, f.Seq = dir, seq[dir]
			seq[dir]++
			ex.Frames = append(ex.Frames, f)
		}
		ex.Status = 200
		tr := Extract(ex, Options{})
		if got := outline(tr); got != c.want {
			t.Errorf("%s:\n%swant\n%s%s", c.name, got, c.want, dump(tr))
		}
	}
}

func TestUsage(t *testing.T) {
	answer := []any{agentText("It holds the"), agentText(" entry point of"), agentText(" the program, and nothing"), agentText(" more than that.")}
	with := func(bodies ...any) []any {
		return slices.Concat([]any{request("What is in main.go?"), "--"}, answer, bodies)
	}
	for _, c := range []struct {
		name, want string
		bodies     []any
	}{
		{"numbers at the end", `{"input":1800,"output":22,"cached":1024,"path":"5","frame":4,"named":false}`, with(sub(5, num(1, 1800), num(2, 22), num(3, 1024)))},
		{"with a total", `{"input":1800,"output":22,"total":1822,"path":"5.2","frame":4,"named":false}`, with(sub(5, sub(2, num(1, 1800), num(2, 22), num(4, 1822))))},
		{"a time and a size are none", `null`, with(sub(5, num(1, 1763700000000), num(2, 22)))},
		{"far from the text's length", `null`, with(sub(5, num(1, 1800), num(2, 900000)))},
		{"numbers before the answer", `null`, slices.Concat([]any{request("What?"), "--", sub(5, num(1, 1800), num(2, 22))}, answer)},
		{
			"named", `{"input":81,"output":40,"cached":64,"reasoning":12,"total":121,"path":"usage","frame":2,"named":true}`,
			[]any{
				`{"q":"What is in it?"}`, "--", `{"text":"It holds"}`, `{"text":" a lot."}`,
				`{"usage":{"prompt_tokens":81,"completion_tokens":40,"total_tokens":121,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":12}}}`,
			},
		},
	} {
		tr := Extract(raw(c.bodies...), Options{})
		if got, _ := json.Marshal(tr.Usage); string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestFailures(t *testing.T) {
	detail := envelope.Detail{Type: "google.rpc.RetryInfo", Value: []byte{10, 2, 8, 30}}
	ended := raw(request("What now?"), "--", agentText("The serv"), &envelope.End{Error: &envelope.Error{Code: "unavailable", Message: "gone", Details: []envelope.Detail{detail}}})
	trailed := raw(request("What now?"), "--")
	trailed.ResponseTrailers = captures.Headers{{Name: "grpc-status", Value: "8"}, {Name: "grpc-message", Value: "slow%20down"}}
	broken := raw(request("What now?"), "--", agentText("The serv"))
	broken.Error = "connection reset"
	for _, c := range []struct {
		name string
		got  *Failure
		want string
	}{
		{"end of stream", Extract(ended, Options{}).Error, `{"code":"unavailable","message":"gone","details":[{"type":"google.rpc.RetryInfo","value":"CgIIHg=="}],"dir":"down","frame":1}`},
		{"gRPC trailers", Extract(trailed, Options{}).Error, `{"code":"resource_exhausted","message":"slow down"}`},
		{"an event", Extract(raw(`{"q":"What?"}`, "--", `{"text":"The"}`, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`), Options{}).Error, `{"code":"overloaded_error","message":"Overloaded","dir":"down","frame":1}`},
		{"transport", Extract(broken, Options{}).Error, `{"message":"connection reset"}`},
		{"none", Extract(raw(`{"q":"What?"}`, "--", `{"text":"The","error":null}`), Options{}).Error, `null`},
	} {
		if got, _ := json.Marshal(c.got); string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
