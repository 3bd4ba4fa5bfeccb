package pcap

import (
	"time"

	"unwire/captures"
)

// An exchange feeds one request and its response to the store.
type exchange struct {
	rec     *captures.Recording // nil once it ended
	started time.Time
	method  string
	done    [2]bool // which directions ended cleanly
	orphan  bool    // the request was not captured
	lost    string  // why something of it is missing

	answer *captures.ResponseEnd // nil: it was not answered, or by HTTP/1
}

// whole reports whether the client was sent all of the answer's content, whether
// or not its end was marked.
func (x *exchange) whole() bool { return !x.orphan && x.answer != nil && x.answer.Whole() }

// begin starts an exchange whose request came at t.
func (c *conn) begin(t time.Time, method, url, version string, h captures.Headers) *exchange {
	x := &exchange{started: t, method: method}
	rec, err := c.store.Begin(captures.Exchange{
		Method:         method,
		URL:            url,
		HTTP:           version,
		RequestHeaders: h,
		Started:        t,
		Client:         c.client().String(),
		Server:         c.server().String(),
		TLS:            c.tls,
		Source:         c.source,
	})
	if err != nil {
		c.broke(err)
		return x
	}
	c.report.Exchanges++
	x.rec = rec
	return x
}

func (x *exchange) response(status int, h captures.Headers) {
	if x.rec != nil {
		x.rec.Response(status, h)
	}
}

func (x *exchange) chunk(dir captures.Direction, t time.Time, p []byte) {
	if x.rec != nil {
		x.rec.ChunkAt(dir, t.Sub(x.started), p)
	}
	if dir == down && x.answer != nil {
		x.answer.Add(p)
	}
}

func (x *exchange) trailers(dir captures.Direction, h captures.Headers) {
	if x.rec != nil && len(h) > 0 {
		x.rec.Trailers(dir, h)
	}
}

// finish says that a direction ended cleanly at t; it reports whether both did.
func (x *exchange) finish(dir captures.Direction, t time.Time) bool {
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
	if x.rec == nil {
		return
	}
	if x.lost != "" {
		o, why = captures.Incomplete, x.lost
	}
	x.rec.EndAt(t.Sub(x.started), o, why)
	x.rec = nil
}

// cut ends an exchange whose connection ended before it did.
func (x *exchange) cut(client, server ending) {
	t := later(client.t, server.t)
	missing := client.missing
	if !x.done[down] && server.missing != "" || missing == "" {
		missing = server.missing
	}
	switch {
	case x.whole() && (x.done[up] || client.missing == ""):
		x.end(t, captures.Complete, "")
	case missing != "":
		x.end(t, captures.Incomplete, missing)
	case client.reset || !server.reset && !x.done[up] || !server.reset && client.t.Before(server.t):
		x.end(t, captures.Canceled, "the client went away")
	default:
		x.end(t, captures.Reset, "the server closed the connection")
	}
}
