package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
)

// tickPause is the time between the messages of a killServer.
const tickPause = 5 * time.Millisecond

// A killServer sends messages by every transport, each with its number and the time.
type killServer struct {
	web        *httptest.Server // HTTP/1, HTTP/2, WebSocket
	tls, plain string           // addresses
}

func newKillServer(t *testing.T) *killServer {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		sent := 0
		tick(r.Context(), func(p []byte) error {
			_, err := w.Write(p)
			_ = http.NewResponseController(w).Flush()
			if sent++; r.URL.RawQuery == "few" && sent == 20 {
				return io.EOF
			}
			return err
		})
	})
	mux.HandleFunc("/websocket", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
		if err != nil {
			return
		}
		defer c.CloseNow()
		tick(c.CloseRead(r.Context()), func(p []byte) error { return c.Write(r.Context(), websocket.MessageText, p) })
	})
	s := &killServer{web: httptest.NewUnstartedServer(mux)}
	s.web.EnableHTTP2 = true
	s.web.StartTLS()
	s.web.TLS.NextProtos = []string{"h2", "http/1.1"}
	t.Cleanup(func() {
		s.web.CloseClientConnections()
		s.web.Close()
	})
	s.tls = tickOnConnections(t, &tls.Config{Certificates: s.web.TLS.Certificates})
	s.plain = tickOnConnections(t, nil)
	return s
}

