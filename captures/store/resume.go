package store

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"unwire/captures"
)

// A Resumption is a Recorder that completes a capture whose recorder was killed. Its user records the same
// traffic again from the beginning. Exchanges that had ended are left unchanged. Exchanges that were cut off
// are recorded again under the same ID, so that notes on them stay valid. Missing exchanges are added.
//
// Exchanges are identified by the client's address, the start time, the transport and the method. Therefore only
// a recorder that takes these from its input, such as one that reads packets, can resume.
type Resumption struct {
	// The embedded Store is the capture that is completed.
	*Store

	// mu guards known, added and completed.
	mu sync.Mutex
	// known are the exchanges already in the capture, in order of their start times, by their identifying
	// properties.
	known map[resumeKey][]earlierExchange
	// added is the number of exchanges that the capture lacked and that were added.
	added int
	// completed is the number of exchanges that were cut off and recorded again.
	completed int
}

// A resumeKey contains the properties that identify an exchange when its traffic is recorded again.
type resumeKey struct {
	// transport is the protocol whose payload is recorded, such as a WebSocket; "" for HTTP.
	transport captures.Transport
	// method is the HTTP method; "" if the connection does not carry HTTP.
	method string
	// client is the network address of the client, host:port.
	client string
	// started is the start time of the exchange in nanoseconds since 1970.
	started int64
}

// An earlierExchange is an exchange that the killed recorder has stored.
type earlierExchange struct {
	// id is the ID of the exchange in the capture.
	id int64
	// cutOff means that the exchange was incomplete when the recorder was killed.
	cutOff bool

	// events are the row numbers of the exchange's events after Began; they are deleted when the
	// exchange is recorded again.
	events []int64
}

// Resume returns a Resumption for the exchanges that a source (see Exchange.Source) has recorded since a time.
//
// Errors: ErrReadOnly, ErrDamaged, a LimitError.
func (s *Store) Resume(ctx context.Context, source string, since time.Time) (*Resumption, error) {
	if s.writer == nil {
		return nil, pathError(s.Path, captures.ErrReadOnly)
	}
	const ofSource = `source = ?1 AND started_ns >= ?2`

	// Read the events of the exchanges that were cut off.
	events := map[int64][]int64{}
	err := s.query(ctx, func(c *rowValues) bool {
		n, exchange := c.int(), c.int()
		events[exchange] = append(events[exchange], n)
		return c.err == nil
	}, `SELECT n, exchange FROM events WHERE kind <> 0 AND exchange IN
		(SELECT id FROM exchanges WHERE `+ofSource+` AND outcome = ?3)`, source, since.UnixNano(), string(captures.Incomplete))
	if err != nil {
		return nil, err
	}

	// Read all exchanges, for their keys.
	r := &Resumption{Store: s, known: map[resumeKey][]earlierExchange{}}
	err = s.query(ctx, func(c *rowValues) bool {
		x := earlierExchange{id: c.int()}
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

// Begin starts the recording of an exchange, as captures.Recorder does. If the capture already contains the
// complete exchange, the returned Recording discards everything.
func (r *Resumption) Begin(ex captures.Exchange) (captures.Recording, error) {
	k := resumeKey{ex.Transport, ex.Method, ex.Client, ex.Started.UnixNano()}
	r.mu.Lock()

	// Equal keys are assigned in order.
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
	return completeRecording{r.Store, list[0].id}, nil
}

// Counts returns how many exchanges were added, and how many that were cut off were recorded again.
func (r *Resumption) Counts() (added, completed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.added, r.completed
}

// restart starts recording an exchange that was cut off again, under its old ID. It keeps the client program,
// which only the killed recorder could determine.
func (s *Store) restart(x earlierExchange, ex captures.Exchange) (captures.Recording, error) {
	// Each query has a time limit of its own.
	ctx := context.Background()
	before, err := s.Exchange(ctx, x.id)
	if err != nil {
		return nil, err
	}

	// Delete the parts of the first attempt.
	err = s.writer.runInTransaction(ctx, func(tx *sql.Tx) error {
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

// A completeRecording is a Recording that discards everything, because the capture contains the complete
// exchange.
type completeRecording struct {
	// store is the capture that contains the complete exchange.
	store *Store
	// id is the ID of the complete exchange.
	id int64
}

// ID returns the ID of the exchange in the capture.
func (r completeRecording) ID() int64 { return r.id }

// Response discards the response.
func (completeRecording) Response(int, captures.Headers) {}

// Chunk discards body bytes.
func (completeRecording) Chunk(captures.Direction, []byte) {}

// ChunkAt discards body bytes.
func (completeRecording) ChunkAt(captures.Direction, time.Duration, []byte) {}

// Message discards a WebSocket message.
func (completeRecording) Message(captures.Direction, captures.Opcode, []byte) {}

// MessageAt discards a WebSocket message.
func (completeRecording) MessageAt(captures.Direction, time.Duration, captures.Opcode, []byte) {}

// Trailers discards trailers.
func (completeRecording) Trailers(captures.Direction, captures.Headers) {}

// Edit discards an edit.
func (completeRecording) Edit(captures.Direction, int64, int64, string, []byte) {}

// ForwardHead discards a forwarded head.
func (completeRecording) ForwardHead(captures.Direction, string, captures.ForwardedHead) {}

// Connection discards the TLS details and the server's address.
func (completeRecording) Connection(captures.TLS, string) {}

// Process discards the client program.
func (completeRecording) Process(captures.Process) {}

// End discards the outcome.
func (completeRecording) End(captures.Outcome, string) {}

// EndAt discards the outcome.
func (completeRecording) EndAt(time.Duration, captures.Outcome, string) {}

// Relate stores the relation. The table keeps each relation only once.
func (r completeRecording) Relate(kind captures.RelationKind, target int64) {
	r.store.Relate(captures.Relation{Exchange: r.id, Kind: kind, Target: target})
}
