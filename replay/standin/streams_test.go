package standin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"unwire/replay/standin/ledger"
)

// open starts a stream and sends its first message; it ends with the test.
func open(t *testing.T, s *Server, p *player) (stream *connect.BidiStreamForClient[message, message], cancel func()) {
	t.Helper()
	return openWith(t, s, httpClient(t, s, true), p)
}

// openWith is open with a client of HTTP.
func openWith(t *testing.T, s *Server, hc *http.Client, p *player) (stream *connect.BidiStreamForClient[message, message], cancel func()) {
	t.Helper()
	p.t, p.api, p.blobs = t, s.api, map[string][]byte{}
	c, _ := rpc(t, s, hc, procedureRun)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	stream = c.CallBidiStream(ctx)
	// A cancelled call stays open until its request is closed, too.
	cancel = sync.OnceFunc(func() {
		stop()
		_ = stream.CloseResponse()
		_ = stream.CloseRequest()
	})
	t.Cleanup(cancel)
	headers(stream.RequestHeader())
	if err := stream.Send(p.first()); err != nil {
		t.Fatal(err)
	}
	return stream, cancel
}

// firstKinds returns the kinds of the first messages of a stream, and leaves it.
func firstKinds(t *testing.T, s *Server, p *player, n int) (kinds []string) {
	t.Helper()
	stream, cancel := open(t, s, p)
	defer cancel()
	for range n {
		m, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kindsOf([]*message{m})...)
	}
	return kinds
}

// eventually waits until a count is reached.
func eventually(t *testing.T, s *Server, reached func(Stats) bool) {
	t.Helper()
	for end := time.Now().Add(patience); !reached(s.Stats()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("stats %+v", s.Stats())
		}
	}
}

func TestBootstrapIsOncePerStream(t *testing.T) {
	t.Parallel()
	tool := weatherCall
	inBubble(t, Options{Script: oneTurn(strings.Repeat(tool+",", 5)+`{"turn_ended":{}}`, `"bootstrap_ms":1000`)}, func(t *testing.T, s *Server, hc *http.Client) {
		begin := time.Now()
		got, err := runWith(t, s, hc, &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}})
		if took := time.Since(begin); err != nil || took != time.Second {
			t.Errorf("five calls took %v, %v; want one bootstrap of 1 s", took, err)
		}
		if n := s.Stats(); n.Execs.Asked != 5 || n.Execs.Answered != 5 || n.TurnsEnded != 1 || len(got) == 0 {
			t.Errorf("stats %+v", n)
		}
	})
}

func TestBootstrapOfATurn(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: []byte(`{"v":1,"bootstrap_ms":600000,"turns":[{"bootstrap_ms":0,"steps":[{"turn_ended":{}}]}]}`)})
	if _, err := run(t, s, &player{prompt: "x"}); err != nil {
		t.Error(err)
	}
}

func TestSecondRunIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(weatherCall + `,{"turn_ended":{}}`)})
	first, cancel := open(t, s, &player{prompt: "x", request: weatherTool("mcpTools")})
	if _, err := first.Receive(); err != nil {
		t.Fatal(err)
	}
	p := &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}}
	if _, err := run(t, s, p); connect.CodeOf(err) != connect.CodeAlreadyExists || !strings.Contains(err.Error(), `conversation "c-1" is still open`) {
		t.Errorf("the second run: %v", err)
	}
	if n := s.Stats().Conversations["c-1"]; n != (ledger.Streams{Opened: 1, Open: 1, MostOpen: 1, Refused: 1}) {
		t.Errorf("conversation %+v", n)
	}
	cancel()
	if _, err := run(t, s, p); err != nil {
		t.Errorf("after the first was cancelled: %v", err)
	}
}

func TestSecondRunIsAllowedByScript(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(weatherCall+`,{"turn_ended":{}}`, `"second_run":"allow"`)})
	first, _ := open(t, s, &player{prompt: "x", request: weatherTool("mcpTools")})
	if _, err := first.Receive(); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, s, &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}}); err != nil {
		t.Error(err)
	}
	eventually(t, s, func(n Stats) bool { return n.Streams.Open == 1 && n.Streams.MostOpen == 2 })
}

func TestStatsAreServed(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(`{"tool":{"name":"mcp","args":{"name":"exec_command","args":{"cmd":"ls"}}}},{"turn_ended":{}}`)})
	if _, err := run(t, s, &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"exec_command": `{"rejected":{"reason":"no"}}`}}); err != nil {
		t.Fatal(err)
	}
	resp, err := httpClient(t, s, true).Get(s.URL() + "/standin/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var n Stats
	if err := json.NewDecoder(resp.Body).Decode(&n); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	n.Execs.Closed = 0 // the turn may end before the stream_close is read
	if n.Execs != (ledger.Execs{Asked: 1, Answered: 1, Rejected: 1}) || n.Conversations["c-1"].Opened != 1 || n.Streams.Opened != 1 {
		t.Errorf("stats %+v", n)
	}
}
