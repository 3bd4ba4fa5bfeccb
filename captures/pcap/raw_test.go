package pcap

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"unwire/captures"
)

// chunksOf returns an exchange's chunks: direction, milliseconds and bytes.
func chunksOf(t *testing.T, got *imported, id int64) (list []string) {
	t.Helper()
	for c, err := range got.store.Chunks(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %d %q", c.Dir, c.T.Milliseconds(), c.Data))
	}
	return list
}

// TestRawTCP records connections in clear that are not HTTP.
func TestRawTCP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []line
		want  []string
	}{
		{
			"server first",
			[]line{{captures.Down, "220 hi\r\n"}, {captures.Up, "EHLO me\r\n"}, {captures.Down, "250 ok\r\n"}, {captures.Up, "QUIT\r\n"}},
			[]string{`down 0 "220 hi\r\n"`, `up 1 "EHLO me\r\n"`, `down 2 "250 ok\r\n"`, `up 3 "QUIT\r\n"`},
		},
		{
			"binary",
			[]line{{captures.Up, "\x10\x0c\x00\x04MQTT"}, {captures.Down, "\x20\x02\x00\x00"}},
			[]string{`up 0 "\x10\f\x00\x04MQTT"`, `down 1 " \x02\x00\x00"`},
		},
		{
			"like a request",
			[]line{{captures.Up, "GET key"}, {captures.Up, "\r\n"}, {captures.Down, "VALUE"}},
			[]string{`up 0 "GET key"`, `up 1 "\r\n"`, `down 2 "VALUE"`},
		},
		{"only the server", []line{{captures.Down, "hi"}}, []string{`down 0 "hi"`}},
	} {
		list := conversation(t, c.lines...)
		for name, packets := range map[string][]rawPacket{"in order": list, "repeated": repeated(list)} {
			got := importFile(t, pcapng(t, linkEthernet, packets, nil), nil)
			if len(got.exchanges) != 1 || len(reasons(got.conns)) != 0 || got.conns[0].Protocol != "tcp" {
				t.Errorf("%s, %s: %d exchanges, %+v", c.name, name, len(got.exchanges), got.conns)
				continue
			}
			ex := got.exchanges[0]
			if ex.Transport != captures.RawTCP || ex.URL != "tcp://"+ex.Server || ex.Method != "" || ex.HTTP != "" || ex.Outcome != captures.Complete {
				t.Errorf("%s, %s: %+v", c.name, name, ex)
			}
			if chunks := chunksOf(t, got, ex.ID); !slices.Equal(chunks, c.want) {
				t.Errorf("%s, %s: chunks %q, want %q", c.name, name, chunks, c.want)
			}
		}
	}
}

// TestRawInTunnel: what is in a tunnel is named by where the tunnel leads to.
func TestRawInTunnel(t *testing.T) {
	t.Parallel()
	got := importFile(t, pcapng(t, linkEthernet, conversation(t,
		line{captures.Up, "CONNECT mail.example:25 HTTP/1.1\r\nHost: mail.example:25\r\n\r\n"}, line{captures.Down, "HTTP/1.1 200 OK\r\n\r\n"},
		line{captures.Down, "220 hi\r\n"}, line{captures.Up, "QUIT\r\n"}), nil), nil)
	if len(got.exchanges) != 1 || got.exchanges[0].URL != "tcp://mail.example:25" || got.exchanges[0].Outcome != captures.Complete {
		t.Errorf("%+v, %+v", got.exchanges, got.conns)
	}
}

// TestRawLoss: behind a loss the bytes go on, and the exchange says what is missing.
func TestRawLoss(t *testing.T) {
	t.Parallel()
	list := conversation(t, line{captures.Up, "\x00one"}, line{captures.Up, "two"}, line{captures.Up, "three"})
	at := slices.IndexFunc(list, func(p rawPacket) bool { return p.size == 3 })
	for name, c := range map[string]struct {
		packets []rawPacket
		want    string
	}{
		"a segment":                       {slices.Delete(slices.Clone(list), at, at+1), "loss: 3 bytes at offset 4 were not captured"},
		"the beginning, with handshake":   {list[at:], "the connection's beginning was not captured"},
		"the end":                         {list[:at+1], "the capture ends before the connection does"},
		"the beginning and the handshake": {list[3:], "the connection's beginning was not captured"},
	} {
		got := importFile(t, pcapng(t, linkEthernet, c.packets, nil), nil)
		if len(got.exchanges) != 1 || got.exchanges[0].Outcome != captures.Incomplete || got.exchanges[0].Error != c.want {
			t.Errorf("%s: %+v, %+v", name, got.exchanges, got.conns)
		}
	}
}

// TestRawTLS records TLS that is not HTTP, of a real server that speaks first or last.
func TestRawTLS(t *testing.T) {
	t.Parallel()
	pki := httptest.NewTLSServer(nil)
	defer pki.Close()
	for _, greeting := range []string{"", "220 secret mail\r\n"} {
		ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: pki.TLS.Certificates})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		go serveLines(ln, greeting)
		roots := x509.NewCertPool()
		roots.AddCert(pki.Certificate())
		p := new(tap)
		raw, err := p.dial(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(raw, p.clientTLS(&tls.Config{RootCAs: roots, ServerName: "example.com"}))
		lines := bufio.NewReader(c)
		want := ""
		if greeting != "" {
			got, err := lines.ReadString('\n')
			if err != nil || got != greeting {
				t.Fatalf("%q, %v", got, err)
			}
			want = greeting
		}
		for i := range 3 {
			if _, err := fmt.Fprintf(c, "NOOP %d\r\n", i); err != nil {
				t.Fatal(err)
			}
			got, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			want += got
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		got := importFile(t, pcapng(t, linkEthernet, p.packets(t, linkEthernet), p.keys.Bytes()), nil)
		if len(got.exchanges) != 1 || len(reasons(got.conns)) != 0 || got.conns[0].Protocol != "tls" {
			t.Fatalf("%d exchanges, %+v", len(got.exchanges), got.conns)
		}
		ex := got.exchanges[0]
		_, port, _ := net.SplitHostPort(ex.Server)
		if ex.Transport != captures.RawTLS || ex.URL != "tls://example.com:"+port || ex.TLS.Version != "1.3" || ex.Outcome != captures.Complete {
			t.Errorf("%+v", ex)
		}
		up, down := string(bodyOf(t, got.store, ex.ID, captures.Up)), string(bodyOf(t, got.store, ex.ID, captures.Down))
		if up != "NOOP 0\r\nNOOP 1\r\nNOOP 2\r\n" || down != want {
			t.Errorf("%q, %q, want %q", up, down, want)
		}
	}
}

// serveLines answers each line with itself, after a greeting.
func serveLines(ln net.Listener, greeting string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(c, greeting)
			_, _ = io.Copy(c, c)
		}()
	}
}
