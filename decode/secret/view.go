package secret

import (
	"context"
	"iter"
	"reflect"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode"
)

// A View is a capture without its secrets: reading it yields the content that Clean would copy.
type View struct {
	// from is the original capture, with its secrets.
	from *store.Store

	// c computes the replacements of secrets for each exchange that is read.
	c cleaner

	// ids are the numbers of the exchanges in the view.
	ids []int64

	// replaced are the exchanges read so far in which a secret was replaced.
	replaced map[int64]bool

	// omitted are the exchanges read so far from which some bytes were omitted.
	omitted map[int64]bool
}

// NewView searches a capture for secrets and returns a view without them.
//
// Shape: red provides the rules, and learns all secrets that are found.
//
// Limits: those of Clean. Frames that must be edited are in memory.
//
// Errors: errors of the store.
func NewView(ctx context.Context, from *store.Store, red *redact.Redactor, rules *Rules) (*View, error) {
	v := &View{
		from: from, replaced: make(map[int64]bool), omitted: make(map[int64]bool),
		c: cleaner{
			red: red, rules: rules, edits: make(map[int64][2][]redact.Edit), typed: make(map[int64]bool),
			messages: make(map[int64][2]string), runs: make(map[int64][]redact.Unsearched), inURL: make(map[int64]int64),
		},
	}
	red.LearnFound()
	// Learn all secrets first, because they may occur in earlier exchanges as well.
	for ex, err := range from.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		learnFrom(red, ex)
		v.ids = append(v.ids, ex.ID)
	}
	o := decode.Options{NoChoices: !decode.HasChoices(ctx, from)}
	for ex, err := range from.Exchanges(ctx) {
		switch {
		case err != nil:
			return nil, err
		case len(v.ids) == 0 || ex.ID > v.ids[len(v.ids)-1]:
			// It was recorded after the secrets were learned.
			return v, nil
		}
		if err := v.c.planEdits(ctx, from, ex, o); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Replaced returns the number of exchanges read so far in which a secret was replaced.
func (v *View) Replaced() int { return len(v.replaced) }

// Omitted returns the amount of data that was omitted from the exchanges read so far.
func (v *View) Omitted() Omitted {
	o := Omitted{Exchanges: len(v.omitted)}
	for id := range v.omitted {
		o.Bytes += v.c.omittedBytes(id)
	}
	return o
}

// Profile returns the profile of the capture.
func (v *View) Profile() *profile.Profile { return v.from.Profile() }

// Exchange returns the exchange id with its secrets replaced.
func (v *View) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := v.from.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return v.cleanRecord(ex), nil
}

// Exchanges yields all exchanges with their secrets replaced.
func (v *View) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for ex, err := range v.from.Exchanges(ctx) {
			if err == nil {
				ex = v.cleanRecord(ex)
			}
			if !yield(ex, err) {
				return
			}
		}
	}
}

// Relations returns the capture's relations of exchange id.
func (v *View) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	return v.from.Relations(ctx, id)
}

// Rewritten returns the rules that changed an exchange while it was recorded.
func (v *View) Rewritten(ctx context.Context, id int64) (*captures.Rewritten, error) {
	r, err := v.from.Rewritten(ctx, id)
	if r != nil {
		for i, name := range r.Rules {
			r.Rules[i] = v.c.red.String(name)
		}
	}
	return r, err
}

// Notes returns the capture's notes without secrets, and without notes of other programs.
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

// cleanRecord returns an exchange's metadata without secrets.
func (v *View) cleanRecord(ex *captures.Exchange) *captures.Exchange {
	head := v.c.cleanHead(ex)
	out := v.c.red.Exchange(*head)
	if v.c.typed[ex.ID] || !reflect.DeepEqual(out, *head) {
		v.replaced[ex.ID] = true
	}
	if v.c.omittedBytes(ex.ID) > 0 {
		v.omitted[ex.ID] = true
	}
	return &out
}

// Chunks yields the chunks of an exchange without secrets.
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
