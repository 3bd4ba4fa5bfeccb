package mock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/mitm/rules"
	"unwire/replay/live"
)

// hesitation is how long the server waits for the client's first message before it chooses a recorded call whose
// server had responded without one.
const hesitation = 500 * time.Millisecond

// errTooLarge ends a request whose body is larger than maxRequest.
var errTooLarge = errors.New("the request is larger than the limit")

// A session handles one request in progress.
type session struct {
	// s is the server.
	s *Server
	// w writes the response.
	w http.ResponseWriter
	// r is the HTTP request.
	r *http.Request

	// ex is the request in the form of a captured exchange.
	ex captures.Exchange
	// call is the request's protocol, service and method.
	call decode.Call
	// key is the name by which recorded calls are found; see keyOf.
	key string
	// stream decodes the request's body into frames.
	stream *decode.Stream

	// mu guards the fields from frames to dialogue.
	mu sync.Mutex
	// frames are all frames of the request that have arrived.
	frames []decode.Frame
	// messages are those of them that carry a message.
	messages []decode.Frame
	// ended means that no more of the request's body arrives.
	ended bool
	// failed is the error with which reading the request's body ended; nil if it has not ended, or has ended
	// normally.
	failed error
	// wake is closed, and replaced, when frames have arrived or the body has ended.
	wake chan struct{}

	// links are the causal relations between the recorded messages; nil until the recorded call is chosen.
	links *live.Links
	// dialogue has the messages that the client has sent so far, for the schedule of the response.
	dialogue *live.Dialogue

	// learned is one more than the number of messages whose identifiers are known; 0 before the first.
	learned int

	// read is closed when the body was read.
	read chan struct{}

	began bool // the head of the answer was sent
	// socket is the WebSocket, once it is open; nil for other requests.
	socket *websocket.Conn
	// tape is the recorded exchange that answers; nil until it is chosen.
	tape *tape
	// answer is the report about this request.
	answer Answer
}

// newSession starts a session.
func newSession(s *Server, w http.ResponseWriter, r *http.Request) *session {
	scheme, version := "http://", "1.1"
	if r.TLS != nil {
		scheme = "https://"
	}
	if r.ProtoMajor == 2 {
		version = "2"
	}
	u := *r.URL
	u.Scheme, u.Host = "", ""
	x := &session{s: s, w: w, r: r, wake: make(chan struct{}), read: make(chan struct{}), dialogue: live.NewDialogue()}
	x.ex = captures.Exchange{
		ID: 1, Method: r.Method, URL: scheme + r.Host + u.String(), HTTP: version,
		RequestHeaders: captures.SortedHeaders(r.Header), Started: time.Now(), Client: r.RemoteAddr,
	}
	if r.ContentLength >= 0 && r.Header.Get("Content-Length") == "" && r.ContentLength > 0 {
		// net/http takes the length out of the headers.
		x.ex.RequestHeaders = append(x.ex.RequestHeaders, captures.Header{Name: "content-length", Value: fmt.Sprint(r.ContentLength)})
	}
	x.call = requestCall(&x.ex)
	if isHandshake(r) {
		x.upgrade()
	}
	x.key = keyOf(&x.ex, x.call)
	x.stream = decode.NewStream(&x.ex, decode.Options{MaxFrame: maxFrame, MaxTotal: maxRequest})
	x.answer = Answer{Method: x.key, Protocol: x.call.Protocol}
	return x
}

// note adds a remark to the report about the request, at most 100.
func (x *session) note(format string, args ...any) {
	const most = 100
	if len(x.answer.Notes) < most {
		x.answer.Notes = append(x.answer.Notes, fmt.Sprintf(format, args...))
	}
}

