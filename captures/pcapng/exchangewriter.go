package pcapng

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// An exchangeWriter writes an exchange as synthesized packets of its connection, step by step. The steps of
// concurrent exchanges are interleaved by their times.
type exchangeWriter struct {
	// ctx is the context of the export; its end cancels reading chunks.
	ctx context.Context
	// src is the capture that is exported.
	src transfer.Source
	// ex is the exchange to be written, without its body.
	ex *captures.Exchange
	// conn is the synthesized TCP connection that carries the exchange.
	conn *connection
	// comment is the comment of the exchange's packets, if rules changed the exchange; "" otherwise.
	comment string
	// order is the position of the exchange among all exchanges of the export, by start time; it orders
	// packets with equal times.
	order int

	// next is the time of the next packets that are to be written for the exchange.
	next time.Time
	// nextChunk returns the next chunk of the exchange, in order of arrival; false after the last one.
	nextChunk func() (captures.Chunk, error, bool)
	// stopChunks ends the iteration over the chunks before the last one.
	stopChunks func()
	// chunk is the next chunk to be written, unless noMoreChunks is set.
	chunk captures.Chunk
	// noMoreChunks means that all chunks of the exchange were read.
	noMoreChunks bool

	// stream is the id of the HTTP/2 stream; 0 before it is opened, and for other protocols.
	stream uint32
	// framing is how the end of each HTTP/1 body is marked, indexed by captures.Direction.
	framing [2]framing
	// sent is the number of body bytes written so far in each direction.
	sent [2]int64
	// done is true for each direction whose end was written.
	done [2]bool
	// responded means that the head of the response was written.
	responded bool
}

// begin writes the head of the request and loads the first chunk. It counts bodies that need other framing in
// w.
func (t *exchangeWriter) begin(w *Result) error {
	t.conn.link.advanceTo(t.ex.Started)
	if err := t.measureBodies(); err != nil {
		return err
	}
	if err := t.loadComment(); err != nil {
		return err
	}
	defer t.mark()()

	// HTTP/1 needs to know how each body ends before it begins.
	if !t.conn.h2 && !t.conn.raw {
		for dir := range t.framing {
			t.framing[dir] = framingOf(t.ex, captures.Direction(dir), &w.Reframed)
		}
	}

	// An exchange without a request begins with its response.
	if t.ex.Method != "" {
		if err := t.conn.writer.request(t); err != nil {
			return err
		}
		if t.ex.BytesUp == 0 && t.clientEnded() && !t.done[captures.Up] {
			if err := t.end(captures.Up); err != nil {
				return err
			}
		}
	}
	if err := t.loadChunk(); err != nil {
		return err
	}
	t.schedule()
	return nil
}

// measureBodies sets BytesUp and BytesDown to the sum of the chunks, because in a redacted view of a capture
// these can differ from the recorded sizes.
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

// loadComment sets the comment of the packets if rules changed the exchange before it was forwarded.
func (t *exchangeWriter) loadComment() error {
	r, err := t.src.Rewritten(t.ctx, t.ex.ID)
	if err == nil && r != nil {
		t.comment = fmt.Sprintf("unwire: exchange %d was changed by rules (%s); shown: %s", t.ex.ID, strings.Join(r.Rules, ", "), r.Shown)
	}
	return err
}

// mark gives the packets that are written next the comment of the exchange, until unmark is called.
func (t *exchangeWriter) mark() (unmark func()) {
	t.conn.link.comment = t.comment
	return func() { t.conn.link.comment = "" }
}

// isTunnel reports whether the bytes are not an HTTP body but those of another protocol. Then both directions
// end with the exchange.
func (t *exchangeWriter) isTunnel() bool {
	return t.conn.raw || t.ex.Status == http.StatusSwitchingProtocols || t.ex.Method == http.MethodConnect
}

// clientEnded reports whether the client's direction is known to have ended.
func (t *exchangeWriter) clientEnded() bool {
	if t.isTunnel() {
		return false
	}
	switch t.ex.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return true
	}
	return t.ex.Outcome == captures.Complete
}

