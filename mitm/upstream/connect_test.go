package upstream

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"
	"time"
)

// FuzzAnswer has proxies answer with bytes of any kind: a tunnel opens or does not, soon.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi"} {
		f.Add([]byte(answer), false)
	}
	f.Add([]byte("\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50hello"), true)
	f.Add([]byte("\x05\x00\x05\x02\x00\x03\x01a\x00\x50"), true)
	f.Fuzz(func(t *testing.T, answer []byte, socks bool) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, far) }()
			_, _ = far.Write(answer)
			far.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conn := &proxiedConn{Conn: near, proxy: "proxy"}
		var err error
		if socks {
			err = connectSOCKS(ctx, conn, &url.URL{Scheme: "socks5h", Host: "proxy:1"}, "host:443", "")
		} else {
			err = connectHTTP(conn, &url.URL{Scheme: "http", Host: "proxy:1"}, "host:443", "")
		}
		if ctx.Err() != nil {
			t.Fatal("it takes more than 10 s")
		}
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(conn)
		if len(rest) > len(answer) {
			t.Errorf("%d bytes through the tunnel, of %d", len(rest), len(answer))
		}
	})
}
