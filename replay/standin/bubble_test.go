package standin

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// inBubble runs a test of times in a bubble, whose clock goes on only when everything waits. The client reaches the
// server through memory, because a bubble does not count as waiting while it waits for the network.
func inBubble(t *testing.T, o Options, test func(t *testing.T, s *Server, hc *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := &pipeListener{accept: make(chan net.Conn), closed: make(chan struct{})}
		s.setURL(l)
		serve(t, s, l)
		hc := httpClient(t, s, true)
		hc.Transport.(*http.Transport).DialContext = l.dial
		test(t, s, hc)
	})
}

// A pipeListener accepts connections that are pipes in memory.
type pipeListener struct {
	accept chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that the server's certificate is for.
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
