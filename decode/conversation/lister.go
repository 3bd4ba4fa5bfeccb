package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"unwire/captures"
	"unwire/decode"
)

const (
	// listedBatch is the maximum number of exchanges that one call of the changed function reports.
	listedBatch = 512

	// derivingBatch is how long Update decodes exchanges before it reports their summaries.
	derivingBatch = 100 * time.Millisecond
)

// A Lister keeps the list of a capture's exchanges up to date while the capture grows. An update reads only what
// was recorded since the previous one.
//
// A Lister is for one goroutine at a time. The exchanges that it reports are not modified afterwards: a change
// replaces them.
type Lister struct {
	// store is the capture (the file of recorded exchanges) that is listed.
	store captures.SummaryStore

	// version is the version of the derivation of summaries (cached method, status and frame counts of an
	// exchange). Stored summaries with another version are ignored and derived again.
	version int

	// last is the row number of the store up to which everything is listed, and seen the largest one at the last
	// update. They differ while a part is damaged.
	last, seen int64

	// exchanges are the listed exchanges in the order of their numbers.
	exchanges []*Listed

	// positions maps the number of an exchange to its index in the field exchanges.
	positions map[int64]int

	// requests maps the number of an exchange that belongs to a conversation to its request id.
	requests map[int64]string

	// derived are summaries that were computed but not stored in the capture yet.
	derived []captures.Summary

	// upTo is the exchange number up to which all exchanges have a summary, either stored or in derived.
	upTo int64

	// unread maps the number of an exchange that cannot be read to the error.
	unread map[int64]error

	// damage is the error that ended the last listing, because a part of the capture cannot be read; nil if there
	// was none.
	damage error
}

// NewLister returns a Lister of a capture. Its list is empty until the first Update.
func NewLister(store captures.SummaryStore) *Lister {
	return &Lister{
		store: store, version: summaryVersion(store.Profile()), seen: -1,
		positions: map[int64]int{}, requests: map[int64]string{}, unread: map[int64]error{},
	}
}

// Update reads what has changed since the last update. It calls changed, unless that is nil, with the positions of
// the exchanges that are new, were replaced or moved. An exchange without a stored summary is reported twice: first
// without frame counts and status code and with the method that its URL names, and again after it was decoded.
//
// Errors: everything that could not be read; the rest is listed. After an error of ctx, the next update reads the
// same again.
func (l *Lister) Update(ctx context.Context, changed func(positions []int)) error {
	if changed == nil {
		changed = func([]int) {}
	}
	last, err := l.store.LastNumber(ctx)
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return err
	}
	if err == nil && last == l.seen {
		return l.err()
	}

	// All that the store knows is listed first, so that a front end can show it while the rest is decoded.
	pending, pieces, err := l.read(ctx, changed)
	if err != nil {
		return err
	}
	l.upTo = math.MaxInt64
	if l.damage != nil {
		l.upTo = math.MinInt64
	}
	more, err := l.derive(ctx, pending, changed)
	if pieces || more {
		l.join(changed)
	}
	if n := len(l.exchanges); n > 0 {
		l.upTo = min(l.upTo, l.exchanges[n-1].ID)
	}
	if err != nil {
		return err
	}

	// Behind damage, everything is read again when the capture changes.
	if l.seen = last; l.damage == nil {
		l.last = last
	}
	return l.err()
}

// Exchanges returns the exchanges in the order of their numbers. The next Update may change the slice.
func (l *Lister) Exchanges() []*Listed { return l.exchanges }

// Position returns the position of an exchange in Exchanges, or -1.
func (l *Lister) Position(id int64) int {
	if i, ok := l.positions[id]; ok {
		return i
	}
	return -1
}

// Save stores the summaries that were derived since the last Save, as List.Save does.
func (l *Lister) Save(ctx context.Context) error {
	derived := l.derived
	l.derived = nil
	return (&List{derived: derived, upTo: l.upTo}).Save(ctx, l.store)
}

// err returns the errors of the last update as one, or nil.
func (l *Lister) err() error {
	var first error
	if n := len(l.unread); n > 0 {
		id := int64(math.MaxInt64)
		for k := range l.unread {
			id = min(id, k)
		}
		if first = l.unread[id]; n > 1 {
			first = fmt.Errorf("%w\nand errors in %d more exchanges", first, n-1)
		}
	}
	return errors.Join(first, l.damage)
}

// read lists the exchanges that have changed in the store. It returns those without a stored summary as pending.
// pieces reports whether another one belongs to a conversation.
func (l *Lister) read(ctx context.Context, changed func([]int)) (pending []captures.Listed, pieces bool, err error) {
	l.damage = nil
	var batch []int
	report := func() {
		if len(batch) > 0 {
			changed(batch)
		}
		batch = nil
	}
	defer report()
	for rec, err := range l.store.ListingSince(ctx, l.version, l.last) {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			l.damage = err
			break
		}
		if rec.Summary == nil {
			pending = append(pending, rec)
			i, known := l.positions[rec.Exchange.ID]
			m := captures.Summary{Exchange: rec.Exchange.ID}
			m.Service, m.RPC = decode.MethodOfURL(rec.Exchange.Method, rec.Exchange.URL)
			if known {
				// What was known of the exchange is shown until it was decoded again.
				old := l.exchanges[i]
				m.Protocol, m.Codec, m.Service, m.RPC = string(old.Protocol), old.Codec, old.Service, old.RPC
				m.Code, m.FramesUp, m.FramesDown, m.Thread = old.Code, old.FramesUp, old.FramesDown, l.requests[old.ID]
			}
			batch = l.put(batch, rec.Exchange, &m)
		} else {
			pieces = pieces || rec.Summary.Thread != ""
			batch = l.put(batch, rec.Exchange, rec.Summary)
		}
		if len(batch) >= listedBatch {
			report()
		}
	}
	return pending, pieces, nil
}

