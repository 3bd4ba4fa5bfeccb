package refusal

import (
	"bytes"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// readConn is a connection that has only something to read.
type readConn struct {
	net.Conn
	r interface{ Read([]byte) (int, error) }
}

func (c readConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// TestClearAlert: an alert in clear is found between other records, however they are read.
func TestClearAlert(t *testing.T) {
	t.Parallel()
	unreadable := &net.OpError{Op: "local error", Err: tls.AlertError(20)}
	records := func(list ...string) []byte { return []byte(strings.Join(list, "")) }
	hello, cipher := "\x16\x03\x01\x00\x03abc", "\x14\x03\x03\x00\x01\x01"
	for _, c := range []struct {
		name string
		sent []byte
		want string
	}{
		{"unknown authority", records(hello, cipher, "\x15\x03\x03\x00\x02\x02\x30"), `it sent the alert "unknown certificate authority"`},
		{"alert in another record", records("\x16\x03\x01\x00\x07\x15\x03\x03\x00\x02\x02\x30", cipher), "an alert in clear"},
		{"encrypted alert", records(hello, "\x15\x03\x03\x00\x13", strings.Repeat("0", 19)), "an alert in clear"},
		{"cut alert", records(hello, "\x15\x03\x03\x00\x02\x02"), "an alert in clear"},
	} {
		h := &Handshake{Conn: readConn{r: iotest.OneByteReader(bytes.NewReader(c.sent))}}
		buf := make([]byte, 16)
		for {
			if _, err := h.Read(buf); err != nil {
				break
			}
		}
		text, refused := Describe(h.Explain(unreadable), "ca.pem")
		if !refused || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, %v", c.name, text, refused)
		}
	}
}
