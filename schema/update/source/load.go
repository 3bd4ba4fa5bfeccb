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

// A Loader loads the sources of an update: definitions, captures, stored evidence, output of `unwire align`,
// results of probes, and shipped code. WithCapture and ReadFile are required for the inputs that need them.
type Loader struct {
	// Have are the definitions to be updated; nil for none.
	Have *schema.Schema
	// Partial is set if no source is complete, i.e. elements that a source lacks still exist.
	Partial bool
	// Profile has the secrets of a client, which must not appear in examples. It may be nil.
	Profile *profile.Profile

	// WithCapture opens the capture that an input names and calls do with it, with the name of its file, and
	// with the number of the only exchange to read, or 0. part restricts reading to that call without its
	// conversation.
	WithCapture func(input string, do func(src captures.Capture, file string, exchange int64, part bool) error) error
	// ReadFile returns the content of a JSON file: stored evidence, output of `unwire align`, or the result of
	// a probe.
	ReadFile func(name string) ([]byte, error)

	// Calls collects the calls in captures, for Folder.Update.
	Calls align.Calls
	// OnExchange, if set, is called with each exchange of a capture.
	OnExchange func(*decode.Exchange)
	// OnRemark, if set, is called with remarks for the user.
	OnRemark func(Remark)
}

// A Remark is an observation about a source for the user. One field in addition to Source is set.
type Remark struct {
	// Source is the name of the input.
	Source string

	// Exchange is the number of the exchange whose messages were left out, or 0.
	Exchange int64
	// Rejected is the reason why messages or definitions of the input are ignored, or nil.
	Rejected error
	// Left describes a field that cannot be declared, with the reason, or is "".
	Left string
	// Unresolved is an element of shipped code whose definition is incomplete, or nil.
	Unresolved *model.Unresolved
	// Unrelated is set if the user's definitions have none of the messages in the source.
	Unrelated bool
}

// A Form is a format of source files.
type Form string

// Formats that a file may seem to have without having them.
const (
	// Joins is the output of `unwire align`.
	Joins Form = "joins"
	// Findings is the result of a probe or of `unwire schema infer`.
	Findings Form = "findings"
	// code is shipped code, such as scripts and executables.
	code Form = "code"
)

// A FormError reports that a file does not have the format that it seems to have.
type FormError struct {
	// Form is the format that the file appears to have.
	Form Form
	// Err is the error of reading the file in that format.
	Err error
}

// Error returns the message of Err.
func (e *FormError) Error() string { return e.Err.Error() }

// Unwrap returns Err, for errors.Is and errors.As.
func (e *FormError) Unwrap() error { return e.Err }

// Load loads the source that input names: a file, a folder, or an exchange of a capture. head are the first
// bytes of the file; it is empty for a folder.
//
// Errors: *FormError. Even then, the source may be set with its Faults.
func (l *Loader) Load(ctx context.Context, input string, head []byte) (*update.Source, error) {
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3")):
		return l.loadCapture(ctx, input)
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return l.loadJSON(ctx, input)
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

// OfDefinitions returns the source of an update for definitions that were already loaded.
func (l *Loader) OfDefinitions(s *schema.Schema) *update.Source { return fromDefinitions(s, l.Partial) }

// remark passes a remark to the callback, if there is one.
func (l *Loader) remark(r Remark) {
	if l.OnRemark != nil {
		l.OnRemark(r)
	}
}

// loadCapture infers from a capture the declarations that the user's definitions lack.
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

// loadJSON loads a JSON file: stored evidence, output of `unwire align`, or the result of a probe.
func (l *Loader) loadJSON(ctx context.Context, name string) (*update.Source, error) {
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
	src, err := update.ParseFindings(ctx, data, l.Have)
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

// loadJoins loads the JSON output of `unwire align`, whose content is data.
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

// loadCode extracts the definitions in a program: a script, an archive of scripts or classes, or an executable. name is
// its path.
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
