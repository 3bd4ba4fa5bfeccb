package h1

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// A watchingRule may change the frames of some directions, and changes none. It counts what it sees of responses.
type watchingRule struct {
	endingRule
	directions []captures.Direction

	mu       sync.Mutex
	statuses []int
	framings int
	bodies   []string
}

func (e *watchingRule) Diverts(d captures.Direction) bool { return slices.Contains(e.directions, d) }

func (e *watchingRule) Response(status int, _ captures.Headers) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.statuses = append(e.statuses, status)
}

func (e *watchingRule) Framing(d captures.Direction) rewrite.Framing {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d == captures.Down {
		e.framings++
	}
	return rewrite.Framing{Kind: rewrite.Whole}
}

func (e *watchingRule) Passes(f *rewrite.Frame) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.Dir == captures.Down {
		e.bodies = append(e.bodies, string(f.Data))
	}
	return true
}

// TestResponsesThatRulesCannotAffect: rules that concern only requests learn the status of a response and no more, and it
// is forwarded as it comes. Rules that concern responses see each whole body, and nothing of a response without one.
func TestResponsesThatRulesCannotAffect(t *testing.T) {
	t.Parallel()
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;ext=1\r\nhe\r\n003\r\nllo\r\n0\r\nX-Sum: 7\r\n\r\n"
	for _, c := range []struct {
		name, method, response string
		status                 int
		body, trailer          string
		bodiless, closes       bool
	}{
		{name: "length", response: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", status: 200, body: "hello"},
		{name: "length 0", response: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200},
		{name: "chunks and trailers", response: chunks, status: 200, body: "hello", trailer: "7"},
		{name: "HEAD with a length", method: "HEAD", response: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", status: 200, bodiless: true},
		{name: "HEAD with chunks", method: "HEAD", response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", status: 200, bodiless: true},
		{name: "204", response: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, bodiless: true},
		{name: "304 with a length", response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", status: 304, bodiless: true},
		{name: "1xx", response: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + chunks, status: 200, body: "hello", trailer: "7"},
		{name: "until the end", response: "HTTP/1.1 200 OK\r\n\r\nhello", status: 200, body: "hello", closes: true},
	} {
		for _, directions := range [][]captures.Direction{{captures.Up}, {captures.Up, captures.Down}} {
			name := fmt.Sprintf("%s, rules for %v", c.name, directions)
			server := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
				// Responses arrive in pieces.
				for p := c.response; p != ""; p = p[min(7, len(p)):] {
					_, _ = io.WriteString(conn, p[:min(7, len(p))])
				}
				return !c.closes
			})
			rule := &watchingRule{directions: directions}
			b := newTestRelay(t, server.addr, rule)
			method := c.method
			if method == "" {
				method = http.MethodPost
			}
			requests := 2
			if c.closes {
				requests = 1
			}
			for range requests {
				b.write(method + " /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
				got := make([]byte, len(c.response))
				if n, err := io.ReadFull(b.client, got); err != nil || string(got) != c.response {
					t.Fatalf("%s: the client read %q, %v; want %q", name, got[:n], err, c.response)
				}
			}
			if c.closes {
				if rest, err := io.ReadAll(b.client); err != nil || len(rest) > 0 {
					t.Errorf("%s: %q, %v after the response", name, rest, err)
				}
			}
			_ = b.client.Close()
			for _, x := range b.end() {
				if x.ex.Status != c.status || string(x.down) != c.body || x.ex.ResponseTrailers.Get("x-sum") != c.trailer || x.ex.Outcome != captures.Complete {
					t.Errorf("%s: recorded %d %q %v %s", name, x.ex.Status, x.down, x.ex.ResponseTrailers, x.ex.Outcome)
				}
			}

			// What the rules saw.
			var bodies []string
			framings := 0
			if len(directions) == 2 && !c.bodiless {
				bodies, framings = slices.Repeat([]string{c.body}, requests), requests
			}
			if c.closes {
				bodies = nil // Run forwards them, by Frame
			}
			if want := slices.Repeat([]int{c.status}, requests); !slices.Equal(rule.statuses, want) || !slices.Equal(rule.bodies, bodies) || (rule.framings > 0) != (framings > 0) {
				t.Errorf("%s: the rules saw the statuses %v, the bodies %q, and asked %d times for the framing", name, rule.statuses, rule.bodies, rule.framings)
			}
		}
	}
}

// TestUpgradeWithRules: the bytes after a switched protocol pass rules of HTTP.
func TestUpgradeWithRules(t *testing.T) {
	t.Parallel()
	const response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
	server := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
		_, _ = io.WriteString(conn, response+"welcome")
		return true
	})
	rule := &watchingRule{directions: []captures.Direction{captures.Up, captures.Down}}
	b := newTestRelay(t, server.addr, rule)
	b.write("GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	got := make([]byte, len(response+"welcome"))
	if n, err := io.ReadFull(b.client, got); err != nil || string(got) != response+"welcome" {
		t.Fatalf("the client read %q, %v", got[:n], err)
	}
	b.write("hello")
	server.await("hello")
	_ = b.client.Close()
	if x := b.end()[0]; x.ex.Status != http.StatusSwitchingProtocols || strings.Contains(string(x.down), "welcome") || len(rule.statuses)+rule.framings > 0 {
		t.Errorf("recorded %d %q, and the rules saw %v", x.ex.Status, x.down, rule.statuses)
	}
}
