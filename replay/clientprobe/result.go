package clientprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Verdict is the conclusion about whether the client uses a field of the responses.
type Verdict string

const (
	// Required: if the field is removed, the client fails.
	Required Verdict = "required"
	// Read: if the field is removed or has another value, the client behaves differently.
	Read Verdict = "read"
	// NotRead: the client behaves the same without the field and with another value.
	NotRead Verdict = "not read"
	// Untested: the runs that would decide were not made, or the client did not request the message.
	Untested Verdict = "untested"
)

// A Result has the verdicts of a probe about all fields of its plan.
type Result struct {
	// Fields are the fields of the plan, with their verdicts.
	Fields []Field `json:"fields"`

	// Skipped are the fields that were not edited.
	Skipped []SkippedField `json:"skipped"`

	// Baseline describes the unedited runs.
	Baseline BaselineReport `json:"baseline"`

	// Control are the effects of the control run, which adds a field that no client can know to every
	// message. If there are any, the client rejects unknown fields, or its behaviour varies by itself,
	// and the verdict "read" proves nothing.
	Control []Effect `json:"control"`

	// Runs is the number of runs that were made, including unedited ones.
	Runs int `json:"runs"`

	// Reused is the number of outcomes that were taken from the journal instead of running the client.
	Reused int `json:"reused"`

	// Complete means that the whole plan was carried out.
	Complete bool `json:"complete"`

	// Stopped is the reason why the plan was not carried out completely; "" if it was.
	Stopped string `json:"stopped,omitempty"`

	// Warnings are remarks for the user.
	Warnings []string `json:"warnings,omitempty"`
}

// A BaselineReport describes the unedited runs.
type BaselineReport struct {
	// Runs is the number of unedited runs.
	Runs int `json:"runs"`

	// Exit is the exit status of the first unedited run.
	Exit int `json:"exit"`

	// Answered is the number of requests in all unedited runs that got a recorded response.
	Answered int `json:"answered"`

	// Volatile describes the differences between unedited runs, which are ignored in edited ones.
	Volatile []string `json:"volatile"`
}

// A Field is an edited field with the verdict about it.
type Field struct {
	// Target describes the field.
	Target

	// Verdict says whether the client uses the field.
	Verdict Verdict `json:"verdict"`

	// Typed means that a value of another type had an effect although the field is not read: the
	// client's parser knows the field.
	Typed bool `json:"typed,omitempty"`

	// Evidence are the outcomes of the edits on which the verdict is based.
	Evidence []Evidence `json:"evidence"`
}

// An Evidence is what was observed when a field was edited in one way.
type Evidence struct {
	// Change is how the field was edited.
	Change Op `json:"change"`

	// Messages is the number of messages that were edited in the run; 0 if the client requested none of
	// them.
	Messages int `json:"messages"`

	// Fails means that the client failed: it ended with a status other than 0, or not at all.
	Fails bool `json:"fails"`

	// Effects are the differences from the unedited runs that occurred in both of two edited runs. None
	// means that the client behaved as before.
	Effects []Effect `json:"effects"`
}

// errBudget ends a probe that has used up its number of runs or its time.
var errBudget = errors.New("the limit is reached")

// Run carries out a plan. If it ends early with an error, it also returns the results so far.
//
// Limits: Budget, MaxTime.
// Errors: the end of ctx; the client could not be started; the journal cannot be written.
func (p *Probe) Run(ctx context.Context, b *Baseline, plan *Plan) (*Result, error) {
	p.defaults()
	r := &Result{
		Fields: []Field{}, Skipped: plan.Skipped, Control: []Effect{}, Warnings: plan.Warnings, Runs: b.Runs(),
		Baseline: BaselineReport{Runs: b.Runs(), Exit: b.Exit(), Answered: b.Answered, Volatile: append([]string{}, b.Volatile...)},
	}

	// The control comes first: without it, no verdict can be trusted.
	x := &execution{p: p, b: b, r: r, until: time.Now().Add(p.MaxTime)}
	control, err := x.change(ctx, &change{Target: &Target{}, Op: opControl})
	if err == nil {
		r.Control = control.Effects
		if len(control.Effects) > 0 {
			r.Warnings = append(r.Warnings, "a field that no client can know has an effect: either the client rejects unknown fields, or its runs differ by themselves. The verdicts 'read' and 'required' prove nothing")
		}
	}
	for i := range plan.Targets {
		f := Field{Target: plan.Targets[i], Verdict: Untested, Evidence: []Evidence{}}
		for _, op := range f.Changes {
			if err != nil {
				break
			}
			if p.Progress != nil {
				p.Progress(r.Runs+r.Reused-b.Runs(), plan.Runs+1, fmt.Sprintf("%s %s %s", op, f.Method, f.Path))
			}
			var e *Evidence
			if e, err = x.change(ctx, &change{Target: &plan.Targets[i], Op: op}); err == nil {
				f.Evidence = append(f.Evidence, *e)
			}
		}
		f.judge()
		r.Fields = append(r.Fields, f)
	}

	// A used up budget is a result, not a failure.
	r.Complete = err == nil
	if err != nil {
		r.Stopped = err.Error()
	}
	if errors.Is(err, errBudget) {
		err = nil
	}
	return r, err
}

