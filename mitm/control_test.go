package mitm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/captures"
)

// controlToken is the token of every bench.
const controlToken = "made-up-control-token-of-the-tests"

// send writes bytes to an address and returns the status of the answer and its
// body.
func send(tb testing.TB, addr, words string) (int, string) {
	tb.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	return sendOn(tb, conn, words)
}

func sendOn(tb testing.TB, conn net.Conn, words string) (int, string) {
	tb.Helper()
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	if _, err := io.WriteString(conn, words); err != nil {
		tb.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// A victim is a server that counts who connects to it.
type victim struct {
	addr string
	n    atomic.Int32
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	v := &victim{addr: ln.Addr().String()}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			v.n.Add(1)
			conn.Close()
		}
	}()
	return v
}

// controlRequest writes a request for a control endpoint, as an attacker would.
func controlRequest(method, path, host, fields, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", method, path, host, fields, len(body), body)
}

// TestControlIsForTheHookOnly: what a web page, another program or another user
// can send has no effect, even with the token.
func TestControlIsForTheHookOnly(t *testing.T) {
	t.Parallel()
	const token = tokenHeader + ": " + controlToken + "\r\n"
	own := "" // the proxy's address, which is not known yet
	for name, c := range map[string]struct {
		method, host, fields string
		status               int
	}{
		"fetch with no-cors":           {"POST", own, "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nContent-Type: text/plain\r\n", 403},
		"form":                         {"POST", own, "Origin: null\r\nContent-Type: text/plain\r\n", 403},
		"image":                        {"GET", own, "Sec-Fetch-Dest: image\r\nReferer: http://evil.example/\r\n", 403},
		"preflight":                    {"OPTIONS", own, "Origin: https://evil.example\r\nAccess-Control-Request-Headers: unwire-token\r\n", 403},
		"old browser":                  {"POST", own, "Content-Type: text/plain\r\n", 403},
		"DNS rebinding":                {"POST", "evil.example:%s", "", 403},
		"DNS rebinding with the token": {"POST", "evil.example:%s", token, 403},
		"localhost with the token":     {"POST", "localhost:%s", token, 403},
		"other address, with token":    {"POST", "127.0.0.2:%s", token, 403},
		"no port, with the token":      {"POST", "127.0.0.1", token, 403},
		"Origin with the token":        {"POST", own, token + "Origin: http://127.0.0.1\r\n", 403},
		"empty Origin, with token":     {"POST", own, token + "Origin:\r\n", 403},
		"Sec-Fetch-Site with token":    {"POST", own, token + "Sec-Fetch-Site: same-origin\r\n", 403},
		"wrong token":                  {"POST", own, tokenHeader + ": " + strings.Repeat("x", len(controlToken)) + "\r\n", 403},
		"shorter token":                {"POST", own, tokenHeader + ": " + controlToken[1:] + "\r\n", 403},
		"empty token":                  {"POST", own, tokenHeader + ":\r\n", 403},
		"two tokens":                   {"POST", own, token + token, 403},
		"token in the query":           {"POST", own, "", 403},
		"GET with the token":           {"GET", own, token, 405},
		"PUT with the token":           {"PUT", own, token, 405},
		"HEAD with the token":          {"HEAD", own, token, 405},
		"OPTIONS with the token":       {"OPTIONS", own, token, 405},
	} {
		t.Run(name, func(t *testing.T) {
			b, v := newTestProxy(t, nil, nil), newVictim(t)
			_, port, _ := net.SplitHostPort(b.addr)
			host := b.addr
			if c.host != "" {
				host = strings.ReplaceAll(c.host, "%s", port)
			}
			query := ""
			if strings.HasSuffix(name, "query") {
				query = "?token=" + controlToken
			}
			for path, body := range map[string]string{
				routePath: fmt.Sprintf(`{"port":40000,"to":%q}`, v.addr),
				reachPath: fmt.Sprintf(`{"to":%q}`, v.addr),
			} {
				if got, text := sendHead(t, b.addr, c.method, controlRequest(c.method, path+query, host, c.fields, body)); got != c.status {
					t.Errorf("%s: status %d, want %d: %s", path, got, c.status, text)
				}
			}
			b.unaffected(v)
		})
	}
}

// sendHead is send for an answer to HEAD, too, which has no body.
func sendHead(t *testing.T, addr, method, words string) (int, string) {
	if method != http.MethodHead {
		return send(t, addr, words)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, words)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, ""
}

// unaffected checks that nobody announced a route, opened the redirect listener
// or had the proxy connect to v.
func (b *testProxy) unaffected(v *victim) {
	b.tb.Helper()
	b.proxy.redirects.Lock()
	listener := b.proxy.redirects.listener
	b.proxy.redirects.Unlock()
	routes := reflect.ValueOf(b.proxy.routes).Elem().FieldByName("slots").Len()
	if n := v.n.Load(); n != 0 || routes != 0 || listener != nil {
		b.tb.Errorf("%d connections, %d routes, listener %v", n, routes, listener)
	}
}

