package mock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/decode"
)

// maxCloseReason is the size of the reason in a close frame, in bytes.
//
// Source: RFC 6455, section 5.5
const maxCloseReason = 123

// ownHeaders are headers of the recorded handshake that the WebSocket library sets itself.
var ownHeaders = map[string]bool{"sec-websocket-accept": true, "sec-websocket-extensions": true, "sec-websocket-protocol": true}

// isHandshake reports whether a request asks to open a WebSocket.
func isHandshake(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// upgrade makes the request a WebSocket, unless the capture has no WebSocket but a plain response for it, such as a
// refusal.
func (x *session) upgrade() {
	plain, call := x.ex, x.call
	scheme, rest, _ := strings.Cut(x.ex.URL, "://")
	x.ex.Transport, x.ex.Method = captures.WebSocket, ""
	x.ex.URL = strings.Replace(scheme, "http", "ws", 1) + "://" + rest
	x.call = requestCall(&x.ex)
	if l := x.s.library; len(l.find(x.newQuery().key)) == 0 && len(l.find(keyOf(&plain, call))) > 0 {
		x.ex, x.call = plain, call
	}
}

// accept opens the WebSocket of one of the candidates, whose messages then decide between them. It returns false if the
// request is no handshake or has another origin; then it was answered with an error.
func (x *session) accept(list []*candidate) (opened bool) {
	shake := list[0].tape.handshake
	if origin := x.r.Header.Get("Origin"); !allowedOrigin(origin, x.r.Host, shake.RequestHeaders.Get("origin")) {
		x.refuse("permission_denied", fmt.Sprintf("the page that opens the WebSocket has the origin %s: want a page of this machine, or the recorded origin", origin))
		return false
	}
	if shake.Method == http.MethodConnect {
		x.note("the WebSocket was recorded over HTTP/2; mock opens WebSockets over HTTP/1.1")
	}
	h := x.w.Header()
	request := &decode.Exchange{Exchange: x.ex}
	request.RequestHeaders = requestHead(&x.ex)
	for _, f := range x.s.ids.replaceIn(shake.ResponseHeaders, list[0].tape, request) {
		if name := strings.ToLower(f.Name); !hopHeaders[name] && !ownHeaders[name] && !strings.HasPrefix(name, ":") {
			h.Add(f.Name, f.Value)
		}
	}

	// The library negotiates compression and the recorded subprotocol only if the client offers them.
	o := &websocket.AcceptOptions{InsecureSkipVerify: true}
	if p := shake.ResponseHeaders.Get("sec-websocket-protocol"); p != "" {
		o.Subprotocols = []string{p}
	}
	if strings.Contains(shake.ResponseHeaders.Get("sec-websocket-extensions"), "permessage-deflate") {
		o.CompressionMode = websocket.CompressionContextTakeover
	}
	x.began = true
	x.s.open.Add(1)
	c, err := websocket.Accept(x.w, x.r, o)
	if err != nil {
		x.s.open.Done()
		x.answer.Code, x.answer.Reason = "invalid_argument", err.Error()
		return false
	}
	c.SetReadLimit(maxFrame)
	x.socket = c
	return true
}

// allowedOrigin reports whether a page of an origin may open a WebSocket. Browsers do not protect servers on loopback
// from other pages. Without an origin, the client is not a browser.
func allowedOrigin(origin, host, recorded string) bool {
	if origin == "" || strings.EqualFold(origin, recorded) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Host, host) || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// readMessages reads and decodes the messages of a WebSocket until its end.
func (x *session) readMessages(ctx context.Context, gone context.CancelFunc) {
	defer close(x.read)
	total := int64(0)
	for seq := int64(0); ; seq++ {
		kind, data, err := x.socket.Read(ctx)
		chunk := captures.Chunk{Exchange: 1, Dir: captures.Up, Seq: seq, T: time.Since(x.ex.Started), Data: data, Opcode: captures.OpFinal | captures.OpBinary}
		if kind == websocket.MessageText {
			chunk.Opcode = captures.OpFinal | captures.OpText
		}
		var closed websocket.CloseError
		if errors.As(err, &closed) {
			chunk.Opcode, chunk.Data, err = captures.OpFinal|captures.OpClose, closePayload(closed), io.EOF
		}
		if total += int64(len(data)); total > maxRequest {
			err = errTooLarge
		}
		var frames []decode.Frame
		if err == nil || err == io.EOF {
			frames = x.stream.Feed(chunk)
		}
		x.add(frames, err)
		if err != nil {
			if err != io.EOF && err != errTooLarge {
				gone()
			}
			return
		}
	}
}

// closePayload returns the payload of a close frame.
func closePayload(c websocket.CloseError) []byte {
	if c.Code == websocket.StatusNoStatusRcvd {
		return nil
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(c.Code)), c.Reason...)
}

