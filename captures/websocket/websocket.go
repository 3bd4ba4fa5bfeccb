// Package websocket records what a WebSocket carries as messages, beside the bytes that
// pass. A Recorder stands before another captures.Recorder:
//
//	recorder := websocket.NewRecorder(store)
//
// Whoever relays a handshake records it there like any other request, over HTTP/1.1
// (RFC 6455) or HTTP/2 (RFC 8441), and the bytes that follow as chunks of a body. If the
// server accepts, the recorder ends the exchange of the handshake and begins a second one,
// of transport websocket. A tap has a reader for each direction, which takes the frames
// apart, unmasks and inflates them (RFC 7692), and records each message, or a part of a
// long one, as a chunk. Packages mitm and captures/pcap use it; the bytes that pass are not its matter.
//
// Where the frames of a direction make no sense, or inflate to too much, the tap parses no
// further: the bytes of that direction are recorded as they are from there on, in a third
// exchange, of transport tls or tcp. The error of the second says so.
//
// Limits: 64 MiB in an inflated message; if the messages of a direction inflate to more
// than that in all, 256 times their size on the wire.
package websocket

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"unwire/captures"
)

// maxEarly is how many bytes of a client's are held that come before the answer to its
// handshake.
const maxEarly = 64 << 10

// A Recorder is a captures.Recorder that records WebSockets as such.
type Recorder struct {
	captures.Recorder
}

// NewRecorder returns a recorder that records to another one.
func NewRecorder(to captures.Recorder) *Recorder { return &Recorder{to} }

// Begin starts recording an exchange. Of one that asks for a WebSocket, the recording
// becomes that of the WebSocket when the server accepts.
func (r *Recorder) Begin(ex captures.Exchange) (captures.Recording, error) {
	rec, err := r.Recorder.Begin(ex)
	if err != nil || !asksForWebSocket(&ex) {
		return rec, err
	}
	return &recording{Recording: rec, recorder: r.Recorder, ex: ex}, nil
}

// asksForWebSocket reports whether a request is the handshake of a WebSocket.
func asksForWebSocket(ex *captures.Exchange) bool {
	if ex.Method == http.MethodConnect {
		return strings.EqualFold(ex.RequestHeaders.Get(":protocol"), "websocket")
	}
	return ex.Method == http.MethodGet && namesWebSocket(ex.RequestHeaders)
}

// namesWebSocket reports whether a header section has an Upgrade to WebSocket.
func namesWebSocket(h captures.Headers) bool {
	for _, f := range h {
		if !strings.EqualFold(f.Name, "upgrade") {
			continue
		}
		for name := range strings.SplitSeq(f.Value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), "websocket") {
				return true
			}
		}
	}
	return false
}

// A recording is that of a handshake, and of the WebSocket that it opens.
type recording struct {
	captures.Recording // the handshake

	recorder captures.Recorder

	mu sync.Mutex

	// ex is what is known of the handshake.
	ex captures.Exchange

	// early is what the client has sent before the server's answer, the last of it at
	// earlyAt.
	early   []byte
	earlyAt moment

	// answered says that the server has answered; tap is set if it has accepted and the
	// WebSocket is recorded.
	answered bool
	tap      *tap
}

// Connection records what is known of the connection to the server.
func (r *recording) Connection(t captures.TLS, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.TLS, r.ex.Server = t, server
	r.Recording.Connection(t, server)
}

// Process records which program made the connection.
func (r *recording) Process(p captures.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Process = p
	if r.Recording.Process(p); r.tap != nil {
		r.tap.process(p)
	}
}

// Response records the response's status and headers.
func (r *recording) Response(status int, h captures.Headers) { r.respond(moment{}, status, h) }

// ResponseAt records a response that came at time t from Exchange.Started to a recording of
// any Recorder. A WebSocket that it opens begins then.
func ResponseAt(rec captures.Recording, t time.Duration, status int, h captures.Headers) {
	if r, ok := rec.(*recording); ok {
		r.respond(moment{t, true}, status, h)
	} else {
		rec.Response(status, h)
	}
}

func (r *recording) respond(at moment, status int, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Recording.Response(status, h)
	accepted := status == http.StatusSwitchingProtocols && namesWebSocket(h) && r.ex.Method == http.MethodGet ||
		status/100 == 2 && r.ex.Method == http.MethodConnect
	if r.answered {
		return
	}
	if r.answered = true; !accepted {
		r.flushEarly()
		return
	}
	r.open(at, h)
}

