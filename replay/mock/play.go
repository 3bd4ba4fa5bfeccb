package mock

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/credential"
	"unwire/replay/live"
)

// play sends the recorded answer.
func (x *session) play() {
	ex := x.s.ids.toClient(x.tape)
	links := live.NewServerLinks(ex, noTypes)
	p := newPlayer(x, ex, links)
	x.connect(links)
	p.warn()

	// A unary answer has its length in the head, so that comes with its first frame.
	if !p.single {
		p.writeHead(-1)
	}
	schedule := live.NewSchedule(links, x.dialogue, p.uploads, x.s.o.Wait, x.s.o.Quiet, p.write)
	// A client that differs from the recorded one gets an answer nevertheless: the similarity tells.
	schedule.Lenient = true
	err := schedule.Run(x.r.Context(), x.tape.ex.Outcome != captures.Canceled)

	// The outcome decides how the answer ends.
	for _, note := range schedule.Notes {
		x.note("%s", note)
	}
	switch {
	case err != nil && x.r.Context().Err() != nil:
		// A client may leave as soon as it has the length that was announced.
		if x.answer.Complete = p.single && x.began; !x.answer.Complete {
			x.note("the client disconnected before the recorded answer ended")
		}
	case p.failed != nil:
		x.note("the answer could not be sent: %v", p.failed)
	case errors.Is(err, live.ErrSilent):
		x.refuse("deadline_exceeded", err.Error())
	case err != nil:
		x.refuse("internal", err.Error())
	default:
		p.end()
	}
	x.learnIDs(x.tape)
}

// learnIDs stores the identifiers that this request has in place of those of t, for this answer and later requests. It
// does nothing if no messages have arrived since it was called before.
func (x *session) learnIDs(t *tape) {
	x.mu.Lock()
	request := &decode.Exchange{Exchange: x.ex, Call: x.call, Frames: slices.Clone(x.messages)}
	known := x.learned == len(x.messages)+1
	x.learned = len(x.messages) + 1
	x.mu.Unlock()
	if known {
		return
	}
	request.RequestHeaders = requestHead(&x.ex)
	x.s.ids.learn(t.links, request)
}

// A player sends a recorded answer.
type player struct {
	// x is the request that is answered.
	x *session

	// ex is the recorded exchange with the directions exchanged (see tape.swapped), and with identifiers that clients
	// have sent in place of recorded ones.
	ex *decode.Exchange

	// frames are the recorded server's frames with a message, in order.
	frames []*decode.Frame
	// uploads are the same messages in the form in which package live schedules them; they may be edited.
	uploads []live.Upload
	// rest are the recorded server's frames without a message, such as the end of a stream; they are sent last.
	rest []*decode.Frame

	// spans are the recorded bytes of each frame by its number, including those that precede it.
	spans map[int][]byte
	// tail are the bytes of the recorded body behind the last frame.
	tail []byte

	// single means that the response is a single message, so that its Content-Length is known before it is sent.
	single bool

	// pings are the numbers of WebSocket pings that the recorded server sent before each message, by its index in
	// frames, and behind the last one.
	pings map[int]int

	// partial is the beginning of a WebSocket message whose other frames are not due yet.
	partial []byte

	// failed is the error of writing to the client.
	failed error
}

// newPlayer returns a player for the response of ex, a recorded exchange with the directions exchanged. links are the
// causal relations between its messages.
func newPlayer(x *session, ex *decode.Exchange, links *live.Links) *player {
	p := &player{x: x, ex: ex, pings: map[int]int{}}

	// The turns have the order of the messages; what carries no message is sent at the end.
	turns := links.Turns()
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != captures.Up {
			continue
		}
		if f.Opcode.Kind() == captures.OpPing {
			p.pings[len(p.frames)]++
			continue
		}
		if !live.IsMessage(f) {
			p.rest = append(p.rest, f)
			continue
		}

		// An edited message counts as changed, so that it is encoded again.
		recorded := x.recorded(f.Seq)
		u := live.Upload{Index: len(p.frames), Seq: f.Seq, Data: f.Data, Changed: string(f.Data) != string(recorded.Data)}
		if n := len(p.frames); n < len(turns) {
			u.Turn = turns[n]
		}
		if x.s.o.Edit != nil && f.Err == nil {
			if data, ok := x.s.o.Edit(ex.ID, recorded); ok {
				u.Data, u.Changed = data, true
			}
		}
		p.frames = append(p.frames, f)
		p.uploads = append(p.uploads, u)
	}
	p.single = len(p.frames)+len(p.rest) <= 1 && !p.streams() && !p.cutOff()
	p.cut()
	return p
}

