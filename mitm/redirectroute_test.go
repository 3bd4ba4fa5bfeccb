package mitm

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSecondRouteIsRefused: a connection goes where its first route says, before
// it has come and for as long as it is open; the second one is reported.
func TestSecondRouteIsRefused(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	conflicts := make(chan RouteConflict, 10)
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.RouteConflict = func(c RouteConflict) { conflicts <- c } })
	raw, err := net.Dial("tcp", b.redirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	port, to, v := raw.LocalAddr().(*net.TCPAddr).Port, origin.Listener.Addr().String(), newVictim(t)
	if got := b.announce(fmt.Sprintf(`{"port":%d,"to":%q}`, port, to)); got != http.StatusNoContent {
		t.Fatalf("the first route: status %d", got)
	}
	second := func() {
		t.Helper()
		if got := b.announce(fmt.Sprintf(`{"port":%d,"to":%q}`, port, v.addr)); got != http.StatusConflict {
			t.Errorf("the second route: status %d", got)
		}
		if c := <-conflicts; c != (RouteConflict{port, to, v.addr}) {
			t.Errorf("reported %+v", c)
		}
	}
	second()
	conn := b.handshake(raw, "127.0.0.1", "http/1.1")
	second()
	if got, body := sendOn(t, conn, "GET /a HTTP/1.1\r\nHost: "+to+"\r\n\r\n"); got != 200 || body != "hello /a" {
		t.Errorf("status %d: %s", got, body)
	}
	if v.n.Load() != 0 {
		t.Error("the second route was used")
	}
	if len(conflicts) != 0 {
		t.Errorf("reported besides: %+v", <-conflicts)
	}
}