// derive decodes the pending exchanges, which have no stored summary. pieces reports whether one of them belongs to
// a conversation.
func (l *Lister) derive(ctx context.Context, pending []captures.Listed, changed func([]int)) (pieces bool, err error) {
	var batch []int
	began := time.Now()
	records := newRecordReader(ctx, l.store, pending)
	defer records.stop()
	for _, rec := range pending {
		m, err := summarizeFrom(ctx, l.store, rec, records.read)
		if ctx.Err() != nil {
			l.upTo = min(l.upTo, rec.Exchange.ID-1)
			changed(batch)
			return pieces, ctx.Err()
		}

		// Exchanges in flight get no stored summary: they are decoded again after each change.
		delete(l.unread, m.Exchange)
		if err != nil {
			l.unread[m.Exchange] = err
		}
		if err == nil && rec.Exchange.Ended() {
			l.derived = append(l.derived, m)
		} else {
			l.upTo = min(l.upTo, m.Exchange-1)
		}
		pieces = pieces || m.Thread != ""
		batch = l.put(batch, rec.Exchange, &m)
		if time.Since(began) > derivingBatch {
			changed(batch)
			batch, began = nil, time.Now()
		}
	}
	if len(batch) > 0 {
		changed(batch)
	}
	return pieces, nil
}

// put adds exchange ex with summary m to the list, or replaces it. It returns batch with the positions that have
// changed appended.
func (l *Lister) put(batch []int, ex *captures.Exchange, m *captures.Summary) []int {
	listed := &Listed{Exchange: ex, Call: callOf(m), Code: m.Code, FramesUp: m.FramesUp, FramesDown: m.FramesDown}
	if m.Thread != "" {
		l.requests[ex.ID] = m.Thread
	}
	if i, known := l.positions[ex.ID]; known {
		listed.Joined, listed.Parts = l.exchanges[i].Joined, l.exchanges[i].Parts
		l.exchanges[i] = listed
		return append(batch, i)
	}

	// New exchanges usually have larger numbers than all others. Exchanges that began together can be committed in
	// another order.
	i := len(l.exchanges)
	for i > 0 && l.exchanges[i-1].ID > ex.ID {
		i--
	}
	l.exchanges = slices.Insert(l.exchanges, i, listed)
	for k := i; k < len(l.exchanges); k++ {
		l.positions[l.exchanges[k].ID] = k
		batch = append(batch, k)
	}
	return batch
}

// join finds the conversations among the listed exchanges again, and replaces the exchanges whose conversation has
// changed.
func (l *Lister) join(changed func([]int)) {
	all := Set{threads: newThreads(l.store.Profile())}
	for _, ex := range l.exchanges {
		if request := l.requests[ex.ID]; request != "" {
			all.addCall(ex.ID, ex.Call, request)
		}
	}
	var batch []int
	for i, ex := range l.exchanges {
		if l.requests[ex.ID] == "" {
			continue
		}
		head, parts := all.Head(ex.ID), all.parts(ex.ID)
		if head == ex.Joined && slices.Equal(parts, ex.Parts) {
			continue
		}
		joined := *ex
		joined.Joined, joined.Parts = head, parts
		l.exchanges[i] = &joined
		batch = append(batch, i)
	}
	if len(batch) > 0 {
		changed(batch)
	}
}

// leastRead is the minimum number of exchanges that are read with one query rather than one by one.
const leastRead = 16

// A recordReader reads the records (metadata) of exchanges in the order of their numbers. It reads many with one
// query, because preparing a query takes longer than reading a row.
type recordReader struct {
	// store is the capture that is read.
	store captures.SummaryStore

	// next returns the next record of the query; its bool is false at the end. next is nil if records are read one
	// by one.
	next func() (*captures.Exchange, error, bool)

	// stop ends the query and releases its resources. It is nil if next is nil.
	stop func()

	// ahead is the record that was read last.
	ahead *captures.Exchange // the last one that was read
}

// newRecordReader returns a reader of the records of the exchanges in list, which must be sorted by number.
func newRecordReader(ctx context.Context, store captures.SummaryStore, list []captures.Listed) *recordReader {
	r := &recordReader{store: store, stop: func() {}}
	if len(list) < leastRead {
		return r
	}
	first, last := list[0].Exchange.ID, list[len(list)-1].Exchange.ID
	if last-first > int64(4*len(list)) {
		return r // most of what is between them would be read in vain
	}
	r.next, r.stop = iter.Pull2(store.ExchangesAfter(ctx, first-1))
	return r
}

// read returns the record of an exchange.
func (r *recordReader) read(ctx context.Context, id int64) (*captures.Exchange, error) {
	for r.next != nil && (r.ahead == nil || r.ahead.ID < id) {
		rec, err, ok := r.next()
		if !ok || err != nil {
			// What is damaged is read one by one.
			r.next = nil
			break
		}
		r.ahead = rec
	}
	if r.ahead != nil && r.ahead.ID == id {
		return r.ahead, nil
	}
	return r.store.Exchange(ctx, id)
}
