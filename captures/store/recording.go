package store

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store/internal/fields"
	"unwire/captures/store/internal/payload"
)

// How long bytes are held back at most because a secret may be passing: after
// maxHold of quiet, or maxHoldTotal of anything, they are written.
const (
	maxHold      = 250 * time.Millisecond
	maxHoldTotal = 3 * maxHold
)

// A recording is an exchange that is being recorded. Its methods may be
// called from several goroutines, typically one per direction; they block
// while the store's queue is full, and do nothing once End was called or
// recording has failed (see Store.Err).
type recording struct {
	store *Store
	start time.Time     // with the monotonic clock
	lead  time.Duration // from Exchange.Started to start

	mu    sync.Mutex
	ex    captures.Exchange // as it is stored: without secrets
	seq   int64             // of the next chunk
	ended bool

	// bodies take the secrets out; nil if secrets are kept.
	bodies [2]*redact.BodyFilter

	// changed are reported when something follows the change of protocol that they stand
	// for: that of a WebSocket is in an exchange of its own, which is searched.
	changed []redact.Unsearched

	// left is how many bytes of each direction may still be stored, if Options.MaxBody is
	// set.
	left [2]int64

	// headersCut is how many fields of headers were left out.
	headersCut int

	// queued is the state that the writer has of it.
	queued stateRef

	heldSince [2]time.Time
	timer     *time.Timer // ends the holding back of chunks
}

// Begin starts recording an exchange. Its ID is set at once and whatever ex
// holds beyond the request is kept, so an exchange that is known as a whole
// may be begun with all of it.
//
// Errors: ErrReadOnly, ErrClosed, or what stopped the recording.
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

// newRecording returns a recording of ex that has no ID yet.
func newRecording(s *Store, ex captures.Exchange) *recording {
	r := &recording{store: s, start: time.Now(), ex: ex}
	r.ex.ID = 0
	if ex.Started.IsZero() {
		r.ex.Started = r.start
	}
	r.lead = max(0, r.start.Sub(r.ex.Started))
	return r
}

// begin enters r, whose exchange is ex, into its store. An ID that is set stays. The event
// is Began, or Changed if the capture has the exchange already.
func (r *recording) begin(ex captures.Exchange, event captures.EventKind) error {
	s := r.store
	r.left = [2]int64{s.maxBody, s.maxBody}
	r.mu.Lock() // before Close can find it and end it
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
	r.ex.Outcome = captures.InFlight
	r.redact(&ex)
	if err := r.write(event); err != nil {
		s.forget(r.ex.ID)
		return err
	}
	return nil
}

func (s *Store) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
	if len(s.open) == 0 && s.drained != nil {
		go s.drained()
		s.drained = nil
	}
}

// WhenDrained has f called, on a goroutine of its own, as soon as no exchange
// is open. None may begin after this.
func (s *Store) WhenDrained(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		go f()
		return
	}
	s.drained = f
}

// ID returns the exchange's number in the capture.
func (r *recording) ID() int64 { return r.ex.ID }

// Response records the response's status and headers.
func (r *recording) Response(status int, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ex.Status, r.ex.ResponseHeaders = status, r.section(h)
	if r.store.Redactor != nil && r.bodies[captures.Down] == nil {
		r.bodies[captures.Down] = redact.NewBodyFilter(r.store.Redactor, h)
	}
	r.changeProtocol()

	// Store.Err keeps the error.
	_ = r.write(captures.Responded, r.ex.ResponseHeaders)
}

// changeProtocol notes that the search for secrets cannot look into what
// follows, if the response says that it is no HTTP.
func (r *recording) changeProtocol() {
	to := r.ex.ChangedProtocol()
	if to == "" || r.bodies[captures.Up] == nil || r.bodies[captures.Down] == nil {
		return
	}
	var runs []redact.Unsearched
	for dir, b := range r.bodies {
		runs = append(runs, b.ChangeProtocol(captures.Direction(dir), to))
	}
	r.changed = runs
}

func (r *recording) reportUnsearched(runs []redact.Unsearched) {
	if r.store.unsearched != nil && len(runs) > 0 {
		r.store.unsearched(r.ex, runs)
	}
}

// Chunk records a run of body bytes that passed just now. It copies p, and
// blocks while the queue is full. A chunk in which a compressed message begins
// that does not end in it is stored as two, so that what precedes the message
// need not wait for it; all others keep their boundaries.
func (r *recording) Chunk(dir captures.Direction, p []byte) {
	r.ChunkAt(dir, r.lead+time.Since(r.start), p)
}

