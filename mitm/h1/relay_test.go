package h1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

const testTimeout = 20 * time.Second

// A rawServer reads what comes on its connections, and answers by a function of the
// target.
type rawServer struct {
	t    *testing.T
	addr string

	mu   sync.Mutex
	seen [][]byte // by connection
}

// newRawServer starts a server. answer gets each request with its connection, and
// returns false to close that.
func newRawServer(t *testing.T, answer func(r *http.Request, conn *net.TCPConn) bool) *rawServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	s := &rawServer{t: t, addr: ln.Addr().String()}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			i := len(s.seen)
			s.seen = append(s.seen, nil)
			s.mu.Unlock()
			go s.serve(conn.(*net.TCPConn), i, answer)
		}
	}()
	return s
}

func (s *rawServer) serve(conn *net.TCPConn, i int, answer func(*http.Request, *net.TCPConn) bool) {
	defer conn.Close()
	in := bufio.NewReader(readerFunc(func(p []byte) (int, error) {
		n, err := conn.Read(p)
		s.mu.Lock()
		s.seen[i] = append(s.seen[i], p[:n]...)
		s.mu.Unlock()
		return n, err
	}))
	for {
		r, err := http.ReadRequest(in)
		if err != nil || !answer(r, conn) {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// all is what came on all connections.
func (s *rawServer) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.Join(s.seen, nil))
}

// await waits until what came ends in a suffix.
func (s *rawServer) await(suffix string) {
	s.t.Helper()
	for deadline := time.Now().Add(testTimeout); !strings.HasSuffix(s.all(), suffix); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the server saw %q", s.all())
		}
	}
}

// A tape is a recording in memory.
type tape struct {
	captures.Recording // the methods that a relay does not call

	mu       sync.Mutex
	ex       captures.Exchange
	up, down []byte
	ended    bool
	// forwarded are the changes by rules.
	forwarded []string
}

func (r *tape) ID() int64 { return 1 }

func (r *tape) Edit(d captures.Direction, start, end int64, rule string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forwarded = append(r.forwarded, fmt.Sprintf("%s %d-%d %s %q", d, start, end, rule, data))
}

func (r *tape) ForwardHead(d captures.Direction, rule string, h captures.ForwardedHead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forwarded = append(r.forwarded, fmt.Sprintf("%s head %s %d", d, rule, h.Status))
}

func (r *tape) Response(status int, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Status, r.ex.ResponseHeaders = status, h
}

func (r *tape) Chunk(d captures.Direction, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d == captures.Up {
		r.up = append(r.up, p...)
	} else {
		r.down = append(r.down, p...)
	}
}

func (r *tape) Trailers(d captures.Direction, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d == captures.Up {
		r.ex.RequestTrailers = h
	} else {
		r.ex.ResponseTrailers = h
	}
}

func (r *tape) End(o captures.Outcome, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended, r.ex.Outcome, r.ex.Error = true, o, text
	}
}

// A testRelay is a relay between a client's connection and a server.
type testRelay struct {
	t      *testing.T
	client *net.TCPConn
	done   chan struct{}

	mu      sync.Mutex
	tapes   []*tape
	refused []string
	running int
}