// addMessage appends the chunk of a WebSocket's server to the body. Control frames are not part of it.
func (t *tape) addMessage(c captures.Chunk) {
	if c.Opcode.Kind() >= captures.OpClose {
		return
	}
	t.body = append(t.body, c.Data...)
	if c.Opcode&captures.OpFinal != 0 {
		t.ends = append(t.ends, int64(len(t.body)))
	}
}

// noteMessages determines which of the server's frames are the last ones of their WebSocket messages: a message may
// consist of several envelopes, each of which is a frame.
func (t *tape) noteMessages() {
	t.last = map[int]bool{}
	n, before := -1, 0
	for i := range t.ex.Frames {
		f := &t.ex.Frames[i]
		if f.Dir == captures.Up || f.Opcode.Kind() >= captures.OpClose {
			continue
		}
		switch {
		case n < 0:
			n = 0
		case n < len(t.ends) && f.Offset >= t.ends[n]:
			n++
			t.last[before] = true
		}
		before = f.Seq
	}
	t.last[before] = true
}

// sendFrame adds a frame to the WebSocket message that contains it, and sends the message with its last frame.
func (p *player) sendFrame(f *decode.Frame, data []byte) error {
	if f.Opcode.Kind() >= captures.OpClose {
		return nil
	}
	p.partial = append(p.partial, data...)
	if !p.x.tape.last[f.Seq] {
		return nil
	}
	kind := websocket.MessageBinary
	if f.Opcode.Kind() == captures.OpText {
		kind = websocket.MessageText
	}
	err := p.x.socket.Write(p.x.r.Context(), kind, p.partial)
	p.partial, p.failed = nil, err
	return err
}

// sendPings sends the pings that the recorded server sent before the message with an index (see player.pings), since some
// clients end a WebSocket without pings. The library sends its own payload.
func (p *player) sendPings(index int) {
	ctx := context.WithoutCancel(p.x.r.Context())
	for range p.pings[index] {
		// Until the client answers, or the WebSocket ends.
		go p.x.socket.Ping(ctx) //nolint:errcheck // the client may have gone
	}
}

// endSocket ends the WebSocket as the recorded one ended: by the server's close frame, by the client's, or by the loss
// of the connection.
func (p *player) endSocket() {
	x := p.x
	var closed *decode.Frame
	for i := range x.tape.ex.Frames {
		if f := &x.tape.ex.Frames[i]; f.Close != nil && closed == nil {
			closed = f
		}
	}
	x.answer.Complete = true
	switch {
	case closed != nil && closed.Dir == captures.Down:
		// The client may have gone.
		_ = x.socket.Close(websocket.StatusCode(closed.Close.Code), closed.Close.Reason)
	case closed != nil:
		// The recorded client has ended the WebSocket.
		p.sendPings(len(p.frames))
		x.untilRead(x.s.o.Wait)
	default:
		x.abort()
	}
}

// untilRead waits until the client has ended the WebSocket, or the limit is over.
func (x *session) untilRead(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-x.read:
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

// refuseOpen closes an open WebSocket because of an RPC error.
func (x *session) refuseOpen(code, message string) {
	reason := strings.ToValidUTF8((code + ": " + message)[:min(maxCloseReason, len(code)+2+len(message))], "")
	status := websocket.StatusInternalError
	if code == "resource_exhausted" {
		status = websocket.StatusMessageTooBig
	}
	// The client may have gone.
	_ = x.socket.Close(status, reason)
}

// endSockets waits for the WebSockets until ctx ends, then cuts them off.
//
// Errors: that of ctx.
func (s *Server) endSockets(ctx context.Context) error {
	over := make(chan struct{})
	go func() {
		s.open.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	s.cutSockets()
	<-over
	return context.Cause(ctx)
}
