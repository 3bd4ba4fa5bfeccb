package h2

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

// lateRequest is how long a request may go on after a server has answered in full
// and reset the stream: as long as net/http's client goes on over HTTP/1.
const lateRequest = 50 * time.Millisecond

// An h2Stream is an exchange that is going on on a relayed connection. Its
// fields but rec and those below mu are guarded by the relay's mutex.
type h2Stream struct {
	rec      *captures.Recording // nil: it is not recorded
	method   string
	ended    [2]bool // by direction
	answered bool

	mu     sync.Mutex
	answer *captures.ResponseEnd // nil: the final header section has not come
}

// chunk records bytes of a body.
func (s *h2Stream) chunk(d captures.Direction, p []byte) {
	s.rec.Chunk(d, p)
	if d != captures.Down {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		s.answer.Add(p)
	}
}

// whole reports whether the client was sent all of the answer's content, whether
// or not END_STREAM has come behind it.
func (s *h2Stream) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer != nil && s.answer.Whole()
}

// length returns the length of the answer's body and the one that was declared,
// which is -1 if none was.
func (s *h2Stream) length() (received, declared int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil {
		return 0, -1
	}
	return s.answer.Length()
}

// isNew reports whether a stream that a client names is one that it opens.
func (r *Relay) isNew(id uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return id%2 == 1 && id > r.newest
}

// skip notes a stream that was refused.
func (r *Relay) skip(id uint32) {
	r.mu.Lock()
	r.newest = max(r.newest, id)
	r.mu.Unlock()
}

// stream returns what goes on under a number; nil: nothing.
func (r *Relay) stream(id uint32) *h2Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[id]
}

// open begins an exchange, which was counted. It returns how many have ended
// by it: one if the connection ended meanwhile.
func (r *Relay) open(id uint32, fields []hpack.HeaderField, pushed bool) (ended int) {
	s := &h2Stream{method: field(fields, pseudoMethod)}
	s.ended[captures.Up] = pushed
	s.rec = r.begin(fields)
	r.mu.Lock()
	if !pushed {
		r.newest = max(r.newest, id)
	}
	over := r.over || r.streams[id] != nil || id == 0
	if !over {
		r.streams[id] = s
	}
	r.mu.Unlock()
	if over {
		s.end(captures.Incomplete, errors.New("the connection ended"))
		return 1
	}
	return 0
}

// begin starts the recording of a request.
func (r *Relay) begin(fields []hpack.HeaderField) *captures.Recording {
	host := field(fields, pseudoAuthority)
	if host == "" {
		host = field(fields, "host")
	}
	return r.config.Begin(field(fields, pseudoMethod), host, field(fields, pseudoPath), plainFields(fields))
}

// section takes a header section on a stream that is open: an informational or
// the final response, or trailers.
func (r *Relay) section(id uint32, d captures.Direction, fields []hpack.HeaderField, last bool) {
	r.mu.Lock()
	s := r.streams[id]
	if s == nil {
		r.mu.Unlock()
		return
	}
	trailers := d == captures.Up || s.answered
	h := plainFields(fields)
	status, _ := strconv.Atoi(field(fields, pseudoStatus))
	if !trailers {
		if status >= 100 && status < 200 && !last {
			r.mu.Unlock()
			return // passed on; not part of the record
		}
		s.answered = true
		s.mu.Lock()
		s.answer = captures.NewResponseEnd(s.method, status, h)
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

// sideEnded notes that one side has said all on a stream, and returns how many
// exchanges have ended by it.
func (r *Relay) sideEnded(s *h2Stream, id uint32, d captures.Direction) (ended int) {
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
	s.end(captures.Complete, nil)
	return 1
}

// reset notes that one side has broken a stream off, and returns how many
// exchanges have ended by it. A server that has answered in full, with or
// without END_STREAM, resets the stream with NO_ERROR to have no more of the
// request: what of that is on its way is recorded still.
//
// Source: RFC 9113, section 8.1
func (r *Relay) reset(id uint32, d captures.Direction, code h2Code) (ended int) {
	r.mu.Lock()
	s := r.streams[id]
	late := s != nil && d == captures.Down && (s.ended[captures.Down] || code == codeNone && s.whole())
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
		time.AfterFunc(lateRequest, func() { r.settled(r.sideEnded(s, id, captures.Up)) })
		return 0
	}
	if d == captures.Up {
		s.end(captures.Canceled, fmt.Errorf("the client reset the stream: %v", code))
	} else {
		s.end(captures.Reset, &serverCode{"the server reset the stream", code})
	}
	return 1
}

// end ends the recording of an exchange that is no longer among the streams.
// One that was answered in full is complete, whatever came after: also where
// END_STREAM did not come, because the client had all that it waited for or the
// connection ended, unless the server said that something went wrong or broke
// HTTP/2's rules.
func (s *h2Stream) end(o captures.Outcome, err error) {
	if s.rec == nil {
		return
	}
	text := ""
	received, declared := s.length()
	switch {
	case s.ended[captures.Down] && declared >= 0 && received != declared:
		o, text = captures.Reset, fmt.Sprintf("the body ended after %d of %d bytes", received, declared)
	case s.ended[captures.Down], s.whole() && !errors.As(err, new(*serverCode)) && !errors.As(err, new(*h2Error)):
		o = captures.Complete
	case err != nil:
		text = err.Error()
	}
	s.rec.End(o, text)
}
