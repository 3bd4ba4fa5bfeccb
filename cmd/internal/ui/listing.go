package ui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
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

// A listing is the list of a capture's exchanges, which a goroutine keeps up to date. The rows of a large capture
// are there before all of it was read, and those of a growing one before all of it was read again.
type listing struct {
	capture *query.Capture

	mu sync.Mutex

	// version changes with every change of what follows, and ready is closed and replaced then.
	version int64
	ready   chan struct{}

	// rows are in the order of their numbers. They are replaced, not modified.
	rows []row

	// wanted is the last number that was asked for, and done the one that is listed. grow wakes the goroutine.
	wanted, done int64
	grow         chan struct{}
	working      bool
	damage       string
	failed       error

	// relations and notes are those of the exchanges by number, as the rows have them.
	relations map[int64][]captures.Relation
	notes     map[int64][]captures.Note

	// values are those of the keys of the filter language, when the version was that of valuesOf.
	values   map[string][]string
	valuesOf int64
}

// A row is an exchange of a listing.
type row struct {
	*conversation.Listed

	// line is what 'unwire ls --json' prints.
	line *contract.Exchange
}

func newListing(c *query.Capture) *listing {
	return &listing{capture: c, ready: make(chan struct{}), grow: make(chan struct{}, 1), wanted: -1, done: -1}
}

// refresh has the listing updated if the capture has changed, and waits a moment for it.
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

// wait waits until a condition is met, or for some time.
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

// changed announces a change. The caller holds the lock.
func (l *listing) changed() {
	l.version++
	close(l.ready)
	l.ready = make(chan struct{})
}

// work updates the listing until it is what was asked for.
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
			l.damage = damage.Error()
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

// awaitGrowth waits until more was asked for.
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

// update reads what has changed. It returns what of the capture is damaged, and the error that prevents a listing.
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

// addDifferent adds the numbers of the exchanges of which two maps have different values.
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

// put sets a row. The caller holds the lock.
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

// position returns the position of an exchange, or -1. The caller holds the lock.
func (l *listing) position(id int64) int {
	i, ok := slices.BinarySearchFunc(l.rows, id, func(r row, id int64) int { return int(r.ID - id) })
	if !ok {
		return -1
	}
	return i
}

// is reports whether the listing has a version.
func (l *listing) is(version int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version == version
}

// snapshot returns the rows as they are, and their version.
func (l *listing) snapshot() ([]row, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rows), l.version
}

// line returns the row of one exchange; nil if there is none.
func (l *listing) line(id int64) *contract.Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.position(id); i >= 0 {
		return l.rows[i].line
	}
	return nil
}

// filterValues returns the values of a key of the filter language, the most frequent first.
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

// A selection is the rows of a listing that a filter selects, in an order. It is evaluated in steps.
type selection struct {
	mu sync.Mutex

	filter, sort string
	parsed       *filter.Filter
	order        render.Order
	selector     *query.Selector

	// fixed reports that the verdict about a row changes only if the row does.
	fixed bool

	// version is that of the listing whose rows are rows. verdicts says which of them are selected, as far as
	// they were judged.
	version  int64
	rows     []row
	verdicts []bool

	// selected are the lines that were selected, sorted unless they have changed.
	selected []*contract.Exchange
	sorted   bool
}

// newSelection parses a filter and an order.
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
			return nil, badRequest("sort %v", err)
		}
	}
	return s, nil
}

// follow takes over the rows of a listing, and keeps the verdicts about those that have not changed.
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

func (s *selection) judge(ctx context.Context, i int) (bool, error) {
	ok, err := s.selector.Selects(ctx, s.rows[i].Listed)
	if errors.Is(err, captures.ErrDamaged) {
		return false, nil // the listing reports the damage
	}
	return ok, err
}

// evaluate judges rows for a time.
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

// lines returns the selected lines in their order.
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

// judged returns how many rows the selection was made of so far.
func (s *selection) judged() int {
	if s.parsed == nil {
		return len(s.rows)
	}
	return len(s.verdicts)
}
