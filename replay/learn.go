package replay

import (
	"context"
	"fmt"
	"strings"

	"unwire/captures/store"
	"unwire/decode/diff"
	"unwire/replay/outbound"
)

// Learn sends the request as it was captured twice, and finds out what of the
// answer no two runs agree in, and what is another value than the captured one
// whatever the edit. Give it to the plan of the edited request in Options.Lesson.
//
// Errors: where the request may have effects: it must go to this machine, be a
// GET, or be of a method that the schema marks as free of side effects.
func Learn(ctx context.Context, r *Request, o Options, out *store.Store) (*Lesson, error) {
	r, o.Lesson = r.unedited(), nil
	var runs [2]*Result
	for i := range runs {
		p, err := r.Plan(ctx, o)
		if err != nil {
			return nil, err
		}
		if p.shown.Effects != EffectsNone && !p.isLocal() {
			return nil, fmt.Errorf("replay: %w: nothing says that %s/%s has no effects, so it is not sent twice to learn what is volatile", outbound.ErrRefused, p.shown.Service, p.shown.RPC)
		}
		if runs[i], err = p.Send(ctx, out); err != nil {
			return nil, err
		}
		switch got := runs[i]; {
		case got.Comparison == Refused:
			return nil, fmt.Errorf("replay: %w: %s", outbound.ErrRefused, strings.TrimPrefix(got.Message, "refused: "))
		case got.Comparison == NotSent:
			return nil, fmt.Errorf("replay: %w: %s", outbound.ErrNotSent, got.Message)
		case got.Status == 0:
			return nil, fmt.Errorf("replay: the unedited request got no answer to learn from: %s", got.Message)
		}
	}
	l := &Lesson{volatile: map[string]bool{}, steady: map[string][]diff.Change{}}
	for _, c := range diff.Exchanges(runs[0].live, runs[1].live, diff.Options{Answer: true}) {
		l.volatile[placeless(c.Path)] = true
	}
	for _, c := range runs[0].Diff {
		l.steady[placeless(c.Path)] = append(l.steady[placeless(c.Path)], c)
	}
	return l, nil
}
