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
	"unwire/schema/bundle/model"
	"unwire/schema/extract"
	"unwire/schema/infer"
	"unwire/schema/interrupt"
	"unwire/schema/update"
)

// A Loader loads sources: definitions, captures, evidence, joins, the results of probes, and shipped code.
// WithCapture and ReadFile are required for the inputs that need them.
type Loader struct {
	// Have are the definitions to be updated; nil for none.
	Have *schema.Schema
	// Partial is set if a source is not complete: elements that it lacks are not gone.
	Partial bool
	// Profile has the secrets of a client that examples must not show. It may be nil.
	Profile *profile.Profile

	// WithCapture calls do with the capture that an input names, with the name of its file, and with the number
	// of the only exchange to read, or 0. part restricts reading to that call without its conversation.
	WithCapture func(input string, do func(src captures.Capture, file string, exchange int64, part bool) error) error
	// ReadFile returns the content of a file of evidence, joins or findings.
	ReadFile func(name string) ([]byte, error)

	// Calls collects the calls of captures, for Folder.Update.
	Calls align.Calls
	// OnExchange, if set, is called with each exchange of a capture.
	OnExchange func(*decode.Exchange)
	// OnRemark, if set, is called with remarks for the user.
	OnRemark func(Remark)
}

// A Remark is an observation about a source for the user. In addition to Source, one of the others is set.
// Source is the input.
type Remark struct {
	// Source is the input that the remark is about.
	Source string

	// Exchange is the number of the exchange in which messages are left out, or 0.
	Exchange int64
	// Rejected is the reason why definitions of the input are ignored, or nil.
	Rejected error
	// Left is a finding that cannot be declared, with the reason.
	Left string
	// Unresolved is an element of shipped code whose definition is incomplete.
	Unresolved *model.Unresolved
	// Unrelated is set if the definitions have none of the messages.
	Unrelated bool
}

// A Form is a format of source files.
type Form string

// Formats of files that may turn out to be something else.
const (
	// Joins is the format of `align`.
	Joins Form = "joins"
	// Findings is the format of probes and of `schema infer`.
	Findings Form = "findings"
	code     Form = "code"
)

// A FormError reports that a file does not have the format that it seems to have.
type FormError struct {
	// Form is the format that the file appears to have.
	Form Form
	// Err is the error of reading the file in that format.
	Err error
}

// Error formats the format and the error.
func (e *FormError) Error() string { return e.Err.Error() }

// Unwrap returns Err, for errors.Is and errors.As.
func (e *FormError) Unwrap() error { return e.Err }

// Load loads the source that input names: a file, a folder, or an exchange of a capture. head is the beginning
// of the file; it is empty for a folder.
//
// Errors: *FormError. Even then, the source may be set with its Faults.
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
	return l.OfDefinitions(s), nil
}

// OfDefinitions returns a source for an update from definitions.
func (l *Loader) OfDefinitions(s *schema.Schema) *update.Source { return fromDefinitions(s, l.Partial) }

// remark passes a remark to the callback, if there is one.
func (l *Loader) remark(r Remark) {
	if l.OnRemark != nil {
		l.OnRemark(r)
	}
}

// loadCapture returns the declarations that a capture shows and that the definitions lack.
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

// loadJSON loads evidence, joins, or the result of a probe.
func (l *Loader) loadJSON(name string) (*update.Source, error) {
	data, err := l.ReadFile(name)
	if err != nil {
		return nil, err
	}

	// The formats have no common marker, so each is recognised by a member of its own.
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
		// The caller may know better what the file is.
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

// loadJoins loads a source from the JSON output of `unwire align`.
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
	// Anything else may be a script, an archive or an executable.
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
	// A file that was not read may contain what seems to be gone.
	src.Complete = !l.Partial && len(found.Unread) == 0
	return src, nil
}
