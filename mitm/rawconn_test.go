package mitm

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
)

// A rawOrigin is a server that speaks no HTTP, in TLS or in clear.
type rawOrigin struct {
	addr string
	cert *x509.Certificate // nil in clear

	mu         sync.Mutex
	transports []captures.Transport // of what was recorded
}

// A transportLog notes the transports of what is recorded.
type transportLog struct {
	captures.Recorder
	to *rawOrigin
}

func (l *transportLog) Begin(ex captures.Exchange) (captures.Recording, error) {
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	l.to.transports = append(l.to.transports, ex.Transport)
	return l.Recorder.Begin(ex)
}

// newRawOrigin serves connections by a function. alpn are the protocols that it picks from.
func newRawOrigin(t testing.TB, secure bool, serve func(net.Conn), alpn ...string) *rawOrigin {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &rawOrigin{addr: ln.Addr().String()}
	if secure {
		s := newTLSOrigin(t, false, http.NotFoundHandler())
		o.cert = s.Certificate()
		ln = tls.NewListener(ln, &tls.Config{Certificates: s.TLS.Certificates, NextProtos: alpn})
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return o
}

// proxy starts a proxy that trusts the server.
func (o *rawOrigin) proxy(t *testing.T, set func(*Options)) *testProxy {
	return newTestProxy(t, nil, func(opts *Options) {
		if o.cert != nil {
			opts.UpstreamRoots.AddCert(o.cert)
		}
		opts.Store = &transportLog{Recorder: opts.Store, to: o}
		if set != nil {
			set(opts)
		}
	})
}

// dial connects directly if b is nil, else through the proxy.
func (o *rawOrigin) dial(t *testing.T, b *testProxy, alpn ...string) net.Conn {
	t.Helper()
	roots := x509.NewCertPool()
	var conn net.Conn
	if b != nil {
		conn, roots = b.tunnel(o.addr), b.roots()
	} else {
		var err error
		if conn, err = net.Dial("tcp", o.addr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	if o.cert == nil {
		return conn
	}
	if b == nil {
		roots.AddCert(o.cert)
	}
	c := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: alpn})
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// echo answers what it reads until that ends.
func echo(conn net.Conn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.(interface{ CloseWrite() error }).CloseWrite()
}

func greetAndEcho(greeting string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, greeting)
		echo(conn)
	}
}

// A rawCase is a conversation without HTTP.
type rawCase struct {
	serve    func(net.Conn)
	offer    []string // of the client, in TLS
	serves   []string // of the server
	talk     func(conn net.Conn) string
	up, down string
}

// exchangeWords writes words, half-closes, and returns what comes back.
func exchangeWords(words ...string) func(net.Conn) string {
	return func(conn net.Conn) string {
		for _, w := range words {
			_, _ = io.WriteString(conn, w)
			time.Sleep(5 * time.Millisecond)
		}
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		got, err := io.ReadAll(conn)
		return fmt.Sprintf("%q %v", got, err)
	}
}

// listenThen waits for a line of the server before it says something.
func listenThen(words string) func(net.Conn) string {
	return func(conn net.Conn) string {
		r := bufio.NewReader(conn)
		line, err := r.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		_, _ = io.WriteString(conn, words)
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		rest, err := io.ReadAll(r)
		return fmt.Sprintf("%q %q %v", line, rest, err)
	}
}

