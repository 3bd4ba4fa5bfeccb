package query

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/filter"
	"unwire/schema"
)

// A Selector evaluates a filter for the exchanges of a capture. It reads only the data on which the
// filter depends, and the frames of an exchange only if the rest does not decide. It is not safe for
// concurrent use.
type Selector struct {
	// c is the capture.
	c *Capture

	// filter is the filter.
	filter *filter.Filter

	// defs are the definitions for message types; nil for none.
	defs *schema.Schema

	// now is the time to which relative times in the filter refer.
	now time.Time

	// notes are the notes by exchange, if the filter depends on them.
	notes map[int64][]captures.Note

	// edited has the exchanges that rewriting rules changed, if the filter depends on that.
	edited map[int64]bool
}

// NewSelector returns a Selector for the current state of a capture. If the filter depends on notes, they
// are read now. defs, which may be nil, are the definitions for message types.
//
// Errors: for a damaged capture, the damage together with a Selector that has the readable notes.
func (c *Capture) NewSelector(ctx context.Context, f *filter.Filter, defs *schema.Schema) (*Selector, error) {
	s := &Selector{c: c, filter: f, defs: defs, now: time.Now(), notes: map[int64][]captures.Note{}}
	if strings.Contains(f.String(), "edited") {
		var err error
		if s.edited, err = c.EditedExchanges(ctx); err != nil {
			return s, err
		}
	}
	if f.Needs()&filter.Notes == 0 {
		return s, nil
	}
	list, err := c.Notes(ctx, 0)
	for _, n := range list {
		s.notes[n.Exchange] = append(s.notes[n.Exchange], n)
	}
	return s, err
}

// exchange converts a listed exchange to the type that filters evaluate.
func (s *Selector) exchange(l *conversation.Listed) *filter.Exchange {
	return &filter.Exchange{
		Exchange: l.Exchange, Call: l.Call, Code: l.Code, FramesUp: l.FramesUp, FramesDown: l.FramesDown,
		Notes: s.notes[l.ID], Edited: s.edited[l.ID], Missing: filter.Head, Now: s.now,
	}
}

// Selects reports whether the filter selects a listed exchange.
//
// Errors: a damaged capture.
func (s *Selector) Selects(ctx context.Context, l *conversation.Listed) (bool, error) {
	return s.selects(ctx, l, s.c.Exchange)
}

// selects is Selects with a function that reads an exchange by its number.
func (s *Selector) selects(ctx context.Context, l *conversation.Listed, read func(context.Context, int64) (*captures.Exchange, error)) (bool, error) {
	x := s.exchange(l)
	value := s.filter.Exchange(x)
	if value == filter.Unknown && s.filter.Needs()&(filter.Head|filter.Frames) != 0 {
		rec, err := read(ctx, l.ID)
		if err != nil {
			return false, err
		}
		x.Exchange, x.Missing = rec, 0
		value = s.filter.Exchange(x)
	}
	if value == filter.Unknown && s.filter.Needs()&filter.Frames != 0 {
		var err error
		if value, err = s.scan(ctx, x); err != nil {
			return false, err
		}
	}
	return value == filter.Yes, nil
}

// scan evaluates the filter while it reads the frames of an exchange. It stops reading when the result is
// certain.
func (s *Selector) scan(ctx context.Context, x *filter.Exchange) (filter.Truth, error) {
	scan := s.filter.Scan(x)
	stream := decode.NewStream(x.Exchange, decode.Options{Profile: s.c.Profile(), Split: s.c.Splitting})
	add := func(frames []decode.Frame) {
		for i := range frames {
			scan.Add(s.frame(x.Call, &frames[i]))
		}
	}
	for chunk, err := range s.c.Chunks(ctx, x.ID, 0) {
		if err != nil {
			return filter.Unknown, err
		}
		add(stream.Feed(chunk))
		if value := scan.Result(false); value != filter.Unknown {
			return value, nil
		}
	}
	add(stream.Close())
	return scan.Result(true), nil
}

