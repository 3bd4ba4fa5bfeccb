package pcapng

import (
	"context"
	"iter"
	"net/http"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// An exchangeWriter writes an exchange onto its connection, one part after the other,
// each when its time has come.
type exchangeWriter struct {
	ctx   context.Context
	src   transfer.Source
	ex    *captures.Exchange
	conn  *connection
	order int // among exchanges

	next  time.Time // of the next part
	pull  func() (captures.Chunk, error, bool)
	stop  func()         // ends pull
	chunk captures.Chunk // that is next
	whole bool           // there is none

	stream    uint32     // HTTP/2
	framing   [2]framing // HTTP/1
	sent      [2]int64   // bytes of the bodies
	done      [2]bool    // directions that have ended
	responded bool
}

// begin puts the request onto the connection.
func (t *exchangeWriter) begin(w *Written) error {
	t.conn.link.advanceTo(t.ex.Started)
	if err := t.measureBodies(); err != nil {
		return err
	}
	if !t.conn.h2 && !t.conn.raw {
		for dir := range t.framing {
			t.framing[dir] = framingOf(t.ex, captures.Direction(dir), &w.Reframed)
		}
	}
	if t.ex.Method != "" {
		if err := t.conn.speaker.request(t); err != nil {
			return err
		}
		if t.ex.BytesUp == 0 && t.endsUp() && !t.done[captures.Up] {
			if err := t.end(captures.Up); err != nil {
				return err
			}
		}
	}
	if err := t.loadChunks(); err != nil {
		return err
	}
	t.schedule()
	return nil
}

// measureBodies takes the sizes of the bodies from their chunks: a view of a capture
// may have others than were recorded.
func (t *exchangeWriter) measureBodies() error {
	ex := *t.ex
	ex.BytesUp, ex.BytesDown = 0, 0
	for c, err := range t.src.Chunks(t.ctx, ex.ID, 0) {
		if err != nil {
			return err
		}
		if c.Dir == captures.Up {
			ex.BytesUp += int64(len(c.Data))
		} else {
			ex.BytesDown += int64(len(c.Data))
		}
	}
	t.ex = &ex
	return nil
}

// tunnels reports whether what passes is no body: its directions end with the exchange.
func (t *exchangeWriter) tunnels() bool {
	return t.conn.raw || t.ex.Status == http.StatusSwitchingProtocols || t.ex.Method == http.MethodConnect
}

// endsUp reports whether the client's side is known to have ended.
func (t *exchangeWriter) endsUp() bool {
	if t.tunnels() {
		return false
	}
	switch t.ex.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return true
	}
	return t.ex.Outcome == captures.Complete
}

// loadChunks takes the next chunk. A store gives them by pages, so that nothing of it
// is held in between.
func (t *exchangeWriter) loadChunks() error {
	if t.pull == nil {
		t.pull, t.stop = iter.Pull2(t.src.Chunks(t.ctx, t.ex.ID, 0))
	}
	c, err, more := t.pull()
	t.chunk, t.whole = c, !more
	return err
}

// schedule sets when the next part is to come.
func (t *exchangeWriter) schedule() {
	if !t.whole {
		t.next = t.ex.Started.Add(t.chunkTime(t.chunk))
		return
	}
	end := t.ex.Started.Add(t.ex.Duration)
	if !t.ex.Ended() || end.Before(t.next) {
		end = t.next // in flight, or as late as the last chunk
	}
	t.next = end
}

// chunkTime is a chunk's time, within its exchange's.
func (t *exchangeWriter) chunkTime(c captures.Chunk) time.Duration {
	if t.ex.Ended() {
		return max(0, min(c.T, t.ex.Duration))
	}
	return max(0, c.T)
}

// step puts the next part onto the connection; over says that it was the last.
func (t *exchangeWriter) step() (over bool, err error) {
	t.conn.link.advanceTo(t.next)
	if t.whole {
		t.stop()
		return true, t.finish()
	}
	if err := t.writeChunk(t.chunk); err != nil {
		return false, err
	}
	if err := t.loadChunks(); err != nil {
		return false, err
	}
	t.schedule()
	return false, nil
}

// writeChunk puts a chunk onto the connection, and what it ends.
func (t *exchangeWriter) writeChunk(c captures.Chunk) error {
	if (c.Dir == captures.Down || t.ex.Status == http.StatusSwitchingProtocols) && !t.responded && t.ex.Status != 0 {
		if err := t.writeResponse(); err != nil {
			return err
		}
	}
	if len(c.Data) == 0 {
		return nil
	}
	t.sent[c.Dir] += int64(len(c.Data))
	last := t.sent[c.Dir] == t.total(c.Dir) && t.closesWith(c)
	if err := t.conn.speaker.data(t, c.Dir, c.Data, last && len(t.trailers(c.Dir)) == 0); err != nil {
		return err
	}
	if last && !t.done[c.Dir] {
		return t.end(c.Dir)
	}
	return nil
}

// closesWith reports whether a direction's last chunk is its end: the client's
// is where it is known to have ended, the server's only if it came when the
// exchange ended.
func (t *exchangeWriter) closesWith(c captures.Chunk) bool {
	if t.tunnels() {
		return false
	}
	if c.Dir == captures.Up {
		return t.endsUp()
	}
	return t.ex.Outcome == captures.Complete && c.T >= t.ex.Duration
}

func (t *exchangeWriter) total(dir captures.Direction) int64 {
	if dir == captures.Up {
		return t.ex.BytesUp
	}
	return t.ex.BytesDown
}

func (t *exchangeWriter) trailers(dir captures.Direction) captures.Headers {
	if dir == captures.Up {
		return t.ex.RequestTrailers
	}
	return t.ex.ResponseTrailers
}

func (t *exchangeWriter) writeResponse() error {
	t.responded = true
	return t.conn.speaker.response(t)
}

// end ends a direction, with its trailers.
func (t *exchangeWriter) end(dir captures.Direction) error {
	t.done[dir] = true
	return t.conn.speaker.end(t, dir)
}

// finish puts what an exchange ended with onto the connection.
func (t *exchangeWriter) finish() error {
	if !t.responded && t.ex.Status != 0 {
		if err := t.writeResponse(); err != nil {
			return err
		}
	}
	switch t.ex.Outcome {
	case captures.Complete:
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			if !t.done[dir] && (t.conn.raw || dir == captures.Up && t.ex.Method != "" || dir == captures.Down && t.responded) {
				if err := t.end(dir); err != nil {
					return err
				}
			}
		}
	case captures.Canceled:
		return t.conn.speaker.cut(t, captures.Up)
	case captures.Reset:
		return t.conn.speaker.cut(t, captures.Down)
	}
	return nil
}
