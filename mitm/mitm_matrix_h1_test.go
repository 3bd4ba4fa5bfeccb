package mitm

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A byteServer answers with the bytes that it got, in an odd head of its own. It is
// there in TLS and in clear.
type byteServer struct{ secure, clear string }

func newByteServer(t *testing.T, identity *httptest.Server) byteServer {
	t.Helper()
	listen := func(config *tls.Config) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				if config != nil {
					conn = tls.Server(conn, config)
				}
				go serveBytes(conn)
			}
		}()
		return ln.Addr().String()
	}
	return byteServer{secure: listen(&tls.Config{Certificates: identity.TLS.Certificates, NextProtos: []string{protoH1}}), clear: listen(nil)}
}

// serveBytes answers when a head has come, and the rest of the request where the path
// says so.
func serveBytes(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	var got []byte
	upTo := func(end string) bool {
		buf := make([]byte, 4096)
		for !bytes.Contains(got, []byte(end)) {
			n, err := conn.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				return false
			}
		}
		return true
	}
	if !upTo("\r\n\r\n") {
		return
	}
	head := string(got)
	switch {
	case strings.Contains(head, "/early"):
		_, _ = io.WriteString(conn, "HTTP/1.1 403 Not You\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly")
		upTo("end of the upload")
	case strings.Contains(head, "/until-close"):
		_, _ = fmt.Fprintf(conn, "HTTP/1.0 200 oK \r\nServer:  odd\r\n\r\n%q", got)
	case strings.Contains(head, "/chunks"):
		upTo("0\r\nx-Up: 1\r\nX-UP: 2\r\n\r\n")
		text := fmt.Sprintf("%q", got)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nconnection: Close\r\n\r\n%04X;ext=1\r\n%s\r\n0\r\nx-Down: 1\r\nX-DOWN: 2\r\n\r\n", len(text), text)
	default:
		text := fmt.Sprintf("%q", got)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 299 Fine by Me\r\nzulu: 1\r\nALPHA:2\r\nx-Odd:  3 \r\nX-ODD: 4\r\nconnection: Close\r\nset-COOKIE: a\r\nSet-Cookie: b\r\nContent-length: %d\r\n\r\n%s", len(text), text)
	}
	if c, ok := conn.(halfCloserOnce); ok {
		_ = c.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn)
}

// byteChecks compare every byte that the server and the client see.
func byteChecks(t *testing.T, identity *httptest.Server) []check {
	s := newByteServer(t, identity)
	var out []check
	for _, c := range []struct {
		name, want, words string
		direct            bool
	}{
		{name: "HTTP/1.0", want: `GET /a HTTP/1.0`, words: "GET /a HTTP/1.0\r\nHost: HOST\r\nconnection: Keep-Alive\r\n\r\n"},
		{name: "HTTP/1.0, answer", want: "HTTP/1.0 200 oK \r\nServer:  odd", words: "GET /until-close HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "OPTIONS *", want: `OPTIONS * HTTP/1.1`, words: "OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "absolute target", want: `GET http://HOST/a?b HTTP/1.1`, words: "GET http://HOST/a?b HTTP/1.1\r\nHost: HOST\r\n\r\n", direct: true},
		{name: "raw path", want: "/a|b/../%2F", words: "GET /a|b/../%2F//;\"<>[]{}?z=%zz&\xc3\xa4\xff HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "duplicate fields", want: `X: 1\r\nx: 1\r\nX: 2`, words: "GET / HTTP/1.1\r\nHost: HOST\r\nX: 1\r\nx: 1\r\nX: 2\r\nCookie: a\r\nCookie: b\r\n\r\n"},
		{name: "odd case and order", want: `zEBRA:1\r\nhost: HOST`, words: "GET / HTTP/1.1\r\nzEBRA:1\r\nhost: HOST\r\nACCEPT:  */* \r\nempty:\r\nTE: trailers\r\nKeep-Alive: 5\r\nacCept-encoding: br\r\n\r\n"},
		{name: "chunks with extensions", want: "x-Down: 1\r\nX-DOWN: 2", words: "POST /chunks HTTP/1.1\r\nHost: HOST\r\ntransfer-Encoding: CHUNKED\r\n\r\n0003;a=\"b\"\r\nabc\r\n000\r\nx-Up: 1\r\nX-UP: 2\r\n\r\n"},
		{name: "early answer", want: "403 Not You", words: "POST /early HTTP/1.1\r\nHost: HOST\r\nContent-Length: 30\r\n\r\nthe "},
	} {
		out = append(out, check{client: "bytes", name: c.name, want: c.want, direct: c.direct, run: func(t *testing.T, l *lane) string {
			return l.sendBytes(t, s.secure, c.words)
		}})
	}
	return append(out,
		check{client: "bytes", name: "in clear, URL to the proxy", noUpstream: true, want: `GET /a?b HTTP/1.1\r\nhOst: HOST\r\nX: 1\r\nx: 2`, run: func(t *testing.T, l *lane) string {
			return l.sendClear(t, s.clear, "GET TARGET/a?b HTTP/1.1\r\nhOst: HOST\r\nX: 1\r\nx: 2\r\n\r\n")
		}},
		check{client: "bytes", name: "in clear, HTTP/1.0", noUpstream: true, want: `GET /a HTTP/1.0\r\nHost: HOST`, run: func(t *testing.T, l *lane) string {
			return l.sendClear(t, s.clear, "GET TARGET/a HTTP/1.0\r\nHost: HOST\r\nx: 2\r\n\r\n")
		}},
	)
}

// reverseOf returns the address of a reverse proxy before a server.
func (l *lane) reverseOf(t *testing.T, scheme, addr string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = l.bench.proxy.ServeReverse(ln, &url.URL{Scheme: scheme, Host: addr}) }()
	return ln.Addr().String()
}

// sendBytes writes words to a server in TLS, and returns all that comes back. For an
// early answer it waits for that before it ends the request.
func (l *lane) sendBytes(t *testing.T, addr, words string) string {
	conn, err := l.dialAs(t, "https", addr, protoH1)
	if err != nil {
		return inWords(err)
	}
	return talk(conn, addr, strings.ReplaceAll(words, "HOST", addr))
}

// sendClear is sendBytes for a server in clear.
func (l *lane) sendClear(t *testing.T, addr, words string) string {
	target := ""
	var conn net.Conn
	var err error
	switch {
	case l.reverse():
		conn, err = l.dialAs(t, "http", addr, protoH1)
	case l.proxied:
		target = "http://" + addr
		conn, err = net.Dial("tcp", l.bench.addr)
	default:
		conn, err = l.connect(t, addr)
	}
	if err != nil {
		return inWords(err)
	}
	return talk(conn, addr, strings.NewReplacer("HOST", addr, "TARGET", target).Replace(words))
}

func talk(conn net.Conn, addr, words string) string {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	if _, err := io.WriteString(conn, words); err != nil {
		return inWords(err)
	}
	var early []byte
	if strings.Contains(words, "/early") {
		for !bytes.HasSuffix(early, []byte("early")) {
			buf := make([]byte, 1024)
			n, err := conn.Read(buf)
			if early = append(early, buf[:n]...); err != nil {
				return inWords(err)
			}
		}
		_, _ = io.WriteString(conn, "rest and the end of the upload")
	}
	answer, err := io.ReadAll(conn)
	return strings.ReplaceAll(string(early)+string(answer), addr, "HOST") + " " + inWords(err)
}
