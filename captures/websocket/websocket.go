// Package websocket records WebSocket traffic as messages. A Recorder wraps another captures.Recorder:
//
//	recorder := websocket.NewRecorder(store)
//
// Its callers (packages mitm and captures/pcap) record a handshake like any other request, over HTTP/1.1 (RFC
// 6455) or HTTP/2 (RFC 8441), and the following bytes as chunks. If the server accepts the handshake, the
// Recorder ends its exchange and begins a second one with the transport websocket. A frameRecorder then parses
// the frames of each direction, unmasks and decompresses them (RFC 7692), and records each message, or each part
// of a long one, as a chunk. The traffic itself is not changed.
//
// If the frames of a direction are invalid, or decompress to too much, the rest of the direction is recorded
// unparsed in a third exchange, with the transport tls or tcp. The error of the second exchange mentions it.
//
// Limits: a message may have 64 MiB when decompressed. If all messages of a direction exceed that together, they
// may have 256 times their size on the wire.
package websocket

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"unwire/captures"
)

// maxEarly limits the bytes that are buffered if the client sends them before the response to its handshake.
const maxEarly = 64 << 10

// A Recorder is a captures.Recorder that records WebSocket traffic as messages, in an exchange of its own,
// instead of as raw bytes.
type Recorder struct {
	// The embedded Recorder records the exchanges.
	captures.Recorder
}

// NewRecorder returns a Recorder that passes all recordings on to the recorder to, with WebSocket traffic as
// messages.
func NewRecorder(to captures.Recorder) *Recorder { return &Recorder{to} }

// Begin starts the recording of an exchange. If the exchange is a WebSocket handshake that the server accepts,
// the same Recording then records the WebSocket.
func (r *Recorder) Begin(ex captures.Exchange) (captures.Recording, error) {
	rec, err := r.Recorder.Begin(ex)
	if err != nil || !isHandshake(&ex) {
		return rec, err
	}
	return &recording{Recording: rec, recorder: r.Recorder, ex: ex}, nil
}

// isHandshake reports whether a request is the handshake of a WebSocket.
func isHandshake(ex *captures.Exchange) bool {
	if ex.Method == http.MethodConnect {
		return strings.EqualFold(ex.RequestHeaders.Get(":protocol"), "websocket")
	}
	return ex.Method == http.MethodGet && upgradesToWebSocket(ex.RequestHeaders)
}