// tick sends messages until one cannot be sent.
func tick(ctx context.Context, send func([]byte) error) {
	ticks := time.NewTicker(tickPause)
	defer ticks.Stop()
	for n := 0; ; n++ {
		if send(fmt.Appendf(nil, "data: %d %d\n\n", n, time.Now().UnixNano())) != nil {
			return
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

func tickOnConnections(t *testing.T, config *tls.Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if config != nil {
				conn = tls.Server(conn, config)
			}
			go func() {
				defer conn.Close()
				if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
					tick(context.Background(), func(p []byte) error { _, err := conn.Write(p); return err })
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// A killClient has a stream of each transport through a recorder.
type killClient struct {
	proxy *url.URL
	roots *x509.CertPool
}

// transports are the streams: each one reads until its end, after it has called begun.
func (c killClient) transports(ctx context.Context, s *killServer) map[string]func(begun func()) error {
	get := func(h2 bool) func(func()) error {
		return func(begun func()) error {
			req, err := http.NewRequestWithContext(ctx, "GET", s.web.URL+"/events", nil)
			if err != nil {
				return err
			}
			res, err := c.http(h2).Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			return readOn(res.Body, begun)
		}
	}
	socket := func(mode websocket.CompressionMode) func(func()) error {
		return func(begun func()) error {
			conn, _, err := websocket.Dial(ctx, fmt.Sprint(s.web.URL, "/websocket?", mode != websocket.CompressionDisabled), &websocket.DialOptions{HTTPClient: c.http(false), CompressionMode: mode})
			if err != nil {
				return err
			}
			defer conn.CloseNow()
			for {
				if _, _, err := conn.Read(ctx); err != nil {
					return nil
				}
				begun()
			}
		}
	}
	raw := func(addr string, secure bool) func(func()) error {
		return func(begun func()) error {
			conn, err := c.tunnel(ctx, addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if secure {
				conn = tls.Client(conn, &tls.Config{RootCAs: c.roots, ServerName: "127.0.0.1"})
			}
			if _, err := io.WriteString(conn, "\x00go\n"); err != nil {
				return err
			}
			return readOn(conn, begun)
		}
	}
	return map[string]func(func()) error{
		"HTTP/1": get(false), "HTTP/2": get(true), "WebSocket": socket(websocket.CompressionDisabled),
		"WebSocket, compressed": socket(websocket.CompressionContextTakeover), "TLS": raw(s.tls, true), "TCP": raw(s.plain, false),
	}
}

func (c killClient) http(h2 bool) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(c.proxy), TLSClientConfig: &tls.Config{RootCAs: c.roots}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!h2)
	tr.Protocols.SetHTTP2(h2)
	return &http.Client{Transport: tr}
}

func (c killClient) tunnel(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.proxy.Host)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", addr)
	const answer = "HTTP/1.1 200 Connection established\r\n\r\n"
	if _, err := io.ReadFull(conn, make([]byte, len(answer))); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// readOn reads until the end, which the kill makes.
func readOn(r io.Reader, begun func()) error {
	buf := make([]byte, 4096)
	for {
		if n, err := r.Read(buf); n == 0 || err != nil {
			return nil
		}
		begun()
	}
}

// TestRecorderKilledAtAnyTime kills recorders at random times while streams of each
// transport pass. What was committed is in the capture, in its order, and the next recording
// to the file works. UNWIRE_LONG=1 kills 100.
func TestRecorderKilledAtAnyTime(t *testing.T) {
	curl := need.Curl(t)
	kills := 3
	if os.Getenv("UNWIRE_LONG") != "" {
		kills = 100
	}
	server := newKillServer(t)
	lost := make(map[string][]time.Duration)
	messages := 0
	for i := range kills {
		for name, list := range killRecorderAtRandom(t, server, curl) {
			late := list.lost
			messages += list.messages
			lost[name] = append(lost[name], late)
			if late > maxBehind {
				t.Errorf("kill %d, %s: what is recorded ends %v before the kill", i, name, late)
			}
		}
		if t.Failed() {
			return
		}
	}
	var all []time.Duration
	for name, list := range lost {
		median, _, most := quantiles(list)
		t.Logf("%-22s %d kills, lost %v (median), %v (most)", name, len(list), median, most)
		all = append(all, list...)
	}
	median, _, most := quantiles(all)
	t.Logf("%d kills of %d streams, %d messages; lost %v (median), %v (most)", kills, len(all), messages, median, most)
}

// A killedStream is what is recorded of a stream when its recorder is killed.
type killedStream struct {
	lost     time.Duration
	messages int
}

// killRecorderAtRandom kills one recorder, and returns how much earlier than that each of
// its streams ends in the capture.
func killRecorderAtRandom(t *testing.T, server *killServer, curl string) map[string]killedStream {
	t.Helper()
	dir := t.TempDir()
	file, upstream := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "upstream.pem")
	certificate := server.web.Certificate()
	if err := os.WriteFile(upstream, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "UNWIRE_CONFIG="+filepath.Join(dir, "config"))
	cmd := exec.Command(unwireCommand(t), "capture", "--json", "-o", file, "--upstream-ca", upstream)
	cmd.Env = environ
	events, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var listening struct{ Proxy, CA string }
	if err := json.NewDecoder(events).Decode(&listening); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(listening.CA)
	if err != nil {
		t.Fatal(err)
	}
	c := killClient{roots: x509.NewCertPool()}
	c.roots.AppendCertsFromPEM(authority)
	c.proxy, _ = url.Parse(listening.Proxy)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams := c.transports(ctx, server)
	began := make(map[string]time.Time)
	begun := make(chan string, len(streams))
	ended := make(chan error, len(streams))
	for name, run := range streams {
		first := true
		go func() {
			ended <- run(func() {
				if first {
					first = false
					begun <- name
				}
			})
		}()
	}
	for range streams {
		select {
		case name := <-begun:
			began[name] = time.Now()
		case err := <-ended:
			t.Fatalf("a stream ended: %v", err)
		}
	}
	time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for range streams {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}

	found := streamsIn(t, file, server)
	out := make(map[string]killedStream)
	for name, at := range began {
		out[name] = killedStream{lost: killed.Sub(at)} // if the kill came before the first commit
		if log := found[name]; log != nil && len(log.delays) > 0 {
			out[name] = killedStream{killed.Sub(log.last), len(log.delays)}
		}
	}

	next := exec.Command(unwireCommand(t), "capture", "-o", file, "--upstream-ca", upstream, "--", curl, "-sS", server.web.URL+"/events?few")
	next.Env = environ
	said, err := next.CombinedOutput()
	if err != nil {
		t.Fatalf("the next recording: %v: %s", err, said)
	}
	again := streamsIn(t, file, server)
	for name, log := range found {
		if len(again[name].delays) != len(log.delays) {
			t.Errorf("%s: %d messages, %d before the next recording", name, len(again[name].delays), len(log.delays))
		}
	}
	if again["next"] == nil || len(again["next"].delays) != 20 {
		t.Errorf("the next recording does not have its messages: %s", said)
	}
	return out
}

// streamsIn reads the messages of a capture by the streams' names.
func streamsIn(t *testing.T, file string, server *killServer) map[string]*tickLog {
	t.Helper()
	s, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := make(map[string]*tickLog)
	for ex, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		log := new(tickLog)
		for c, err := range s.Chunks(t.Context(), ex.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Dir == captures.Down {
				if name := nameOf(ex); c.Opcode.Kind() == captures.OpText && (c.Opcode&captures.OpCompressed != 0) != (name == "WebSocket, compressed") {
					t.Errorf("%s: opcode %#x", name, c.Opcode)
				}
				log.add(c, time.Now())
			}
		}
		name := nameOf(ex)
		if name == "" {
			continue
		}
		if out[name] != nil || len(log.wrong) > 0 {
			t.Errorf("%s: recorded twice, or %q", name, log.wrong)
		}
		if name != "next" && ex.Outcome == captures.Complete {
			t.Errorf("%s: complete, though its recorder was killed", name)
		}
		out[name] = log
	}
	return out
}

// nameOf is the stream that an exchange is; "": a handshake.
func nameOf(ex *captures.Exchange) string {
	switch {
	case ex.Transport == captures.WebSocket && strings.HasSuffix(ex.URL, "?true"):
		return "WebSocket, compressed"
	case ex.Transport == captures.WebSocket:
		return "WebSocket"
	case ex.Transport == captures.RawTLS:
		return "TLS"
	case ex.Transport == captures.RawTCP:
		return "TCP"
	case strings.Contains(ex.URL, "/websocket"):
		return ""
	case strings.HasPrefix(ex.RequestHeaders.Get("user-agent"), "curl"):
		return "next"
	case ex.HTTP == "2":
		return "HTTP/2"
	}
	return "HTTP/1"
}