func rawCases() map[string]rawCase {
	const mqtt = "\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"
	slowly := func(words string) func(net.Conn) string {
		return exchangeWords(strings.Split(words, "")...)
	}
	return map[string]rawCase{
		"client first":          {serve: echo, talk: exchangeWords(mqtt, "more"), up: mqtt + "more", down: mqtt + "more"},
		"a byte at a time":      {serve: echo, talk: slowly(mqtt), up: mqtt, down: mqtt},
		"text, byte by byte":    {serve: echo, talk: slowly("EHLO me\r\n"), up: "EHLO me\r\n", down: "EHLO me\r\n"},
		"server first":          {serve: greetAndEcho("220 smtp\r\n"), talk: listenThen("EHLO x\r\n"), up: "EHLO x\r\n", down: "220 smtp\r\nEHLO x\r\n"},
		"Redis, inline":         {serve: echo, talk: exchangeWords("GET key\r\n"), up: "GET key\r\n", down: "GET key\r\n"},
		"PUT alone":             {serve: echo, talk: exchangeWords("PUT\r\n"), up: "PUT\r\n", down: "PUT\r\n"},
		"memcached":             {serve: echo, talk: exchangeWords("get key\r\n"), up: "get key\r\n", down: "get key\r\n"},
		"part of a request":     {serve: echo, talk: exchangeWords("GET / HT"), up: "GET / HT", down: "GET / HT"},
		"a method, then silent": {serve: echo, talk: pausesAfter("JRMI"), up: "JRMI\n", down: "JRMI\n"},
		"own ALPN":              {serve: echo, offer: []string{"mqtt", "x"}, serves: []string{"x", "mqtt"}, talk: exchangeWords("GET / HTTP/1.1\r\n\r\n"), up: "GET / HTTP/1.1\r\n\r\n", down: "GET / HTTP/1.1\r\n\r\n"},
		"ALPN of HTTP/1":        {serve: echo, offer: []string{"h2", "http/1.1"}, serves: []string{"http/1.1"}, talk: exchangeWords(mqtt), up: mqtt, down: mqtt},
		"ALPN of HTTP/2":        {serve: greetAndEcho("* OK imap\r\n"), offer: []string{"h2", "http/1.1"}, serves: []string{"h2"}, talk: listenThen("a LOGIN\r\n"), up: "a LOGIN\r\n", down: "* OK imap\r\na LOGIN\r\n"},
		"server ends first":     {serve: func(conn net.Conn) { _, _ = io.WriteString(conn, "bye\n") }, talk: listenThen(""), down: "bye\n"},
		"nobody says anything":  {serve: echo, talk: exchangeWords()},
	}
}

// pausesAfter says something that could be HTTP's beginning and waits for an answer.
func pausesAfter(words string) func(net.Conn) string {
	return func(conn net.Conn) string {
		_, _ = io.WriteString(conn, words)
		got := make([]byte, len(words))
		_, err := io.ReadFull(conn, got)
		return fmt.Sprintf("%q %v ", got, err) + exchangeWords("\n")(conn)
	}
}

// TestNoHTTP: what is not HTTP passes as it does without the proxy, and is recorded.
func TestNoHTTP(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		for name, c := range rawCases() {
			if !secure && c.offer != nil {
				continue
			}
			t.Run(fmt.Sprintf("TLS %v, %s", secure, name), func(t *testing.T) {
				t.Parallel()
				o := newRawOrigin(t, secure, c.serve, c.serves...)
				want := c.talk(o.dial(t, nil, c.offer...))
				b := o.proxy(t, nil)
				conn := o.dial(t, b, c.offer...)
				if got := c.talk(conn); got != want {
					t.Errorf("got %s, directly %s", got, want)
				}
				if c.up+c.down == "" {
					b.recorded(0)
					return
				}
				checkRaw(t, b, o, c)
			})
		}
	}
}

func checkRaw(t *testing.T, b *testProxy, o *rawOrigin, c rawCase) {
	t.Helper()
	ex := b.one()
	up, down := string(b.body(ex.ID, captures.Up)), string(b.body(ex.ID, captures.Down))
	if up != c.up || down != c.down {
		t.Errorf("recorded %q up, %q down", up, down)
	}
	want := captures.Exchange{Transport: captures.RawTCP, Outcome: captures.Complete}
	if o.cert != nil {
		want.Transport = captures.RawTLS
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.transports) != 1 || o.transports[0] != want.Transport || ex.URL != string(want.Transport)+"://"+o.addr || ex.Outcome != want.Outcome || ex.Server != o.addr ||
		ex.Method != "" || ex.HTTP != "" || ex.Error != "" || (ex.TLS.Version != "") != (o.cert != nil) {
		t.Errorf("recorded %+v", ex)
	}
}

