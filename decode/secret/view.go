package secret

import (
	"context"
	"iter"
	"reflect"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/captures/store"
)

// A View is a capture without its secrets, as Clean copies it.
type View struct {
	from *store.Store
	c    cleaner
	ids  []int64

	// replaced are the exchanges of which something was replaced, as far as they
	// were read.
	replaced map[int64]bool

	// omitted are those of which something was left out.
	omitted map[int64]bool
}

// NewView looks through a capture for secrets, and returns a view without them.
//
// Shape: red has the rules, and learns all secrets that it finds.
// Limits: those of Clean. It holds the frames that have to be changed because of
// a field in them.
// Errors: of the store.
func NewView(ctx context.Context, from *store.Store, red *redact.Redactor, rules *Rules) (*View, error) {
	v := &View{
		from: from, replaced: make(map[int64]bool), omitted: make(map[int64]bool),
		c: cleaner{
			red: red, rules: rules, edits: make(map[int64][2][]redact.Edit), typed: make(map[int64]bool),
			messages: make(map[int64][2]string), runs: make(map[int64][]redact.Unsearched), inURL: make(map[int64]int64),
		},
	}
	red.LearnFound()
	for ex, err := range from.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		learnFrom(red, ex)
		v.ids = append(v.ids, ex.ID)
	}
	for _, id := range v.ids {
		if err := v.c.plan(ctx, from, id); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Replaced counts the exchanges, of those that were read, in which a secret was
// replaced.
func (v *View) Replaced() int { return len(v.replaced) }

// Omitted is what was left out of the exchanges that were read.
func (v *View) Omitted() Omitted {
	o := Omitted{Exchanges: len(v.omitted)}
	for id := range v.omitted {
		o.Bytes += v.c.omitted(id)
	}
	return o
}

// Profile is that of the capture.
func (v *View) Profile() *profile.Profile { return v.from.Profile() }

// Exchange returns one exchange.
func (v *View) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := v.from.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return v.clean(ex), nil
}

// Exchanges yields all exchanges.
func (v *View) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for ex, err := range v.from.Exchanges(ctx) {
			if err == nil {
				ex = v.clean(ex)
			}
			if !yield(ex, err) {
				return
			}
		}
	}
}

// Relations are those of the capture.
func (v *View) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	return v.from.Relations(ctx, id)
}

// Notes are those of the capture, without the notes of other programs.
func (v *View) Notes(ctx context.Context, id int64) ([]captures.Note, error) {
	all, err := v.from.Notes(ctx, id)
	var list []captures.Note
	for _, n := range all {
		if n.Kind == captures.TextNote || n.Kind == captures.MarkNote {
			n.Value = v.c.red.String(n.Value)
			list = append(list, n)
		}
	}
	return list, err
}

func (v *View) clean(ex *captures.Exchange) *captures.Exchange {
	head := v.c.head(ex)
	out := v.c.red.Exchange(*head)
	if v.c.typed[ex.ID] || !reflect.DeepEqual(out, *head) {
		v.replaced[ex.ID] = true
	}
	if v.c.omitted(ex.ID) > 0 {
		v.omitted[ex.ID] = true
	}
	return &out
}

// Chunks yields the chunks of an exchange.
func (v *View) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		ex, err := v.from.Exchange(ctx, id)
		if err != nil {
			yield(captures.Chunk{}, err)
			return
		}
		for c, err := range v.from.Cleaned(ctx, ex, v.c.red, v.c.edits[id]) {
			if (err != nil || c.Seq >= fromSeq) && !yield(c, err) {
				return
			}
		}
	}
}
