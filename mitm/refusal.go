package mitm

import (
	"net/http"
	"sync"
	"time"

	"unwire/captures"
	"unwire/mitm/refusal"
)

const (
	// refusalWindow is how soon after the handshake a client that does not accept
	// the certificate hangs up.
	refusalWindow = 5 * time.Second

	// refusalDelay is how long another connection of a client has to send a request.
	refusalDelay = time.Second

	maxPendingRefusals = 1000
)

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
				p.recordRefusal(c, refusal.Unused, true)
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

// recordRefusal records that TLS with a client failed, and reports the program if it
// refused the certificate.
func (p *Proxy) recordRefusal(c *clientConn, text string, refused bool) {
	host := c.target.shown()
	if refused {
		c.recorder.Then(func(by captures.Process) { p.refusals.Note(refusal.Refusal{Process: by, Host: host}) })
	}
	rec, err := c.recorder.Begin(captures.Exchange{
		Method: http.MethodConnect, URL: "https://" + host, HTTP: "1.1", Started: time.Now(),
		Client: c.RemoteAddr().String(), Source: p.opts.Source,
	})
	if err != nil {
		p.log.Error("cannot record", "host", host, "err", err)
		return
	}
	rec.End(captures.Failed, text)
}
