package rules

import (
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/mitm/rewrite"
)

// Rules that depend on more than the call are evaluated for each exchange.
func TestCandidates(t *testing.T) {
	s, err := parse("r", []byte(`rules:
  - {match: host:a.example, drop: true}
  - {match: header:x-id=7, drop: true}
  - {match: method:Run dir:up, drop: true}
  - {match: 'url:*secret*', drop: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := New(s, Options{})
	for range 2 {
		for _, c := range []struct {
			url, id  string
			up, down int
		}{
			// The response may have the header.
			{"https://a.example/p.S/Run", "", 2, 2},
			{"https://a.example/p.S/Run", "7", 3, 2},
			{"https://b.example/p.S/Run", "", 1, 1},
			{"https://b.example/p.S/Other", "", 0, 1},
			{"https://b.example/p.S/Other?secret=1", "7", 2, 2},
		} {
			ex := &captures.Exchange{Method: "POST", URL: c.url, RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "x-id", Value: c.id}}}
			var up, down int
			if x, ok := p.Begin(ex, rewrite.RequestOf(ex)).(*exchange); ok {
				up, down = len(x.rules[captures.Up]), len(x.rules[captures.Down])
			}
			if up != c.up || down != c.down {
				t.Errorf("%s %s: %d rules up, %d down, want %d and %d", c.url, c.id, up, down, c.up, c.down)
			}
		}
	}
}

// What is remembered of a call does not leak into other calls, and a GET is a call only by its query.
func TestMatchesNone(t *testing.T) {
	s, err := parse("r", []byte("rules:\n  - {match: method:Get path:1, drop: true}\n  - {match: host:map.example, map: 'https://127.0.0.1:1'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := New(s, Options{})
	for range 2 {
		for url, want := range map[string]bool{
			"https://a.example/p.S/Get": false, "https://a.example/p.S/Get?connect=v1&encoding=proto&message=": true, "https://a.example/p.S/Put?connect=v1&encoding=proto&message=": false,
		} {
			if got := p.Begin(&captures.Exchange{}, rewrite.Request{Method: "GET", URL: url}) != nil; got != want {
				t.Errorf("%s: %v", url, got)
			}
		}
	}
	key := keyOf(&captures.Exchange{}, &rewrite.Request{Method: "GET", URL: "https://a.example/p.S/Get"})
	if call := s.cache.get(key); call == nil || !call.matchesNone() {
		t.Error("a call that no rule matches is not remembered")
	}
}

// TestAnsweredCalls: what is remembered of the responses of a call depends on their content type.
func TestAnsweredCalls(t *testing.T) {
	s, err := parse("r", []byte("rules:\n  - {match: path:1, drop: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := New(s, Options{})
	for range 2 {
		for _, request := range []string{"application/proto", "application/connect+json", "text/plain", ""} {
			for _, response := range []string{"application/proto", "text/event-stream", "application/grpc+proto", "text/event-stream; charset=utf-8", ""} {
				x := p.Begin(&captures.Exchange{}, rewrite.Request{
					Method: "POST", URL: "https://a.example/p.S/Get", Header: captures.Headers{{Name: "content-type", Value: request}},
				}).(*exchange)
				x.Response(200, captures.Headers{{Name: "content-type", Value: response}})
				if got, want := *x.callNow(), decode.Classify(x.recorded()); got != want {
					t.Errorf("%q, %q: %+v, want %+v", request, response, got, want)
				}
			}
		}
	}
}