// recorded returns the server's frame with number seq as it was recorded.
func (x *session) recorded(seq int) *decode.Frame { return x.tape.ex.Frame(captures.Down, seq) }

// streams reports whether the response's protocol splits the body into frames.
func (p *player) streams() bool {
	switch p.x.tape.ex.Protocol {
	case decode.ConnectStream, decode.GRPC, decode.GRPCWeb, decode.GRPCWebText, decode.SSE:
		return true
	}
	return p.x.socket != nil
}

// warn adds remarks to the report if the recorded response is incomplete: truncated, not decodable, or with redacted
// secrets.
func (p *player) warn() {
	recorded := p.x.tape.ex
	if recorded.Truncated() {
		p.x.note("the recorded answer is truncated: %s", recorded.Error)
	}
	if recorded.Err != nil {
		p.x.note("the recorded exchange was not decoded to its end: %v", recorded.Err)
	}
	for _, f := range p.frames {
		if credential.InBytes.Match(f.Data) || credential.InBytes.Match(f.Raw) {
			p.x.note("the answer has a placeholder in place of a secret; record with --keep-secrets if the client needs it")
			return
		}
	}
}

// hopHeaders are the response headers that are not sent, because they belong to the recorded connection or would lead
// the client away from this server.
var hopHeaders = map[string]bool{
	"connection": true, "keep-alive": true, "transfer-encoding": true, "content-length": true, "trailer": true, "te": true,
	"upgrade": true, "alt-svc": true, "proxy-connection": true,
}

// writeHead sends the status and headers of the response, unless they were sent. length is the length of the body in
// bytes, or -1 if it is unknown.
func (p *player) writeHead(length int64) {
	x := p.x
	if x.began {
		return
	}
	x.began = true
	h := x.w.Header()
	// net/http adds these two, unless they are nil; the recorded ones follow.
	h["Date"], h["Content-Type"] = nil, nil

	// Values of the client's headers, and a compression that was undone, change the recorded headers.
	echo := p.echoes()
	compressed := x.tape.ex.Protocol == decode.SSE && x.tape.wholeEncoding() != ""
	for i, f := range p.ex.RequestHeaders {
		if f.Value != x.tape.ex.ResponseHeaders[i].Value {
			x.answer.Substituted++
		}
		name, value := http.CanonicalHeaderKey(f.Name), f.Value
		switch lower := strings.ToLower(f.Name); {
		case lower == "content-length" && (p.bodyless() || p.cutOff()):
			// It is the length of a body that the client does not get.
			h.Set("Content-Length", value)
			length = -1
			continue
		case hopHeaders[lower] || strings.HasPrefix(f.Name, ":"), compressed && lower == "content-encoding":
			continue
		case lower == "location":
			value = p.localURL(value)
		}
		if fresh, ok := echo[value]; ok {
			value = fresh
			x.answer.Substituted++
		}
		h[name] = append(h[name], value)
	}
	if length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	x.w.WriteHeader(x.tape.ex.Status)
	p.flush()
}

// bodyless reports whether the answer is without a body, whatever its headers say.
func (p *player) bodyless() bool {
	return p.x.r.Method == http.MethodHead || p.x.tape.ex.Status == http.StatusNotModified
}

// cutOff reports whether the recorded response was not received completely.
func (p *player) cutOff() bool {
	switch p.x.tape.ex.Outcome {
	case captures.Reset, captures.Incomplete, captures.Failed, captures.InFlight:
		return true
	}
	return false
}