// newTestRelay starts a relay in a tunnel to a server. exchange, if given, decides about the frames of every exchange.
func newTestRelay(t *testing.T, addr string, exchange ...rewrite.Exchange) *testRelay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = client.SetDeadline(time.Now().Add(testTimeout))
	b := &testRelay{t: t, client: client.(*net.TCPConn), done: make(chan struct{})}
	config := Config{
		Client: conn,
		Route: func(q *Request) (*Route, error) {
			return &Route{Key: addr, URL: "http://" + addr + q.Target, Bound: true, Dial: func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			}}, nil
		},
		Begin:     b.begin,
		Connected: func(captures.Recording, net.Conn) {},
		Refused: func(_ *Request, reason *Malformed) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.refused = append(b.refused, reason.Reason)
		},
		Explain: func(_ *Route, _ captures.Recording, err error, connected bool) *Answer {
			if connected {
				return nil
			}
			return &Answer{Status: http.StatusBadGateway, Text: err.Error(), Err: err, Unreached: true}
		},
		Upgrade: func(client, server net.Conn, rec captures.Recording, _ *Request, _ captures.Headers) {
			go func() { _, _ = io.Copy(server, client); _ = closeWrite(server) }()
			_, _ = io.Copy(client, server)
			rec.End(captures.Complete, "")
		},
		Admit:   func() bool { b.count(1); return true },
		Release: func() { b.count(-1) },
	}
	if len(exchange) > 0 {
		config.Rewrite = func(*Request, *Route) rewrite.Exchange { return exchange[0] }
	}
	r := New(config)
	go func() {
		defer close(b.done)
		r.Run(t.Context())
	}()
	t.Cleanup(func() {
		_ = client.Close()
		select {
		case <-b.done:
		case <-time.After(testTimeout):
			t.Error("the relay does not end")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running != 0 {
			t.Errorf("%d exchanges were not released", b.running)
		}
	})
	return b
}

func (b *testRelay) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running += n
}

func (b *testRelay) begin(q *Request, to *Route, _ net.Conn) captures.Recording {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := &tape{ex: captures.Exchange{Method: q.Method, URL: to.URL, HTTP: q.Version, RequestHeaders: q.Header}}
	b.tapes = append(b.tapes, rec)
	return rec
}

// end waits for the end of the relay, and returns what it has recorded.
func (b *testRelay) end() []*tape {
	b.t.Helper()
	select {
	case <-b.done:
	case <-time.After(testTimeout):
		b.t.Fatal("the relay does not end")
	}
	// The goroutine that reads from the server may end the last exchange afterwards.
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		running, tapes := b.running, b.tapes
		b.mu.Unlock()
		if running == 0 || time.Now().After(deadline) {
			return tapes
		}
	}
}

// write writes to the relay.
func (b *testRelay) write(raw string) {
	b.t.Helper()
	if _, err := io.WriteString(b.client, raw); err != nil {
		b.t.Fatal(err)
	}
}

// send writes and half-closes, and returns all that comes back.
func (b *testRelay) send(raw string) string {
	b.t.Helper()
	if _, err := io.WriteString(b.client, raw); err != nil && !errors.Is(err, net.ErrClosed) {
		b.t.Log(err)
	}
	_ = b.client.CloseWrite()
	answer, _ := io.ReadAll(b.client)
	return string(answer)
}

func answerOK(_ *http.Request, conn *net.TCPConn) bool {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 oK\r\nx-ODD: 1\r\nContent-Length: 2\r\n\r\nok")
	return true
}

// TestSmuggling: nothing of a malformed request reaches the server, but for a body that
// became malformed late; nothing that follows it does either, and what precedes it is
// answered.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	const before, after = "GET /before HTTP/1.1\r\nHost: x\r\n\r\n", "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, raw := range malformedRequests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, answerOK)
			b := newTestRelay(t, s.addr)
			answer := b.send(before + raw + after)
			if got := s.all(); got != before {
				t.Errorf("the server saw %q", got)
			}
			if n := strings.Count(answer, "HTTP/1.1 "); n != 2 || !strings.HasPrefix(answer, "HTTP/1.1 200 oK\r\nx-ODD: 1\r\n") {
				t.Errorf("the client got %q", answer)
			}
			tapes := b.end()
			failed := len(b.refused)
			for _, rec := range tapes[1:] {
				if rec.ex.Outcome == captures.Failed && strings.HasPrefix(rec.ex.Error, "unwire refused the request: ") {
					failed++
				}
			}
			if failed != 1 || tapes[0].ex.Outcome != captures.Complete {
				t.Errorf("recorded %d refusals, %+v", failed, tapes[0].ex)
			}
		})
	}
}

