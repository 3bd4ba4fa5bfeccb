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
	"unwire/mitm/rewrite"
)

// lateRequest is how long a request may continue after the server has sent its whole response and reset the
// stream, as in net/http's HTTP/1 client.
const lateRequest = 50 * time.Millisecond

// A stream is an exchange that is running on a relayed connection. The relay's mutex guards its fields, except
// rec and those below mu.
type stream struct {
	// rec is the recording of the exchange; nil if it is not recorded.
	rec captures.Recording

	// change is the additional state if rules may change the bodies; nil otherwise.
	change *change

	// method is the HTTP method of the request.
	method string
	ended  [2]bool // by direction
	// answered means that the final response headers have arrived. Only the pump that forwards responses writes it.
	answered bool

	// mu guards answer.
	mu sync.Mutex

	// answer detects the end of the response from its content, such as the last envelope; nil until the final
	// response headers have arrived.
	answer *envelope.ResponseEnd
}

// recordChunk records body bytes of a direction.
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

// isAnswerComplete reports whether the whole content of the response has arrived, even if END_STREAM is missing.
func (s *stream) isAnswerComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer != nil && s.answer.Complete()
}

// answerLength returns the received and the declared length of the response's body; -1 if none was declared.
func (s *stream) answerLength() (received, declared int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil {
		return 0, -1
	}
	return s.answer.Received, s.answer.Declared
}

// isNewStream reports whether id is the number of a stream that the client has not opened before.
func (r *Relay) isNewStream(id uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return id%2 == 1 && id > r.newestStream
}

// noteRefused records that a stream of the client was refused.
func (r *Relay) noteRefused(id uint32) {
	r.mu.Lock()
	r.newestStream = max(r.newestStream, id)
	r.mu.Unlock()
}

// findStream returns the open stream with an id, or nil.
func (r *Relay) findStream(id uint32) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[id]
}

// openStream starts the recording of a new stream, for which Config.Admit has returned true. pushed means that the
// server opens it with PUSH_PROMISE. It returns 1 if the exchange has ended at once, because the connection has
// ended, and otherwise 0.
func (r *Relay) openStream(id uint32, fields []hpack.HeaderField, pushed bool) (ended int) {
	s := &stream{method: fieldValue(fields, pseudoMethod)}
	s.ended[captures.Up] = pushed
	rec, exchange := r.begin(fields)
	s.rec = rec
	if exchange != nil && !pushed {
		s.change = r.newChange(s, id, exchange)
	}
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
		s.endRecording(captures.Incomplete, errors.New("the connection was closed"))
		return 1
	}
	return 0
}

// begin starts the recording of a request, and determines how rules change its exchange (see Config.Begin).
func (r *Relay) begin(fields []hpack.HeaderField) (captures.Recording, rewrite.Exchange) {
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

// noteHeaders records the final response headers or the trailers of a stream.
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
			// Informational responses are forwarded but not recorded.
			return
		}
		s.answered = true
		if s.change != nil {
			s.change.status, s.change.header = status, h
		}
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

// endDirection marks one direction of a stream as ended, and ends the exchange if both are. It returns the number of
// exchanges that ended, 0 or 1.
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

// removeStream ends the exchange of a stream at once with an outcome and an error. It returns the number of exchanges
// that ended, 0 or 1.
func (r *Relay) removeStream(s *stream, id uint32, o captures.Outcome, err error) (ended int) {
	r.mu.Lock()
	if r.streams[id] != s {
		r.mu.Unlock()
		return 0
	}
	delete(r.streams, id)
	r.mu.Unlock()
	s.endRecording(o, err)
	return 1
}

// resetStream records a RST_STREAM. It returns the number of exchanges that ended. A server that has sent its
// whole response resets the stream with NO_ERROR to decline the rest of the request; the part of the request
// that is on its way is still recorded.
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
	if s.change != nil && !late {
		s.change.drop()
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

// endRecording ends the recording of an exchange that was removed from the streams. If the response is complete,
// so is the exchange, whatever followed. A missing END_STREAM does not matter, because the client had everything
// it was waiting for, unless the server reported an error or violated HTTP/2.
func (s *stream) endRecording(o captures.Outcome, err error) {
	if s.change != nil {
		defer s.change.end()
	}
	if s.rec == nil {
		return
	}
	text := ""
	received, declared := s.answerLength()
	switch {
	case s.change != nil && s.change.isCut():
		// A rule has decided how the exchange ended.
		if err != nil {
			text = err.Error()
		}
	case s.ended[captures.Down] && declared >= 0 && received != declared:
		o, text = captures.Reset, fmt.Sprintf("the body ended after %d of %d bytes", received, declared)
		if received > declared {
			text = fmt.Sprintf("the body has %d bytes, but its content-length is %d", received, declared)
		}
	case s.ended[captures.Down], s.isAnswerComplete() && !errors.As(err, new(*serverAbort)) && !errors.As(err, new(*protocolError)):
		o = captures.Complete
	case err != nil:
		text = err.Error()
	}
	s.rec.End(o, text)
}