// TestControlRedirectEndpoint: only GET with the token opens the listener.
func TestControlRedirectEndpoint(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	token := tokenHeader + ": " + controlToken + "\r\n"
	for fields, want := range map[string]int{"": 403, token + "Sec-Fetch-Dest: image\r\n": 403} {
		if got, _ := send(t, b.addr, controlRequest("GET", redirectPath, b.addr, fields, "")); got != want {
			t.Errorf("%q: status %d", fields, got)
		}
	}
	if got, _ := send(t, b.addr, controlRequest("POST", redirectPath, b.addr, token, "")); got != 405 {
		t.Errorf("POST: status %d", got)
	}
	b.unaffected(newVictim(t))
	if got, body := send(t, b.addr, controlRequest("GET", redirectPath, b.addr, token, "")); got != 200 || !strings.Contains(body, "127.0.0.1:") {
		t.Errorf("status %d: %s", got, body)
	}
}

// TestControlThroughTheProxy: the proxy does not let a client reach the control
// endpoints in a roundabout way, even with the token: by an absolute URL, a
// tunnel or SOCKS to its own address, whether that is recorded or not.
func TestControlThroughTheProxy(t *testing.T) {
	for name, skip := range map[string][]string{"recorded": nil, "passed on unread": {"127.0.0.1", "localhost"}} {
		t.Run(name, func(t *testing.T) {
			b, v := newTestProxy(t, nil, func(o *Options) { o.Skip = skip }), newVictim(t)
			request := func(target, host string) string {
				return controlRequest("POST", target, host, tokenHeader+": "+controlToken+"\r\n", fmt.Sprintf(`{"port":40000,"to":%q}`, v.addr))
			}
			_, port, _ := net.SplitHostPort(b.addr)
			for _, host := range []string{b.addr, "localhost:" + port, "0.0.0.0:" + port} {
				if got, body := send(t, b.addr, request("http://"+host+routePath, host)); got < 500 {
					t.Errorf("http://%s: status %d: %s", host, got, body)
				}
				if answer := b.insideTunnel(host, request(routePath, host)); strings.HasPrefix(answer, "HTTP/1.1 2") {
					t.Errorf("a tunnel to %s: %s", host, answer)
				}
			}
			b.unaffected(v)
		})
	}
}

// insideTunnel is what comes back through a CONNECT tunnel, which may be refused.
func (b *testProxy) insideTunnel(addr, words string) string {
	b.tb.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	_, _ = io.WriteString(conn, "CONNECT "+addr+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Sprint(res, err)
	}
	_, _ = io.WriteString(conn, words)
	line, err := r.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	return line
}

// TestNoControlWithoutAHook: without a token there are no control endpoints, and
// a reverse listener passes such requests on to its origin.
func TestNoControlWithoutAHook(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the origin's "+r.URL.Path)
	}))
	defer origin.Close()
	u, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t)
	for name, fields := range map[string]string{"no token": "", "an empty token": tokenHeader + ":\r\n", "a token": tokenHeader + ": " + controlToken + "\r\n"} {
		for _, path := range []string{redirectPath, routePath, reachPath} {
			request := func(host string) string {
				return controlRequest("POST", path, host, fields, fmt.Sprintf(`{"port":40000,"to":%q}`, v.addr))
			}
			b := newTestProxy(t, nil, func(o *Options) { o.ControlToken = "" })
			if got, body := send(t, b.addr, request(b.addr)); got != 400 || body != infoText+"\n" {
				t.Errorf("%s, %s: status %d, %s", path, name, got, body)
			}
			b.unaffected(v)

			r := newTestProxy(t, nil, func(o *Options) { o.ControlToken, o.Reverse = "", u })
			if got, body := send(t, r.addr, request(r.addr)); got != 200 || body != "the origin's "+path {
				t.Errorf("reverse, %s, %s: status %d, %s", path, name, got, body)
			}
			r.unaffected(v)
		}
	}
	if _, err := New(Options{CA: newTestProxy(t, nil, nil).ca, Store: unrecorded{}, ControlToken: "short"}); err == nil {
		t.Error("a token that can be guessed is taken")
	}
}

type unrecorded struct{}

func (unrecorded) Begin(captures.Exchange) (captures.Recording, error) {
	return nil, errors.New("none")
}

// TestControlIsOnOneListener: a further reverse listener has no control
// endpoints, the main one has, also where it stands in front of an origin.
func TestControlIsOnOneListener(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the origin's "+r.URL.Path)
	}))
	defer origin.Close()
	u, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := newTestProxy(t, nil, func(o *Options) { o.Reverse = u })
	also, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.proxy.ServeReverse(also, u) }()
	token := tokenHeader + ": " + controlToken + "\r\n"
	if got, body := send(t, also.Addr().String(), controlRequest("POST", routePath, also.Addr().String(), token, `{"port":1,"to":"a:1"}`)); got != 200 || body != "the origin's "+routePath {
		t.Errorf("the further listener: status %d, %s", got, body)
	}
	b.unaffected(newVictim(t))
	if got, _ := send(t, b.addr, controlRequest("POST", routePath, b.addr, "", `{"port":1,"to":"a:1"}`)); got != 403 {
		t.Errorf("the main listener without the token: status %d", got)
	}
	if got, _ := send(t, b.addr, controlRequest("POST", routePath, b.addr, token, `{"port":1,"to":"a:1"}`)); got != 204 {
		t.Errorf("the main listener with the token: status %d", got)
	}
}