// TestOddRequestsArrive: the server sees each byte as it was sent, with or without other
// requests around it.
func TestOddRequestsArrive(t *testing.T) {
	t.Parallel()
	for name, raw := range oddRequests {
		if name == "HTTP/1.0" {
			continue // has no next
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, answerOK)
			b := newTestRelay(t, s.addr)
			const next = "GET /next HTTP/1.1\r\nHost: x\r\n\r\n"
			answer := b.send(raw + "\r\n" + next)
			s.await(next)
			if got := s.all(); got != raw+next {
				t.Errorf("the server saw %q, want %q", got, raw+next)
			}
			if strings.Count(answer, "oK\r\nx-ODD") != 2 {
				t.Errorf("the client got %q", answer)
			}
			for _, rec := range b.end() {
				if rec.ex.Outcome != captures.Complete {
					t.Errorf("recorded %+v", rec.ex)
				}
			}
		})
	}
}

// TestHalfCloseAfterPipelining: a client that sends five requests at once and then
// half-closes gets five answers, and each request is sent once.
func TestHalfCloseAfterPipelining(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, func(r *http.Request, conn *net.TCPConn) bool {
		time.Sleep(5 * time.Millisecond)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"+r.URL.Path)
		return true
	})
	b := newTestRelay(t, s.addr)
	var raw, want strings.Builder
	for _, path := range []string{"/1", "/2", "/3", "/4", "/5"} {
		raw.WriteString("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		want.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + path)
	}
	if got := b.send(raw.String()); got != want.String() {
		t.Errorf("got %q", got)
	}
	if got := s.all(); got != raw.String() {
		t.Errorf("the server saw %q", got)
	}
	for i, rec := range b.end() {
		if rec.ex.Outcome != captures.Complete || i > 4 {
			t.Errorf("recorded %d: %+v", i, rec.ex)
		}
	}
}

// TestEarlyAnswer: the client sees an answer while it still sends, and the rest of the
// request arrives if the server reads it.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		s := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
			_, _ = io.WriteString(conn, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
			return !closes
		})
		b := newTestRelay(t, s.addr)
		_, _ = io.WriteString(b.client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc")
		got := make([]byte, len("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"))
		if _, err := io.ReadFull(b.client, got); err != nil {
			t.Fatal(err)
		}
		rest := b.send("def")
		if rest != "" {
			t.Errorf("then %q", rest)
		}
		rec := b.end()[0]
		if rec.ex.Outcome != captures.Complete || rec.ex.Status != http.StatusForbidden || string(rec.down) != "no" || !strings.HasPrefix("abcdef", string(rec.up)) {
			t.Errorf("closes %v: recorded %+v, %q, %q", closes, rec.ex, rec.up, rec.down)
		}
		if !closes {
			s.await("abcdef")
		}
	}
}

// TestResponsesArrive: the client sees each byte of an answer as the server sent it.
func TestResponsesArrive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, body string
		closes       bool
	}{
		"odd head":          {"HTTP/1.1 200 All is Well \r\nb: 1\r\nA:2\r\nb:\t3 \r\nsEt-cookie: x\r\nSet-Cookie: y\r\nContent-Length: 2\r\n\r\nhi", "hi", false},
		"HTTP/1.0":          {"HTTP/1.0 200 OK\r\nServer: old\r\n\r\nuntil the end", "until the end", true},
		"until close":       {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", true},
		"chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2  \r\nde\r\n0\r\nX-Trail: 1\r\n\r\n", "abcde", false},
		"informational":     {"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 204 None\r\n\r\n", "", false},
		"without a reason":  {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "", false},
		"an odd status":     {"HTTP/1.1 799 What\r\nContent-Length: 1\r\n\r\n!", "!", false},
		"length, and close": {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n!", "!", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
				for i := range len(c.answer) {
					_, _ = io.WriteString(conn, c.answer[i:i+1])
				}
				return !c.closes
			})
			b := newTestRelay(t, s.addr)
			_, _ = io.WriteString(b.client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			got := make([]byte, len(c.answer))
			if _, err := io.ReadFull(b.client, got); err != nil || string(got) != c.answer {
				t.Errorf("got %q, %v", got, err)
			}
			if rest := b.send(""); rest != "" {
				t.Errorf("then %q", rest)
			}
			if rec := b.end()[0]; rec.ex.Outcome != captures.Complete || string(rec.down) != c.body || name == "chunks" && len(rec.ex.ResponseTrailers) != 1 {
				t.Errorf("recorded %+v, %q", rec.ex, rec.down)
			}
		})
	}
}

