// Package access keeps the other users of this machine out of the proxy. Whoever may use
// it reaches servers in the name of the user who records, with the client certificates and
// the upstream proxy that were given, and ends up in the capture.
//
// A Guard decides by the user of the socket at the other end of a connection; Refuse
// answers one that is refused in the protocol that its client speaks.
//
// Limits: on systems other than Linux, where the user cannot be told, everybody on this
// machine is admitted.
package access

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strconv"
	"sync"
	"time"

	"unwire/mitm/process"
	"unwire/mitm/socks"
)

const (
	// answerTime bounds the answer to a client that is refused.
	answerTime = 2 * time.Second

	// maxDrained is what is read from such a client, so that its system does not throw
	// the answer away.
	maxDrained = 1 << 20

	// maxReported bounds the users that are reported.
	maxReported = 16
)

// A Guard decides who may connect.
type Guard struct {
	// Finder is required.
	Finder *process.Finder

	// Share admits everybody.
	Share bool

	// Refused, if set, is called for the first connection of each user that is refused.
	Refused func(User)

	mu       sync.Mutex
	reported map[uint32]bool
}

// A User is somebody who was refused.
type User struct {
	UID  uint32
	Name string // "" if the system knows none
}

func (u User) String() string {
	if u.Name == "" {
		return "user " + strconv.FormatUint(uint64(u.UID), 10)
	}
	return fmt.Sprintf("user %s (%d)", u.Name, u.UID)
}

// Deny returns why a connection is refused, as a sentence for its client; "" if it is
// admitted: the user's own, and those of programs that this one has started, whoever they
// run as.
func (g *Guard) Deny(conn net.Conn) string {
	if g.Share {
		return ""
	}
	uid, err := g.Finder.User(conn)
	switch {
	case errors.Is(err, process.ErrGone):
		return "the client has closed the connection before its user was known"
	case err != nil, int64(uid) == int64(os.Geteuid()), g.Finder.IsDescendant(conn):
		return ""
	}
	u := userOf(uid)
	g.report(u)
	return fmt.Sprintf("this proxy is only for %s, who started it, and not for %s: 'unwire capture --share' admits other users of this machine", userOf(uint32(os.Geteuid())), u)
}

func (g *Guard) report(u User) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Refused == nil || g.reported[u.UID] || len(g.reported) >= maxReported {
		return
	}
	if g.reported == nil {
		g.reported = make(map[uint32]bool)
	}
	g.reported[u.UID] = true
	g.Refused(u)
}

func userOf(uid uint32) User {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return User{UID: uid}
	}
	return User{UID: uid, Name: u.Username}
}

// Refuse answers a client that is refused, and closes the connection. Head is what was
// read of it already, one byte or more, and is read again from conn.
//
// Source: RFC 1928, section 6; RFC 8446, section 6.2; RFC 9113, section 6.8
func Refuse(conn net.Conn, head []byte, text string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	text = "unwire: " + text + "\n"
	switch {
	case head[0] == socks.Version:
		if _, _, err := socks.Greet(conn); err != nil {
			return
		}
		_, _ = conn.Write(socks.Reply(socks.NotAllowed))
	case head[0] == tlsHandshake:
		_, _ = conn.Write(accessDenied)
	case string(head[:min(len(head), len(prefaceHTTP2))]) == prefaceHTTP2:
		_, _ = conn.Write(goAway(text))
	default:
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
	}
	if h, ok := conn.(interface{ CloseWrite() error }); ok && h.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, maxDrained))
	}
}

const (
	tlsHandshake = 0x16
	prefaceHTTP2 = "PRI * HTTP/2.0"
)

// accessDenied is a fatal alert of TLS, access_denied.
var accessDenied = []byte{0x15, 3, 1, 0, 2, 2, 49}

// goAway is HTTP/2's empty SETTINGS, and a GOAWAY that says why no stream is served.
func goAway(text string) []byte {
	const settings, goaway, refusedStream = 4, 7, 7
	p := []byte{0, 0, 0, settings, 0, 0, 0, 0, 0}
	size := 8 + len(text)
	p = append(p, byte(size>>16), byte(size>>8), byte(size), goaway, 0, 0, 0, 0, 0)
	p = append(p, 0, 0, 0, 0, 0, 0, 0, refusedStream)
	return append(p, text...)
}
