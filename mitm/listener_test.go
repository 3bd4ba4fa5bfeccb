package mitm

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestServeReverse: each listener stands in front of its own origin.
func TestServeReverse(t *testing.T) {
	origins := []*httptest.Server{
		newTLSOrigin(t, true, http.HandlerFunc(serveHello)),
		newTLSOrigin(t, true, http.HandlerFunc(serveHello)),
	}
	first, err := url.Parse(origins[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	second, err := url.Parse(origins[1].URL)
	if err != nil {
		t.Fatal(err)
	}
	b := newTestProxy(t, origins, func(o *Options) { o.Reverse = first })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.proxy.ServeReverse(ln, second) }()
	t.Cleanup(func() {
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("ServeReverse: %v", err)
			}
		case <-time.After(matrixTimeout):
			t.Error("ServeReverse does not end")
		}
	})
	t.Cleanup(func() { _ = b.proxy.Shutdown(t.Context()) })
	get(t, newClient(t, false, nil, nil), "http://"+b.addr+"/first")
	get(t, newClient(t, false, nil, nil), "http://"+ln.Addr().String()+"/second")
	got := b.recorded(2)
	if got[0].URL != origins[0].URL+"/first" || got[1].URL != origins[1].URL+"/second" {
		t.Errorf("recorded %s, %s", got[0].URL, got[1].URL)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.proxy.ServeReverse(other, &url.URL{Scheme: "ftp", Host: "h"}); err == nil {
		t.Error("an origin that is none is served")
	}
}

// A redirectedListener listener's connections say that they were meant for elsewhere.
type redirectedListener struct {
	net.Listener
	to net.Addr
}

type redirectedConn struct {
	*net.TCPConn
	to net.Addr
}

func (c *redirectedConn) LocalAddr() net.Addr { return c.to }

func (m *redirectedListener) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &redirectedConn{c.(*net.TCPConn), m.to}, nil
}

// TestServeTransparent: a connection goes where its local address says; one to
// ::1 goes to 127.0.0.1 where nobody listens at ::1.
func TestServeTransparent(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(serveHello))
	t.Cleanup(plain.Close)
	port := plain.Listener.Addr().(*net.TCPAddr).Port
	b := newTestProxy(t, nil, nil)
	for _, ip := range []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.proxy.ServeTransparent(&redirectedListener{ln, &net.TCPAddr{IP: ip, Port: port}}, nil)
		}()
		if _, body := get(t, newClient(t, false, nil, nil), "http://"+ln.Addr().String()+"/meant"); string(body) != "hello /meant" {
			t.Errorf("%s: %q", ip, body)
		}
		_ = ln.Close()
		<-ended
	}
	b.recorded(2)

	// After Shutdown it returns at once.
	_ = b.proxy.Shutdown(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.ServeTransparent(ln, nil)
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}

// TestPortInUse: the caller's listener fails, and says which address.
func TestPortInUse(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	_, err := net.Listen("tcp", b.addr)
	if err == nil || !strings.Contains(err.Error(), b.addr) {
		t.Errorf("error %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := b.proxy.Serve(ln); err == nil || !strings.HasPrefix(err.Error(), "mitm: ") {
		t.Errorf("Serve on a closed listener: %v", err)
	}
}