// ChunkAt is Chunk for bytes that passed at time t from Exchange.Started, as
// in a capture of another tool.
func (r *recording) ChunkAt(dir captures.Direction, t time.Duration, p []byte) {
	if len(p) > 0 {
		r.chunkAt(dir, t, 0, p)
	}
}

// Message records a message of a WebSocket that passed just now, or a part of one.
func (r *recording) Message(dir captures.Direction, op captures.Opcode, p []byte) {
	r.MessageAt(dir, r.lead+time.Since(r.start), op, p)
}

// MessageAt is Message for one that passed at time t from Exchange.Started. A message
// may be empty.
func (r *recording) MessageAt(dir captures.Direction, t time.Duration, op captures.Opcode, p []byte) {
	r.chunkAt(dir, t, op, p)
}

func (r *recording) chunkAt(dir captures.Direction, t time.Duration, op captures.Opcode, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if len(r.changed) > 0 && len(p) > 0 {
		r.reportUnsearched(r.changed)
		r.changed = nil
	}
	if dir == captures.Up {
		r.ex.BytesUp += int64(len(p))
	} else {
		r.ex.BytesDown += int64(len(p))
	}
	if r.store.maxBody > 0 {
		p = p[:min(int64(len(p)), r.left[dir])]
		r.left[dir] -= int64(len(p))
	}
	for more := len(p) > 0 || r.ex.Transport == captures.WebSocket; more; {
		n := min(len(p), payload.MaxSize)
		c := r.store.writer.buffers.chunk(p[:n])
		c.Exchange, c.Dir, c.Seq, c.T, c.Opcode = r.ex.ID, dir, r.seq, max(0, t), op
		r.seq++
		p = p[n:]
		if more = len(p) > 0; more {
			c.Opcode &^= captures.OpFinal
			op &^= 0x0f // the rest continues the message
		}
		r.redactChunk(dir, c)
	}
	r.setHoldTimer()
}

// redactChunk sends a chunk on its way, through the redaction if there is one.
func (r *recording) redactChunk(dir captures.Direction, c *captures.Chunk) {
	if r.store.Redactor == nil {
		r.emit(true, c)
		return
	}
	b := r.bodies[dir]
	if b == nil { // before the response's headers
		b = redact.NewBodyFilter(r.store.Redactor, nil)
		r.bodies[dir] = b
	}
	b.Write(c)
	if second := b.Split(); second != nil {
		second.Data = bytes.Clone(second.Data) // each recycles its own
		second.Seq = r.seq
		r.seq++
	}
	r.emit(true, b.Ready()...)
}

// setHoldTimer sets the timer for what is held back after a chunk has passed.
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

// flushHeld releases the chunks held back for redaction.
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

// heldBefore reports whether chunks are held back since t or before.
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

// emit queues chunks, which are owned if nobody else has them or their data.
func (r *recording) emit(owned bool, chunks ...*captures.Chunk) {
	for _, c := range chunks {
		// Store.Err keeps the error.
		_ = r.store.writer.put(op{chunk: c, owned: owned, isMsg: r.ex.Transport == captures.WebSocket, cost: int64(len(c.Data))})
	}
}

// Relate records how the exchange is related to another one.
func (r *recording) Relate(kind captures.RelationKind, target int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	_ = r.store.writer.put(op{rel: &captures.Relation{Exchange: r.ex.ID, Kind: kind, Target: target}})
}

// Trailers records the trailers of one direction.
func (r *recording) Trailers(dir captures.Direction, h captures.Headers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if dir == captures.Up {
		r.ex.RequestTrailers = r.section(h)
	} else {
		r.ex.ResponseTrailers = r.section(h)
	}
	_ = r.write(captures.Changed, h)
}

// Connection records what is known of the connection to the server.
func (r *recording) Connection(t captures.TLS, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ex.TLS, r.ex.Server = t, r.store.clean(server)
	_ = r.write(captures.Changed)
}

// Process records the program that made the connection.
func (r *recording) Process(p captures.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	s := r.store
	r.ex.Process = captures.Process{PID: p.PID, Name: s.clean(p.Name), Client: s.clean(p.Client), Version: s.clean(p.Version)}
	_ = r.write(captures.Changed)
}