// run answers the request.
func (x *session) run() {
	// The client's frames may come while the answer is sent, also in HTTP/1.
	// HTTP/2 refuses, and needs nothing.
	_ = http.NewResponseController(x.w).EnableFullDuplex()
	webSocket := x.ex.Transport == captures.WebSocket
	if !webSocket {
		go x.readBody()
	}
	q := x.newQuery()
	list, refusal := x.candidates(q)
	if refusal != nil {
		x.refuse(refusal.Code, refusal.Message)
		return
	}
	if webSocket {
		if !x.accept(list) {
			return
		}
		defer x.socket.CloseNow() //nolint:errcheck // it may be closed already
		ctx, gone := context.WithCancel(x.s.sockets)
		defer gone()
		x.r = x.r.WithContext(ctx)
		go x.readMessages(ctx, gone)
	}
	c, refusal := x.choose(q, list)
	if refusal != nil {
		x.refuse(refusal.Code, refusal.Message)
		return
	}
	if c == nil {
		return // the client has gone
	}
	x.tape = c.tape
	x.answer.Exchange, x.answer.Similarity = c.id, c.score
	x.play()
}

// readBody reads and decodes the request's body.
func (x *session) readBody() {
	defer close(x.read)
	buf := make([]byte, 64<<10)
	total, seq := int64(0), int64(0)
	for {
		n, err := x.r.Body.Read(buf)
		var frames []decode.Frame
		if n > 0 {
			total += int64(n)
			chunk := captures.Chunk{Exchange: 1, Dir: captures.Up, Seq: seq, T: time.Since(x.ex.Started), Data: append([]byte(nil), buf[:n]...)}
			seq++
			frames = x.stream.Feed(chunk)
		}
		if total > maxRequest {
			err = errTooLarge
		}
		if err == io.EOF {
			frames = append(frames, x.stream.Close()...)
		}
		x.add(frames, err)
		if err != nil {
			return
		}
	}
}

// add stores frames that have arrived, and passes them to the schedule of the response. err, if not nil, is the error
// with which the body ended; io.EOF for a normal end.
func (x *session) add(frames []decode.Frame, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frames = append(x.frames, frames...)
	frames = slices.Clone(frames)
	sortMaps(frames, captures.Up)
	for i := range frames {
		if live.IsMessage(&frames[i]) {
			x.messages = append(x.messages, frames[i])
		}
	}
	if x.links != nil {
		x.dialogue.AddFrames(x.links, live.SwapFrames(frames))
	}
	switch {
	case err == io.EOF:
		x.ended = true
		x.dialogue.Finish()
	case err != nil:
		x.ended, x.failed = true, err
		x.dialogue.Finish()
	}
	close(x.wake)
	x.wake = make(chan struct{})
}

// connect passes the client's messages, past and future, to the schedule of the response. l are the causal relations
// between the recorded messages.
func (x *session) connect(l *live.Links) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.links = l
	x.dialogue.AddHeaders(requestHead(&x.ex))
	x.dialogue.AddFrames(l, live.SwapFrames(x.messages))
}

// choose returns the recorded call of list that answers the request, or the RPC error to answer with; neither if the client
// has disconnected. It decides when the first frame of the best recorded response is due, so that as many messages as
// possible are compared.
func (x *session) choose(q *query, list []*candidate) (*candidate, *envelope.Error) {
	limit := time.After(x.s.o.Wait)
	first := time.After(hesitation)
	hesitated := false
	for {
		x.mu.Lock()
		messages, ended, failed, wake := x.messages[:len(x.messages):len(x.messages)], x.ended, x.failed, x.wake
		x.mu.Unlock()
		if errors.Is(failed, errTooLarge) {
			return nil, &envelope.Error{Code: "resource_exhausted", Message: fmt.Sprintf("%s of %d bytes", errTooLarge, maxRequest)}
		}

		q.add(x.s.ids, messages, ended)
		for _, c := range list {
			c.update(x.s.ids, q)
		}
		lead, due, refusal := x.pick(list, q, hesitated)
		switch {
		case refusal != nil:
			return nil, refusal
		case due:
			return lead, nil
		}
		// More frames, or the end of the request, may change the choice.
		select {
		case <-wake:
		case <-first:
			hesitated = true
		case <-limit:
			return nil, &envelope.Error{Code: "deadline_exceeded", Message: fmt.Sprintf("the client sent %d of the %d messages that precede the recorded answer, and then nothing for %s", len(messages), lead.tape.first, x.s.o.Wait)}
		case <-x.r.Context().Done():
			return nil, nil
		}
	}
}

