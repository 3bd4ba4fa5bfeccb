package mitm

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
)

// A countingOrigin counts the requests that reach it, and closes connections by path.
type countingOrigin struct {
	addr string

	mu   sync.Mutex
	seen map[string]int // by method and path
}

func newCountingOrigin(t *testing.T) *countingOrigin {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	o := &countingOrigin{addr: ln.Addr().String(), seen: make(map[string]int)}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go o.serve(conn.(*net.TCPConn))
		}
	}()
	return o
}

func (o *countingOrigin) count(r *http.Request) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[r.Method+" "+r.URL.Path]++
	return o.seen[r.Method+" "+r.URL.Path]
}

func (o *countingOrigin) seenOf(request string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[request]
}

func (o *countingOrigin) serve(conn *net.TCPConn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		n := o.count(r)
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.URL.Path == "/drop", r.URL.Path == "/drop-once" && n == 1:
			return
		case r.URL.Path == "/reset":
			_ = conn.SetLinger(0)
			return
		case r.URL.Path == "/half":
			_, _ = io.WriteString(conn, "HTTP/1.1 2")
			return
		case r.URL.Path == "/hint":
			_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n")
			return
		case r.URL.Path == "/slow":
			time.Sleep(100 * time.Millisecond)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// A rawClient writes requests by hand on one connection to a proxy.
type rawClient struct {
	t      *testing.T
	conn   net.Conn
	in     *bufio.Reader
	prefix string // of a request's target
	host   string
}

// dialRaw connects to an origin by a way: absolute, tunnel or reverse.
func dialRaw(t *testing.T, b *testProxy, way, addr string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	c := &rawClient{t: t, conn: conn, in: bufio.NewReader(conn), host: addr}
	switch way {
	case "absolute":
		c.prefix = "http://" + addr
	case "tunnel":
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr)
		if got := c.answers(1, http.MethodConnect); got != 1 {
			t.Fatal("no tunnel")
		}
	}
	return c
}

// text is a request as it is written.
func (c *rawClient) text(request, header, body string) string {
	method, path, _ := strings.Cut(request, " ")
	return fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", method, c.prefix, path, c.host, header, body)
}

// answers reads at most n answers, and returns how many came whole before the
// connection ended.
func (c *rawClient) answers(n int, method string) int {
	c.t.Helper()
	for i := range n {
		res, err := http.ReadResponse(c.in, &http.Request{Method: method})
		for err == nil && res.StatusCode == http.StatusEarlyHints {
			res, err = http.ReadResponse(c.in, &http.Request{Method: method})
		}
		if err != nil {
			return i
		}
		if method != http.MethodConnect {
			_, _ = io.Copy(io.Discard, res.Body)
		}
	}
	return n
}

// repeatWays runs a test for each way on which a proxy sends HTTP/1 to an origin. On the
// unrecorded one, goproxy answers a failed request.
func repeatWays(t *testing.T, f func(t *testing.T, way string, o *countingOrigin, dial func() *rawClient)) {
	for _, way := range []string{"absolute", "tunnel", "reverse", "unrecorded"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			o := newCountingOrigin(t)
			b := newTestProxy(t, nil, func(options *Options) {
				switch way {
				case "reverse":
					options.Reverse = &url.URL{Scheme: "http", Host: o.addr}
				case "unrecorded":
					options.Skip = []string{"127.0.0.1"}
				}
			})
			dialWay := way
			if way == "unrecorded" {
				dialWay = "absolute"
			}
			f(t, way, o, func() *rawClient { return dialRaw(t, b, dialWay, o.addr) })
		})
	}
}

// requests that a transport of net/http's may send again, and others.
var repeatRequests = []struct {
	request, header, body string
	safe                  bool
}{
	{"GET", "", "", true},
	{"HEAD", "", "", true},
	{"OPTIONS", "", "", true},
	{"GET", "Content-Length: 4\r\n", "body", false},
	{"POST", "Content-Length: 0\r\n", "", false},
	{"POST", "Content-Length: 0\r\nIdempotency-Key: a\r\n", "", false},
	{"POST", "Content-Length: 4\r\nX-Idempotency-Key: a\r\n", "body", false},
	{"DELETE", "Idempotency-Key: a\r\n", "", false},
	{"PUT", "Content-Length: 4\r\n", "body", false},
}

