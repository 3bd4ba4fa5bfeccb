package mitm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"unwire/captures"
)

// CertificateRefused begins the error text of an exchange that stands for a
// connection whose client did not accept the proxy's certificate.
const CertificateRefused = "the client refused the certificate"

// silenceAfterHandshake is within what time a client that checks a certificate
// after the handshake hangs up.
const alertBadRecordMAC tls.AlertError = 20 // RFC 8446, section 6.2

const (
	silenceAfterHandshake = 5 * time.Second
	hushDelay             = time.Second
	maxHushed             = 1000
)

// refusal says how TLS with a client failed.
func refusal(err error, certFile string) string {
	if refuses(err) {
		return fmt.Sprintf("%s: %v: it may not trust %s, or expect one certain certificate", CertificateRefused, err, certFile)
	}
	return fmt.Sprintf("TLS with the client failed: %v", err)
}

// refuses reports whether a handshake failed because the client ended it: by an
// alert, by hanging up, or by an alert that OpenSSL sends in clear where TLS 1.3
// has keys already, which reads as a record that was tampered with.
func refuses(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		switch op.Op {
		case "remote error":
			return true
		case "local error":
			return op.Err.Error() == alertBadRecordMAC.Error()
		}
	}
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// watchSilence looks for clients that finish the handshake, look at the
// certificate then, and hang up without a word. An idle connection that was
// never used looks the same, so one counts only if no client sends a request to
// the server, before or shortly after.
func (p *Proxy) watchSilence(c *clientConn) {
	done, o := time.Now(), p.origins.get(c.target)
	hush := func() {
		if o.asked.Load() || time.Since(done) > silenceAfterHandshake {
			return
		}
		decide := sync.OnceFunc(func() {
			if !o.asked.Load() && p.enter() {
				defer p.leave()
				p.recordRefusal(c, CertificateRefused+", it seems: it closed the connection after the handshake and sent nothing: it may expect one certain certificate")
			}
		})
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.hushed) < maxHushed && !p.stopping {
			p.hushed = append(p.hushed, decide)
			time.AfterFunc(hushDelay, decide)
		}
	}
	c.onHush.Store(&hush)
}

// decideHushed decides what is still undecided when recording ends.
func (p *Proxy) decideHushed() {
	p.mu.Lock()
	left := p.hushed
	p.hushed = nil
	p.mu.Unlock()
	for _, decide := range left {
		decide()
	}
}

func (p *Proxy) recordRefusal(c *clientConn, text string) {
	url := "https://" + withPort(c.target.host(), portOf(c.target.addr))
	rec, err := p.opts.Store.Begin(captures.Exchange{
		Method: http.MethodConnect, URL: url, HTTP: "1.1", Started: time.Now(),
		Client: c.RemoteAddr().String(), Source: p.opts.Source,
	})
	if err != nil {
		p.log.Error("cannot record", "url", url, "err", err)
		return
	}
	rec.End(captures.Failed, text)
}
