package mitm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
)

// redirectAddr asks the proxy for its redirect listener, as a launcher does.
func (b *testProxy) redirectAddr() string {
	b.tb.Helper()
	status, body := send(b.tb, b.addr, controlRequest(http.MethodGet, redirectPath, b.addr, tokenHeader+": "+controlToken+"\r\n", ""))
	var answer struct{ Addr string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		b.tb.Fatalf("%d %q", status, body)
	}
	return answer.Addr
}

func (b *testProxy) announce(body string) int {
	b.tb.Helper()
	status, _ := send(b.tb, b.addr, controlRequest(http.MethodPost, routePath, b.addr, tokenHeader+": "+controlToken+"\r\n", body))
	return status
}

func TestRedirectedConnections(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
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
	b := newTestProxy(t, nil, nil)
	raw, err := net.Dial("tcp", b.redirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	b.announce(fmt.Sprintf(`{"port":%d,"to":"127.0.0.1:1"}`, raw.LocalAddr().(*net.TCPAddr).Port))
	_, _ = raw.Write([]byte("\x00binary"))
	_ = raw.SetReadDeadline(time.Now().Add(matrixTimeout))
	if n, err := raw.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestBadRoutes(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	for _, body := range []string{"", "{", `{"port":1}`, `{"port":1,"to":"nowhere"}`, `{"port":1,"to":"` + strings.Repeat("a", maxControlBody) + `:1"}`} {
		if got := b.announce(body); got != http.StatusBadRequest {
			t.Errorf("%.30q: status %d", body, got)
		}
	}
}

// TestRouteOfAnotherAddress: a route is for 127.0.0.1, where hooks connect from;
// another address of loopback has the same ports.
func TestRouteOfAnotherAddress(t *testing.T) {
	b, v := newTestProxy(t, nil, nil), newVictim(t)
	redirect := b.redirectAddr()
	thief := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	raw, err := thief.Dial("tcp", redirect)
	if errors.Is(err, syscall.ECONNRESET) {
		return // it was refused before the dialer saw the connection
	}
	if err != nil {
		t.Skipf("127.0.0.2 is no address here: %v", err)
	}
	defer raw.Close()
	b.announce(fmt.Sprintf(`{"port":%d,"to":%q}`, raw.LocalAddr().(*net.TCPAddr).Port, v.addr))
	_ = raw.SetDeadline(time.Now().Add(matrixTimeout))
	_, _ = raw.Write([]byte("\x00binary"))
	if n, err := raw.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v", n, err)
	}
	if v.n.Load() != 0 {
		t.Error("it went to another's server")
	}
}
