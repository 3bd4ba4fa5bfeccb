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
)

// testTimeout is how long a test waits for what should come at once.
const testTimeout = 30 * time.Second

// A record is a capture that the relays of a test record to.
type record struct {
	tb       testing.TB
	store    *captures.Store
	running  atomic.Int64 // exchanges
	stopping atomic.Bool
}

func newRecord(tb testing.TB) *record {
	tb.Helper()
	store, err := captures.Create(filepath.Join(tb.TempDir(), "test.uwc"), captures.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	r := &record{tb: tb, store: store}
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
func (r *record) config(client, server net.Conn) Config {
	return Config{
		Client: client, Server: server,
		Begin: r.begin, Enter: r.enter, Leave: func() { r.running.Add(-1) },
		Logger: slog.New(slog.DiscardHandler),
	}
}

func (r *record) enter() bool {
	if r.stopping.Load() {
		return false
	}
	r.running.Add(1)
	return true
}

func (r *record) begin(method, authority, path string, header captures.Headers) *captures.Recording {
	rec, err := r.store.Begin(captures.Exchange{
		Method: method, URL: "https://" + authority + path, HTTP: "2", RequestHeaders: header, Started: time.Now(),
	})
	if err != nil {
		r.tb.Error(err)
		return nil
	}
	return rec
}

// ended waits until there are n exchanges and all have ended, and returns them by ID.
func (r *record) ended(n int) []*captures.Exchange {
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

func (r *record) one() *captures.Exchange { r.tb.Helper(); return r.ended(1)[0] }

// body is what was recorded of a direction.
func (r *record) body(id int64, d captures.Direction) []byte {
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

// A talk is an HTTP/2 connection through a relay of which the test is both ends.
type talk struct {
	t              *testing.T
	record         *record
	relay          *Relay
	ended          chan struct{} // closed when the relay has
	client, server net.Conn
}

// newTalk connects a client to a server, and both have said their prefaces.
func newTalk(t *testing.T) *talk {
	t.Helper()
	k := beginTalk(t)
	k.says(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
	return k
}

// beginTalk is newTalk for a server that has said nothing yet.
func beginTalk(t *testing.T) *talk {
	t.Helper()
	client, fromClient := connectTLS(t)
	toServer, server := connectTLS(t)
	k := &talk{t: t, record: newRecord(t), ended: make(chan struct{}), client: client, server: server}
	hello := clientPreface + string(appendFrame(nil, frameSettings, 0, 0, []byte{0x0a, 0x0a, 1, 2, 3, 4}))
	_, _ = io.WriteString(k.client, hello)
	head, err := ReadPreface(fromClient, testTimeout)
	if err != nil {
		t.Fatal(err)
	}
	k.relay = New(k.record.config(fromClient, toServer))
	go func() {
		defer close(k.ended)
		k.relay.Run(context.Background(), head)
	}()
	t.Cleanup(func() {
		client.Close()
		server.Close()
		<-k.ended
	})
	k.hears(k.server, []byte(hello))
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

// says writes on one side, and expects to hear just that on the other.
func (k *talk) says(from net.Conn, p []byte) {
	k.t.Helper()
	if _, err := from.Write(p); err != nil {
		k.t.Fatal(err)
	}
	if from == k.client {
		k.hears(k.server, p)
	} else {
		k.hears(k.client, p)
	}
}

func (k *talk) hears(at net.Conn, want []byte) {
	k.t.Helper()
	got := make([]byte, len(want))
	_ = at.SetReadDeadline(time.Now().Add(testTimeout))
	if n, err := io.ReadFull(at, got); err != nil || !bytes.Equal(got, want) {
		k.t.Fatalf("heard %q, %v; want %q", got[:n], err, want)
	}
}

// stop has the relay refuse what begins from now on.
func (k *talk) stop() {
	k.record.stopping.Store(true)
	k.relay.Drain()
}

// wait waits until the relay has ended.
func (k *talk) wait() {
	k.t.Helper()
	select {
	case <-k.ended:
	case <-time.After(testTimeout):
		k.t.Error("the relay has not ended")
	}
}
