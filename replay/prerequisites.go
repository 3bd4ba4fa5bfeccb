package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/wire"
	"unwire/replay/live"
	"unwire/replay/outbound"
)

// issuersWord is the value of --after that stands for all exchanges that issued ids which the request
// uses.
const issuersWord = "auto"

// ErrAfter reports an --after value that is neither "auto" nor the number of another exchange.
var ErrAfter = errors.New("--after must be the numbers of other exchanges, or " + issuersWord)

// ExchangesBefore returns the exchanges that have to be sent before exchange id, in order. names are
// numbers of exchanges, or "auto" for the exchanges whose responses issued ids that exchange id uses.
//
// Errors: ErrAfter; those of reading the capture.
func ExchangesBefore(ctx context.Context, store *store.Store, id int64, names []string) (first []int64, err error) {
	for _, name := range names {
		if name == issuersWord {
			found, err := live.Issuers(ctx, store, id)
			if err != nil {
				return nil, err
			}
			first = append(first, found...)
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(name), 10, 64)
		if err != nil || n < 1 || n == id {
			return nil, fmt.Errorf("%w, not %q", ErrAfter, name)
		}
		first = append(first, n)
	}
	return first, nil
}

// SendBefore sends the exchanges first, in order and without edits, by calling send for each. Each of
// them uses the identifiers that the live server returned to the earlier ones. SendBefore returns all
// these identifiers, for Changes.Issued of the main request.
//
// Errors: errors of reading, of planning, and of send; each ends the sequence.
func SendBefore(ctx context.Context, src captures.Source, first []int64, c Changes, o Options, send func(id int64, p *Plan) (*Result, error)) (*live.IDs, error) {
	c.Issued = &live.IDs{}
	c.Answers, c.Edits, c.Editor, c.Codec, c.Message = nil, nil, nil, "", nil
	for _, id := range first {
		request, err := NewRequest(ctx, src, id, c)
		if err != nil {
			return nil, err
		}
		plan, err := request.Plan(ctx, o)
		if err != nil {
			return nil, err
		}
		result, err := send(id, plan)
		if err != nil {
			return nil, err
		}
		result.learnIDs(c.Issued)
	}
	return c.Issued, nil
}

// checkLost returns an error if a message of the request repeats a word of an earlier answer that is not
// replaced, although the live server answered without it: the word would be stale. Edited messages are only
// warned of.
func (p *planner) checkLost() error {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		frame := decode.Frame{Dir: captures.Up, Seq: f.Seq}
		if frame.Data = f.Data; !p.isJSON(f) {
			frame.Tree = wire.Parse(f.Data, wire.Options{})
		}
		word, path, from, ok := p.changes.Issued.Lost(p.captured, &frame)
		if !ok {
			continue
		}
		text := fmt.Sprintf("client frame %d contains %q in its field %s; this value came from an earlier recorded answer (field %s), but the live answer does not contain it", f.Seq, word, path, from)
		if !f.Edited {
			return fmt.Errorf("replay: exchange %d: %w: %s; set the live value with --set", p.shown.Exchange, live.ErrUncertain, text)
		}
		p.shown.Warnings = append(p.shown.Warnings, text)
	}
	return nil
}

// Learn sends the unedited request twice, to determine which values of the response differ between two
// runs, and which always differ from the capture. Pass the result in Options.Lesson when planning the
// edited request.
//
// Errors: if the request may have side effects. It must be sent to this machine, be a GET, or call a
// method that the schema marks as free of side effects.
func Learn(ctx context.Context, r *Request, o Options, out *store.Store) (*Lesson, error) {
	r, o.Lesson = r.unedited(), nil
	var runs [2]*Result
	for i := range runs {
		p, err := r.Plan(ctx, o)
		if err != nil {
			return nil, err
		}
		if p.shown.Effects != EffectsNone && !p.isLocal() {
			return nil, fmt.Errorf("replay: %w: %s/%s may have side effects, so unwire does not send it twice to find values that differ in every run", outbound.ErrRefused, p.shown.Service, p.shown.RPC)
		}
		if runs[i], err = p.Send(ctx, out); err != nil {
			return nil, err
		}
		switch got := runs[i]; {
		case got.Comparison == Refused:
			return nil, fmt.Errorf("replay: %w: %s", outbound.ErrRefused, strings.TrimPrefix(got.Message, outbound.ErrRefused.Error()+": "))
		case got.Comparison == NotSent:
			return nil, fmt.Errorf("replay: %w: %s", outbound.ErrNotSent, got.Message)
		case got.Status == 0:
			return nil, fmt.Errorf("replay: the unedited request got no answer, so unwire cannot tell which values differ in every run: %s", got.Message)
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
