package ui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode/conversation"
	"unwire/decode/filter"
)

const (
	// listingWait is how long a request waits for the listing. A small capture is listed completely in that time.
	listingWait = 150 * time.Millisecond

	// firstWait is how long a request waits for the first rows that it asks for.
	firstWait = 10 * time.Second

	// filterTime is how long a request evaluates a filter before it answers with what was found so far.
	filterTime = 300 * time.Millisecond

	// filterBatch is how many exchanges a filter is evaluated for between looks at the clock.
	filterBatch = 64
)

// A listing is the list of a capture's exchanges, which a goroutine keeps up to date. Its first rows are
// available before the whole capture was read.
type listing struct {
	// capture is the capture.
	capture *query.Capture

	// mu guards the fields below.
	mu sync.Mutex

	// version increases with every change of the rows or of done.
	version int64

	// ready is closed and replaced with every change.
	ready chan struct{}

	// rows are the exchanges in the order of their numbers. A changed row is replaced; the exchange and
	// the line that it points to are never modified.
	rows []row

	// wanted is the largest last number that the capture had when a request looked; -1 before the first request.
	wanted int64

	// done is the last number of the capture up to which the listing is complete; -1 before the first update.
	done int64

	// grow wakes the goroutine.
	grow chan struct{}

	// working means that the goroutine was started.
	working bool

	// damage describes which part of the capture could not be read; "" for none.
	damage string

	// failed is the error that prevented the last update, or nil.
	failed error

	// relations are the relations of each exchange, as its row shows them. The key is the number of the
	// exchange.
	relations map[int64][]captures.Relation

	// notes are the notes of each exchange, as its row shows them.
	notes map[int64][]captures.Note

	// values caches the results of filterValues.
	values map[string][]string

	// valuesOf is the version that values belong to.
	valuesOf int64
}

// A row is an exchange in a listing.
type row struct {
	// Listed is the metadata of the exchange, with its method and its numbers of frames.
	*conversation.Listed

	// line is the exchange as 'unwire ls --json' prints it.
	line *contract.Exchange
}

// newListing returns an empty listing of the exchanges of a capture.
func newListing(c *query.Capture) *listing {
	return &listing{capture: c, ready: make(chan struct{}), grow: make(chan struct{}, 1), wanted: -1, done: -1}
}

// refresh starts an update if the capture has grown, and waits for it, at most listingWait. The goroutine
// that updates the listing ends with background.
func (l *listing) refresh(ctx, background context.Context) error {
	last, err := l.capture.LastNumber(ctx)
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return err
	}
	// The goroutine starts with the first request, and then waits for growth.
	l.mu.Lock()
	l.wanted = max(l.wanted, last)
	if l.wanted > l.done {
		if !l.working {
			l.working = true
			go l.work(background)
		}
		select {
		case l.grow <- struct{}{}:
		default: // it will look anyway
		}
	}
	l.mu.Unlock()
	return l.wait(ctx, listingWait, func() bool { return l.done >= last })
}

