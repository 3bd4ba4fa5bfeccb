package replay

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"unwire/captures/store"
	"unwire/decode/diff"
	"unwire/replay/edit"
	"unwire/replay/outbound"
)

// Reasons for which a change does not count after Learn.
const (
	// two unedited requests got different values there
	ignoredLearnt   = "learnt"
	ignoredUnedited = "unedited" // the unedited request gets this value, too
)

// A Lesson is what differs in the answers to a request that was not edited.
type Lesson struct {
	volatile map[string]bool          // by path, without indexes
	steady   map[string][]diff.Change // from the capture, by path
}

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

// frameNumber is that of a frame in a change's path.
var frameNumber = regexp.MustCompile(`^@(up|down)/[0-9]+`)

// placeless is a change's path without the numbers of frames and elements.
func placeless(path string) string {
	path = frameNumber.ReplaceAllString(path, "@$1")
	if len(path) > 0 && path[0] == '@' {
		for i := range path {
			if path[i] == ' ' {
				return path[:i+1] + edit.WithoutIndexes(path[i+1:])
			}
		}
	}
	return path
}

// ignore marks what the edit did not do.
func (l *Lesson) ignore(changes []diff.Change) {
	if l == nil {
		return
	}
	for i := range changes {
		c := &changes[i]
		if c.Ignored != "" {
			continue
		}
		path := placeless(c.Path)
		if l.volatile[path] {
			c.Ignored = ignoredLearnt
			continue
		}
		for _, s := range l.steady[path] {
			if s.Op == c.Op && reflect.DeepEqual(s.New, c.New) && reflect.DeepEqual(s.Old, c.Old) {
				c.Ignored = ignoredUnedited
			}
		}
	}
}