// loadChunk loads the next chunk. The source reads chunks page by page, so no database transaction stays open.
func (t *exchangeWriter) loadChunk() error {
	if t.nextChunk == nil {
		t.nextChunk, t.stopChunks = iter.Pull2(t.src.Chunks(t.ctx, t.ex.ID, 0))
	}
	c, err, more := t.nextChunk()
	t.chunk, t.noMoreChunks = c, !more
	return err
}

// schedule sets next to the time of the next chunk or, after the last one, the end of the exchange.
func (t *exchangeWriter) schedule() {
	if !t.noMoreChunks {
		t.next = t.ex.Started.Add(t.chunkTime(t.chunk))
		return
	}
	end := t.ex.Started.Add(t.ex.Duration)
	if !t.ex.Ended() || end.Before(t.next) {
		// The exchange is in flight, or its last chunk is later than its end.
		end = t.next
	}
	t.next = end
}

// chunkTime returns the time of a chunk since the start of its exchange, but at most the exchange's duration.
func (t *exchangeWriter) chunkTime(c captures.Chunk) time.Duration {
	if t.ex.Ended() {
		return max(0, min(c.T, t.ex.Duration))
	}
	return max(0, c.T)
}

// step writes the next chunk, or after the last one the end of the exchange. over means that this was the last
// step.
func (t *exchangeWriter) step() (over bool, err error) {
	t.conn.link.advanceTo(t.next)
	defer t.mark()()
	if t.noMoreChunks {
		t.stopChunks()
		return true, t.finish()
	}
	if err := t.writeChunk(t.chunk); err != nil {
		return false, err
	}
	if err := t.loadChunk(); err != nil {
		return false, err
	}
	t.schedule()
	return false, nil
}

// writeChunk writes a body chunk and, after the last one, the end of its direction.
func (t *exchangeWriter) writeChunk(c captures.Chunk) error {
	// The time of response headers is not recorded: they are written before the first byte of the body.
	if (c.Dir == captures.Down || t.ex.Status == http.StatusSwitchingProtocols) && !t.responded && t.ex.Status != 0 {
		if err := t.writeResponse(); err != nil {
			return err
		}
	}
	if len(c.Data) == 0 {
		return nil
	}

	// The last chunk may carry the end of its direction.
	t.sent[c.Dir] += int64(len(c.Data))
	last := t.sent[c.Dir] == t.total(c.Dir) && t.closesWith(c)
	if err := t.conn.writer.data(t, c.Dir, c.Data, last && len(t.trailers(c.Dir)) == 0); err != nil {
		return err
	}
	if last && !t.done[c.Dir] {
		return t.end(c.Dir)
	}
	return nil
}

// closesWith reports whether c, the last chunk of its direction, also ends the direction. The client's
// direction must be known to have ended; for the server's, the exchange must have ended with the chunk.
func (t *exchangeWriter) closesWith(c captures.Chunk) bool {
	if t.isTunnel() {
		return false
	}
	if c.Dir == captures.Up {
		return t.clientEnded()
	}
	return t.ex.Outcome == captures.Complete && c.T >= t.ex.Duration
}

// total returns the number of body bytes of a direction.
func (t *exchangeWriter) total(dir captures.Direction) int64 {
	if dir == captures.Up {
		return t.ex.BytesUp
	}
	return t.ex.BytesDown
}

// trailers returns the trailers of a direction.
func (t *exchangeWriter) trailers(dir captures.Direction) captures.Headers {
	if dir == captures.Up {
		return t.ex.RequestTrailers
	}
	return t.ex.ResponseTrailers
}

// writeResponse writes the head of the response.
func (t *exchangeWriter) writeResponse() error {
	t.responded = true
	return t.conn.writer.response(t)
}

// end writes the end of a direction of the exchange, with its trailers.
func (t *exchangeWriter) end(dir captures.Direction) error {
	t.done[dir] = true
	return t.conn.writer.end(t, dir)
}

// finish writes the end of the exchange: clean ends of both directions, or a reset by one side.
func (t *exchangeWriter) finish() error {
	if !t.responded && t.ex.Status != 0 {
		if err := t.writeResponse(); err != nil {
			return err
		}
	}

	// An incomplete exchange has no end that could be written.
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
		return t.conn.writer.abort(t, captures.Up)
	case captures.Reset:
		return t.conn.writer.abort(t, captures.Down)
	}
	return nil
}
