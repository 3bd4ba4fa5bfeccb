package agent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"unwire/replay/agent"
	"unwire/replay/agent/turn"
)

// toolScript asks for two tools at once and stores blobs, over a fallback of one form.
func toolScript(sse string) string {
	return fmt.Sprintf(`{"v":1,"sse":%q,"appends":{"window":16,"hold_ms":20},"turns":[{"steps":[
		{"thinking":"hm"},{"kv_set":{"data":"note","as":"n"}},
		{"tools":{"calls":[
			{"name":"mcp","args":{"name":"add","toolName":"add","args":{"x":1}},"require":"success"},
			{"name":"mcp","args":{"name":"add","toolName":"add","args":{"x":2}},"require":"success"}]}},
		{"kv_get":{"blob":"n"}},{"text":"done"},{"turn_ended":{"inputTokens":"3"}}]}]}`, sse)
}

func checkTools(t *testing.T, c *agent.Client) {
	t.Helper()
	text, calls, ended, err := finish(t, run(t, c, user("go", turn.Tool{Name: "add", Schema: json.RawMessage(`{}`)})), echo)
	if err != nil || text != "done" || len(calls) != 2 || ended == nil || ended.Usage == nil || ended.Usage.Input != 3 {
		t.Errorf("got %q, %v, %+v, %v", text, calls, ended, err)
	}
	if calls[0].ID == calls[1].ID {
		t.Errorf("two calls have the id %q", calls[0].ID)
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	for _, sse := range []string{"raw", "base64", "connect"} {
		t.Run(sse, func(t *testing.T) {
			t.Parallel()
			checkTools(t, connect(t, toolScript(sse), func(o *agent.Options) { o.Transport = agent.SSE }))
		})
	}
}

// TestAutoFallsBack puts a proxy before the stand-in that knows HTTP/1.1 only, with TLS
// and without, so that HTTP/2 is refused.
func TestAutoFallsBack(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint("plain ", plain), func(t *testing.T) {
			t.Parallel()
			server, roots := start(t, toolScript("raw"))
			u, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			front := newProxy(t, u, roots, plain)
			checkTools(t, connectTo(t, front, agent.Auto))
		})
	}
}

// TestAutoAfterReset has a server without TLS that resets or ends the first HTTP/2 connection before it answers
// anything. The client falls back only if the server answers the next HTTP/2 connection in HTTP/1: otherwise it may
// have executed the request.
//
// The system reports a reset once. If writing the request gets that error, reading the answer ends without one, as if
// the server had ended the connection in order.
func TestAutoAfterReset(t *testing.T) {
	t.Parallel()
	const http1 = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
	reset := func(conn *net.TCPConn) { _ = conn.SetLinger(0) }
	end := func(conn *net.TCPConn) {
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
	for name, test := range map[string]struct {
		closing func(*net.TCPConn)
		answer  string
		falls   bool
	}{
		"reset, HTTP/1":    {reset, http1, true},
		"reset, HTTP/2":    {reset, "\x00\x00\x00\x04\x00\x00\x00\x00\x00", false},
		"reset, no answer": {reset, "", false},
		"end, HTTP/1":      {end, http1, true},
		"end, no answer":   {end, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, roots := start(t, toolScript("raw"))
			u, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			c := connectTo(t, &httptest.Server{URL: "http://" + closing(t, newProxy(t, u, roots, true), test.closing, test.answer)}, agent.Auto)
			if test.falls {
				checkTools(t, c)
			} else if _, err := c.Run(t.Context(), "", user("go")); err == nil {
				t.Error("the request was sent again")
			}
		})
	}
}

// closing returns the address of a listener before a server of HTTP/1. The listener calls end for the first connection
// that begins as HTTP/2, and closes it; it sends answer on the others.
func closing(t *testing.T, server *httptest.Server, end func(*net.TCPConn), answer string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var closed atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				start, err := in.Peek(3)
				if err != nil {
					return
				}
				if string(start) == "PRI" {
					if closed.Add(1) == 1 {
						end(conn.(*net.TCPConn))
						return
					}
					_, _ = io.WriteString(conn, answer)
					return
				}
				to, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, in) }()
				_, _ = io.Copy(conn, to)
			}()
		}
	}()
	return listener.Addr().String()
}

// TestAutoFallsBackOnStatus has a server whose stream answers 464, as a load balancer
// does.
func TestAutoFallsBackOnStatus(t *testing.T) {
	t.Parallel()
	server, roots := start(t, toolScript("raw"))
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := proxyTo(t, u, roots)
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/agent.v1.AgentService/Run" {
			w.WriteHeader(464)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	c := connectTo(t, front, agent.Auto)
	checkTools(t, c)
	checkTools(t, c) // which knows by now
	if _, err := connectTo(t, front, agent.HTTP2).Run(t.Context(), "", user("go")); err == nil {
		t.Error("HTTP2 fell back, too")
	}
}
