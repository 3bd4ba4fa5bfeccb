package h2

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/mitm/rewrite"
)

// testTimeout is how long a test waits for what should come at once.
const testTimeout = 30 * time.Second

// A testCapture is a capture that the relays of a test record to.
type testCapture struct {
	tb       testing.TB
	store    *store.Store
	running  atomic.Int64 // exchanges
	stopping atomic.Bool
}

func newTestCapture(tb testing.TB) *testCapture {
	tb.Helper()
	store, err := store.Create(filepath.Join(tb.TempDir(), "test.uwc"), store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	r := &testCapture{tb: tb, store: store}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Errorf("store: %v", err)
		}
		if n := r.running.Load(); n != 0 {
			tb.Errorf("%d exchanges were entered and not left", n)
		}
	})
	return r
}

// config is what a relay between two connections is made with.
func (r *testCapture) config(client, server net.Conn) Config {
	return Config{
		Client: client, Server: server,
		Begin: r.begin, Admit: r.enter, Release: func() { r.running.Add(-1) },
		Logger: slog.New(slog.DiscardHandler),
	}
}

func (r *testCapture) enter() bool {
	if r.stopping.Load() {
		return false
	}
	r.running.Add(1)
	return true
}

func (r *testCapture) begin(method, authority, path string, header captures.Headers) (captures.Recording, rewrite.Exchange) {
	rec, err := r.store.Begin(captures.Exchange{
		Method: method, URL: "https://" + authority + path, HTTP: "2", RequestHeaders: header, Started: time.Now(),
	})
	if err != nil {
		r.tb.Error(err)
		return nil, nil
	}
	return rec, nil
}

// rewriteWith makes a relay change its exchanges; exchange returns how, by the path of the request, or nil.
func (c *Config) rewriteWith(exchange func(path string) rewrite.Exchange) {
	begin := c.Begin
	c.Rewrites = true
	c.Begin = func(method, authority, path string, header captures.Headers) (captures.Recording, rewrite.Exchange) {
		rec, _ := begin(method, authority, path, header)
		return rec, exchange(path)
	}
}

// ended waits until there are n exchanges and all have ended, and returns them by ID.
func (r *testCapture) ended(n int) []*captures.Exchange {
	r.tb.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(5 * time.Millisecond) {
		if err := r.store.Flush(context.Background()); err != nil {
			r.tb.Fatal(err)
		}
		var all []*captures.Exchange
		ended := 0
		for ex, err := range r.store.Exchanges(context.Background()) {
			if err != nil {
				r.tb.Fatal(err)
			}
			all = append(all, ex)
			if ex.Ended() {
				ended++
			}
		}
		if ended == n && len(all) == n {
			slices.SortFunc(all, func(a, b *captures.Exchange) int { return int(a.ID - b.ID) })
			return all
		}
		if time.Now().After(deadline) {
			r.tb.Fatalf("recorded: %d exchanges, %d of them ended; want %d", len(all), ended, n)
		}
	}
}

func (r *testCapture) one() *captures.Exchange { r.tb.Helper(); return r.ended(1)[0] }

// body is what was recorded of a direction.
func (r *testCapture) body(id int64, d captures.Direction) []byte {
	r.tb.Helper()
	var out bytes.Buffer
	for c, err := range r.store.Chunks(context.Background(), id, 0) {
		if err != nil {
			r.tb.Fatal(err)
		}
		if c.Dir == d {
			out.Write(c.Data)
		}
	}
	return out.Bytes()
}

// A relayed connection is one of HTTP/2 whose two ends are the test.
type relayed struct {
	t              *testing.T
	capture        *testCapture
	relay          *Relay
	ended          chan struct{} // closed when the relay has
	client, server net.Conn
}

// newRelayed connects a client to a server, and both have sent their prefaces.
func newRelayed(t *testing.T) *relayed {
	t.Helper()
	k := newSilentServer(t)
	k.send(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
	return k
}

// newSilentServer is newRelayed for a server that has sent nothing yet.
func newSilentServer(t *testing.T, set ...func(*Config)) *relayed {
	t.Helper()
	client, fromClient := connectTLS(t)
	toServer, server := connectTLS(t)
	k := &relayed{t: t, capture: newTestCapture(t), ended: make(chan struct{}), client: client, server: server}
	hello := clientPreface + string(appendFrame(nil, frameSettings, 0, 0, []byte{0x0a, 0x0a, 1, 2, 3, 4}))
	_, _ = io.WriteString(k.client, hello)
	head, err := ReadPreface(fromClient, testTimeout)
	if err != nil {
		t.Fatal(err)
	}
	config := k.capture.config(fromClient, toServer)
	for _, f := range set {
		f(&config)
	}
	k.relay = New(config)
	go func() {
		defer close(k.ended)
		k.relay.Run(context.Background(), head)
	}()
	t.Cleanup(func() {
		client.Close()
		server.Close()
		<-k.ended
	})
	k.expect(k.server, []byte(hello))
	return k
}

// connectTLS returns both ends of a connection with TLS, each on a Conn.
func connectTLS(t *testing.T) (client, server net.Conn) {
	t.Helper()
	identity := httptest.NewTLSServer(http.NotFoundHandler())
	defer identity.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Server(&Conn{Conn: far}, &tls.Config{Certificates: identity.TLS.Certificates, NextProtos: []string{"h2"}})
	shaken := make(chan error, 1)
	go func() { shaken <- secure.Handshake() }()
	dialled := tls.Client(&Conn{Conn: near}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // both ends are the test's
	if err := dialled.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	return dialled, secure
}

// send writes on one side, and expects just that on the other.
func (k *relayed) send(from net.Conn, p []byte) {
	k.t.Helper()
	if _, err := from.Write(p); err != nil {
		k.t.Fatal(err)
	}
	if from == k.client {
		k.expect(k.server, p)
	} else {
		k.expect(k.client, p)
	}
}

func (k *relayed) expect(at net.Conn, want []byte) {
	k.t.Helper()
	got := make([]byte, len(want))
	_ = at.SetReadDeadline(time.Now().Add(testTimeout))
	if n, err := io.ReadFull(at, got); err != nil || !bytes.Equal(got, want) {
		k.t.Fatalf("heard %q, %v; want %q", got[:n], err, want)
	}
}

// stop has the relay refuse what begins from now on.
func (k *relayed) stop() {
	k.capture.stopping.Store(true)
	k.relay.Drain()
}

// wait waits until the relay has ended.
func (k *relayed) wait() {
	k.t.Helper()
	select {
	case <-k.ended:
	case <-time.After(testTimeout):
		k.t.Error("the relay has not ended")
	}
}
