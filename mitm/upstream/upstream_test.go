package upstream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"unwire/mitm/upstream"
)

// answering starts a proxy that reads a request for a tunnel, and sends its answer one
// byte at a time; nothing if that is "".
func answering(t *testing.T, answer string) *url.URL {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				for i := range len(answer) {
					if _, err := io.WriteString(c, answer[i:i+1]); err != nil {
						return
					}
				}
				if answer == "" || strings.HasSuffix(answer, "hello") {
					_, _ = io.Copy(c, c)
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", User: url.UserPassword("user", "made-up"), Host: ln.Addr().String()}
}

func dialer() *upstream.Dialer {
	return &upstream.Dialer{Direct: new(net.Dialer).DialContext}
}

// TestServerSpeaksFirst: what comes behind the proxy's answer is the server's.
func TestServerSpeaksFirst(t *testing.T) {
	for range 20 {
		proxy := answering(t, "HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\nhello")
		conn, err := dialer().Dial(t.Context(), proxy, "mail.example:25", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, " you"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("hello you"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello you" {
			t.Fatalf("%q, %v", got, err)
		}
		if got := upstream.ProxyOf(conn); got != "http://"+proxy.Host {
			t.Errorf("%q", got)
		}
	}
}

// TestAnswers: what is no tunnel is an error that says why.
func TestAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM\r\nProxy-Authenticate: Negotiate\r\n\r\n":     "requires NTLM, Negotiate authentication, but unwire supports only Basic (407",
		"HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM\r\nProxy-Authenticate: Basic realm=x\r\n\r\n": "rejected the user and password (407 Proxy Authentication Required): correct the user and password in the proxy's URL",
		"HTTP/1.1 403 secret words\r\n\r\n":                                                       "does not allow connections to h:1 (403 Forbidden)",
		"HTTP/1.1 504 x\r\n\r\n":                                                                  "could not connect to h:1 (504 Gateway Timeout)",
		"HTTP/1.1 418 x\r\n\r\n":                                                                  "answered CONNECT h:1 with 418 I'm a teapot",
		"HTTP/1.1 301 x\r\nLocation: http://other/\r\n\r\n":                                       "answered CONNECT h:1 with 301 Moved Permanently",
		"SSH-2.0-OpenSSH_9.2\r\n":                                                                 "does not answer like an HTTP proxy",
		"HTTP/1.1 200 x\r\nX: " + strings.Repeat("x", 70_000):                                     "does not answer like an HTTP proxy",
		"HTTP/1.1 200 x\r\nX: y":                                                                  "does not answer like an HTTP proxy",
	} {
		proxy := answering(t, answer)
		_, err := dialer().Dial(t.Context(), proxy, "h:1", "")
		var failed *upstream.Error
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "made-up") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v", answer, err)
		}
	}
}

// TestSilentProxy: one that does not answer is given up.
func TestSilentProxy(t *testing.T) {
	proxy := answering(t, "")
	for _, scheme := range []string{"http", "socks5h"} {
		proxy.Scheme = scheme
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := dialer().Dial(ctx, proxy, "h:1", "")
		if !errors.As(err, new(*upstream.Error)) || !strings.Contains(err.Error(), "upstream proxy "+scheme+"://127.0.0.1:") {
			t.Errorf("%v", err)
		}
	}
}