// TestMalformedAnswers: nothing of a malformed head reaches the client, and an answer
// that becomes malformed is cut off there.
func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	for _, raw := range append([]string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: a\n\r\n",
	}, malformedResponses...) {
		s := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
			_, _ = io.WriteString(conn, raw)
			return true
		})
		b := newTestRelay(t, s.addr)
		_, _ = io.WriteString(b.client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(b.client)
		head := strings.HasPrefix(raw, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		if head == strings.HasPrefix(string(answer), "HTTP/1.1 502 ") || strings.HasSuffix(string(answer), "0\r\n\r\n") {
			t.Errorf("%q: the client got %q", raw, answer)
		}
		_ = b.client.Close()
		if rec := b.end()[0]; rec.ex.Outcome != captures.Reset || rec.ex.Error == "" {
			t.Errorf("%q: recorded %+v", raw, rec.ex)
		}
	}
}

// TestUnsolicitedAnswer: what a server sends that nobody asked for ends the connection,
// and answers no other request.
func TestUnsolicitedAnswer(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		return true
	})
	b := newTestRelay(t, s.addr)
	answer := b.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
	if strings.Contains(answer, "evil") || !strings.HasSuffix(answer, "\r\n\r\nok") {
		t.Errorf("the client got %q", answer)
	}
}

// TestOversizedHeads: a head is read up to its limit, and no further.
func TestOversizedHeads(t *testing.T) {
	t.Parallel()
	long := "X: " + strings.Repeat("x", maxRequestHead-100) + "\r\n"
	for _, c := range []struct {
		header string
		want   string
	}{{long, "HTTP/1.1 200 oK"}, {long + long, "HTTP/1.1 431 "}} {
		s := newRawServer(t, answerOK)
		b := newTestRelay(t, s.addr)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.WriteString(b.client, "GET / HTTP/1.1\r\nHost: x\r\n"+c.header+"Connection: close\r\n\r\n")
		}()
		answer, _ := io.ReadAll(b.client)
		<-sent
		if !strings.HasPrefix(string(answer), c.want) {
			t.Errorf("%d bytes: %.100q", len(c.header), answer)
		}
	}
}

// TestServerEndsDuringAnotherAnswer: if the connection to the server ends while the client gets another answer (a
// rule's, for example), the exchange does not end; the function that writes that answer ends it.
func TestServerEndsDuringAnotherAnswer(t *testing.T) {
	t.Parallel()
	client, _ := net.Pipe()
	upstream, _ := net.Pipe()
	rec := &tape{}
	r := New(Config{
		Client:  client,
		Explain: func(*Route, captures.Recording, error, bool) *Answer { return nil },
		Release: func() {},
	})
	x := &exchange{request: &Request{}, route: &Route{}, rec: rec, refused: true}
	s := &server{relay: r, conn: upstream, exchange: x}
	x.server, r.running, r.servers = s, x, []*server{s}
	r.loseServer(s, io.EOF)
	if rec.ended || r.ended || r.running != x {
		t.Errorf("the exchange ended: %s %s", rec.ex.Outcome, rec.ex.Error)
	}
	if len(r.servers) > 0 || !s.closed {
		t.Error("the server's connection may still be used")
	}
}
