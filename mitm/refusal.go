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

// Source: RFC 8446, section 6.2
const alertBadRecordMAC tls.AlertError = 20

const (
	// refusalWindow is how soon after the handshake a client that does not accept
	// the certificate hangs up.
	refusalWindow = 5 * time.Second

	// refusalDelay is how long another connection of a client has to send a request.
	refusalDelay = time.Second

	maxPendingRefusals = 1000
)

// refusalText words how TLS with a client failed.
func refusalText(err error, certFile string) string {
	if isRefusal(err) {
		return fmt.Sprintf("%s: %v: it may not trust %s, or expect one certain certificate", CertificateRefused, err, certFile)
	}
	return fmt.Sprintf("TLS with the client failed: %v", err)
}

// isRefusal reports whether a handshake failed because the client ended it: by an
// alert, by hanging up, or by an alert that OpenSSL sends in clear where TLS 1.3
// has keys already, which reads as a record that was tampered with.
func isRefusal(err error) bool {
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

// watchForRefusal looks for clients that finish the handshake, check the certificate
// then, and hang up without having sent anything. An idle connection that was never
// used looks the same, so one counts only if no client sends a request to the server,
// before or shortly after.
func (p *Proxy) watchForRefusal(c *clientConn) {
	done, o := time.Now(), p.origins.get(c.target)
	onClose := func() {
		if o.gotRequest.Load() || time.Since(done) > refusalWindow {
			return
		}
		decide := sync.OnceFunc(func() {
			if !o.gotRequest.Load() && p.admitExchange() {
				defer p.releaseExchange()
				p.recordRefusal(c, CertificateRefused+", it seems: it closed the connection after the handshake and sent nothing: it may expect one certain certificate")
			}
		})
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.pendingRefusals) < maxPendingRefusals && !p.stopping {
			p.pendingRefusals = append(p.pendingRefusals, decide)
			time.AfterFunc(refusalDelay, decide)
		}
	}
	c.onUnusedClose.Store(&onClose)
}

// decidePendingRefusals decides the refusals that are pending when recording ends.
func (p *Proxy) decidePendingRefusals() {
	p.mu.Lock()
	left := p.pendingRefusals
	p.pendingRefusals = nil
	p.mu.Unlock()
	for _, decide := range left {
		decide()
	}
}

func (p *Proxy) recordRefusal(c *clientConn, text string) {
	url := "https://" + withPort(c.target.host(), portOf(c.target.addr))
	rec, err := c.recorder.Begin(captures.Exchange{
		Method: http.MethodConnect, URL: url, HTTP: "1.1", Started: time.Now(),
		Client: c.RemoteAddr().String(), Source: p.opts.Source,
	})
	if err != nil {
		p.log.Error("cannot record", "url", url, "err", err)
		return
	}
	rec.End(captures.Failed, text)
}
