package captures

import (
	"context"
	"iter"
	"time"
)

// An Edit replaces the bytes from Start to End of one direction of an exchange
// by Data.
type Edit struct {
	Start, End int64
	Data       []byte
}

// CopyExchange copies ex, an exchange of another capture, to this one, through this
// one's redaction, with its number, times, outcome, trailers and the boundaries
// of its chunks. Edits, by direction, are made before: of bytes that lie in
// several chunks each gets as many as it had, and the last one the rest. What is
// derived is not copied.
//
// Limits: exchanges have to be copied in the order of their numbers. A chunk
// that the edits leave empty is left out. An exchange that is still going on
// becomes Incomplete. Edits must not overlap.
//
// Errors: ErrReadOnly, ErrClosed, ErrDamaged, or what stopped
// the recording.
func (s *Store) CopyExchange(ctx context.Context, from *Store, ex *Exchange, edits [2][]Edit) error {
	if s.writer == nil {
		return pathError(s.path, ErrReadOnly)
	}
	r := &Recording{store: s, start: time.Now(), ex: *ex}
	if err := r.begin(*ex); err != nil {
		return pathError(s.path, err)
	}
	if s.maxBody > 0 {
		r.left = [2]int64{s.maxBody - ex.BytesUp, s.maxBody - ex.BytesDown} // all is stored that was
	}
	for c, err := range from.Cleaned(ctx, ex, s.redactor, edits) {
		if err != nil {
			r.EndAt(ex.Duration, Incomplete, ex.Error)
			return err
		}
		r.emit(&c)
	}
	r.EndAt(ex.Duration, ex.Outcome, ex.Error)
	return s.Err()
}

// maxAhead is how many bytes of one direction may wait for what a secret may
// begin in of the other.
const maxAhead = 16 << 20

// Cleaned yields the chunks of an exchange as CopyExchange stores them: with
// edits made, and without the secrets that r finds; a nil Redactor finds none.
//
// Errors: ErrDamaged.
func (s *Store) Cleaned(ctx context.Context, ex *Exchange, r *Redactor, edits [2][]Edit) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		last, err := s.lastChunks(ctx, ex.ID)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		p := newPassage(r, ex)
		var at [2]int64
		for c, err := range s.Chunks(ctx, ex.ID, 0) {
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			start := at[c.Dir]
			at[c.Dir] += int64(len(c.Data))
			seq := c.Seq
			c.Data = cutTo(edits[c.Dir], start, c.Data)
			for _, out := range p.pass(c, seq == last[c.Dir]) {
				if !yield(*out, nil) {
					return
				}
			}
		}
	}
}

// lastChunks are the numbers of the last chunk of each direction; -1 for none.
func (s *Store) lastChunks(ctx context.Context, id int64) (last [2]int64, err error) {
	last = [2]int64{-1, -1}
	err = s.page(ctx, func(c *cursor) bool {
		dir, seq := c.small(1), c.size()
		if c.err == nil {
			last[dir] = seq
		}
		return true
	}, `SELECT dir, max(seq) FROM chunks WHERE exchange = ? GROUP BY dir`, id)
	return last, err
}

// A passage takes the secrets out of chunks that have passed already, and keeps
// them in order.
type passage struct {
	bodies [2]*body // nil: nothing is taken out
	seq    int64    // of the next chunk that goes in
	next   int64    // of the next that comes out
	ahead  map[int64]*Chunk
	bytes  int64 // of ahead
}

func newPassage(r *Redactor, ex *Exchange) *passage {
	p := &passage{ahead: make(map[int64]*Chunk)}
	if r != nil {
		p.bodies = [2]*body{newBody(r, ex.RequestHeaders), newBody(r, ex.ResponseHeaders)}
		if to := ex.changedProtocol(); to != "" {
			p.bodies[Up].giveUp(0, unreadable(to))
			p.bodies[Down].giveUp(0, unreadable(to))
		}
	}
	return p
}

// pass takes the next chunk, which may be the last of its direction, and returns
// what is decided by then.
func (p *passage) pass(c Chunk, last bool) []*Chunk {
	b := p.bodies[c.Dir]
	for data := c.Data; len(data) > 0; {
		n := min(len(data), maxChunk)
		part := &Chunk{Exchange: c.Exchange, Dir: c.Dir, Seq: p.seq, T: c.T, Data: data[:n]}
		p.seq++
		data = data[n:]
		if b == nil {
			p.hold(part)
			continue
		}
		b.write(part)
		p.hold(b.ready()...)
	}
	if b != nil && last {
		b.close()
		p.hold(b.ready()...)
	}
	if p.bytes > maxAhead {
		for _, b := range p.bodies {
			b.hurry()
			p.hold(b.ready()...)
		}
	}
	var out []*Chunk
	for k := p.ahead[p.next]; k != nil; k = p.ahead[p.next] {
		out = append(out, k)
		delete(p.ahead, p.next)
		p.bytes -= int64(len(k.Data))
		p.next++
	}
	return out
}

func (p *passage) hold(chunks ...*Chunk) {
	for _, c := range chunks {
		p.ahead[c.Seq] = c
		p.bytes += int64(len(c.Data))
	}
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
