// Package refusal has what is said of clients that do not accept the proxy's certificate:
// whether the end of a handshake was that, why, and which program it was.
//
// A client refuses by an alert of TLS, in clear or encrypted, or by hanging up. A Log
// reports each program once for each server.
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

// Prefix begins the error text of an exchange that stands for a connection whose client
// did not accept the proxy's certificate.
const Prefix = "the client refused the certificate"

// Unused is the text for a client that closes the connection after the handshake.
const Unused = Prefix + ", it seems: it closed the connection after the handshake and sent nothing: it may expect one certain certificate"

// maxNoted bounds the programs and servers that are reported.
const maxNoted = 1000

// alertBadRecordMAC is what an alert in clear reads as where TLS 1.3 has keys already:
// OpenSSL sends one.
//
// Source: RFC 8446, section 6.2
const alertBadRecordMAC tls.AlertError = 20

// protocolAlerts are those of clients that could not agree on a protocol, whatever the
// certificate is.
var protocolAlerts = []tls.AlertError{10, 47, 50, 70, 71, 86, 109, 110, 112, 115, 120}

// Describe words how TLS with a client failed, and reports whether the client refused the
// certificate.
func Describe(err error, certFile string) (text string, refused bool) {
	reason, refused := reasonOf(err)
	if !refused {
		return fmt.Sprintf("TLS with the client failed: %v", err), false
	}
	return fmt.Sprintf("%s: %s: it may not trust %s, or expect one certain certificate", Prefix, reason, certFile), true
}

// reasonOf says how a client ended a handshake; refused is false if it did not.
func reasonOf(err error) (reason string, refused bool) {
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
	return hungUp, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// A Refusal is a program that does not accept the certificate for a server.
type Refusal struct {
	Process captures.Process // zero: unknown
	Host    string           // host:port
}

// A Log reports refusals. The zero value reports none.
type Log struct {
	// Report, if set, is called once for each program and server.
	Report func(Refusal)

	mu    sync.Mutex
	noted map[[2]string]bool
}

// Note reports a refusal, unless the same program has refused the server's certificate
// before.
func (l *Log) Note(r Refusal) {
	key := [2]string{r.Process.Name, r.Host}
	l.mu.Lock()
	skip := l.Report == nil || l.noted[key] || len(l.noted) >= maxNoted
	if !skip {
		if l.noted == nil {
			l.noted = make(map[[2]string]bool)
		}
		l.noted[key] = true
	}
	l.mu.Unlock()
	if !skip {
		l.Report(r)
	}
}