// flushEarly records what the client has sent before the answer as a body.
func (r *recording) flushEarly() {
	if len(r.early) > 0 {
		r.earlyAt.chunk(r.Recording, captures.Up, r.early)
	}
	r.early = nil
}

// open begins the WebSocket's exchange, and ends that of its handshake.
func (r *recording) open(at moment, answer captures.Headers) {
	defer at.end(r.Recording, captures.Complete, "")
	started := time.Now()
	if at.known {
		started = r.ex.Started.Add(at.t)
	}
	ex := r.exchange(captures.WebSocket, [2]string{"ws", "wss"}, started)
	ex.HTTP = r.ex.HTTP
	rec, err := r.recorder.Begin(ex)
	if err != nil {
		return // the store reports it
	}
	rec.Relate(captures.HandshakeOf, r.ID())
	beginRest := func() captures.Recording { return r.beginRest(time.Now()) }
	if at.known {
		beginRest = func() captures.Recording { return r.beginRest(started) }
	}
	r.tap = newTap(rec, answer, beginRest)
	r.tap.began = at.t
	if len(r.early) > 0 {
		r.tap.write(captures.Up, r.earlyAt, r.early)
	}
	r.early = nil
}

// exchange returns a new exchange of the handshake's connection, whose URL has one of two
// schemes: that in clear, or that in TLS.
func (r *recording) exchange(t captures.Transport, schemes [2]string, started time.Time) captures.Exchange {
	scheme, rest, _ := strings.Cut(r.ex.URL, "://")
	secure := 0
	if strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "wss") {
		secure = 1
	}
	return captures.Exchange{
		Transport: t, URL: schemes[secure] + "://" + rest, Started: started,
		Client: r.ex.Client, Server: r.ex.Server, Process: r.ex.Process, TLS: r.ex.TLS, Source: r.ex.Source,
	}
}

// beginRest begins the exchange of bytes that are no frames.
func (r *recording) beginRest(started time.Time) captures.Recording {
	ex := r.exchange(captures.RawTCP, [2]string{"tcp", "tls"}, started)
	if u, err := url.Parse(ex.URL); err == nil {
		if u.Scheme == "tls" {
			ex.Transport = captures.RawTLS
		}
		ex.URL = u.Scheme + "://" + withPort(u)
	}
	// This says that it cannot be searched for secrets.
	ex.Status, ex.ResponseHeaders = http.StatusSwitchingProtocols, captures.Headers{{Name: "Upgrade", Value: "websocket"}}
	rec, err := r.recorder.Begin(ex)
	if err != nil {
		return nil // the store reports it
	}
	rec.Relate(captures.HandshakeOf, r.ID())
	return rec
}

// withPort returns the host and port of a URL whose port may be implied.
func withPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "tls":
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// Chunk records bytes that passed just now: of a body, or of the WebSocket.
func (r *recording) Chunk(dir captures.Direction, p []byte) { r.chunk(dir, moment{}, p) }

// ChunkAt is Chunk for bytes that passed at time t from Exchange.Started.
func (r *recording) ChunkAt(dir captures.Direction, t time.Duration, p []byte) {
	r.chunk(dir, moment{t, true}, p)
}

func (r *recording) chunk(dir captures.Direction, at moment, p []byte) {
	if t := r.opened(dir, at, p); t != nil {
		t.write(dir, at, p)
	}
}

// opened returns the tap, or nil if there is none, and the bytes went to the handshake.
func (r *recording) opened(dir captures.Direction, at moment, p []byte) *tap {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.tap != nil:
		return r.tap
	case dir == captures.Up && !r.answered && len(r.early)+len(p) <= maxEarly:
		r.early, r.earlyAt = append(r.early, p...), at
		return nil
	case len(r.early) > 0:
		// Too much: it is a body, whatever the answer says.
		r.answered = true
		r.flushEarly()
	}
	at.chunk(r.Recording, dir, p)
	return nil
}

// End records how the exchange ended, and why if it failed.
func (r *recording) End(o captures.Outcome, errText string) { r.end(moment{}, o, errText) }

// EndAt is End for an exchange that took as long as d.
func (r *recording) EndAt(d time.Duration, o captures.Outcome, errText string) {
	r.end(moment{d, true}, o, errText)
}

func (r *recording) end(at moment, o captures.Outcome, errText string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushEarly()
	if r.tap != nil {
		r.tap.end(at, o, errText)
		return
	}
	at.end(r.Recording, o, errText)
}
