package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/replay/gateway"
	"unwire/replay/gateway/server"
)

// TestInterleavedOverHTTP runs 60 conversations at once over real HTTP against the
// stand-in, under two API keys. Clients send requests twice, swap results, leave one out,
// and leave in the middle of a response. Each answer must quote the results of its own
// conversation, and no stream may be left.
func TestInterleavedOverHTTP(t *testing.T) {
	t.Parallel()
	script := strings.ReplaceAll(taskScript(0), `"what":"`, `"what":"${prompt} `)
	f := start(t, script, server.Options{Keys: []string{"second-key"}}, gateway.Options{MaxSessions: 40})
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			w := &wildClient{f: f, key: []string{key, "second-key"}[i%2], prompt: fmt.Sprintf("task-%d", i), random: rand.New(rand.NewPCG(7, uint64(i)))}
			w.run(t)
		})
	}
	wg.Wait()
	f.core.Shutdown(t.Context())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n := f.standin.Stats()
		if n.Streams.Open == 0 && n.Streams.Refused == 0 && n.Hung == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the stand-in counts %+v", n.Streams)
		}
	}
}

// A wildClient is a client of Chat Completions that does not behave.
type wildClient struct {
	f           *fixture
	key, prompt string
	random      *rand.Rand
	messages    []string
}

func (w *wildClient) run(t *testing.T) {
	w.messages = []string{fmt.Sprintf(`{"role":"user","content":%q}`, w.prompt)}
	for range 60 {
		m, raw, ok := w.send(t)
		if !ok {
			continue
		}
		w.messages = append(w.messages, raw)
		if len(m.ToolCalls) == 0 {
			w.check(t, m.Content)
			return
		}
		results := make([]string, len(m.ToolCalls))
		for i, call := range m.ToolCalls {
			var args struct{ What string }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil || !strings.HasPrefix(args.What, w.prompt+" ") {
				t.Errorf("%s got the call %+v", w.prompt, call)
				return
			}
			results[i] = fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"%s"}`, call.ID, strings.ReplaceAll(args.What, " ", "/"))
		}
		w.random.Shuffle(len(results), func(i, k int) { results[i], results[k] = results[k], results[i] })
		if len(results) > 1 && w.random.IntN(3) == 0 {
			results = results[1:]
		}
		w.messages = append(w.messages, results...)
	}
	t.Errorf("%s does not end", w.prompt)
}

func (w *wildClient) check(t *testing.T, content string) {
	words := strings.Fields(content)
	own := 0
	for _, word := range words {
		if strings.HasPrefix(word, w.prompt+"/") {
			own++
		} else if strings.HasPrefix(word, "task-") {
			t.Errorf("%s has the result %q", w.prompt, word)
		}
	}
	if own < 4 { // at most two of three parallel results were left out
		t.Errorf("%s ended with %q", w.prompt, content)
	}
}

// send sends the transcript: once, twice at the same time, or after a request that the
// client left. ok is false if it has to be sent again.
func (w *wildClient) send(t *testing.T) (m chatMessage, raw string, ok bool) {
	switch w.random.IntN(6) {
	case 0:
		var twin sync.WaitGroup
		twin.Go(func() { _, _, _ = w.post(t.Context()) })
		defer twin.Wait()
	case 1:
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(w.random.IntN(20))*time.Millisecond)
		_, _, _ = w.post(ctx)
		cancel()
	}
	status, body, err := w.post(t.Context())
	if err != nil {
		t.Errorf("%s: %v", w.prompt, err)
		return m, "", false
	}
	if status != http.StatusOK {
		// A twin may have been cancelled, or there are too many sessions for a moment.
		if status < 500 {
			t.Errorf("%s: %d %s", w.prompt, status, body)
		}
		time.Sleep(time.Duration(w.random.IntN(50)) * time.Millisecond)
		return m, "", false
	}
	var answer struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := errors.Join(json.Unmarshal(body, &answer), json.Unmarshal(answer.Choices[0].Message, &m)); err != nil {
		t.Errorf("%s: %v: %s", w.prompt, err, body)
		return m, "", false
	}
	return m, string(answer.Choices[0].Message), true
}

func (w *wildClient) post(ctx context.Context) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.f.url+"/v1/chat/completions", strings.NewReader(toolRequest(false, w.messages...)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Api-Key", w.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
