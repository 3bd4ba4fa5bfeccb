package mitm

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
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

// TestPortIsUsedAgain: a port whose connection has ended is free for the next
// one, in whatever order that, its route and the end of the old one are noticed.
func TestPortIsUsedAgain(t *testing.T) {
	r := newRouteTable()
	for i, next := range []func(old *routeSlot){
		func(old *routeSlot) { // the end is noticed first
			r.remove(1, old)
		},
		func(*routeSlot) {}, // the new connection
		func(old *routeSlot) { // the new route
			time.AfterFunc(10*time.Millisecond, func() { r.remove(1, old) })
			if err := r.announce(t.Context(), 1, "new:1"); err != nil {
				t.Error(err)
			}
		},
	} {
		old, err := r.connectSlot(1)
		if err != nil || r.announce(t.Context(), 1, "old:1") != nil || r.awaitRoute(old) != "old:1" {
			t.Fatal(i, err)
		}
		next(old)
		s, err := r.connectSlot(1)
		if err != nil || s == old {
			t.Fatal(i, err)
		}
		if i < 2 {
			if err := r.announce(t.Context(), 1, "new:1"); err != nil {
				t.Error(i, err)
			}
		}
		if got := r.awaitRoute(s); got != "new:1" {
			t.Errorf("%d: to %q", i, got)
		}
		r.remove(1, old) // which is late, and not the new one
		if r.slots[1] != s {
			t.Errorf("%d: the new connection was forgotten with the old one", i)
		}
		r.remove(1, s)
	}
	if len(r.slots) != 0 || r.waiting != 0 {
		t.Errorf("%d slots, %d wait", len(r.slots), r.waiting)
	}
}

// TestRoutesAreBounded: in number and in age, also those of connections; open
// connections with a route do not count.
func TestRoutesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouteTable()
		for port := range maxRoutes {
			if err := r.announce(t.Context(), port, "x:1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.announce(t.Context(), maxRoutes, "x:1"); !errors.Is(err, errRoutesFull) {
			t.Errorf("one more: %v", err)
		}
		if _, err := r.connectSlot(maxRoutes); !errors.Is(err, errRoutesFull) {
			t.Errorf("one more connection: %v", err)
		}
		open, err := r.connectSlot(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.connectSlot(maxRoutes); err != nil {
			t.Errorf("a connection with its route counts: %v", err)
		}
		time.Sleep(routeWait + time.Second)
		synctest.Wait()
		if len(r.slots) != 1 || r.slots[1] != open || r.waiting != 0 {
			t.Errorf("%d slots, %d wait", len(r.slots), r.waiting)
		}
		r.close()
		if err := r.announce(t.Context(), 2, "x:1"); !errors.Is(err, errRoutesClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}
