package access

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"unwire/mitm/process"
)

const reason = "this proxy is only for user alice (1000)"

// refusing is a server that refuses every connection.
func refusing(t *testing.T) string {
	t.Helper()
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
			go func() {
				var head [16]byte
				n, err := io.ReadFull(conn, head[:])
				if n == 0 {
					t.Errorf("no byte: %v", err)
					_ = conn.Close()
					return
				}
				Refuse(&again{conn.(*net.TCPConn), head[:n]}, head[:n], reason)
			}()
		}
	}()
	return ln.Addr().String()
}

// again is a connection of which some was read, to be read again.
type again struct {
	*net.TCPConn
	head []byte
}

func (a *again) Read(p []byte) (int, error) {
	if len(a.head) > 0 {
		n := copy(p, a.head)
		a.head = a.head[n:]
		return n, nil
	}
	return a.TCPConn.Read(p)
}

// TestRefuse has clients of each protocol refused, which say so.
func TestRefuse(t *testing.T) {
	t.Parallel()
	addr := refusing(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)

	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		// A body that is not read must not cost the answer.
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/", strings.NewReader(strings.Repeat("x", 300_000)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Transport{}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusForbidden || string(body) != "unwire: "+reason+"\n" {
			t.Errorf("%d %q: %v", res.StatusCode, body, err)
		}
	})
	t.Run("SOCKS", func(t *testing.T) {
		t.Parallel()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50----------")); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if len(answer) < 4 || answer[0] != 5 || answer[1] != 0 || answer[3] != 2 {
			t.Errorf("% x %v", answer, err)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		_, err := (&tls.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%v", err)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		framer := http2.NewFramer(conn, conn)
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		if f, err := framer.ReadFrame(); err != nil || f.Header().Type != http2.FrameSettings {
			t.Fatalf("%v %v", f, err)
		}
		f, err := framer.ReadFrame()
		away, ok := f.(*http2.GoAwayFrame)
		if !ok || !strings.Contains(string(away.DebugData()), reason) {
			t.Errorf("%v %v", f, err)
		}
	})
}

// TestOwn admits the user's own connections, and those of which nothing is known.
func TestOwn(t *testing.T) {
	t.Parallel()
	finder := process.NewFinder()
	defer finder.Close()
	g := &Guard{Finder: finder, Refused: func(u User) { t.Errorf("%v is refused", u) }}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, c := range []net.Conn{conn, a} {
		if text := g.Deny(c); text != "" {
			t.Error(text)
		}
	}
}

// TestUser reports each user once.
func TestUser(t *testing.T) {
	t.Parallel()
	var got []string
	g := &Guard{Refused: func(u User) { got = append(got, u.String()) }}
	for uid := range uint32(2 * maxReported) {
		for range 2 {
			g.report(User{UID: 1000 + uid})
		}
	}
	g.report(User{UID: 1, Name: "daemon"})
	if len(got) != maxReported || got[0] != "user 1000" {
		t.Errorf("%q", got)
	}
	if s := (User{UID: 1, Name: "daemon"}).String(); s != "user daemon (1)" {
		t.Error(s)
	}
}
