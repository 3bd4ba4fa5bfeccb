package raw

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSniff(t *testing.T) {
	for in, want := range map[string]Protocol{
		"":                                  Undecided,
		"\x16":                              TLS,
		"G":                                 Undecided,
		"GET /":                             Undecided,
		"GET / HTTP/1.1\r\n":                HTTP,
		"POST /a?b HTTP/1.0\n":              HTTP,
		"M-SEARCH * HTTP/1.1\r\n":           HTTP,
		"PRI * HTTP":                        Undecided,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":  HTTP,
		"SSH-2.0-x\r\n":                     Other,
		"EHLO a b\r\n":                      Other,
		"EHLO a HTTP/1.9\r\n":               Other,
		"GET " + strings.Repeat("a", 20000): Other,
		strings.Repeat("A", 30):             Other,
		" GET":                              Other,
		"GET key\r\n":                       Other, // Redis, inline
		"PUT\r\n":                           Other,
		"get key\r\n":                       Other, // memcached
		"GET / \r\n":                        Other,
		"PING\r\n":                          Other,
		"*1\r\n$4\r\nPING\r\n":              Other,
		"\x10\x0c\x00\x04MQTT":              Other,
		"\x00":                              Other,
	} {
		if got, _ := sniff([]byte(in)); got != want {
			t.Errorf("sniff(%.30q) = %d, want %d", in, got, want)
		}
	}
}

// A scriptedConn is a connection that says what it was given, and then nothing.
type scriptedConn struct {
	net.Conn
	r io.Reader
}

func (c scriptedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c scriptedConn) Write([]byte) (int, error) { return 0, errors.New("written to") }

func (c scriptedConn) SetDeadline(time.Time) error { return nil }

func (c scriptedConn) SetReadDeadline(time.Time) error { return nil }

func (c scriptedConn) Close() error { return nil }

// FuzzFirstBytes: whatever a client says first, it is read again in full, and
// nothing is answered before it is known what it is.
func FuzzFirstBytes(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Add(append([]byte{RecordTypeTLS}, bytes.Repeat([]byte("0"), 4000)...)) // given up before all is read
	var hello bytes.Buffer
	_ = tls.Client(writeOnly{w: &hello}, &tls.Config{ServerName: "api2.cursor.sh", NextProtos: []string{"h2"}}).Handshake()
	f.Add(hello.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 8<<10 {
			t.Skip("longer than any head that matters")
		}
		c := NewConn(scriptedConn{r: bytes.NewReader(in)}, nil)
		kind, _ := c.Sniff(time.Second)
		if kind == TLS {
			if h, err := c.ReadHello(t.Context()); err == nil && len(h.ServerName) > 1<<16 {
				t.Error("a server name of more than 64 KB")
			}
		}
		rest, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(rest, in) {
			t.Errorf("read again %q, %v, of %q", rest, err, in)
		}
	})
}

type writeOnly struct {
	net.Conn
	w io.Writer
}

func (c writeOnly) Write(p []byte) (int, error) { return c.w.Write(p) }

func (c writeOnly) Read([]byte) (int, error) { return 0, io.EOF }

func (c writeOnly) SetDeadline(time.Time) error { return nil }

func (c writeOnly) SetWriteDeadline(time.Time) error { return nil }

func (c writeOnly) SetReadDeadline(time.Time) error { return nil }

func (c writeOnly) Close() error { return nil }

// TestPauses: a client that pauses within what looks like a request is waited for; one
// that pauses after anything else is not.
func TestPauses(t *testing.T) {
	for head, wait := range map[string]time.Duration{
		"GE": slowRequest, "GET /": slowRequest, "POST ": slowRequest, "PRI * H": slowRequest, "CONNECT x:1": slowRequest,
		"JRMI": time.Second, "GET key": time.Second, "HELO ": time.Second, "": time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			client, conn := net.Pipe()
			defer client.Close()
			c := NewConn(conn, nil)
			if head != "" {
				go func() { _, _ = io.WriteString(client, head) }()
			}
			begun := time.Now()
			kind, err := c.Sniff(time.Second)
			want := Other
			if head == "" {
				want = Undecided
			}
			if took := time.Since(begun); err != nil || kind != want || took != wait || string(c.Peeked()) != head {
				t.Errorf("%q: %d after %v, %v, %q", head, kind, took, err, c.Peeked())
			}
		})
	}
}