// pick returns the best candidate. due means that it answers the request, and counts as used; otherwise more messages
// of the request may change the choice. refusal is the RPC error to answer with if no candidate may answer.
// hesitated means that the client has not sent a message for hesitation.
func (x *session) pick(list []*candidate, q *query, hesitated bool) (lead *candidate, due bool, refusal *envelope.Error) {
	// Which recorded calls were used, and which recorded identifiers are taken, is only known under the lock, so that
	// two requests do not get the same ones.
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if v := x.s.ids.version.Load(); v != q.version {
		for _, c := range list {
			c.compareAllIDs(x.s.ids, q)
		}
		q.version = v
	}
	group := alike(list)
	c := next(group, x.s.o.Repeat, x.s.uses)
	if lead = c; c == nil {
		lead = group[0]
	}
	n := len(q.messages)
	if due = q.ended || n >= lead.tape.first && (n > 0 || len(list) == 1 || hesitated); !due {
		return lead, false, nil
	}
	switch {
	case lead.score < x.s.o.MinSimilarity:
		return lead, true, &envelope.Error{Code: "unimplemented", Message: fmt.Sprintf("no recorded call of %s is similar enough to the request: the most similar one, exchange %d, has the similarity %.2f, but --min-similarity requires %.2f", x.key, lead.id, lead.score, x.s.o.MinSimilarity)}
	case c == nil:
		return lead, true, &envelope.Error{Code: "unimplemented", Message: fmt.Sprintf("all recorded calls of %s that match the request (%d) have been used; --repeat cycle uses them again", x.key, len(group))}
	}
	x.noteRepeat(c, group)
	x.s.use(c)
	x.learnIDs(c.tape)
	return c, true, nil
}

// noteRepeat adds a remark to the report if c answers again because all of several equally good candidates were used.
// The caller must hold s.mu.
func (x *session) noteRepeat(c *candidate, group []*candidate) {
	switch {
	case len(group) < 2 || x.s.uses(c) == 0:
	case x.s.o.Repeat == Last:
		x.note("all %d recorded calls that match the request have been used, so mock repeats the last one, exchange %d", len(group), c.id)
	case c == group[0]:
		x.note("all %d recorded calls that match the request have been used, so mock starts again with exchange %d", len(group), c.id)
	}
}

// refuse answers with an RPC error in the protocol of the request. If the response has begun, it is ended with that
// error.
func (x *session) refuse(code, message string) {
	x.answer.Code, x.answer.Reason = code, message
	if x.socket != nil {
		x.refuseOpen(code, message)
		return
	}
	f := rules.Failure(&x.ex, envelope.Error{Code: code, Message: "unwire mock: " + message})
	// An answer that has begun cannot get another status, but another end.
	if x.began {
		if len(f.Tail) > 0 {
			_, _ = x.w.Write(f.Tail) // the client may have gone
		}
		x.writeTrailers(f.Trailers)
		if len(f.Tail) == 0 && len(f.Trailers) == 0 {
			x.abort()
		}
		return
	}
	h := x.w.Header()
	for _, f := range f.Header {
		h.Add(f.Name, f.Value)
	}
	h["Date"] = nil
	x.began = true
	x.w.WriteHeader(f.Status)
	_, _ = x.w.Write(f.Body) // the client may have gone
	x.writeTrailers(f.Trailers)
}

// abort resets the response. It panics with http.ErrAbortHandler.
func (x *session) abort() {
	x.answer.Notes = append(x.answer.Notes, "mock did not send the whole answer")
	panic(http.ErrAbortHandler)
}

// finish completes the report about the request, and returns it.
func (x *session) finish() Answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer.FramesUp = len(x.messages)
	x.answer.Request = &decode.Exchange{Exchange: x.ex, Call: x.call, Frames: x.frames}
	return x.answer
}

// untilGone waits until the client has closed the request, or the limit is over.
func (x *session) untilGone(limit time.Duration) {
	ctx, cancel := context.WithTimeout(x.r.Context(), limit)
	defer cancel()
	<-ctx.Done()
}
