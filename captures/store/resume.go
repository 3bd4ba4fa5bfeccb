package store

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"unwire/captures"
)

// A Resumption records traffic again, from its beginning, of which an earlier recorder that
// was killed has stored a part. An exchange that ended then stays as it is. One that was cut
// off is recorded anew under its number, so that notes about it keep their place. What the
// capture does not have is added.
//
// An exchange is found again by its client's address, the time of its beginning, its
// transport and its method. So only a recorder that takes these from elsewhere, such as from
// packets, can resume.
type Resumption struct {
	*Store

	mu               sync.Mutex
	known            map[resumeKey][]resumable // in the order in which they began
	added, completed int
}

// A resumeKey is what an exchange is found again by.
type resumeKey struct {
	transport      captures.Transport
	method, client string
	started        int64 // nanoseconds since 1970
}

// A resumable is an exchange of the earlier recorder.
type resumable struct {
	id     int64
	cutOff bool

	// events are those of an exchange that was cut off, but for its beginning.
	events []int64
}

// Resume returns what records into the capture the traffic that a source recorded since a
// time.
//
// Errors: ErrReadOnly, ErrDamaged, a LimitError.
func (s *Store) Resume(ctx context.Context, source string, since time.Time) (*Resumption, error) {
	if s.writer == nil {
		return nil, pathError(s.Path, captures.ErrReadOnly)
	}
	const ofSource = `source = ?1 AND started_ns >= ?2`
	events := map[int64][]int64{}
	err := s.page(ctx, func(c *rowValues) bool {
		n, exchange := c.int(), c.int()
		events[exchange] = append(events[exchange], n)
		return c.err == nil
	}, `SELECT n, exchange FROM events WHERE kind <> 0 AND exchange IN
		(SELECT id FROM exchanges WHERE `+ofSource+` AND outcome = ?3)`, source, since.UnixNano(), string(captures.Incomplete))
	if err != nil {
		return nil, err
	}
	r := &Resumption{Store: s, known: map[resumeKey][]resumable{}}
	err = s.page(ctx, func(c *rowValues) bool {
		x := resumable{id: c.int()}
		k := resumeKey{transport: c.transport(), method: c.text(), client: c.text(), started: c.int()}
		x.cutOff = captures.Outcome(c.text()) == captures.Incomplete
		x.events = events[x.id]
		r.known[k] = append(r.known[k], x)
		return c.err == nil
	}, `SELECT id, protocol, method, client, started_ns, outcome FROM exchanges WHERE `+ofSource+` ORDER BY id`, source, since.UnixNano())
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Begin is captures.Recorder's.
func (r *Resumption) Begin(ex captures.Exchange) (captures.Recording, error) {
	k := resumeKey{ex.Transport, ex.Method, ex.Client, ex.Started.UnixNano()}
	r.mu.Lock()
	list := r.known[k]
	if len(list) > 0 {
		r.known[k] = list[1:]
	}
	switch {
	case len(list) == 0:
		r.added++
	case list[0].cutOff:
		r.completed++
	}
	r.mu.Unlock()
	switch {
	case len(list) == 0:
		return r.Store.Begin(ex)
	case list[0].cutOff:
		return r.restart(list[0], ex)
	}
	return recorded{r.Store, list[0].id}, nil
}

// Counts returns how many exchanges were added, and how many that were cut off were recorded
// anew.
func (r *Resumption) Counts() (added, completed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.added, r.completed
}

// restart records an exchange that was cut off from its beginning. What only the earlier
// recorder could know of it stays.
func (s *Store) restart(x resumable, ex captures.Exchange) (captures.Recording, error) {
	ctx := context.Background() // each query has a limit of its own
	before, err := s.Exchange(ctx, x.id)
	if err != nil {
		return nil, err
	}
	err = s.writer.do(ctx, func(tx *sql.Tx) error {
		for _, n := range x.events {
			if _, err := tx.ExecContext(ctx, `DELETE FROM events WHERE n = ?`, n); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM segments WHERE exchange = ?`, x.id)
		return err
	})
	if err != nil {
		return nil, pathError(s.Path, err)
	}
	ex.Process = before.Process
	r := newRecording(s, ex)
	r.ex.ID = x.id
	if err := r.begin(ex, captures.Changed); err != nil {
		return nil, pathError(s.Path, err)
	}
	return r, nil
}

// recorded is a recording of an exchange that the capture has whole.
type recorded struct {
	store *Store
	id    int64
}

func (r recorded) ID() int64                                                          { return r.id }
func (recorded) Response(int, captures.Headers)                                       {}
func (recorded) Chunk(captures.Direction, []byte)                                     {}
func (recorded) ChunkAt(captures.Direction, time.Duration, []byte)                    {}
func (recorded) Message(captures.Direction, captures.Opcode, []byte)                  {}
func (recorded) MessageAt(captures.Direction, time.Duration, captures.Opcode, []byte) {}
func (recorded) Trailers(captures.Direction, captures.Headers)                        {}
func (recorded) Connection(captures.TLS, string)                                      {}
func (recorded) Process(captures.Process)                                             {}
func (recorded) End(captures.Outcome, string)                                         {}
func (recorded) EndAt(time.Duration, captures.Outcome, string)                        {}

// Relate is captures.Recording's: a relation that is known is not added again.
func (r recorded) Relate(kind captures.RelationKind, target int64) {
	r.store.Relate(captures.Relation{Exchange: r.id, Kind: kind, Target: target})
}
