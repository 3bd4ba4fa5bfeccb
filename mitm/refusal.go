package mitm

import (
	"net/http"
	"sync"
	"time"

	"unwire/captures"
	"unwire/mitm/refusal"
)

const (
	// refusalWindow is how soon after the TLS handshake a client disconnects that refuses the proxy's
	// certificate.
	refusalWindow = 5 * time.Second

	// refusalDelay is how long the proxy waits for a request on another connection before it assumes a refusal.
	refusalDelay = time.Second

	// maxPendingRefusals limits the number of undecided cases.
	maxPendingRefusals = 1000
)

// watchForRefusal detects a client that completes the TLS handshake, verifies the proxy's certificate only
// then, and disconnects without sending anything. A spare connection that was never used looks the same. So the
// proxy assumes a refusal only if no client sends a request to the server before or shortly after.
func (p *Proxy) watchForRefusal(c *clientConn) {
	done, o := time.Now(), p.origins.get(c.target)
	onClose := func() {
		if o.gotRequest.Load() || time.Since(done) > refusalWindow {
			return
		}
		decide := sync.OnceFunc(func() {
			if !o.gotRequest.Load() && p.beginRunning() {
				defer p.endRunning()
				p.recordRefusal(c, refusal.Unused, true)
			}
		})

		// Decide later: another connection of the client may send a request.
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.pendingRefusals) < maxPendingRefusals && !p.stopping {
			p.pendingRefusals = append(p.pendingRefusals, decide)
			time.AfterFunc(refusalDelay, decide)
		}
	}
	c.onUnusedClose.Store(&onClose)
}

// decidePendingRefusals decides all undecided cases of watchForRefusal at the end of the recording.
func (p *Proxy) decidePendingRefusals() {
	p.mu.Lock()
	left := p.pendingRefusals
	p.pendingRefusals = nil
	p.mu.Unlock()
	for _, decide := range left {
		decide()
	}
}

// recordFailedHandshake records a failed TLS handshake with a client, and reports it if the program has refused the
// certificate.
func (p *Proxy) recordFailedHandshake(c *clientConn, err error) {
	text, refused := refusal.Describe(err, p.opts.CA.CertFile)
	if !refused || !refusal.IsHangUp(err) || !p.origins.get(c.target).gotRequest.Load() {
		p.recordRefusal(c, text, refused)
		return
	}
	// Programs also drop connections that they no longer need.
	host := c.target.hostPort()
	c.recorder.Then(func(by captures.Process) { p.refusals.AddHangUp(refusal.Refusal{Process: by, Host: host}) })
	p.recordRefusal(c, refusal.HungUp, false)
}

// recordRefusal records a failed TLS handshake with a client; text is the reason. If refused is set, it also
// reports that the program refused the certificate.
func (p *Proxy) recordRefusal(c *clientConn, text string, refused bool) {
	host := c.target.hostPort()
	if refused {
		c.recorder.Then(func(by captures.Process) { p.refusals.Add(refusal.Refusal{Process: by, Host: host}) })
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