// TestPipelinedRequestIsSentOnce: an origin that closes its connection at a request that
// was pipelined behind others sees it once, as without a proxy, and the client gets no
// answer to it.
func TestPipelinedRequestIsSentOnce(t *testing.T) {
	t.Parallel()
	repeatWays(t, func(t *testing.T, way string, o *countingOrigin, dial func() *rawClient) {
		for i, c := range repeatRequests {
			for _, path := range []string{"/drop", "/reset", "/half", "/hint"} {
				client := dial()
				before := o.seenOf(c.request + " " + path)
				text := client.text("GET /ok", "", "") + client.text("GET /ok", "", "") +
					client.text(c.request+" "+path, c.header, c.body) + client.text("GET /after", "", "")
				if _, err := io.WriteString(client.conn, text); err != nil {
					t.Fatal(err)
				}
				n := client.answers(3, http.MethodGet)
				if way != "unrecorded" && n != 2 {
					t.Errorf("%d: %s %s: %d answers, want the first 2", i, c.request, path, n)
				}
				if n := o.seenOf(c.request+" "+path) - before; n != 1 {
					t.Errorf("%d: %s %s%q: sent %d times", i, c.request, path, c.header, n)
				}
			}
		}
		if n := o.seenOf("GET /after"); way != "unrecorded" && n != 0 {
			t.Errorf("%d requests were sent after the connection was lost", n)
		}
	})
}

// TestRepeatsOnce: what is recorded goes on connections that belong to one client, so a
// first request is sent once. goproxy keeps connections from other clients: if one is
// closed without an answer, a request that is safe and without a body is sent once
// more, however many connections were kept.
func TestRepeatsOnce(t *testing.T) {
	t.Parallel()
	repeatWays(t, func(t *testing.T, way string, o *countingOrigin, dial func() *rawClient) {
		for i, c := range repeatRequests {
			for _, path := range []string{"/drop", "/reset", "/half", "/hint"} {
				var kept sync.WaitGroup
				for range 3 {
					client := dial()
					kept.Go(func() {
						_, _ = io.WriteString(client.conn, client.text("GET /slow", "", ""))
						client.answers(1, http.MethodGet)
					})
				}
				kept.Wait()
				client := dial()
				before := o.seenOf(c.request + " " + path)
				_, _ = io.WriteString(client.conn, client.text(c.request+" "+path, c.header, c.body))
				n := client.answers(1, c.request)
				if way != "unrecorded" && n != 0 {
					t.Errorf("%d: %s %s was answered", i, c.request, path)
				}
				want := 1
				if way == "unrecorded" && c.safe && (path == "/drop" || path == "/reset") {
					want = 2
				}
				if n := o.seenOf(c.request+" "+path) - before; n != want {
					t.Errorf("%d: %s %s%q: sent %d times, want %d", i, c.request, path, c.header, n, want)
				}
			}
		}
	})
}

// TestRepeatAfterPause: a server may close a connection that is not used; a request
// after a pause is answered on the next one. A request without a pause is recorded with
// the reason why it has no answer.
func TestRepeatAfterPause(t *testing.T) {
	t.Parallel()
	o := newCountingOrigin(t)
	b := newTestProxy(t, nil, nil)
	client := dialRaw(t, b, "absolute", o.addr)
	ask := func(request string) int {
		_, _ = io.WriteString(client.conn, client.text(request, "", ""))
		return client.answers(1, http.MethodGet)
	}
	if ask("GET /ok") != 1 {
		t.Fatal("no answer")
	}
	// The proxy notes the time of its response shortly after the client has read it.
	time.Sleep(2 * minPipelineGap)
	if n := ask("GET /drop-once"); n != 1 || o.seenOf("GET /drop-once") != 2 {
		t.Errorf("after a pause: %d answers, sent %d times", n, o.seenOf("GET /drop-once"))
	}
	// On a busy machine, a request may come late enough to count as one after a pause; it is sent again in time.
	sent := 2
	for began := time.Now(); ; began = time.Now() {
		client = dialRaw(t, b, "absolute", o.addr)
		before := o.seenOf("GET /drop")
		if ask("GET /ok") != 1 {
			t.Fatal("no answer")
		}
		n := ask("GET /drop")
		sent += 2
		if time.Since(began) >= minPipelineGap {
			continue
		}
		if seen := o.seenOf("GET /drop") - before; n != 0 || seen != 1 {
			t.Errorf("without a pause: %d answers, sent %d times", n, seen)
		}
		break
	}
	ex := b.recorded(sent)[sent-1]
	if ex.Outcome != captures.Reset || ex.Error != errNotRepeated.Error() {
		t.Errorf("recorded %q, %q", ex.Outcome, ex.Error)
	}
}