// TestSilence: nothing is ever answered in a server's place, however long neither side
// says anything.
func TestSilence(t *testing.T) {
	t.Parallel()
	o := newRawOrigin(t, true, echo)
	b := o.proxy(t, nil)
	conn := o.dial(t, b)
	_ = conn.SetReadDeadline(time.Now().Add(3 * serverFirstDelay))
	var buf [100]byte
	if n, err := conn.Read(buf[:]); n > 0 || !isDeadline(err) {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	if got := exchangeWords("late")(conn); got != `"late" <nil>` {
		t.Errorf("got %s", got)
	}
	if ex := b.one(); string(b.body(ex.ID, captures.Up)) != "late" {
		t.Errorf("recorded %+v", ex)
	}
}

func isDeadline(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// TestNoHTTPIsLive: each byte passes, and is recorded, when it comes.
func TestNoHTTPIsLive(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		o := newRawOrigin(t, secure, echo)
		b := o.proxy(t, nil)
		conn := o.dial(t, b)
		for _, words := range []string{"\x00one", "two"} {
			_, _ = io.WriteString(conn, words)
			expectLine(t, conn, words)
		}
		b.await(1, func(all, ended int) bool {
			return all == 1 && ended == 0 && string(b.body(1, captures.Up)) == "\x00onetwo" && string(b.body(1, captures.Down)) == "\x00onetwo"
		})
	}
}

// TestResetsPass: a reset by one side is a reset at the other, and TLS that is cut off is
// cut off.
func TestResetsPass(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			// A reset discards what has not been read yet.
			reset, heard := make(chan error, 1), make(chan struct{})
			o := newRawOrigin(t, secure, func(conn net.Conn) {
				line, _ := bufio.NewReader(conn).ReadString('\n')
				_, _ = io.WriteString(conn, line)
				if line == "\x00reset me\n" {
					<-heard
					resetTCP(conn)
					return
				}
				_, err := conn.Read(make([]byte, 1))
				reset <- err
			})
			b := o.proxy(t, nil)
			conn := o.dial(t, b)
			_, _ = io.WriteString(conn, "\x00reset me\n")
			expectLine(t, conn, "\x00reset me\n")
			close(heard)
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the client sees %v", err)
			}
			conn = o.dial(t, b)
			_, _ = io.WriteString(conn, "\x00I go\n")
			expectLine(t, conn, "\x00I go\n")
			resetTCP(conn)
			if err := <-reset; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the server sees %v", err)
			}
			all := b.recorded(2)
			if all[0].Outcome != captures.Reset || all[1].Outcome != captures.Canceled || all[0].Error == "" {
				t.Errorf("recorded %+v and %+v", all[0], all[1])
			}
		})
	}
}

func resetTCP(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// TestTruncatedTLS: an end without close_notify has none on the other side either.
func TestTruncatedTLS(t *testing.T) {
	t.Parallel()
	ended := make(chan bool, 1)
	// The server is a TCP connection below TLS, to see its last record.
	cert := newTLSOrigin(t, false, http.NotFoundHandler())
	o := newRawOrigin(t, false, func(conn net.Conn) {
		below := &recordLog{Conn: conn}
		c := tls.Server(below, &tls.Config{Certificates: cert.TLS.Certificates, MaxVersion: tls.VersionTLS12})
		_, _ = io.Copy(io.Discard, c)
		ended <- below.endsInAlert()
	})
	o.cert = cert.Certificate()
	for _, clean := range []bool{true, false} {
		b := o.proxy(t, nil)
		conn := o.dial(t, b)
		_, _ = io.WriteString(conn, "\x00words")
		if clean {
			conn.Close()
		} else {
			conn.(*tls.Conn).NetConn().Close()
		}
		if got := <-ended; got != clean {
			t.Errorf("close_notify %v: the server got it: %v", clean, got)
		}
		if ex := b.one(); ex.Outcome != captures.Complete {
			t.Errorf("recorded %+v", ex)
		}
	}
}

// A recordLog keeps the records of TLS that are read.
type recordLog struct {
	net.Conn
	all []byte
}

func (c *recordLog) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.all = append(c.all, p[:n]...)
	return n, err
}

// endsInAlert reports whether the last record is an alert.
func (c *recordLog) endsInAlert() bool {
	last := byte(0)
	for p := c.all; len(p) >= 5; {
		last = p[0]
		p = p[min(len(p), 5+int(p[3])<<8+int(p[4])):]
	}
	return last == 21
}