// wait waits until met returns true, and returns the error of the last update. After the time most, it
// returns nil. It calls met with the lock held.
func (l *listing) wait(ctx context.Context, most time.Duration, met func() bool) error {
	deadline := time.After(most)
	for {
		l.mu.Lock()
		ok, ready, failed := met(), l.ready, l.failed
		l.mu.Unlock()
		if ok {
			return failed
		}
		select {
		case <-ready:
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changed increases the version and wakes the requests that wait. The caller must hold the lock.
func (l *listing) changed() {
	l.version++
	close(l.ready)
	l.ready = make(chan struct{})
}

// work updates the listing whenever the capture has grown, until ctx ends.
func (l *listing) work(ctx context.Context) {
	lister := conversation.NewLister(l.capture.Store)
	for {
		l.mu.Lock()
		wanted := l.wanted
		l.mu.Unlock()
		damage, err := l.update(ctx, lister)

		// Requests that wait see the end of the update even if nothing has changed.
		l.mu.Lock()
		l.done, l.failed, l.damage = wanted, err, ""
		if damage != nil {
			l.damage = app.PlainText(damage)
		}
		l.changed()
		l.mu.Unlock()

		// What can be listed without stored summaries is no reason to fail.
		_ = lister.Save(ctx)
		if ctx.Err() != nil || !l.awaitGrowth(ctx) {
			return
		}
	}
}

// awaitGrowth waits until there is more to list, and returns false if ctx ends first.
func (l *listing) awaitGrowth(ctx context.Context) bool {
	for {
		l.mu.Lock()
		more := l.wanted > l.done
		l.mu.Unlock()
		if more {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-l.grow:
		}
	}
}

// update lists the exchanges that are new or have changed. It returns in damage why a part of the capture
// could not be read, and in err what prevented the update.
func (l *listing) update(ctx context.Context, lister *conversation.Lister) (damage, err error) {
	related, damage := l.capture.Related(ctx)
	list, notesErr := l.capture.Notes(ctx, 0)
	if damage == nil {
		damage = notesErr
	}
	notes := map[int64][]captures.Note{}
	for _, n := range list {
		notes[n.Exchange] = append(notes[n.Exchange], n)
	}

	// Rows whose notes or relations differ are made again from the same exchange.
	l.mu.Lock()
	differ := map[int64]bool{}
	addDifferent(differ, l.relations, related)
	addDifferent(differ, l.notes, notes)
	l.relations, l.notes = related, notes
	for id := range differ {
		if i := l.position(id); i >= 0 {
			l.put(i, l.rows[i].Listed)
		}
	}
	l.mu.Unlock()

	err = lister.Update(ctx, func(positions []int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, i := range positions {
			l.put(i, lister.Exchanges()[i])
		}
		l.changed()
	})

	// A damaged capture is listed as far as it can be read.
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && (len(l.rows) > 0 || errors.Is(err, captures.ErrDamaged)) && ctx.Err() == nil {
		return err, nil
	}
	return damage, err
}

// addDifferent adds to the set to the keys whose lists differ between old and now.
func addDifferent[T comparable](to map[int64]bool, old, now map[int64][]T) {
	for id, list := range now {
		if !slices.Equal(old[id], list) {
			to[id] = true
		}
	}
	for id := range old {
		if len(now[id]) == 0 {
			to[id] = true
		}
	}
}

// put sets row i to an exchange with its relations and notes. The caller must hold the lock.
func (l *listing) put(i int, ex *conversation.Listed) {
	line := contract.NewExchange(ex, l.relations[ex.ID])
	notes := l.notes[ex.ID]
	for k := range notes {
		line.AddNote(&notes[k])
	}
	for len(l.rows) <= i {
		l.rows = append(l.rows, row{})
	}
	l.rows[i] = row{ex, line}
}

// position returns the index of the row of an exchange, or -1. The caller must hold the lock.
func (l *listing) position(id int64) int {
	i, ok := slices.BinarySearchFunc(l.rows, id, func(r row, id int64) int { return int(r.ID - id) })
	if !ok {
		return -1
	}
	return i
}

// is reports whether the listing still has the given version.
func (l *listing) is(version int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version == version
}

// snapshot returns a copy of the rows, and the version that they belong to.
func (l *listing) snapshot() ([]row, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rows), l.version
}

// line returns the line of the exchange id; nil if the listing has no such exchange.
func (l *listing) line(id int64) *contract.Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.position(id); i >= 0 {
		return l.rows[i].line
	}
	return nil
}

// filterValues returns the values that exchanges have for a key of the filter language, the most frequent
// first.
func (l *listing) filterValues(key string) []string {
	rows, version := l.snapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values == nil || l.valuesOf != version {
		l.values, l.valuesOf = map[string][]string{}, version
	}
	values, ok := l.values[key]
	if !ok {
		values = query.ValuesOf(key, func(yield func(*conversation.Listed) bool) {
			for i := range rows {
				if !yield(rows[i].Listed) {
					return
				}
			}
		})
		l.values[key] = values
	}
	return values
}

// A selection is the exchanges of a listing that a filter selects, in an order. The filter is evaluated
// in steps, since that can take long.
type selection struct {
	// mu guards the fields below. Callers lock it.
	mu sync.Mutex

	// filter is the filter expression; "" selects everything.
	filter string

	// sort is the order as the user wrote it; "" for the order of the exchanges' numbers.
	sort string

	// parsed is the parsed filter; nil if it selects everything.
	parsed *filter.Filter

	// order is the parsed order.
	order render.Order

	// selector evaluates the filter; nil until it is needed.
	selector *query.Selector

	// fixed means that whether the filter selects an exchange depends on that exchange alone, and not on
	// notes or on whether it was edited.
	fixed bool

	// version is the version of the listing that rows were taken from; -1 before the first.
	version int64

	// rows are the rows of the listing.
	rows []row

	// verdicts says whether the filter selects each row, for the rows that were judged so far.
	verdicts []bool

	// selected are the lines that the filter selected.
	selected []*contract.Exchange

	// sorted means that selected is complete for the verdicts so far, and in order.
	sorted bool
}

// newSelection parses a filter and an order, both of which can be "".
func newSelection(filterText, sort string) (*selection, error) {
	s := &selection{filter: filterText, sort: sort, version: -1}
	if filterText != "" {
		parsed, err := filter.Parse(filterText, time.Now())
		if wrong, ok := errors.AsType[*filter.Error](err); ok {
			return nil, badRequest("column %d: %s", wrong.Column, wrong.Text)
		}
		if err != nil {
			return nil, badRequest("%v", err)
		}
		s.parsed = parsed
		s.fixed = parsed.Needs()&filter.Notes == 0 && !strings.Contains(parsed.String(), "edited")
	}
	if sort != "" {
		var err error
		if s.order, err = render.ParseOrder(sort); err != nil {
			return nil, badRequest("the sort order %v", err)
		}
	}
	return s, nil
}

// follow takes the current rows of a listing. It keeps the verdicts about rows that have not changed.
func (s *selection) follow(ctx context.Context, f *file, l *listing) error {
	if l.is(s.version) {
		return nil
	}
	rows, version := l.snapshot()
	s.sorted = false
	if s.parsed == nil {
		s.rows, s.version = rows, version
		return nil
	}

	// Usually rows were added at the end, and all verdicts before them remain.
	keep := 0
	if s.fixed {
		for keep < len(s.verdicts) && keep < len(rows) && s.rows[keep].Listed == rows[keep].Listed {
			keep++
		}
	}
	// Terms of time are evaluated anew only when the capture changes.
	if s.selector == nil || !s.fixed {
		var err error
		if s.selector, err = f.selector(ctx, s.parsed); err != nil {
			return err
		}
	}
	// Behind the first row that has changed, others may be the same.
	old, verdicts := s.rows, s.verdicts
	s.rows, s.version, s.verdicts = rows, version, slices.Clone(verdicts[:keep])
	for i := keep; s.fixed && i < len(verdicts) && i < len(rows); i++ {
		verdict := verdicts[i]
		if old[i].Listed != rows[i].Listed {
			var err error
			if verdict, err = s.judge(ctx, i); err != nil {
				return err
			}
		}
		s.verdicts = append(s.verdicts, verdict)
	}
	return nil
}

// judge reports whether the filter selects row i. An exchange that cannot be read is not selected.
func (s *selection) judge(ctx context.Context, i int) (bool, error) {
	ok, err := s.selector.Selects(ctx, s.rows[i].Listed)
	if errors.Is(err, captures.ErrDamaged) {
		return false, nil // the listing reports the damage
	}
	return ok, err
}

// evaluate judges the rows that have no verdict yet, until the time most is over.
func (s *selection) evaluate(ctx context.Context, most time.Duration) error {
	if s.parsed == nil {
		return nil
	}
	began := time.Now()
	for i := len(s.verdicts); i < len(s.rows); i++ {
		if i%filterBatch == 0 && (time.Since(began) > most || ctx.Err() != nil) {
			return ctx.Err()
		}
		verdict, err := s.judge(ctx, i)
		if err != nil {
			return err
		}
		s.verdicts = append(s.verdicts, verdict)
		s.sorted = false
	}
	return nil
}

// lines returns the selected lines in their order, of the rows that were judged so far.
func (s *selection) lines() []*contract.Exchange {
	if s.sorted {
		return s.selected
	}
	s.selected = make([]*contract.Exchange, 0, len(s.selected))
	for i := range s.rows {
		if s.parsed == nil || i < len(s.verdicts) && s.verdicts[i] {
			s.selected = append(s.selected, s.rows[i].line)
		}
	}
	if s.sort != "" {
		s.order.Sort(s.selected)
	}
	s.sorted = true
	return s.selected
}

// judged returns the number of rows that were judged so far.
func (s *selection) judged() int {
	if s.parsed == nil {
		return len(s.rows)
	}
	return len(s.verdicts)
}
