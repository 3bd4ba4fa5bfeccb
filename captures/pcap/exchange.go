package pcap

import (
	"time"

	"unwire/captures"
	"unwire/captures/websocket"
	"unwire/decode/envelope"
)

// An exchange is the recording of one request and its response.
type exchange struct {
	// recording is nil after the end, or if the exchange could not be begun.
	recording captures.Recording
	started   time.Time
	method    string
	// target is the host and port of a CONNECT request.
	target string
	// done has, for each direction, whether it has ended cleanly.
	done [2]bool
	// orphan means that the packet file contains only the response.
	orphan bool
	// lossReason is set if a part of the exchange was not captured.
	lossReason string

	// responseEnd detects a complete response; nil before the response headers, and for HTTP/1.
	responseEnd *envelope.ResponseEnd
}

// responseComplete reports whether the client received all of the response's content, even if END_STREAM is
// missing.
func (x *exchange) responseComplete() bool {
	return !x.orphan && x.responseEnd != nil && x.responseEnd.Complete()
}

// begin starts the exchange of an HTTP request that was received at t.
func (c *conn) begin(t time.Time, method, url, version string, h captures.Headers) *exchange {
	return c.beginExchange(captures.Exchange{Method: method, URL: url, HTTP: version, RequestHeaders: h, Started: t})
}

// beginExchange starts an exchange, and adds what is known about the connection.
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

// Begin implements captures.Recorder. It counts exchanges: a WebSocket is begun by the recording of its
// handshake.
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

// finishDirection records the clean end of a direction at t. It reports whether both directions have ended.
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

// end ends the recording of the exchange, if it is recorded. A loss of packets takes precedence over the
// outcome.
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

// endAtClose ends an incomplete exchange because its connection has ended.
func (x *exchange) endAtClose(client, server ending) {
	t := later(client.t, server.t)
	missing := client.missing
	if !x.done[down] && server.missing != "" || missing == "" {
		missing = server.missing
	}

	// The outcome depends on which side ended the connection first.
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