// TestHostsWithoutRecord: what is not to be recorded is not, whatever it is.
func TestHostsWithoutRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secure bool
		set    func(*Options)
	}{
		"skipped":     {false, func(o *Options) { o.Skip = []string{"127.*"} }},
		"not only":    {false, func(o *Options) { o.Only = []string{"example.org"} }},
		"only a path": {false, func(o *Options) { o.Only = []string{"127.0.0.1/api*"} }},
		"TLS, a path": {true, func(o *Options) { o.Only = []string{"127.0.0.1/api*"} }},
	} {
		t.Run(name, func(t *testing.T) {
			o := newRawOrigin(t, c.secure, greetAndEcho("hello\n"))
			b := o.proxy(t, c.set)
			if got := listenThen("\x00x")(o.dial(t, b)); got != `"hello\n" "\x00x" <nil>` {
				t.Errorf("got %s", got)
			}
			b.recorded(0)
		})
	}
}

// TestServerNotReached: the client of a server that is not there is reset, which is
// recorded with the reason.
func TestServerNotReached(t *testing.T) {
	t.Parallel()
	b := newTestProxy(t, nil, nil)
	conn := b.tunnel(nobody)
	_, _ = io.WriteString(conn, "\x00hello")
	if got, err := io.ReadAll(conn); len(got) > 0 || err == nil {
		t.Errorf("the client got %q, %v", got, err)
	}
	if ex := b.one(); ex.URL != "tcp://"+nobody || ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "refused") {
		t.Errorf("recorded %+v", ex)
	}

	untrusted := newRawOrigin(t, true, echo, "mqtt")
	b = newTestProxy(t, nil, nil)
	conn = untrusted.dial(t, b, "mqtt")
	if got, err := io.ReadAll(conn); len(got) > 0 || err == nil {
		t.Errorf("the client got %q, %v", got, err)
	}
	if ex := b.one(); ex.URL != "tls://"+untrusted.addr || ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "not trusted") {
		t.Errorf("recorded %+v", ex)
	}
}

// TestOpenConnectionsEnd: the end of the recording does not wait for a connection that is
// silent, and waits for one that is not.
func TestOpenConnectionsEnd(t *testing.T) {
	t.Parallel()
	o := newRawOrigin(t, true, echo)
	b := o.proxy(t, nil)
	conn := o.dial(t, b)
	_, _ = io.WriteString(conn, "\x00x")
	expectLine(t, conn, "\x00x")
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	if err := b.proxy.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if ex := b.one(); ex.Outcome != captures.Incomplete || ex.Error != errRecordingStopped.Error() {
		t.Errorf("recorded %+v", ex)
	}
}

// TestSilentClientOfHTTP: the connection that was opened to find out whether the server
// speaks first serves the client's request.
func TestSilentClientOfHTTP(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{false, true} {
		accepted := make(chan net.Conn, 10)
		origin := httptest.NewUnstartedServer(http.HandlerFunc(serveHello))
		origin.EnableHTTP2 = true
		origin.Config.ConnState = func(c net.Conn, s http.ConnState) {
			if s == http.StateNew {
				accepted <- c
			}
		}
		origin.StartTLS()
		t.Cleanup(origin.Close)
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		tr := b.client(h2).Transport.(*http.Transport)
		tr.Proxy = nil
		tr.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn := b.handshake(b.tunnel(addr), "127.0.0.1", map[bool]string{true: protoH2, false: protoH1}[h2])
			time.Sleep(2 * serverFirstDelay)
			return conn, nil
		}
		u, _ := url.Parse(origin.URL)
		if _, body := get(t, &http.Client{Transport: tr}, "https://"+u.Host+"/a"); string(body) != "hello /a" {
			t.Errorf("got %q", body)
		}
		if n := len(accepted); n != 1 {
			t.Errorf("HTTP/2 %v: %d connections to the server", h2, n)
		}
		b.one()
	}
}

func BenchmarkNoHTTP(b *testing.B) {
	for _, size := range []int{64, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			o := newRawOrigin(b, false, echo)
			p := newTestProxy(b, nil, nil)
			conn := p.tunnel(o.addr)
			out, in := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(2 * size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(out); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