// echoes maps header values of the recorded request to the values that the client sends in their place, since the
// response may repeat them.
func (p *player) echoes() map[string]string {
	const shortest = 8 // bytes of a value that is not equal by chance
	out := map[string]string{}
	now := requestHead(&p.x.ex)
	for _, h := range p.x.tape.swapped.ResponseHeaders {
		if fresh := now.Get(h.Name); len(h.Value) >= shortest && fresh != "" && fresh != h.Value && !credential.IsRedacted(h.Value) {
			out[h.Value] = fresh
		}
	}
	return out
}

// localURL returns the URL of a redirect, made relative if it leads to the recorded server, so that the client stays
// with the mock.
func (p *player) localURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, hostOf(p.x.tape.ex.URL)) {
		return text
	}
	u.Scheme, u.Host, u.User = "", "", nil
	return u.String()
}

// write sends a message when the schedule says that it is due. changed means that data differs from the recorded
// message.
func (p *player) write(u *live.Upload, data []byte, changed bool) error {
	if changed || string(p.frames[u.Index].Data) != string(p.x.recorded(u.Seq).Data) {
		p.x.answer.Substituted++
	}
	out, err := p.encode(p.frames[u.Index], data, changed || u.Changed)
	if err != nil {
		return fmt.Errorf("frame down/%d cannot be sent: %w", u.Seq, err)
	}
	p.x.answer.FramesDown++
	if p.x.socket != nil {
		p.sendPings(u.Index)
		return p.sendFrame(p.frames[u.Index], out)
	}
	return p.send(out)
}

// send sends bytes of the body.
func (p *player) send(b []byte) error {
	if p.single {
		p.writeHead(int64(len(b)))
	}
	if len(b) > 0 && p.x.r.Method != http.MethodHead {
		if _, err := p.x.w.Write(b); err != nil {
			p.failed = err
			return err
		}
	}
	p.flush()
	return nil
}

// flush sends buffered bytes to the client at once.
func (p *player) flush() {
	// A client that has gone shows when the next frame is written.
	_ = http.NewResponseController(p.x.w).Flush()
}

// end sends the frames without a message and the trailers, and ends the response as the recorded server did.
func (p *player) end() {
	x := p.x
	if x.tape.ex.Outcome == captures.Canceled {
		// The recorded client left before the server had ended.
		x.answer.Complete = true
		p.writeHead(-1)
		x.untilGone(x.s.o.Wait)
		return
	}
	// The frames without a message, such as the end of the stream, and what is behind them.
	var out []byte
	for _, f := range p.rest {
		changed := string(f.Data) != string(x.recorded(f.Seq).Data)
		if changed {
			x.answer.Substituted++
		}
		b, err := p.encode(f, f.Data, changed)
		if err == nil && x.socket != nil {
			err = p.sendFrame(f, b)
		}
		if err != nil {
			x.refuse("internal", err.Error())
			return
		}
		out = append(out, b...)
	}
	if x.socket != nil {
		p.endSocket()
		return
	}
	if out = append(out, p.tail...); len(out) > 0 || p.single {
		if err := p.send(out); err != nil {
			return
		}
	}
	p.writeHead(-1)
	if p.cutOff() {
		x.answer.Complete = true
		x.abort()
	}
	x.writeTrailers(p.ex.RequestTrailers)
	x.answer.Complete = true
	p.drain()
}

// writeTrailers sends trailers behind the body.
func (x *session) writeTrailers(trailers captures.Headers) {
	for _, t := range trailers {
		x.w.Header().Add(http.TrailerPrefix+http.CanonicalHeaderKey(t.Name), t.Value)
	}
}

// drainTime is how long the server waits for the end of a request after it has sent the response.
const drainTime = 100 * time.Millisecond

// drain waits up to drainTime for the end of an HTTP/2 request, because net/http resets a stream whose request was
// not read to its end.
func (p *player) drain() {
	if p.x.r.ProtoMajor >= 2 {
		p.x.untilRead(drainTime)
	}
}
