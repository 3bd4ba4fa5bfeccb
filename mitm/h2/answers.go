package h2

import (
	"io"
	"net"
	"time"
)

// Answers reports whether a server that a connection in clear goes to speaks HTTP/2: it
// answers to the preface with SETTINGS, within a time. The connection is of no use after
// that.
//
// Source: RFC 9113, sections 3.3 and 3.4
func Answers(conn net.Conn, timeout time.Duration) bool {
	_ = conn.SetDeadline(time.Now().Add(timeout))
	// No setting, so that all have their defaults.
	settings := [frameHeaderSize]byte{3: byte(frameSettings)}
	if _, err := conn.Write(append([]byte(clientPreface), settings[:]...)); err != nil {
		return false
	}
	var head [frameHeaderSize]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return false
	}
	// An answer of HTTP/1 begins with a letter.
	return head[0] == 0 && frameType(head[3]) == frameSettings
}
