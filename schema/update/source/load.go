package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/bundle"
	"unwire/schema/extract"
	"unwire/schema/infer"
	"unwire/schema/interrupt"
	"unwire/schema/update"
)

// A Loader loads sources: definitions, captures, evidence, joins, what a probe found,
// and shipped code.
type Loader struct {
	// Have are the definitions to update; nil if there are none.
	Have *schema.Schema
	// Partial says that what a source lacks is not gone.
	Partial bool
	// Profile has secrets that examples must not show; it may be nil.
	Profile *profile.Profile

	// WithCapture calls do with the capture that an input names, with its file, and with
	// the number of the only exchange to read if that is not 0.
	WithCapture func(input string, do func(src captures.Capture, file string, exchange int64, part bool) error) error
	// ReadFile reads a file of evidence, joins or findings.
	ReadFile func(name string) ([]byte, error)

	// Calls collects the calls of captures.
	Calls align.Calls
	// OnExchange, if set, is called with each exchange of a capture.
	OnExchange func(*decode.Exchange)
	// OnRemark, if set, is called with what the user should know of a source.
	OnRemark func(Remark)
}

// A Remark is something that a user should know of a source. One field is set in
// addition to Source.
type Remark struct {
	Source string

	// Rejected is why messages of Exchange are left out.
	Exchange int64
	Rejected error
	// Left is a finding that is left out, with the reason.
	Left string
	// Unresolved is an element of shipped code whose definition is not complete.
	Unresolved *bundle.Unresolved
	// Unrelated says that the definitions have none of the messages.
	Unrelated bool
}

// A Form is what a file is read as.
type Form string

// The forms whose files may turn out to be something else.
const (
	Joins    Form = "joins"
	Findings Form = "findings"
	code     Form = "code"
)

// A FormError reports a file that is not of the form that it seems to be of.
type FormError struct {
	Form Form
	Err  error
}

func (e *FormError) Error() string { return e.Err.Error() }
func (e *FormError) Unwrap() error { return e.Err }

// Load loads the source that an input names: a file, a folder, or the address of an
// exchange. head is the beginning of the file; a folder has none.
//
// Errors: a FormError. Faults of the source are set even then.
func (l *Loader) Load(ctx context.Context, input string, head []byte) (*update.Source, error) {
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3")):
		return l.loadCapture(ctx, input)
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return l.loadJSON(input)
	}
	s, err := schema.LoadDefinitions(ctx, input)
	if errors.Is(err, schema.ErrNoSource) || errors.Is(err, schema.ErrNoFiles) {
		return l.loadCode(ctx, input)
	}
	if err != nil {
		return nil, err
	}
	return fromDefinitions(s, l.Partial), nil
}

func (l *Loader) remark(r Remark) {
	if l.OnRemark != nil {
		l.OnRemark(r)
	}
}

// loadCapture makes a source of what a capture has and the definitions lack.
func (l *Loader) loadCapture(ctx context.Context, input string) (src *update.Source, err error) {
	err = l.WithCapture(input, func(c captures.Capture, file string, exchange int64, part bool) error {
		t := newTraffic(l.Have, l.Profile)
		t.onExchange = func(ex *decode.Exchange) {
			if l.OnExchange != nil {
				l.OnExchange(ex)
			}
			l.Calls.Add(file, ex)
		}
		t.onRejected = func(exchange int64, err error) { l.remark(Remark{Source: input, Exchange: exchange, Rejected: err}) }
		if err := t.addCapture(ctx, c, exchange, part); err != nil {
			return err
		}
		src, err = t.source()
		return err
	})
	return src, err
}

// loadJSON reads evidence of either form, joins, or the result of a probe.
func (l *Loader) loadJSON(name string) (*update.Source, error) {
	data, err := l.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data[:min(len(data), 4096)], []byte(`"unwire_evidence"`)) {
		ev, err := infer.ReadEvidence(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return fromEvidence(ev, l.Profile)
	}
	if align.IsReport(data) {
		return l.loadJoins(name, data)
	}
	src, err := update.ParseFindings(data, l.Have)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		if errors.Is(err, update.ErrNoFindings) {
			err = &FormError{Findings, err}
		}
		return nil, err
	}
	for _, left := range src.Left {
		l.remark(Remark{Source: name, Left: left})
	}
	return src, nil
}

// loadJoins reads what align wrote.
func (l *Loader) loadJoins(name string, data []byte) (*update.Source, error) {
	r, err := align.ParseReport(data)
	if err != nil {
		return nil, &FormError{Joins, fmt.Errorf("%s: %w", name, err)}
	}
	if l.Have != nil && !slices.ContainsFunc(r.Joins, func(j align.Join) bool { return l.Have.Message(j.Message) != nil }) {
		l.remark(Remark{Source: name, Unrelated: true})
	}
	return fromJoins(r)
}

// loadCode extracts the definitions of shipped code.
func (l *Loader) loadCode(ctx context.Context, name string) (*update.Source, error) {
	found, err := extract.Read(ctx, name, nil)
	if err != nil {
		return nil, &FormError{code, err}
	}
	set, err := extract.Merge(ctx, found)
	if err != nil {
		return nil, &FormError{code, fmt.Errorf("%s: %w", name, err)}
	}
	src := &update.Source{Name: "extraction", Certainty: "reported", Faults: found.Faults}
	if n := set.Count(); n.Messages+n.Enums+n.Services == 0 {
		return src, &FormError{code, fmt.Errorf("%s: %w", name, extract.ErrNothing)}
	}
	for _, u := range slices.Concat(found.Unresolved, set.Unresolved) {
		l.remark(Remark{Source: name, Unresolved: &u})
	}
	src.Schema, err = interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromDescriptorSet(set.DescriptorSet()) })
	if err != nil {
		return nil, err
	}
	// What is in a file that was not read is not gone.
	src.Complete = !l.Partial && len(found.Unread) == 0
	return src, nil
}
