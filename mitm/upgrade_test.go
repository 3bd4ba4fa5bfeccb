package mitm

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"unwire/captures"
)

func TestUpgrade(t *testing.T) {
	for _, secure := range []bool{false, true} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") != "chat" || r.Header.Get("Sec-Websocket-Key") != "k" {
				http.Error(w, "no upgrade", http.StatusBadRequest)
				return
			}
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nhello")
			_, _ = io.Copy(conn, buf)
		})
		var origin *httptest.Server
		if secure {
			origin = newTLSOrigin(t, false, handler)
		} else {
			origin = httptest.NewServer(handler)
			defer origin.Close()
		}
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		conn := b.tunnel(origin.Listener.Addr().String())
		if secure {
			conn = b.handshake(conn, "127.0.0.1")
		}
		// The first words come with the request.
		_, _ = io.WriteString(conn, "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: chat\r\nSec-Websocket-Key: k\r\n\r\nping1")
		r := bufio.NewReader(conn)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "chat" {
			t.Fatalf("%v, %v", res, err)
		}
		_, _ = io.WriteString(conn, "ping2")
		got := make([]byte, len("helloping1ping2"))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != "helloping1ping2" {
			t.Fatalf("%q, %v", got, err)
		}
		if h, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = h.CloseWrite()
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Errorf("end: %v", err)
		}
		ex := b.one()
		if ex.Status != 101 || ex.Outcome != captures.Complete || string(b.body(ex.ID, captures.Up)) != "ping1ping2" || string(b.body(ex.ID, captures.Down)) != "helloping1ping2" {
			t.Errorf("recorded %+v", ex)
		}
	}
}
