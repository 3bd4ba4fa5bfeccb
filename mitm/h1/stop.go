package h1

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// stopChanged ends an exchange because a rule demands it: with a response to the client, or a reset. It also
// closes the connections. A response that the client has completely received stays the only one.
func (r *Relay) stopChanged(x *exchange, stop *rewrite.Stop) error {
	c := x.change
	c.cancel()
	if !r.cutChanged(x) {
		return errEnded
	}
	// The rule's answer cannot continue a body whose length the client already knows.
	if stop.Action == rewrite.Reset || stop.Answer == nil || c.begun && c.left > 0 {
		return r.resetChanged(x, stop.Rule)
	}

	// The rest of the server's response is not read.
	r.mu.Lock()
	if x.server != nil {
		x.server.close()
	}
	r.mu.Unlock()
	c.responding.Wait()
	c.recordDropped(x, stop.Rule)

	// Writing may block, so the lock is not held meanwhile, and the exchange may have ended afterwards.
	if !c.begun || c.left != 0 {
		_, _ = r.client.conn.Write(c.appendStop(x, stop))
	}
	r.mu.Lock()
	if r.running != x {
		r.mu.Unlock()
		return errEnded
	}
	r.endRunning()
	r.beginClose()
	r.mu.Unlock()
	r.endExchange(x, captures.Complete, nil)
	return errEnded
}

// cutChanged makes sure that nothing more of an exchange is forwarded to the client. It returns false if the exchange
// has ended already, or if a rule of the other direction ends it.
func (r *Relay) cutChanged(x *exchange) bool {
	c := x.change
	c.mu.Lock()
	defer c.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.cut || r.running != x {
		return false
	}
	// Both at once: whoever notices the cut must not end the exchange.
	c.cut, x.refused = true, true
	return true
}

// resetChanged resets the connections of an exchange to the client and the server, because of a rule.
func (r *Relay) resetChanged(x *exchange, rule string) error {
	for _, conn := range []net.Conn{r.client.conn, serverConn(x)} {
		if l, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = netConn(l.NetConn())
		}
		if l, ok := conn.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0)
		}
	}
	if ended, _ := r.closeAll(); ended == nil {
		return errEnded
	}

	// What was received and not forwarded is known when nothing is forwarded any more.
	c := x.change
	c.responding.Wait()
	<-c.requestOver
	c.recordDropped(x, rule)
	if at := c.down.Offset(); x.rec != nil && at < c.received {
		x.rec.Edit(captures.Down, at, c.received, rule, nil)
	}
	r.endExchange(x, captures.Reset, errors.New("a rule of unwire reset the exchange: "+rule))
	return errEnded
}

// recordDropped records that the received bytes of the request that were not forwarded are dropped because of a rule.
// It does nothing while the request is still being forwarded.
func (c *change) recordDropped(x *exchange, rule string) {
	select {
	case <-c.requestOver:
	default:
		return
	}
	if at := c.up.Offset(); x.rec != nil && at < c.receivedUp {
		x.rec.Edit(captures.Up, at, c.receivedUp, rule, nil)
	}
}

// appendStop returns the bytes of the response with which a rule ends an exchange, and records it. If a part of the
// server's response was already forwarded, only the rule's final part of the body is sent.
func (c *change) appendStop(x *exchange, stop *rewrite.Stop) (p []byte) {
	a, begun := stop.Answer, c.begun
	body := a.Tail
	if begun {
		if p = appendBody(nil, c.downFraming, body); c.downFraming == chunkedBody {
			p = appendEnd(p, a.Trailers)
		}
	} else {
		body = a.Body
		p = appendAnswer(nil, a)
	}
	if x.rec == nil {
		return p
	}
	if !begun {
		x.rec.ForwardHead(captures.Down, stop.Rule, captures.ForwardedHead{Status: a.Status, Headers: a.Header, Trailers: a.Trailers})
	}
	if at := c.down.Offset(); at < c.received || len(body) > 0 {
		x.rec.Edit(captures.Down, at, c.received, stop.Rule, body)
	}
	return p
}

// serverConn returns the connection to the server of an exchange, or nil if there is none.
func serverConn(x *exchange) net.Conn {
	if x.server == nil {
		return nil
	}
	return x.server.conn
}

// appendAnswer appends the bytes of an HTTP/1.1 response with "Connection: close" to dst.
func appendAnswer(dst []byte, a *rewrite.Response) []byte {
	dst = append(dst, "HTTP/1.1 "+strconv.Itoa(a.Status)+" "+http.StatusText(a.Status)+"\r\n"...)
	for _, f := range a.Header {
		if !strings.EqualFold(f.Name, "content-length") {
			dst = append(dst, f.Name+": "+f.Value+"\r\n"...)
		}
	}
	dst = append(dst, "Connection: close\r\n"...)
	if len(a.Trailers) > 0 {
		dst = append(dst, "Transfer-Encoding: chunked\r\n\r\n"...)
		return appendEnd(appendBody(dst, chunkedBody, a.Body), a.Trailers)
	}
	dst = append(dst, "Content-Length: "+strconv.Itoa(len(a.Body))+"\r\n\r\n"...)
	return append(dst, a.Body...)
}
