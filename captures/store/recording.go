package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store/internal/fields"
	"unwire/captures/store/internal/payload"
)

// maxHold and maxHoldTotal limit how long bytes that may be part of a secret are held back: until maxHold after
// the last byte, and at most maxHoldTotal after the first.
const (
	maxHold      = 250 * time.Millisecond
	maxHoldTotal = 3 * maxHold
)

// A recording is an exchange that is being recorded; it implements captures.Recording. Its methods block while
// the store's queue is full. They do nothing after End, or once recording has failed (see Store.Err).
type recording struct {
	// store is the capture in which the exchange is recorded.
	store *Store
	// start is when the recording of the exchange began, including a monotonic clock reading.
	start time.Time
	// startOffset is the duration from Exchange.Started to start.
	startOffset time.Duration

	// mu guards the fields below.
	mu sync.Mutex
	// ex is the exchange as it is stored, after redaction.
	ex captures.Exchange
	// seq is the sequence number of the exchange's next chunk.
	seq int64
	// ended means that the exchange has ended; further calls do nothing.
	ended bool

	// bodies replace the secrets in the bodies of each direction; nil if secrets are kept.
	bodies [2]*redact.BodyFilter

	// pendingUnsearched are ranges that cannot be searched for secrets, after a protocol switch. They are
	// reported once bytes follow; those of a WebSocket are recorded, and searched, in another exchange.
	pendingUnsearched []redact.Unsearched

	// bodyLeft is the number of bytes of each direction that may still be stored; it is used if the capture
	// limits the size of bodies.
	bodyLeft [2]int64

	// headersOmitted counts header fields that were not stored because a section was too large.
	headersOmitted int

	// queued refers to the newest state of the exchange that is waiting to be written.
	queued stateRef

	// heldSince is when the oldest byte that is held back in each direction arrived; zero if none is.
	heldSince [2]time.Time
	// timer releases the chunks that were held back for redaction, when it expires; nil until it is needed.
	timer *time.Timer
}

// Begin starts the recording of an exchange; see captures.Recorder. The exchange's ID is assigned at once.
//
// Errors: ErrReadOnly, ErrClosed, or the error that stopped the recording.
func (s *Store) Begin(ex captures.Exchange) (captures.Recording, error) {
	if s.writer == nil {
		return nil, pathError(s.Path, captures.ErrReadOnly)
	}
	r := newRecording(s, ex)
	if err := r.begin(ex, captures.Began); err != nil {
		return nil, pathError(s.Path, err)
	}
	return r, nil
}

// newRecording returns a recording of ex without an ID.
func newRecording(s *Store, ex captures.Exchange) *recording {
	r := &recording{store: s, start: time.Now(), ex: ex}
	r.ex.ID = 0
	if ex.Started.IsZero() {
		r.ex.Started = r.start
	}
	r.startOffset = max(0, r.start.Sub(r.ex.Started))
	return r
}

// begin registers r with its store and stores the exchange. event is Began, or Changed if the capture contains
// the exchange already. It uses the ID in ex if that is set and not too small, otherwise the next one.
func (r *recording) begin(ex captures.Exchange, event captures.EventKind) error {
	s := r.store
	r.bodyLeft = [2]int64{s.maxBody, s.maxBody}
	// Lock before Close can find the recording and end it.
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return captures.ErrClosed
	}
	if event == captures.Began {
		r.ex.ID = max(s.nextID, r.ex.ID)
		s.nextID = r.ex.ID + 1
	}
	s.open[r.ex.ID] = r
	s.mu.Unlock()

	// ex still has the secrets; r.ex gets redacted copies.
	r.ex.Outcome = captures.InFlight
	r.redact(&ex)
	// The proxy knows the connection to an HTTP/2 server from the start.
	s.keepAuthority(ex.TLS.CA)
	if err := r.enqueueState(event); err != nil {
		s.removeOpen(r.ex.ID)
		return err
	}
	return nil
}

// removeOpen unregisters an exchange that has ended.
func (s *Store) removeOpen(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
	if len(s.open) == 0 && s.onDrained != nil {
		go s.onDrained()
		s.onDrained = nil
	}
}

// WhenDrained calls f on a new goroutine as soon as no exchange is running. No exchange may be begun
// after this call.
func (s *Store) WhenDrained(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		go f()
		return
	}
	s.onDrained = f
}

// ID returns the number of the recorded exchange in the capture.
func (r *recording) ID() int64 { return r.ex.ID }

