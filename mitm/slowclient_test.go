package mitm

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSlowClientIsStillRecorded: silence at the start of a tunnel does not make
// its client's words unread.
func TestSlowClientIsStillRecorded(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	raw := b.tunnel(origin.Listener.Addr().String())
	time.Sleep(serverFirstDelay + 100*time.Millisecond)
	conn := b.handshake(raw, "127.0.0.1")
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	b.one()
}
