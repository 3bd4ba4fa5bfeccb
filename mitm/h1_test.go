package mitm

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"unwire/captures"
)

// TestHTTP1IsRecordedAsItCame: version, target, and the order, case and repetition of
// fields are recorded as they were, by each way.
func TestHTTP1IsRecordedAsItCame(t *testing.T) {
	t.Parallel()
	identity := newTLSOrigin(t, false, http.NotFoundHandler())
	addr := newByteServer(t, identity).clear
	const fields = "zEBRA: 1\r\nhOST: HOST\r\nX: 1\r\nx: 2\r\nX: 1\r\n"
	for _, c := range []struct{ way, method, target, version, url string }{
		{"tunnel", "GET", "/a|b/../%2f?q=\"", "1.0", "http://HOST/a|b/../%2f?q=\""},
		{"tunnel", "OPTIONS", "*", "1.1", "http://HOST/*"},
		{"tunnel", "GET", "http://HOST/abs", "1.1", "http://HOST/abs"},
		{"absolute", "M-SEARCH", "http://HOST/a|%2f/%zz?%zz", "1.1", "http://HOST/a|%2f/%zz?%zz"},
		{"absolute", "GET", "HTTP://HOST", "1.0", "HTTP://HOST"},
		{"reverse", "GET", "/a|b", "1.1", "http://HOST/base/a|b"},
		{"reverse", "OPTIONS", "*", "1.0", "http://HOST/*"},
	} {
		t.Run(c.way+" "+c.target, func(t *testing.T) {
			t.Parallel()
			b := newTestProxy(t, nil, func(o *Options) {
				if c.way == "reverse" {
					o.Reverse = &url.URL{Scheme: "http", Host: addr, Path: "/base/"}
				}
			})
			conn := dialRaw(t, b, c.way, addr).conn
			words := strings.ReplaceAll(fmt.Sprintf("%s %s HTTP/%s\r\n%s\r\n", c.method, c.target, c.version, fields), "HOST", addr)
			_, _ = io.WriteString(conn, words)
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 299 Fine by Me\r\nzulu: 1\r\nALPHA:2\r\n") {
				t.Fatalf("%q, %v", answer, err)
			}
			ex := b.one()
			if want := strings.ReplaceAll(c.url, "HOST", addr); ex.Method != c.method || ex.URL != want || ex.HTTP != c.version || ex.Status != 299 || ex.Outcome != captures.Complete {
				t.Errorf("recorded %s %s HTTP/%s, %d, %q %s", ex.Method, ex.URL, ex.HTTP, ex.Status, ex.Outcome, ex.Error)
			}
			if got := lines(ex.RequestHeaders); got != strings.ReplaceAll(fields, "HOST", addr) {
				t.Errorf("request %q", got)
			}
			if got := lines(ex.ResponseHeaders); !strings.HasPrefix(got, "zulu: 1\r\nALPHA: 2\r\nx-Odd: 3\r\nX-ODD: 4\r\nconnection: Close\r\nset-COOKIE: a\r\nSet-Cookie: b\r\n") {
				t.Errorf("response %q", got)
			}
		})
	}
}

func lines(h captures.Headers) string {
	var out strings.Builder
	for _, f := range h {
		out.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
	return out.String()
}

// TestRefusedRequestsAreRecorded: what is refused is an exchange that failed, with the
// reason and what was understood.
func TestRefusedRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	for _, way := range []string{"tunnel", "absolute", "reverse"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newTestProxy(t, nil, func(o *Options) {
				if way == "reverse" {
					o.Reverse = &url.URL{Scheme: "http", Host: v.addr}
				}
			})
			c := dialRaw(t, b, way, v.addr)
			_, _ = io.WriteString(c.conn, c.text("POST /x", "Content-Length: 5\r\nX-Y: z\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"))
			answer, err := io.ReadAll(c.conn)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 Bad Request") {
				t.Errorf("%q, %v", answer, err)
			}
			ex := b.one()
			if ex.Outcome != captures.Failed || ex.Error != "unwire refused the request: the message has both Content-Length and Transfer-Encoding" ||
				ex.Method != "POST" || ex.URL != "http://"+v.addr+"/x" || ex.RequestHeaders.Get("x-y") != "z" || ex.Status != 0 {
				t.Errorf("recorded %+v", ex)
			}
		})
	}
}

// TestManyServersOnOneConnection: a client of a proxy may send requests for several
// servers on one connection, recorded, unrecorded and control ones in turn.
func TestManyServersOnOneConnection(t *testing.T) {
	t.Parallel()
	origins := []*countingOrigin{newCountingOrigin(t), newCountingOrigin(t), newCountingOrigin(t)}
	b := newTestProxy(t, nil, func(o *Options) { o.Skip = []string{origins[1].addr} })
	c := dialRaw(t, b, "absolute", origins[0].addr)
	var text strings.Builder
	const rounds = 10
	for i := range rounds {
		for j, o := range origins {
			fmt.Fprintf(&text, "POST http://%s/%d-%d HTTP/1.1\r\nHost: %s\r\nContent-Length: 3\r\n\r\nabc", o.addr, j, i, o.addr)
		}
		text.WriteString(controlRequest("GET", redirectPath, b.addr, tokenHeader+": "+controlToken+"\r\n", ""))
	}
	for _, pause := range []time.Duration{0, time.Millisecond} {
		conn, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		c.conn, c.in = conn, bufio.NewReader(conn)
		_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
		go func() {
			for _, part := range strings.SplitAfter(text.String(), "abc") {
				_, _ = io.WriteString(conn, part)
				time.Sleep(pause)
			}
		}()
		if n := c.answers(4*rounds, http.MethodPost); n != 4*rounds {
			t.Fatalf("%d answers", n)
		}
		_ = conn.Close()
	}
	for j, o := range origins {
		for i := range rounds {
			if n := o.seenOf(fmt.Sprintf("POST /%d-%d", j, i)); n != 2 {
				t.Errorf("origin %d got request %d %d times", j, i, n)
			}
		}
	}
	for _, ex := range b.recorded(4 * rounds) {
		if ex.Outcome != captures.Complete || strings.Contains(ex.URL, origins[1].addr) {
			t.Errorf("recorded %+v", ex)
		}
	}
}