// upgradesToWebSocket reports whether an Upgrade header field contains "websocket".
func upgradesToWebSocket(h captures.Headers) bool {
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

// A recording records a WebSocket handshake, and then the WebSocket that it opened. The embedded Recording is
// the handshake's.
type recording struct {
	// The embedded Recording is that of the WebSocket handshake.
	captures.Recording

	// recorder begins the recording of the WebSocket's own exchange.
	recorder captures.Recorder

	// mu guards the fields below.
	mu sync.Mutex

	// ex is the exchange of the WebSocket handshake.
	ex captures.Exchange

	// early are bytes that the client sent before the response arrived.
	early []byte
	// earlyAt is the time of the last bytes that the client sent before the response arrived.
	earlyAt timestamp

	// answered means that the response has arrived.
	answered bool
	// frames records the messages of the WebSocket; nil if the server has not accepted it.
	frames *frameRecorder
}

// Connection records the TLS details and the address of the server.
func (r *recording) Connection(t captures.TLS, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.TLS, r.ex.Server = t, server
	r.Recording.Connection(t, server)
}

// Process records which client program made the connection.
func (r *recording) Process(p captures.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Process = p
	if r.Recording.Process(p); r.frames != nil {
		r.frames.process(p)
	}
}

// Response records the status and the headers of the response.
func (r *recording) Response(status int, h captures.Headers) { r.respondAt(timestamp{}, status, h) }

// ResponseAt records a response that arrived at time t after Exchange.Started. rec may be the recording of any
// Recorder. A WebSocket that the response opens begins at that time.
func ResponseAt(rec captures.Recording, t time.Duration, status int, h captures.Headers) {
	if r, ok := rec.(*recording); ok {
		r.respondAt(timestamp{t, true}, status, h)
	} else {
		rec.Response(status, h)
	}
}

// respondAt records the response, and starts recording the WebSocket if the response accepts the handshake.
func (r *recording) respondAt(at timestamp, status int, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Recording.Response(status, h)
	accepted := status == http.StatusSwitchingProtocols && upgradesToWebSocket(h) && r.ex.Method == http.MethodGet ||
		status/100 == 2 && r.ex.Method == http.MethodConnect

	// Only the first response decides.
	if r.answered {
		return
	}
	if r.answered = true; !accepted {
		r.flushEarly()
		return
	}
	r.openWebSocket(at, h)
}

// flushEarly records the bytes that the client sent early as a body, because no WebSocket was opened.
func (r *recording) flushEarly() {
	if len(r.early) > 0 {
		r.earlyAt.chunk(r.Recording, captures.Up, r.early)
	}
	r.early = nil
}

// openWebSocket ends the exchange of the handshake, and starts that of the WebSocket. answer are the response
// headers.
func (r *recording) openWebSocket(at timestamp, answer captures.Headers) {
	defer at.end(r.Recording, captures.Complete, "")
	started := time.Now()
	if at.known {
		started = r.ex.Started.Add(at.t)
	}
	ex := r.exchange(captures.WebSocket, [2]string{"ws", "wss"}, started)
	ex.HTTP = r.ex.HTTP
	rec, err := r.recorder.Begin(ex)
	if err != nil {
		// The store reports the error.
		return
	}
	rec.Relate(captures.HandshakeOf, r.ID())
	beginRest := func() captures.Recording { return r.beginUnparsed(time.Now()) }
	if at.known {
		beginRest = func() captures.Recording { return r.beginUnparsed(started) }
	}
	r.frames = newFrameRecorder(rec, answer, beginRest)
	r.frames.began = at.t
	if len(r.early) > 0 {
		r.frames.write(captures.Up, r.earlyAt, r.early)
	}
	r.early = nil
}

// exchange returns a new exchange for further traffic on the handshake's connection. schemes are the URL
// schemes without and with TLS.
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

// beginUnparsed starts recording an exchange for bytes that are not valid frames.
func (r *recording) beginUnparsed(started time.Time) captures.Recording {
	ex := r.exchange(captures.RawTCP, [2]string{"tcp", "tls"}, started)
	if u, err := url.Parse(ex.URL); err == nil {
		if u.Scheme == "tls" {
			ex.Transport = captures.RawTLS
		}
		ex.URL = u.Scheme + "://" + withPort(u)
	}
	// The switch to another protocol tells the redactor that the bytes cannot be searched for secrets.
	ex.Status, ex.ResponseHeaders = http.StatusSwitchingProtocols, captures.Headers{{Name: "Upgrade", Value: "websocket"}}
	rec, err := r.recorder.Begin(ex)
	if err != nil {
		// The store reports the error.
		return nil
	}
	rec.Relate(captures.HandshakeOf, r.ID())
	return rec
}

// withPort returns host:port of a URL, with the scheme's default port if it has none.
func withPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "tls":
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// Edit records that a rule replaced bytes before they were forwarded: of a WebSocket message or, before the
// WebSocket is open, of a body.
func (r *recording) Edit(dir captures.Direction, start, end int64, rule string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.frames != nil {
		r.frames.edit(dir, start, end, rule, data)
		return
	}
	r.Recording.Edit(dir, start, end, rule, data)
}

// Chunk records bytes of a body or of the WebSocket that arrived just now.
func (r *recording) Chunk(dir captures.Direction, p []byte) { r.chunk(dir, timestamp{}, p) }

// ChunkAt records bytes that arrived at time t after Exchange.Started.
func (r *recording) ChunkAt(dir captures.Direction, t time.Duration, p []byte) {
	r.chunk(dir, timestamp{t, true}, p)
}

// chunk passes bytes to the WebSocket's recorder if it is open, and records them as body bytes
// otherwise.
func (r *recording) chunk(dir captures.Direction, at timestamp, p []byte) {
	if t := r.handle(dir, at, p); t != nil {
		t.write(dir, at, p)
	}
}

// handle returns the recorder of the WebSocket's frames if the bytes p belong to it. Otherwise it records or
// buffers p itself and returns nil.
func (r *recording) handle(dir captures.Direction, at timestamp, p []byte) *frameRecorder {
	r.mu.Lock()
	defer r.mu.Unlock()

	// Bytes that arrive before the response may be frames, so they are kept.
	switch {
	case r.frames != nil:
		return r.frames
	case dir == captures.Up && !r.answered && len(r.early)+len(p) <= maxEarly:
		r.early, r.earlyAt = append(r.early, p...), at
		return nil
	case len(r.early) > 0:
		// These are too many: treat them as a body, whatever the response is.
		r.answered = true
		r.flushEarly()
	}
	at.chunk(r.Recording, dir, p)
	return nil
}

// End records the outcome, and an error text if the exchange failed.
func (r *recording) End(o captures.Outcome, errText string) { r.end(timestamp{}, o, errText) }

// EndAt records the outcome of an exchange that lasted d.
func (r *recording) EndAt(d time.Duration, o captures.Outcome, errText string) {
	r.end(timestamp{d, true}, o, errText)
}

// end ends the exchange of the handshake or of the WebSocket.
func (r *recording) end(at timestamp, o captures.Outcome, errText string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushEarly()
	if r.frames != nil {
		r.frames.end(at, o, errText)
		return
	}
	at.end(r.Recording, o, errText)
}
