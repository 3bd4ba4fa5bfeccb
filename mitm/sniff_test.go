package mitm

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestSlowClientIsStillRecorded: silence at the start of a tunnel does not make
// its client's words unread.
func TestSlowClientIsStillRecorded(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	raw := b.tunnel(origin.Listener.Addr().String())
	time.Sleep(silentClientDelay + 100*time.Millisecond)
	conn := b.handshake(raw, "127.0.0.1")
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	b.one()
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]protocol{
		"":                                  undecided,
		"\x16":                              protocolTLS,
		"G":                                 undecided,
		"GET /":                             undecided,
		"GET / HTTP/1.1\r\n":                protocolHTTP,
		"POST /a?b HTTP/1.0\n":              protocolHTTP,
		"M-SEARCH * HTTP/1.1\r\n":           protocolHTTP,
		"PRI * HTTP":                        undecided,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":  protocolHTTP,
		"SSH-2.0-x\r\n":                     protocolOther,
		"EHLO a b\r\n":                      protocolOther,
		"EHLO a HTTP/1.9\r\n":               protocolOther,
		"GET " + strings.Repeat("a", 20000): protocolOther,
		strings.Repeat("A", 30):             protocolOther,
		" GET":                              protocolOther,
		"\x00":                              protocolOther,
	} {
		if got := sniff([]byte(in)); got != want {
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
	f.Add(append([]byte{recordTypeTLS}, bytes.Repeat([]byte("0"), 4000)...)) // given up before all is read
	var hello bytes.Buffer
	_ = tls.Client(writeOnly{w: &hello}, &tls.Config{ServerName: "api2.cursor.sh", NextProtos: []string{"h2"}}).Handshake()
	f.Add(hello.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 8<<10 {
			t.Skip("longer than any head that matters")
		}
		c := &clientConn{Conn: scriptedConn{r: bytes.NewReader(in)}}
		kind, _ := c.sniffProtocol(time.Second)
		if kind == protocolTLS {
			if h, err := c.readHello(t.Context()); err == nil && len(h.sni) > 1<<16 {
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
