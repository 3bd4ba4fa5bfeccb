// Package access refuses other users of this machine. A client of the proxy reaches servers with the client
// certificates and the upstream proxy of the user who records, and appears in the capture.
//
//	guard := &access.Guard{Finder: finder}
//	if why := guard.Deny(conn); why != "" {
//		access.Refuse(conn, head, why)
//	}
//
// A Guard decides by the user who owns the socket at the other end. Refuse answers in the client's protocol.
//
// Limits: only on Linux can the user be determined; elsewhere, every user of this machine is admitted.
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
	// answerTimeout limits how long sending an error to a refused client may take.
	answerTimeout = 2 * time.Second

	// maxDrained limits how many bytes are read from a refused client before closing. If they were not read,
	// the client's system would discard the error message.
	maxDrained = 1 << 20

	// maxReported limits the number of refused users that are reported.
	maxReported = 16
)

// A Guard decides which local users may use the proxy.
type Guard struct {
	// Finder finds the user at the other end of a connection. Required.
	Finder *process.Finder

	// Share admits all users of the machine. Default: only the user who runs the proxy.
	Share bool

	// Refused, if set, is called for the first refused connection of each user.
	Refused func(User)

	// mu guards reported.
	mu sync.Mutex

	// reported is the set of ids of users for whom Refused was called; mu guards it.
	reported map[uint32]bool
}

// A User is a local user whose connection was refused.
type User struct {
	// UID is the user's numeric id.
	UID uint32
	// Name is "" if the system has no name for the user.
	Name string
}

// String returns the user's name and id, for messages.
func (u User) String() string {
	if u.Name == "" {
		return "user " + strconv.FormatUint(uint64(u.UID), 10)
	}
	return fmt.Sprintf("user %s (%d)", u.Name, u.UID)
}

// Deny returns the reason for refusing a connection, as a sentence for the client; "" admits it. Connections of
// the same user are admitted, and those of programs that this process has started, whichever user they run as.
func (g *Guard) Deny(conn net.Conn) string {
	if g.Share {
		return ""
	}
	uid, err := g.Finder.User(conn)
	switch {
	case errors.Is(err, process.ErrGone):
		return "the client closed the connection before unwire could determine its user"
	case err != nil, int64(uid) == int64(os.Geteuid()), g.Finder.IsDescendant(conn):
		return ""
	}

	// The reason names both users, so that the client's user knows whom to ask.
	u := userOf(uid)
	g.report(u)
	return fmt.Sprintf("this proxy is only for %s, who started it, and not for %s: 'unwire capture --share' admits other users of this machine", userOf(uint32(os.Geteuid())), u)
}

// report calls Refused for a user, once.
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

// userOf looks up the name of a user.
func userOf(uid uint32) User {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return User{UID: uid}
	}
	return User{UID: uid, Name: u.Username}
}

// Refuse sends a client an error in its own protocol (SOCKS, TLS or HTTP), and closes the connection. head are
// the first bytes that the client sent, at least one; conn returns them again. text is the reason, for HTTP.
//
// Source: RFC 1928, section 6; RFC 8446, section 6.2; RFC 9113, section 6.8
func Refuse(conn net.Conn, head []byte, text string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	text = "unwire: " + text + "\n"

	// Answer in the protocol that the client speaks.
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
	// tlsHandshake is the first byte that a TLS client sends, and prefaceHTTP2 the first bytes of an HTTP/2
	// client.
	tlsHandshake = 0x16
	prefaceHTTP2 = "PRI * HTTP/2.0"
)

// accessDenied is TLS's fatal alert access_denied.
var accessDenied = []byte{0x15, 3, 1, 0, 2, 2, 49}

// goAway returns the HTTP/2 frames that refuse a connection: an empty SETTINGS frame, and GOAWAY with the
// reason.
func goAway(text string) []byte {
	const settings, goaway, refusedStream = 4, 7, 7
	p := []byte{0, 0, 0, settings, 0, 0, 0, 0, 0}
	size := 8 + len(text)
	p = append(p, byte(size>>16), byte(size>>8), byte(size), goaway, 0, 0, 0, 0, 0)
	p = append(p, 0, 0, 0, 0, 0, 0, 0, refusedStream)
	return append(p, text...)
}
