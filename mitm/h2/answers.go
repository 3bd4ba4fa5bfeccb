package h2

import (
	"io"
	"net"
	"time"
)

// Answers reports whether a server without TLS supports HTTP/2: whether it answers the preface with SETTINGS
// within timeout. The connection cannot be used afterwards.
//
// Source: RFC 9113, sections 3.3 and 3.4
func Answers(conn net.Conn, timeout time.Duration) bool {
	_ = conn.SetDeadline(time.Now().Add(timeout))
	// An empty SETTINGS frame means default settings.
	settings := [frameHeaderSize]byte{3: byte(frameSettings)}
	if _, err := conn.Write(append([]byte(clientPreface), settings[:]...)); err != nil {
		return false
	}
	var head [frameHeaderSize]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return false
	}
	// An HTTP/1 response begins with a letter.
	return head[0] == 0 && frameType(head[3]) == frameSettings
}