// frame converts a frame to the type that filters evaluate.
func (s *Selector) frame(call decode.Call, f *decode.Frame) filter.Frame {
	var md protoreflect.MessageDescriptor
	if s.defs != nil && s.filter.Needs()&filter.Types != 0 {
		md = s.defs.FrameType(call, f.Dir)
	}
	return filter.Frame{Frame: f, Type: md}
}

// Select returns the exchanges that a filter selects. defs, which may be nil, are the definitions for
// filters that depend on message types.
//
// Errors: those of List. Exchanges that cannot be read are not selected.
func (c *Capture) Select(ctx context.Context, f *filter.Filter, defs *schema.Schema) (*conversation.List, error) {
	list, damage := c.List(ctx)
	if list == nil || f.String() == "" {
		return list, damage
	}
	s, err := c.NewSelector(ctx, f, defs)
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return list, err
	}
	damage = cmp.Or(damage, err)
	reader := newInOrder(ctx, c)
	defer reader.stop()
	selected := list.Exchanges[:0]
	for i := range list.Exchanges {
		ok, err := s.selects(ctx, &list.Exchanges[i], reader.exchange)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return nil, err
		}
		damage = cmp.Or(damage, err)
		if ok {
			selected = append(selected, list.Exchanges[i])
		}
	}
	list.Exchanges = slices.Clip(selected)
	return list, damage
}

// maxSkipped is the number of exchanges that an inOrder reads over to reach the next one. Beyond it, a query for
// the one exchange is cheaper.
const maxSkipped = 16

// An inOrder reads exchanges of a capture by ascending numbers. Consecutive exchanges come from one query for
// many, because a query for each would take longer than searching a small exchange.
type inOrder struct {
	// c is the capture.
	c *Capture

	// next returns the next exchange of the capture, and stop ends the query.
	next func() (*captures.Exchange, error, bool)
	stop func()

	// last is the number of the exchange that next returned last; 0 before the first.
	last int64

	// ended means that next has returned the last exchange, or damage.
	ended bool
}

// newInOrder returns an inOrder that has read nothing yet.
func newInOrder(ctx context.Context, c *Capture) *inOrder {
	next, stop := iter.Pull2(c.Exchanges(ctx))
	return &inOrder{c: c, next: next, stop: stop}
}

// exchange returns the exchange with the number id.
//
// Errors: those of Capture.Exchange.
func (r *inOrder) exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	for !r.ended && r.last < id && id-r.last <= maxSkipped {
		ex, err, ok := r.next()
		if !ok || err != nil {
			// The query for one exchange reports the damage, if it concerns this exchange.
			r.ended = true
			break
		}
		if r.last = ex.ID; ex.ID == id {
			return ex, nil
		}
	}
	return r.c.Exchange(ctx, id)
}

// Selects reports whether a filter selects one exchange. To evaluate a filter for many exchanges, use a
// Selector.
//
// Errors: a damaged capture.
func (c *Capture) Selects(ctx context.Context, f *filter.Filter, defs *schema.Schema, l *conversation.Listed) (bool, error) {
	s, err := c.NewSelector(ctx, f, defs)
	if err != nil {
		return false, err
	}
	return s.Selects(ctx, l)
}

// maxKnownValues is the largest number of values that completion offers for a key of a filter.
const maxKnownValues = 100

// FilterValues returns the values that a key of the filter language, such as host or method, has in the
// capture, the most frequent first, for completion.
func (c *Capture) FilterValues(ctx context.Context, key string) []string {
	list, err := c.List(ctx)
	if err != nil {
		return nil // completion offers what is certain
	}
	return ValuesOf(key, func(yield func(*conversation.Listed) bool) {
		for i := range list.Exchanges {
			if !yield(&list.Exchanges[i]) {
				return
			}
		}
	})
}

// ValuesOf returns the values that a key of the filter language has in the given exchanges, the most
// frequent first.
func ValuesOf(key string, exchanges iter.Seq[*conversation.Listed]) []string {
	counts := map[string]int{}
	for l := range exchanges {
		if v := filter.Value(key, (&Selector{}).exchange(l)); v != "" {
			counts[v]++
		}
	}
	var values []string
	for v := range counts {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return values[:min(len(values), maxKnownValues)]
}