// End records how the exchange ended, and why if it failed. Only the first
// call counts.
func (r *recording) End(o captures.Outcome, errText string) {
	r.EndAt(r.lead+time.Since(r.start), o, errText)
}

// EndAt is End for an exchange that took as long as d.
func (r *recording) EndAt(d time.Duration, o captures.Outcome, errText string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	for dir, b := range r.bodies {
		if b != nil {
			// What the limit cut off may have begun as a secret.
			b.Close(r.notStored(captures.Direction(dir)) > 0)
			r.emit(true, b.Ready()...)
		}
	}
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	if o == captures.InFlight {
		o = captures.Incomplete
	}
	r.ex.Outcome, r.ex.Error, r.ex.Duration = o, r.store.clean(errText), max(0, d)
	r.mentionCut()
	var runs []redact.Unsearched
	for dir, b := range r.bodies {
		if b != nil {
			runs = append(runs, b.Unsearched(&r.ex, captures.Direction(dir))...)
		}
	}
	r.reportUnsearched(runs)
	_ = r.write(captures.Ended)
	r.store.forget(r.ex.ID)
}

// notStored is how much of a direction Options.MaxBody has left out.
func (r *recording) notStored(dir captures.Direction) int64 {
	passed := r.ex.BytesUp
	if dir == captures.Down {
		passed = r.ex.BytesDown
	}
	if r.store.maxBody == 0 {
		return 0
	}
	return passed - (r.store.maxBody - r.left[dir])
}

// mentionCut says in the exchange what was left out.
func (r *recording) mentionCut() {
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		if n := r.notStored(dir); n > 0 {
			r.ex.AddShortened(dir, n, r.store.maxBody)
		}
	}
	if r.headersCut > 0 {
		if r.ex.Error != "" {
			r.ex.Error += "; "
		}
		r.ex.Error += fmt.Sprintf("%d header fields were not stored: a section has at most %d bytes", r.headersCut, maxSection)
	}
}

// redact takes the secrets out of what is known when an exchange begins.
func (r *recording) redact(ex *captures.Exchange) {
	s := r.store
	for _, h := range []*captures.Headers{&r.ex.RequestHeaders, &r.ex.RequestTrailers, &r.ex.ResponseHeaders, &r.ex.ResponseTrailers} {
		if *h = r.bounded(*h); s.Redactor == nil {
			*h = slices.Clone(*h)
		}
	}
	if s.Redactor == nil {
		return
	}
	r.ex = s.Redactor.Exchange(r.ex)
	if ex.Transport == captures.WebSocket {
		r.bodies = [2]*redact.BodyFilter{redact.NewMessageFilter(s.Redactor), redact.NewMessageFilter(s.Redactor)}
		return
	}
	r.bodies[captures.Up] = redact.NewBodyFilter(s.Redactor, ex.RequestHeaders)
	if ex.Status != 0 {
		r.bodies[captures.Down] = redact.NewBodyFilter(s.Redactor, ex.ResponseHeaders)
		r.changeProtocol()
	}
}

// maxSection is how many bytes a section of headers has in the file: with HPACK, a few
// bytes on the wire can stand for many.
const maxSection = 1 << 20

// bounded returns what of a section is stored, and counts what is not.
func (r *recording) bounded(h captures.Headers) captures.Headers {
	size := 0
	for i := range h {
		if size += fields.Size(h[i]); size > maxSection || i >= fields.Max {
			r.headersCut += len(h) - i
			return h[:i]
		}
	}
	return h
}

// section returns a copy of a section of headers as it may be stored.
func (r *recording) section(h captures.Headers) captures.Headers {
	h = r.bounded(h)
	if r.store.Redactor == nil {
		return slices.Clone(h)
	}
	return r.store.Redactor.Headers(h)
}

// clean returns text as it may be stored.
func (s *Store) clean(text string) string {
	if s.Redactor == nil {
		return text
	}
	return s.Redactor.String(text)
}

// write queues the exchange's state, with sections of headers that are new.
func (r *recording) write(kind captures.EventKind, added ...captures.Headers) error {
	cost := 0
	if kind == captures.Began {
		cost = headSize(&r.ex)
	}
	for _, h := range added {
		cost += sectionSize(h)
	}
	return r.store.writer.putState(&r.queued, &r.ex, kind, int64(cost))
}
