package captures

import (
	"context"
	"time"
)

// An Edit replaces the bytes from Start to End of one direction of an exchange
// by Data.
type Edit struct {
	Start, End int64
	Data       []byte
}

// CopyExchange copies an exchange of another capture to this one, through this
// one's redaction, with its number, times, outcome, trailers and the boundaries
// of its chunks. Edits, by direction, are made before: of bytes that lie in
// several chunks each gets as many as it had, and the last one the rest. What is
// derived is not copied.
//
// Limits: exchanges have to be copied in the order of their numbers. A chunk
// that the edits leave empty is left out. An exchange that is still going on
// becomes Incomplete. Edits must not overlap.
//
// Errors: ErrReadOnly, ErrClosed, ErrNoExchange, ErrDamaged, or what stopped
// the recording.
func (s *Store) CopyExchange(ctx context.Context, from *Store, id int64, edits [2][]Edit) error {
	ex, err := from.Exchange(ctx, id)
	if err != nil {
		return err
	}
	if s.writer == nil {
		return pathError(s.path, ErrReadOnly)
	}
	outcome, up, down := ex.Outcome, ex.BytesUp, ex.BytesDown
	r := &Recording{store: s, start: time.Now(), ex: *ex, copied: true}
	r.ex.BytesUp, r.ex.BytesDown = 0, 0 // counted again
	if err := r.begin(*ex); err != nil {
		return pathError(s.path, err)
	}
	var at [2]int64
	for c, err := range from.Chunks(ctx, id, 0) {
		if err != nil {
			r.EndAt(ex.Duration, Incomplete, ex.Error)
			return err
		}
		start := at[c.Dir]
		at[c.Dir] += int64(len(c.Data))
		r.ChunkAt(c.Dir, c.T, cutTo(edits[c.Dir], start, c.Data))
	}
	r.mu.Lock()
	r.ex.BytesUp, r.ex.BytesDown = up, down
	r.mu.Unlock()
	r.EndAt(ex.Duration, outcome, ex.Error)
	return s.Err()
}

// cutTo returns the chunk that begins at start with its part of the edits made.
func cutTo(edits []Edit, start int64, data []byte) []byte {
	p := pendingChunk{chunk: &Chunk{Data: data}, start: start, end: start + int64(len(data))}
	for _, e := range edits {
		from, to := max(e.Start, p.start), min(e.End, p.end)
		if from >= to {
			continue
		}
		lo, hi := min(len(e.Data), int(from-e.Start)), min(len(e.Data), int(to-e.Start))
		if to == e.End {
			hi = len(e.Data)
		}
		p.edits = append(p.edits, edit{from, to, e.Data[lo:hi]})
	}
	return p.apply().Data
}