// Response records the response's status and headers.
func (r *recording) Response(status int, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ex.Status, r.ex.ResponseHeaders = status, r.storedSection(h)
	if r.store.Redactor != nil && r.bodies[captures.Down] == nil {
		r.bodies[captures.Down] = redact.NewBodyFilter(r.store.Redactor, h, r.ex.URL)
	}
	r.changeProtocol()

	// An error stops the recording; Store.Err returns it.
	_ = r.enqueueState(captures.Responded, r.ex.ResponseHeaders)
}

// changeProtocol records that bytes after a protocol switch cannot be searched for secrets.
func (r *recording) changeProtocol() {
	to := r.ex.ChangedProtocol()
	if to == "" || r.bodies[captures.Up] == nil || r.bodies[captures.Down] == nil {
		return
	}
	var runs []redact.Unsearched
	for dir, b := range r.bodies {
		runs = append(runs, b.ChangeProtocol(captures.Direction(dir), to))
	}
	r.pendingUnsearched = runs
}

// reportUnsearched calls Options.Unsearched with the ranges that could not be searched for secrets.
func (r *recording) reportUnsearched(runs []redact.Unsearched) {
	if r.store.unsearched != nil && len(runs) > 0 {
		r.store.unsearched(r.ex, runs)
	}
}

// Chunk records body bytes that arrived just now. It copies p, and blocks while the queue is full.
//
// A chunk in which a compressed message begins but does not end is stored as two chunks, so that the bytes
// before the message need not wait for the rest of it. All other chunk boundaries are kept.
func (r *recording) Chunk(dir captures.Direction, p []byte) {
	r.ChunkAt(dir, r.startOffset+time.Since(r.start), p)
}

// ChunkAt is Chunk for bytes that arrived at time t after Exchange.Started.
func (r *recording) ChunkAt(dir captures.Direction, t time.Duration, p []byte) {
	if len(p) > 0 {
		r.chunkAt(dir, t, 0, p)
	}
}

// Message records a WebSocket message, or a part of one, that arrived just now.
func (r *recording) Message(dir captures.Direction, op captures.Opcode, p []byte) {
	r.MessageAt(dir, r.startOffset+time.Since(r.start), op, p)
}

// MessageAt records a WebSocket message, or a fragment of one, that arrived at time t after Exchange.Started. A
// message may be empty.
func (r *recording) MessageAt(dir captures.Direction, t time.Duration, op captures.Opcode, p []byte) {
	r.chunkAt(dir, t, op, p)
}

// chunkAt records body bytes, or a WebSocket message with opcode op, that arrived at time t after
// Exchange.Started.
func (r *recording) chunkAt(dir captures.Direction, t time.Duration, op captures.Opcode, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if len(r.pendingUnsearched) > 0 && len(p) > 0 {
		r.reportUnsearched(r.pendingUnsearched)
		r.pendingUnsearched = nil
	}

	// Count all bytes, also those that are not stored.
	if dir == captures.Up {
		r.ex.BytesUp += int64(len(p))
	} else {
		r.ex.BytesDown += int64(len(p))
	}
	if r.store.maxBody > 0 {
		p = p[:min(int64(len(p)), r.bodyLeft[dir])]
		r.bodyLeft[dir] -= int64(len(p))
	}

	// Split what is larger than a chunk may be. An empty message is stored too.
	for more := len(p) > 0 || r.ex.Transport == captures.WebSocket; more; {
		n := min(len(p), payload.MaxSize)
		c := r.store.writer.buffers.chunk(p[:n])
		c.Exchange, c.Dir, c.Seq, c.T, c.Opcode = r.ex.ID, dir, r.seq, max(0, t), op
		r.seq++
		p = p[n:]
		if more = len(p) > 0; more {
			c.Opcode &^= captures.OpFinal
			// The rest continues the message.
			op &^= 0x0f
		}
		r.redactChunk(dir, c)
	}
	r.setHoldTimer()
}

// redactChunk queues a chunk. If there is a redactor, it replaces secrets first, and may hold the chunk back.
func (r *recording) redactChunk(dir captures.Direction, c *captures.Chunk) {
	if r.store.Redactor == nil {
		r.emit(true, c)
		return
	}
	b := r.bodies[dir]
	// The response headers have not arrived: nothing is known about the body.
	if b == nil {
		b = redact.NewBodyFilter(r.store.Redactor, nil, r.ex.URL)
		r.bodies[dir] = b
	}
	b.Write(c)
	if second := b.Split(); second != nil {
		// Both chunks are recycled later, so they must not share memory.
		second.Data = bytes.Clone(second.Data)
		second.Seq = r.seq
		r.seq++
	}
	r.emit(true, b.Ready()...)
}

