package pcap

import (
	"time"

	"unwire/captures"
	"unwire/captures/websocket"
	"unwire/decode/envelope"
)

// An exchange is one request with its response, found in packets, while it is being recorded.
type exchange struct {
	// recording receives the data; nil after the end, or if the recording could not be started.
	recording captures.Recording
	// started is the time at which the request headers were complete, or the response headers if the request
	// was not captured.
	started time.Time
	// method is the HTTP method of the request; "" if unknown or not HTTP.
	method string
	// target is the host and port of a CONNECT request.
	target string
	// done is true for each direction that has ended cleanly.
	done [2]bool
	// orphan means that the packet file contains only the response.
	orphan bool
	// lossReason describes packets of the exchange that were not captured; "" if there are none.
	lossReason string

	// responseEnd detects from the frames in an HTTP/2 response that it is complete; nil before the response
	// headers, and for HTTP/1.
	responseEnd *envelope.ResponseEnd
}

// responseComplete reports whether the client received all of the response's content, even if END_STREAM is
// missing.
func (x *exchange) responseComplete() bool {
	return !x.orphan && x.responseEnd != nil && x.responseEnd.Complete()
}

// begin starts recording an exchange whose request headers were complete at time t.
func (c *conn) begin(t time.Time, method, url, version string, h captures.Headers) *exchange {
	return c.beginExchange(captures.Exchange{Method: method, URL: url, HTTP: version, RequestHeaders: h, Started: t})
}

// beginExchange starts recording ex, after adding what is known about the connection.
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

// Begin implements captures.Recorder: it starts a recording in the capture and counts it in the connection's
// report. The recording of a WebSocket handshake calls it to start the exchange of the WebSocket.
func (c *conn) Begin(ex captures.Exchange) (captures.Recording, error) {
	rec, err := c.store.Begin(ex)
	if err == nil {
		c.report.Exchanges++
	}
	return rec, err
}

// setResponse records the status and headers of the response, received at time t.
func (x *exchange) setResponse(t time.Time, status int, h captures.Headers) {
	if x.recording != nil {
		websocket.ResponseAt(x.recording, t.Sub(x.started), status, h)
	}
}

// addChunk records body bytes that arrived at time t.
func (x *exchange) addChunk(dir captures.Direction, t time.Time, p []byte) {
	if x.recording != nil {
		x.recording.ChunkAt(dir, t.Sub(x.started), p)
	}
	if dir == down && x.responseEnd != nil {
		x.responseEnd.AddBody(p)
	}
}

// setTrailers records the trailers of a direction, if there are any.
func (x *exchange) setTrailers(dir captures.Direction, h captures.Headers) {
	if x.recording != nil && len(h) > 0 {
		x.recording.Trailers(dir, h)
	}
}

// finishDirection records that a direction ended cleanly at time t, and ends the exchange if the other
// direction has ended too; then it returns true.
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

// end ends the recording with an outcome and an error text, unless it has ended. If packets of the exchange
// were lost, the outcome is Incomplete instead.
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

// endAtClose ends an incomplete exchange because its connection has ended. client and server describe how each
// side ended it; the outcome follows from that.
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
		x.end(t, captures.Canceled, "the client closed the connection")
	default:
		x.end(t, captures.Reset, "the server closed the connection")
	}
}
