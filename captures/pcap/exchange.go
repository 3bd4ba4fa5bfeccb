package pcap

import (
	"time"

	"unwire/captures"
	"unwire/captures/websocket"
	"unwire/decode/envelope"
)

// An exchange feeds one request and its response to the store.
type exchange struct {
	recording  captures.Recording // nil once it ended
	started    time.Time
	method     string
	target     string  // of a CONNECT request
	done       [2]bool // which directions ended cleanly
	orphan     bool    // the request was not captured
	lossReason string  // why something of it is missing

	responseEnd *envelope.ResponseEnd // nil: it was not answered, or by HTTP/1
}

// responseComplete reports whether the client was sent all of the answer's content, whether
// or not its end was marked.
func (x *exchange) responseComplete() bool {
	return !x.orphan && x.responseEnd != nil && x.responseEnd.Complete()
}

// begin starts an exchange of HTTP whose request came at t.
func (c *conn) begin(t time.Time, method, url, version string, h captures.Headers) *exchange {
	return c.beginExchange(captures.Exchange{Method: method, URL: url, HTTP: version, RequestHeaders: h, Started: t})
}

// beginExchange starts an exchange, to which it adds what is known of the connection.
func (c *conn) beginExchange(ex captures.Exchange) *exchange {
	ex.Client, ex.Server = c.client().String(), c.server().String()
	ex.TLS, ex.Source = c.tls, c.source
	x := &exchange{started: ex.Started, method: ex.Method}
	rec, err := websocket.NewRecorder(c).Begin(ex)
	if err != nil {
		c.onError(err)
		return x
	}
	x.recording = rec
	return x
}

// Begin is captures.Recorder's. It counts the exchanges: that of a WebSocket begins within
// its handshake.
func (c *conn) Begin(ex captures.Exchange) (captures.Recording, error) {
	rec, err := c.store.Begin(ex)
	if err == nil {
		c.report.Exchanges++
	}
	return rec, err
}

func (x *exchange) setResponse(t time.Time, status int, h captures.Headers) {
	if x.recording != nil {
		websocket.ResponseAt(x.recording, t.Sub(x.started), status, h)
	}
}

func (x *exchange) addChunk(dir captures.Direction, t time.Time, p []byte) {
	if x.recording != nil {
		x.recording.ChunkAt(dir, t.Sub(x.started), p)
	}
	if dir == down && x.responseEnd != nil {
		x.responseEnd.AddBody(p)
	}
}

func (x *exchange) setTrailers(dir captures.Direction, h captures.Headers) {
	if x.recording != nil && len(h) > 0 {
		x.recording.Trailers(dir, h)
	}
}

// finishDirection says that a direction ended cleanly at t; it reports whether both did.
func (x *exchange) finishDirection(dir captures.Direction, t time.Time) bool {
	x.done[dir] = true
	if !x.done[1-dir] {
		return false
	}
	if x.orphan {
		x.end(t, captures.Incomplete, "the request was not captured")
	} else {
		x.end(t, captures.Complete, "")
	}
	return true
}

func (x *exchange) end(t time.Time, o captures.Outcome, why string) {
	if x.recording == nil {
		return
	}
	if x.lossReason != "" {
		o, why = captures.Incomplete, x.lossReason
	}
	x.recording.EndAt(t.Sub(x.started), o, why)
	x.recording = nil
}

// endAtClose ends an exchange whose connection ended before it did.
func (x *exchange) endAtClose(client, server ending) {
	t := later(client.t, server.t)
	missing := client.missing
	if !x.done[down] && server.missing != "" || missing == "" {
		missing = server.missing
	}
	switch {
	case x.responseComplete() && (x.done[up] || client.missing == ""):
		x.end(t, captures.Complete, "")
	case missing != "":
		x.end(t, captures.Incomplete, missing)
	case client.reset || !server.reset && !x.done[up] || !server.reset && client.t.Before(server.t):
		x.end(t, captures.Canceled, "the client went away")
	default:
		x.end(t, captures.Reset, "the server closed the connection")
	}
}
