package h2

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/decode/envelope"
)

// lateRequest is how long a request may go on after a server has answered in full
// and reset the stream: as long as net/http's client goes on over HTTP/1.
const lateRequest = 50 * time.Millisecond

// A stream is an exchange that runs on a relayed connection. Its fields but rec and
// those below mu are guarded by the relay's mutex.
type stream struct {
	// rec is nil if the exchange is not recorded.
	rec captures.Recording

	method   string
	ended    [2]bool // by direction
	answered bool

	mu sync.Mutex

	// answer is nil until the final header section has come.
	answer *envelope.ResponseEnd
}

// recordChunk records bytes of a body.
func (s *stream) recordChunk(d captures.Direction, p []byte) {
	s.rec.Chunk(d, p)
	if d != captures.Down {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		s.answer.AddBody(p)
	}
}

// isAnswerComplete reports whether the client was sent all of the answer's content,
// whether or not END_STREAM has followed.
func (s *stream) isAnswerComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer != nil && s.answer.Complete()
}

// answerLength returns the length of the answer's body and the declared one, -1 if
// none was declared.
func (s *stream) answerLength() (received, declared int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil {
		return 0, -1
	}
	return s.answer.Received, s.answer.Declared
}

// isNewStream reports whether the client opens the stream id by naming it.
func (r *Relay) isNewStream(id uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return id%2 == 1 && id > r.newestStream
}

// noteRefused notes that a stream of the client's was refused.
func (r *Relay) noteRefused(id uint32) {
	r.mu.Lock()
	r.newestStream = max(r.newestStream, id)
	r.mu.Unlock()
}

// findStream returns the running stream id, or nil.
func (r *Relay) findStream(id uint32) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[id]
}

// openStream begins an exchange, which was counted. It returns how many exchanges this
// has ended: one if the connection ended meanwhile.
func (r *Relay) openStream(id uint32, fields []hpack.HeaderField, pushed bool) (ended int) {
	s := &stream{method: fieldValue(fields, pseudoMethod)}
	s.ended[captures.Up] = pushed
	s.rec = r.beginRecording(fields)
	r.mu.Lock()
	if !pushed {
		r.newestStream = max(r.newestStream, id)
	}
	over := r.ended || r.streams[id] != nil || id == 0
	if !over {
		r.streams[id] = s
	}
	r.mu.Unlock()
	if over {
		s.endRecording(captures.Incomplete, errors.New("the connection ended"))
		return 1
	}
	return 0
}

// beginRecording starts the recording of a request.
func (r *Relay) beginRecording(fields []hpack.HeaderField) captures.Recording {
	host := fieldValue(fields, pseudoAuthority)
	if host == "" {
		host = fieldValue(fields, "host")
	}
	h := regularFields(fields)
	if protocol := fieldValue(fields, pseudoProtocol); protocol != "" {
		h = append(captures.Headers{{Name: pseudoProtocol, Value: protocol}}, h...)
	}
	return r.config.Begin(fieldValue(fields, pseudoMethod), host, fieldValue(fields, pseudoPath), h)
}

// noteHeaders records a header section of an open stream: the final response or
// trailers.
func (r *Relay) noteHeaders(id uint32, d captures.Direction, fields []hpack.HeaderField, last bool) {
	r.mu.Lock()
	s := r.streams[id]
	if s == nil {
		r.mu.Unlock()
		return
	}
	trailers := d == captures.Up || s.answered
	h := regularFields(fields)
	status, _ := strconv.Atoi(fieldValue(fields, pseudoStatus))
	if !trailers {
		if status >= 100 && status < 200 && !last {
			r.mu.Unlock()
			return // forwarded, but not recorded
		}
		s.answered = true
		s.mu.Lock()
		s.answer = envelope.NewResponseEnd(s.method, status, h.Get)
		s.mu.Unlock()
	}
	r.mu.Unlock()
	switch {
	case s.rec == nil:
	case !trailers:
		s.rec.Response(status, h)
	case len(h) > 0:
		s.rec.Trailers(d, h)
	}
}

// endDirection notes that one side has ended its half of a stream, and returns how
// many exchanges this has ended.
func (r *Relay) endDirection(s *stream, id uint32, d captures.Direction) (ended int) {
	r.mu.Lock()
	if s == nil || r.streams[id] != s {
		r.mu.Unlock()
		return 0
	}
	s.ended[d] = true
	if s.ended != [2]bool{true, true} {
		r.mu.Unlock()
		return 0
	}
	delete(r.streams, id)
	r.mu.Unlock()
	s.endRecording(captures.Complete, nil)
	return 1
}

// resetStream notes that one side has reset a stream, and returns how many exchanges
// this has ended. A server that has answered in full, with or
// without END_STREAM, resets the stream with NO_ERROR to have no more of the
// request: what of that is on its way is recorded still.
//
// Source: RFC 9113, section 8.1
func (r *Relay) resetStream(id uint32, d captures.Direction, code errorCode) (ended int) {
	r.mu.Lock()
	s := r.streams[id]
	late := s != nil && d == captures.Down && (s.ended[captures.Down] || code == codeNone && s.isAnswerComplete())
	if late {
		s.ended[captures.Down] = true
	} else {
		delete(r.streams, id)
	}
	r.mu.Unlock()
	if s == nil {
		return 0
	}
	if late {
		time.AfterFunc(lateRequest, func() { r.releaseExchanges(r.endDirection(s, id, captures.Up)) })
		return 0
	}
	if d == captures.Up {
		s.endRecording(captures.Canceled, fmt.Errorf("the client reset the stream: %v", code))
	} else {
		s.endRecording(captures.Reset, &serverAbort{"the server reset the stream", code})
	}
	return 1
}

// endRecording ends the recording of an exchange that is no longer among the streams.
// One that was answered in full is complete, whatever came after: also where
// END_STREAM did not come, because the client had all that it waited for or the
// connection ended, unless the server said that something went wrong or broke
// HTTP/2's rules.
func (s *stream) endRecording(o captures.Outcome, err error) {
	if s.rec == nil {
		return
	}
	text := ""
	received, declared := s.answerLength()
	switch {
	case s.ended[captures.Down] && declared >= 0 && received != declared:
		o, text = captures.Reset, fmt.Sprintf("the body ended after %d of %d bytes", received, declared)
	case s.ended[captures.Down], s.isAnswerComplete() && !errors.As(err, new(*serverAbort)) && !errors.As(err, new(*protocolError)):
		o = captures.Complete
	case err != nil:
		text = err.Error()
	}
	s.rec.End(o, text)
}