// judge sets Verdict and Typed from the observations in Evidence.
func (f *Field) judge() {
	tested := map[Op]bool{}
	for _, e := range f.Evidence {
		if e.Messages == 0 {
			continue
		}
		tested[e.Change] = true
		switch {
		case e.Change == opRemove && e.Fails:
			f.Verdict = Required
		case len(e.Effects) > 0 && e.Change != opRetype && f.Verdict != Required:
			f.Verdict = Read
		case len(e.Effects) > 0 && e.Change == opRetype:
			f.Typed = true
		}
	}

	// A type matters only for a field that is not read otherwise.
	if f.Verdict != Untested {
		f.Typed = false
		return
	}
	if tested[opRemove] && (tested[opChange] || !slices.Contains(f.Changes, opChange)) {
		f.Verdict = NotRead
	}
}

// An execution is the state of carrying out a plan.
type execution struct {
	// p is the probe.
	p *Probe

	// b has the unedited runs, with which edited ones are compared.
	b *Baseline

	// r is the result so far.
	r *Result

	// until is the time at which MaxTime is used up.
	until time.Time
}

// change runs the client with an edited field and, if that had an effect, again to confirm it.
//
// Errors: errBudget; those of running the client and of the journal.
func (x *execution) change(ctx context.Context, c *change) (*Evidence, error) {
	key := x.p.Journal.key(x.p, c)
	if e := x.p.Journal.recorded(key); e != nil {
		x.r.Reused++
		return e, nil
	}

	// A run of the journal needs neither time nor budget; this one does.
	limit := x.p.timeout(x.b)
	first, o, err := x.once(ctx, c, limit)
	if err != nil {
		return nil, err
	}
	e := &Evidence{Change: c.Op, Messages: o.applied, Fails: x.b.fails(o), Effects: append([]Effect{}, first...)}
	if len(first) > 0 {
		// What does not happen again was chance.
		second, again, err := x.once(ctx, c, limit)
		if err != nil {
			return nil, err
		}
		e.Effects = common(first, second)
		e.Fails = e.Fails && x.b.fails(again)
	}
	return e, x.p.Journal.note(key, c, e)
}

// once runs the client once with an edited field, and returns the effects. limit is the timeout of the
// run.
func (x *execution) once(ctx context.Context, c *change, limit time.Duration) ([]Effect, *observation, error) {
	// A run that has begun may end after the limit.
	switch {
	case x.r.Runs >= x.p.Budget:
		return nil, nil, fmt.Errorf("%w after %d runs (--budget)", errBudget, x.r.Runs)
	case time.Now().After(x.until):
		return nil, nil, fmt.Errorf("%w after %s (--max-time)", errBudget, x.p.MaxTime)
	}
	x.r.Runs++
	o, err := x.p.run(ctx, c, limit)
	if err != nil {
		return nil, nil, err
	}
	return x.b.effects(o, limit), o, nil
}

// common returns the effects in a that also occur in b, with the same What and Where, and the same Text apart from
// numbers.
func common(a, b []Effect) []Effect {
	out := []Effect{}
	for _, e := range a {
		if slices.ContainsFunc(b, func(o Effect) bool {
			return o.What == e.What && o.Where == e.Where && masked(o.Text) == masked(e.Text)
		}) {
			out = append(out, e)
		}
	}
	return out
}

// Texts returns the effects as lines.
func (e *Evidence) Texts() (out []string) {
	for _, f := range e.Effects {
		if f.What == exitEffect {
			out = append(out, f.What+" "+f.Text)
			continue
		}
		out = append(out, strings.TrimSuffix(f.What+" "+f.Where, " ")+": "+f.Text)
	}
	return out
}
