// Package refusal describes clients that refuse the proxy's certificate: whether a failed handshake was a
// refusal, the reason, and the program. Package mitm uses it.
//
// A client refuses by a TLS alert, encrypted or not, or by closing the connection. A Log reports each program
// once per server.
package refusal

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"

	"unwire/captures"
)

// Prefix is the beginning of the error text of an exchange whose client refused the certificate.
const Prefix = "the client refused the certificate"

// Unused is the error text for a client that closes the connection after the handshake without using it.
const Unused = Prefix + ", it seems: it closed the connection after the handshake and sent nothing. It may accept only the server's own certificate"

// HungUp is the error text for a client that closes the connection during the handshake, although a client has used
// another connection to the same server before.
const HungUp = "the client closed the connection during the TLS handshake, perhaps because it no longer needed it"

// maxNoted limits the number of reported refusals, and of programs that are known to accept the certificate.
const maxNoted = 1000

// alertBadRecordMAC is the error of crypto/tls for a cleartext alert in TLS 1.3, as OpenSSL sends it.
//
// Source: RFC 8446, section 6.2
const alertBadRecordMAC tls.AlertError = 20

// protocolAlerts are TLS alerts about the protocol version or its parameters, which do not concern the
// certificate.
var protocolAlerts = []tls.AlertError{10, 47, 50, 70, 71, 86, 109, 110, 112, 115, 120}

// Describe returns a text about a failed TLS handshake with a client, and reports whether the client refused
// the proxy's certificate. certFile is the CA's file, for the text.
func Describe(err error, certFile string) (text string, refused bool) {
	reason, refused := classify(err)
	if !refused {
		return fmt.Sprintf("TLS with the client failed: %v", err), false
	}
	return fmt.Sprintf("%s: %s. The client may not trust %s, or it may accept only the server's own certificate", Prefix, reason, certFile), true
}

// IsHangUp reports whether a failed TLS handshake with a client only ended with the connection, without an alert that
// gives a reason.
func IsHangUp(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

// classify describes how a client ended a TLS handshake; refused is false if the certificate was not the cause.
func classify(err error) (reason string, refused bool) {
	const hungUp = "it closed the connection during the handshake"
	var op *net.OpError
	switch errors.As(err, &op); {
	case op == nil || op.Err == nil:
	case op.Op == "remote error":
		for _, alert := range protocolAlerts {
			if op.Err.Error() == alert.Error() {
				return "", false
			}
		}
		return fmt.Sprintf("it sent the alert %q", strings.TrimPrefix(op.Err.Error(), "tls: ")), true
	case op.Op == "local error" && op.Err.Error() == alertBadRecordMAC.Error():
		return "it ended the handshake with an alert in clear", true
	}
	return hungUp, IsHangUp(err)
}

// A Refusal says that a program refuses the proxy's certificate for a server.
type Refusal struct {
	// Process is the client program; zero if unknown.
	Process captures.Process
	// Host is the server's host:port.
	Host string
}

// A Log reports which client programs refused the proxy's certificate, each only once.
type Log struct {
	// Report, if not nil, is called once for each program and server.
	Report func(Refusal)

	// mu guards the fields below.
	mu sync.Mutex
	// reported is the set of refusals that were reported.
	reported map[program]bool
	// accepted is the set of programs that have completed a handshake with a server.
	accepted map[program]bool
	// unnamed is the number of completed handshakes, by the host:port of the server, whose program is not known yet.
	// hangUps are to be decided once they are known.
	unnamed map[string]int
	hangUps map[string][]Refusal
}

// A program is the name of a client program and the host:port of a server.
type program struct{ name, host string }

// programOf returns the program and the server of a refusal.
func programOf(r Refusal) program { return program{r.Process.Name, r.Host} }

// ExpectAccepted says that a client has completed a handshake with the server at host:port. NoteAccepted must be called
// once its program is known.
func (l *Log) ExpectAccepted(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unnamed == nil {
		l.unnamed, l.hangUps = make(map[string]int), make(map[string][]Refusal)
	}
	l.unnamed[host]++
}

// NoteAccepted notes which program has completed a handshake with the server, after ExpectAccepted.
func (l *Log) NoteAccepted(r Refusal) {
	for _, h := range l.noteAccepted(r) {
		l.AddHangUp(h)
	}
}

// noteAccepted implements NoteAccepted and returns the hang-ups that can be decided now.
func (l *Log) noteAccepted(r Refusal) (decided []Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted == nil {
		l.accepted = make(map[program]bool)
	}
	if len(l.accepted) < maxNoted {
		// A connection that was closed at once may have an unknown program.
		l.accepted[programOf(r)], l.accepted[program{host: r.Host}] = true, true
	}
	if l.unnamed[r.Host]--; l.unnamed[r.Host] > 0 {
		return nil
	}
	decided = l.hangUps[r.Host]
	delete(l.unnamed, r.Host)
	delete(l.hangUps, r.Host)
	return decided
}

// AddHangUp is like Add, for a client that closed the connection during the handshake without an alert. It reports
// nothing if the program has completed a handshake with the server before, also if that is known only later. If the program
// is unknown, a handshake of any program counts.
func (l *Log) AddHangUp(r Refusal) {
	l.mu.Lock()
	accepted, waits := l.accepted[programOf(r)], l.unnamed[r.Host] > 0
	if !accepted && waits && len(l.hangUps[r.Host]) < maxNoted {
		l.hangUps[r.Host] = append(l.hangUps[r.Host], r)
	}
	l.mu.Unlock()
	if !accepted && !waits {
		l.Add(r)
	}
}

// Add reports a refused certificate, unless the same refusal was reported before.
func (l *Log) Add(r Refusal) {
	key := programOf(r)
	l.mu.Lock()
	skip := l.Report == nil || l.reported[key] || len(l.reported) >= maxNoted
	if !skip {
		if l.reported == nil {
			l.reported = make(map[program]bool)
		}
		l.reported[key] = true
	}
	l.mu.Unlock()
	if !skip {
		l.Report(r)
	}
}