// setHoldTimer schedules flushHeld for when bytes of either direction have been held back long enough.
func (r *recording) setHoldTimer() {
	wait := maxHoldTotal
	held := false
	for dir, b := range r.bodies {
		switch {
		case b == nil || !b.Holding():
			r.heldSince[dir] = time.Time{}
			continue
		case r.heldSince[dir].IsZero():
			r.heldSince[dir] = time.Now()
		}
		held = true
		wait = min(wait, r.store.holdFor, maxHoldTotal-time.Since(r.heldSince[dir]))
	}
	switch {
	case !held:
	case r.timer == nil:
		r.timer = time.AfterFunc(wait, r.flushHeld)
	default:
		r.timer.Reset(wait)
	}
}

// flushHeld releases the chunks that are held back for redaction.
func (r *recording) flushHeld() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	for dir, b := range r.bodies {
		if b != nil && b.Holding() {
			b.FlushHeld()
			r.emit(true, b.Ready()...)
			r.heldSince[dir] = time.Time{}
		}
	}
}

// heldBefore reports whether chunks are held back that arrived at or before t.
func (r *recording) heldBefore(t time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, since := range r.heldSince {
		if !r.ended && !since.IsZero() && !since.After(t) {
			return true
		}
	}
	return false
}

// emit queues finished chunks for writing. owned means that nobody else refers to the chunks or their data.
func (r *recording) emit(owned bool, chunks ...*captures.Chunk) {
	for _, c := range chunks {
		// An error stops the recording; Store.Err returns it.
		_ = r.store.writer.enqueue(op{chunk: c, owned: owned, isMsg: r.ex.Transport == captures.WebSocket, cost: int64(len(c.Data))})
	}
}

// Relate links the recorded exchange to another exchange of the capture.
func (r *recording) Relate(kind captures.RelationKind, target int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	_ = r.store.writer.enqueue(op{rel: &captures.Relation{Exchange: r.ex.ID, Kind: kind, Target: target}})
}

// Trailers records the HTTP trailers of one direction.
func (r *recording) Trailers(dir captures.Direction, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if dir == captures.Up {
		r.ex.RequestTrailers = r.storedSection(h)
	} else {
		r.ex.ResponseTrailers = r.storedSection(h)
	}
	_ = r.enqueueState(captures.Changed, h)
}

// Connection records the TLS details and the address of the server.
func (r *recording) Connection(t captures.TLS, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.store.keepAuthority(t.CA)
	r.ex.TLS, r.ex.Server = t, r.store.redactText(server)
	_ = r.enqueueState(captures.Changed)
}

// Process records which client program made the connection.
func (r *recording) Process(p captures.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	s := r.store
	r.ex.Process = captures.Process{PID: p.PID, Name: s.redactText(p.Name), Client: s.redactText(p.Client), Version: s.redactText(p.Version)}
	_ = r.enqueueState(captures.Changed)
}

// End records the outcome, and an error text if the exchange failed. Only the first call has an effect.
func (r *recording) End(o captures.Outcome, errText string) {
	r.EndAt(r.startOffset+time.Since(r.start), o, errText)
}

// EndAt records the outcome of an exchange whose duration d is known.
func (r *recording) EndAt(d time.Duration, o captures.Outcome, errText string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}

	// Release what is held back.
	for dir, b := range r.bodies {
		if b != nil {
			// The bytes that a limit cut off may have been the end of a secret.
			b.Close(r.truncatedBytes(captures.Direction(dir)) > 0)
			r.emit(true, b.Ready()...)
		}
	}
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}

	// A caller cannot leave the exchange in flight.
	if o == captures.InFlight {
		o = captures.Incomplete
	}
	r.ex.Outcome, r.ex.Error, r.ex.Duration = o, r.store.redactText(errText), max(0, d)
	r.noteTruncation()

	// Report what could not be searched for secrets.
	var runs []redact.Unsearched
	for dir, b := range r.bodies {
		if b != nil {
			runs = append(runs, b.Unsearched(&r.ex, captures.Direction(dir))...)
			b.Recycle()
		}
	}
	r.bodies = [2]*redact.BodyFilter{}
	r.reportUnsearched(runs)
	_ = r.enqueueState(captures.Ended)
	r.store.removeOpen(r.ex.ID)
}

// truncatedBytes returns how many bytes of a direction were not stored because of Options.MaxBody.
func (r *recording) truncatedBytes(dir captures.Direction) int64 {
	passed := r.ex.BytesUp
	if dir == captures.Down {
		passed = r.ex.BytesDown
	}
	if r.store.maxBody == 0 {
		return 0
	}
	return passed - (r.store.maxBody - r.bodyLeft[dir])
}

