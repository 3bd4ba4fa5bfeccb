package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway"
	"unwire/replay/gateway/server"
)

// deltas is the length of a benchmark's answer.
const deltas = 5000

// deltaScript answers with so many deltas of 6 bytes, without a pause.
func deltaScript() string {
	return fmt.Sprintf(`{"v":1,"turns":[{"steps":[{"text":%q,"split":[6]},{"turn_ended":{"inputTokens":"1","outputTokens":"1"}}]}]}`, strings.Repeat("delta ", deltas))
}

// ask sends a streaming request and reads the answer line by line until onLine is false.
func (f *fixture) ask(b *testing.B, path, body string, onLine func(string) bool) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && onLine(lines.Text()) {
	}
	if err := lines.Err(); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%d, %v", resp.StatusCode, err)
	}
}

// BenchmarkDelta measures the processor time of the whole process for each delta: the
// stand-in that sends it, the agent's client, the gateway, the front end, and the client
// that reads the events. "agent" is the same without gateway and front end.
func BenchmarkDelta(b *testing.B) {
	f := start(b, deltaScript(), server.Options{}, gateway.Options{})
	direct := func() {
		s, err := f.client.Run(b.Context(), "", &turn.Request{Model: "composer-1", Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Text: "Go."}}}}})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		for {
			if _, err := s.Next(b.Context()); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	over := func(path, body, mark string) func() {
		return func() {
			seen := 0
			f.ask(b, path, body, func(line string) bool {
				if strings.Contains(line, mark) {
					seen++
				}
				return true
			})
			if seen < deltas {
				b.Fatalf("%d deltas, want %d", seen, deltas)
			}
		}
	}
	for _, run := range []struct {
		name string
		do   func()
	}{
		{"agent", direct},
		{"chat", over("/v1/chat/completions", toolRequest(true, `{"role":"user","content":"Go."}`), `"content":"delta `)},
		{"responses", over("/v1/responses", `{"model":"composer-1","input":"Go.","stream":true}`, `"delta":"delta `)},
		{"messages", over("/v1/messages", `{"model":"composer-1","max_tokens":100,"messages":[{"role":"user","content":"Go."}],"stream":true}`, `"text":"delta `)},
	} {
		b.Run(run.name, func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				run.do()
			}
			b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1000/float64(b.N)/deltas, "cpu-us/delta")
		})
	}
}

// BenchmarkFollowUp measures, in pairs, the time from a tool's result to the first text
// after it: from the agent's client, and from the server as a client sees it.
func BenchmarkFollowUp(b *testing.B) {
	f := start(b, taskScript(0), server.Options{}, gateway.Options{})
	var direct, served []time.Duration
	for b.Loop() {
		direct = append(direct, directFollowUp(b, f))
		served = append(served, servedFollowUp(b, f))
	}
	b.ReportMetric(median(direct), "agent-ms")
	b.ReportMetric(median(served), "serve-ms")
	b.ReportMetric(median(served)-median(direct), "added-ms")
}

// BenchmarkFirstDelta measures, in pairs, the time from a request to its first delta: from
// the agent's client, and from the server as a client sees it.
func BenchmarkFirstDelta(b *testing.B) {
	f := start(b, `{"v":1,"turns":[{"steps":[{"text":"delta "},{"turn_ended":{}}]}]}`, server.Options{}, gateway.Options{})
	var direct, served []time.Duration
	for b.Loop() {
		direct = append(direct, directDelta(b, f))
		var took time.Duration
		started := time.Now()
		f.ask(b, "/v1/chat/completions", toolRequest(true, `{"role":"user","content":"Go."}`), func(line string) bool {
			if took == 0 && strings.Contains(line, "delta ") {
				took = time.Since(started)
			}
			return true
		})
		served = append(served, took)
	}
	b.ReportMetric(median(direct), "agent-ms")
	b.ReportMetric(median(served), "serve-ms")
	b.ReportMetric(median(served)-median(direct), "added-ms")
}

// directDelta runs a turn up to its first text.
func directDelta(b *testing.B, f *fixture) time.Duration {
	started := time.Now()
	s, err := f.client.Run(b.Context(), "", &turn.Request{Model: "composer-1", Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Text: "Go."}}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for {
		event, err := s.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := event.(turn.Text); ok {
			return time.Since(started)
		}
	}
}

func median(list []time.Duration) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

// directFollowUp answers the first call of taskScript, and waits for the second one.
func directFollowUp(b *testing.B, f *fixture) time.Duration {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	s, err := f.client.Run(ctx, "", &turn.Request{
		Model: "composer-1", Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Text: "Go."}}}},
		Tools: []turn.Tool{{Name: "look", Schema: []byte(`{"type":"object"}`)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	call := nextCall(b, ctx, s)
	started := time.Now()
	if err := s.Answer(turn.Result{CallID: call.ID, Parts: []turn.Part{{Text: "found"}}}); err != nil {
		b.Fatal(err)
	}
	nextCall(b, ctx, s)
	return time.Since(started)
}

func nextCall(b *testing.B, ctx context.Context, s gateway.Stream) turn.Call {
	b.Helper()
	for {
		event, err := s.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if calling, ok := event.(turn.Calling); ok {
			return calling.Call
		}
	}
}

// servedFollowUp does the same over Chat Completions.
func servedFollowUp(b *testing.B, f *fixture) time.Duration {
	const user = `{"role":"user","content":"Go."}`
	id := ""
	onCall := func(line string) bool {
		if _, rest, ok := strings.Cut(line, `"id":"sess_`); ok {
			rest, _, _ = strings.Cut(rest, `"`)
			id = "sess_" + rest
		}
		return true
	}
	f.ask(b, "/v1/chat/completions", toolRequest(true, user), onCall)
	follow := toolRequest(true, user,
		fmt.Sprintf(`{"role":"assistant","content":"Looking. ","tool_calls":[{"id":%q,"type":"function","function":{"name":"look","arguments":"{\"what\":\"a\"}"}}]}`, id),
		fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"found"}`, id))
	first := id
	var took time.Duration
	started := time.Now()
	f.ask(b, "/v1/chat/completions", follow, func(line string) bool {
		if onCall(line); took == 0 && id != first {
			took = time.Since(started)
		}
		return true
	})
	if took == 0 {
		b.Fatal("the follow-up brought no call")
	}
	return took
}
