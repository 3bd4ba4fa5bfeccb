package mitm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/captures"
)

// redirectAddr asks the proxy for its redirect listener, as a launcher does.
func (b *bench) redirectAddr() string {
	b.tb.Helper()
	status, body := send(b.tb, b.addr, controlRequest(http.MethodGet, redirectPath, b.addr, tokenHeader+": "+controlToken+"\r\n", ""))
	var answer struct{ Addr string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		b.tb.Fatalf("%d %q", status, body)
	}
	return answer.Addr
}

func (b *bench) announce(body string) int {
	b.tb.Helper()
	status, _ := send(b.tb, b.addr, controlRequest(http.MethodPost, routePath, b.addr, tokenHeader+": "+controlToken+"\r\n", body))
	return status
}

func TestRedirectedConnections(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	b := newBench(t, []*httptest.Server{origin}, func(o *Options) {
		o.Reverse, _ = url.Parse(origin.URL) // which takes redirected connections too
	})
	addr := b.redirectAddr()
	if again := b.redirectAddr(); again != addr {
		t.Errorf("another listener: %s, then %s", addr, again)
	}
	to := origin.Listener.Addr().String()
	for i, delay := range []time.Duration{0, 100 * time.Millisecond} { // of the announcement
		raw, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		time.AfterFunc(delay, func() {
			if got := b.announce(fmt.Sprintf(`{"port":%d,"to":%q}`, raw.LocalAddr().(*net.TCPAddr).Port, to)); got != http.StatusNoContent {
				t.Errorf("announcing: status %d", got)
			}
		})
		conn := b.handshake(raw, "127.0.0.1", "http/1.1")
		_, _ = fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: %s\r\n\r\n", i, to)
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, ex := range b.recorded(2) {
		if ex.URL != fmt.Sprintf("https://%s/%d", to, i) || ex.Outcome != captures.Complete {
			t.Errorf("recorded %+v", ex)
		}
	}
}

// TestRedirectedToNowhere: the client sees a reset where it would have been
// refused.
func TestRedirectedToNowhere(t *testing.T) {
	b := newBench(t, nil, nil)
	raw, err := net.Dial("tcp", b.redirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	b.announce(fmt.Sprintf(`{"port":%d,"to":"127.0.0.1:1"}`, raw.LocalAddr().(*net.TCPAddr).Port))
	_, _ = raw.Write([]byte("\x00binary"))
	_ = raw.SetReadDeadline(time.Now().Add(matrixTimeout))
	if n, err := raw.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestBadRoutes(t *testing.T) {
	b := newBench(t, nil, nil)
	for _, body := range []string{"", "{", `{"port":1}`, `{"port":1,"to":"nowhere"}`, `{"port":1,"to":"` + strings.Repeat("a", maxControlBody) + `:1"}`} {
		if got := b.announce(body); got != http.StatusBadRequest {
			t.Errorf("%.30q: status %d", body, got)
		}
	}
}

// TestAskingCostsNoConnection: the connection that learned the server's
// protocol carries the first request.
func TestAskingCostsNoConnection(t *testing.T) {
	for _, offer := range [][]string{{"h2"}, {"http/1.1"}, {"h2", "http/1.1"}} {
		var conns atomic.Int32
		origin := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		origin.EnableHTTP2 = true
		origin.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				conns.Add(1)
			}
		}
		origin.StartTLS()
		defer origin.Close()
		origin.TLS.NextProtos = []string{"h2", "http/1.1"}
		b := newBench(t, []*httptest.Server{origin}, nil)
		c := b.client(offer[0] == "h2")
		c.Transport.(*http.Transport).TLSClientConfig.NextProtos = offer
		get(t, c, origin.URL)
		if n := conns.Load(); n != 1 {
			t.Errorf("offer %q: %d connections", offer, n)
		}
	}
}

// TestServerLosesHTTP2: what was learned of a server is learned anew when it
// turns out to be wrong.
func TestServerLosesHTTP2(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	b := newBench(t, []*httptest.Server{origin}, nil)
	o := b.proxy.origins.get(target{scheme: "https", addr: origin.Listener.Addr().String()})
	o.mu.Lock()
	o.negotiated["h2"] = "h2"
	o.mu.Unlock()
	origin.TLS.NextProtos = []string{"http/1.1"}
	if _, err := o.dialTLS(t.Context(), protoH2); err == nil {
		t.Fatal("no error")
	}
	if o.hasNegotiated(protoH2) {
		t.Error("still taken for HTTP/2")
	}
}
