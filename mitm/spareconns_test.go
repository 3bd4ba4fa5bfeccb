package mitm

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

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
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		c := b.client(offer[0] == "h2")
		c.Transport.(*http.Transport).TLSClientConfig.NextProtos = offer
		get(t, c, origin.URL)
		if n := conns.Load(); n != 1 {
			t.Errorf("offer %q: %d connections", offer, n)
		}
	}
}