// noteTruncation adds to the exchange's Error a description of the data that was not stored because of limits.
func (r *recording) noteTruncation() {
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		if n := r.truncatedBytes(dir); n > 0 {
			r.ex.AddTruncation(dir, n, r.store.maxBody)
		}
	}
	if r.headersOmitted > 0 {
		if r.ex.Error != "" {
			r.ex.Error += "; "
		}
		r.ex.Error += fmt.Sprintf("%d header fields were not stored: a section has at most %d bytes", r.headersOmitted, maxSection)
	}
}

// redact replaces the secrets in the URL and headers when the exchange begins, and creates the filters for its
// bodies. ex still has the original headers.
func (r *recording) redact(ex *captures.Exchange) {
	s := r.store
	for _, h := range []*captures.Headers{&r.ex.RequestHeaders, &r.ex.RequestTrailers, &r.ex.ResponseHeaders, &r.ex.ResponseTrailers} {
		if *h = r.limitSection(*h); s.Redactor == nil {
			*h = slices.Clone(*h)
		}
	}
	if s.Redactor == nil {
		return
	}
	r.ex = s.Redactor.Exchange(r.ex)

	// A WebSocket has messages in both directions.
	if ex.Transport == captures.WebSocket {
		r.bodies = [2]*redact.BodyFilter{redact.NewMessageFilter(s.Redactor), redact.NewMessageFilter(s.Redactor)}
		return
	}

	// The filter needs the original headers, for instance the boundary of a multipart body.
	r.bodies[captures.Up] = redact.NewBodyFilter(s.Redactor, ex.RequestHeaders, ex.URL)
	if ex.Status != 0 {
		r.bodies[captures.Down] = redact.NewBodyFilter(s.Redactor, ex.ResponseHeaders, ex.URL)
		r.changeProtocol()
	}
}

// maxSection is the largest header section that is stored, in bytes. With HPACK, a few bytes on the wire can
// expand to many.
const maxSection = 1 << 20

// limitSection returns those fields of a header section that fit into maxSection, and counts the omitted ones.
func (r *recording) limitSection(h captures.Headers) captures.Headers {
	size := 0
	for i := range h {
		if size += fields.Size(h[i]); size > maxSection || i >= fields.Max {
			r.headersOmitted += len(h) - i
			return h[:i]
		}
	}
	return h
}

// storedSection returns a copy of a header section as it is to be stored: limited in size, and without secrets.
func (r *recording) storedSection(h captures.Headers) captures.Headers {
	h = r.limitSection(h)
	if r.store.Redactor == nil {
		return slices.Clone(h)
	}
	return r.store.Redactor.Headers(h)
}

// redactText replaces the secrets in a text, unless secrets are kept.
func (s *Store) redactText(text string) string {
	if s.Redactor == nil {
		return text
	}
	return s.Redactor.String(text)
}

// enqueueState queues an event with the exchange's current state. added are header sections that are new in it;
// their memory counts toward the limit of the queue.
func (r *recording) enqueueState(kind captures.EventKind, added ...captures.Headers) error {
	cost := 0
	if kind == captures.Began {
		cost = headSize(&r.ex)
	}
	for _, h := range added {
		cost += sectionSize(h)
	}
	return r.store.writer.enqueueState(&r.queued, &r.ex, kind, int64(cost))
}

const (
	// authorityPrefix begins the names of rows in the table meta that contain CA certificates; authorityEnd is
	// above all such names.
	authorityPrefix = "ca\x1f"
	authorityEnd    = "ca\x20"
	// maxAuthorities limits the number of certificates.
	maxAuthorities = 64
	// maxAuthorityLen limits the size of a certificate, in bytes.
	maxAuthorityLen = 64 << 10
)

// keepAuthority stores the certificate of a CA once, if it has one.
func (s *Store) keepAuthority(a captures.Authority) {
	if a.Certificate == "" || len(a.Certificate) > maxAuthorityLen {
		return
	}
	s.mu.Lock()
	kept := s.authorities[a.SHA256]
	if s.authorities == nil {
		s.authorities = map[string]bool{}
	}
	if !kept && len(s.authorities) < maxAuthorities {
		s.authorities[a.SHA256] = true
	} else {
		kept = true
	}
	s.mu.Unlock()
	if kept {
		return
	}
	// Nobody waits: an exchange without the certificate is still an exchange.
	_ = s.writer.enqueue(op{done: make(chan error, 1), run: func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO meta (name, value) SELECT ?1, ?2 WHERE (SELECT count(*) FROM meta WHERE name >= ?3 AND name < ?4) < ?5 `+
			`ON CONFLICT (name) DO NOTHING`, authorityPrefix+a.SHA256, []byte(a.Certificate), authorityPrefix, authorityEnd, maxAuthorities)
		return err
	}})
}
