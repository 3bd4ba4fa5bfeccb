package mitm

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
)

// TestServerClosesInMidFrame: a frame of a stream is cut by the end of the
// server's connection, without a word.
func TestServerClosesInMidFrame(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		var origin *httptest.Server
		arrived := make(chan struct{}) // a reset takes what was not read yet with it
		origin = newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte{0, 0, 0, 0, 100, 'h', 'a', 'l', 'f'})
			flush(w)
			<-arrived
			go origin.CloseClientConnections()
			<-r.Context().Done()
		}))
		b := newBench(t, []*httptest.Server{origin}, nil)
		res, err := b.client(h2).Get(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, err = io.ReadFull(res.Body, make([]byte, 9))
		close(arrived)
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(res.Body); len(rest) != 0 || err == nil {
			t.Errorf("%d more bytes, %v", len(rest), err)
		}
		if ex := b.one(); ex.Outcome != captures.Reset || ex.BytesDown != 9 {
			t.Errorf("recorded %+v", ex)
		}
	})
}

// TestClientVanishes: its connection is reset while both sides talk.
func TestClientVanishes(t *testing.T) {
	left := make(chan struct{}, 2)
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		flush(w)
		<-r.Context().Done()
		left <- struct{}{}
	}))
	b := newBench(t, []*httptest.Server{origin}, nil)
	raw := b.tunnel(origin.Listener.Addr().String())
	conn := b.handshake(raw, "127.0.0.1", protoH1)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_ = raw.(*net.TCPConn).SetLinger(0)
	raw.Close()
	select {
	case <-left:
	case <-time.After(matrixTimeout):
		t.Error("the server was not told")
	}
	if ex := b.one(); ex.Outcome != captures.Canceled || ex.BytesDown != 5 {
		t.Errorf("recorded %+v", ex)
	}
}

// TestStopDuring50Streams: those that end in time are whole, the others are
// marked.
func TestStopDuring50Streams(t *testing.T) {
	const streams = 50
	stopping := make(chan struct{})
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		flush(w)
		<-stopping
		if n, _ := strconv.Atoi(r.URL.Query().Get("n")); n%2 == 0 {
			_, _ = io.WriteString(w, " and done")
			return
		}
		<-r.Context().Done()
	}))
	b := newBench(t, []*httptest.Server{origin}, nil)
	c := b.client(true)
	var begun, answered, ended sync.WaitGroup
	begun.Add(streams)
	answered.Add(streams / 2)
	for i := range streams {
		ended.Go(func() {
			res, err := c.Get(fmt.Sprintf("%s/?n=%d", origin.URL, i))
			if i%2 == 0 {
				defer answered.Done()
			}
			if err != nil {
				t.Error(err)
				begun.Done()
				return
			}
			defer res.Body.Close()
			_, _ = io.ReadFull(res.Body, make([]byte, 5))
			begun.Done()
			rest, err := io.ReadAll(res.Body)
			if whole := i%2 == 0; whole && (err != nil || string(rest) != " and done") || !whole && err == nil {
				t.Errorf("stream %d: %q, %v", i, rest, err)
			}
		})
	}
	begun.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- b.proxy.Shutdown(ctx) }()
	time.Sleep(100 * time.Millisecond)
	close(stopping)
	answered.Wait()
	if n := b.ended(streams / 2); n > streams/2 {
		t.Errorf("%d streams ended before the time was over", n)
	}
	select {
	case err := <-stopped:
		t.Errorf("Shutdown: %v, before the time was over", err)
	default:
	}
	cancel()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	ended.Wait()
	outcomes := make(map[captures.Outcome]int)
	for _, ex := range b.recorded(streams) {
		outcomes[ex.Outcome]++
	}
	if outcomes[captures.Complete] != streams/2 || outcomes[captures.Incomplete] != streams/2 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// TestTwoCapturesAtOnce: two proxies, one behind the other's back, and one
// through the other, each with all of it.
func TestTwoCapturesAtOnce(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	first := newBench(t, []*httptest.Server{origin}, nil)
	second := newBench(t, []*httptest.Server{origin}, nil)
	clients := []*http.Client{first.client(true), second.client(true)}
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for n := range 20 {
				res, err := c.Post(origin.URL, "", strings.NewReader(fmt.Sprint(i, n)))
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if string(body) != fmt.Sprint(i, n) {
					t.Errorf("capture %d: %q", i, body)
				}
			}
		})
	}
	wg.Wait()
	for i, b := range []*bench{first, second} {
		for n, ex := range b.recorded(20) {
			if got := string(b.body(ex.ID, captures.Down)); got != fmt.Sprint(i, n) {
				t.Errorf("capture %d, exchange %d: %q", i, n, got)
			}
		}
	}
}

// TestPinnedCertificates: clients that look for one certain certificate, during
// the handshake and after it.
func TestPinnedCertificates(t *testing.T) {
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	for name, pin := range map[string]func(b *bench, raw net.Conn){
		"during": func(b *bench, raw net.Conn) {
			conn := tls.Client(raw, &tls.Config{RootCAs: b.roots(), ServerName: "127.0.0.1", VerifyConnection: func(tls.ConnectionState) error { return errors.New("another one") }})
			if conn.Handshake() == nil {
				t.Error("the client took it")
			}
		},
		"after": func(b *bench, raw net.Conn) { b.handshake(raw, "127.0.0.1", protoH1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []*httptest.Server{origin}, nil)
			raw := b.tunnel(origin.Listener.Addr().String())
			pin(b, raw)
			raw.Close()
			if ex := b.one(); ex.Outcome != captures.Failed || !strings.HasPrefix(ex.Error, CertificateRefused) || ex.URL != origin.URL {
				t.Errorf("recorded %+v", ex)
			}
		})
	}
}

// TestOwnPortsByAnyName: the proxy does not connect to its own listeners,
// whatever they are called.
func TestOwnPortsByAnyName(t *testing.T) {
	b := newBench(t, nil, nil)
	redirect := b.redirectAddr()
	hosts := []string{"127.0.0.1", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "[::1]", "127.1", "2130706433"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, own := range []string{b.addr, redirect} {
		_, port, _ := net.SplitHostPort(own)
		for _, host := range hosts {
			req, _ := http.NewRequest("GET", "http://"+host+":"+port+"/", nil)
			res, err := b.client(false).Do(req)
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusBadGateway || strings.Contains(string(body), "recording proxy.") {
				t.Errorf("%s: %d %q", host, res.StatusCode, body)
			}
			if host == "127.0.0.1" && !strings.Contains(string(body), "the proxy itself") {
				t.Errorf("%s: %q", host, body)
			}
		}
	}
}

// TestKeyLog: the sessions of both sides are in it, and only if it is asked for.
func TestKeyLog(t *testing.T) {
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	var log lockedBuffer
	b := newBench(t, []*httptest.Server{origin}, func(o *Options) { o.KeyLog = &log })
	get(t, b.client(true), origin.URL)
	if n := strings.Count(log.String(), "CLIENT_TRAFFIC_SECRET_0 "); n != 2 {
		t.Errorf("%d sessions in the key log:\n%s", n, log.String())
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
