package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode/secret"
)

// A RedactedOpener opens captures so that nothing read from them contains a secret. It audits each
// capture when it is first opened. A capture without secrets is opened directly; for any other, it opens
// a redacted copy, as 'unwire redact' writes it. The audit is repeated when the capture has changed, for
// instance because it is being recorded. It is safe for concurrent use.
//
// Limits: an audit reads the whole capture. Those of secret.Audit and secret.Clean apply.
type RedactedOpener struct {
	// Folder is where copies are written; only the user should have access to it.
	Folder string

	// Open opens a capture file without redaction.
	Open func(path string) (*Capture, error)

	// Rules returns the rules that find fields with secrets in the capture at path.
	Rules func(ctx context.Context, path string) (*secret.Rules, error)

	// mu guards the fields below.
	mu sync.Mutex

	// entries has the result of the audit for each path.
	entries map[string]*redactedEntry

	// copies is the number of copies that were made.
	copies int
}

// A Redaction describes how an opened capture differs from the original file.
type Redaction struct {
	// Copied means that the capture is a copy in which secrets were replaced.
	Copied bool

	// Omitted counts the data that the copy lacks because it cannot be searched for secrets.
	Omitted secret.Omitted
}

// A redactedEntry is the result of auditing one capture.
type redactedEntry struct {
	// mu is held during the audit, so that the capture is audited only once.
	mu sync.Mutex

	// state is the state of the capture that was audited.
	state captureState

	// known means that the audit has succeeded.
	known bool

	// path is the path of the redacted copy; "" if the capture has no secrets.
	path string

	// redaction describes the copy.
	redaction Redaction
}

// A captureState identifies a version of a capture; two are equal if the capture has not changed.
type captureState struct {
	// id is the id of the capture.
	id string

	// last is the last number in the capture.
	last int64
}

// OpenRedacted opens the capture at path or, if it contains secrets, a redacted copy.
//
// Errors: those of Open, Rules, secret.Audit and secret.Clean.
func (o *RedactedOpener) OpenRedacted(ctx context.Context, path string) (*Capture, Redaction, error) {
	original, err := o.Open(path)
	if err != nil {
		return nil, Redaction{}, err
	}
	e := o.entry(path)
	e.mu.Lock()
	defer e.mu.Unlock()

	state, err := stateOf(ctx, original)
	if err == nil && (!e.known || e.state != state) {
		err = o.audit(ctx, e, path, original)
		e.state, e.known = state, err == nil
	}
	if err != nil || e.path == "" {
		if err != nil {
			err = errors.Join(err, original.Close())
			return nil, Redaction{}, err
		}
		return original, e.redaction, nil
	}
	if err := original.Close(); err != nil {
		return nil, Redaction{}, err
	}
	copied, err := o.Open(e.path)
	return copied, e.redaction, err
}

// entry returns the entry of a path, a new one if there is none.
func (o *RedactedOpener) entry(path string) *redactedEntry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries == nil {
		o.entries = map[string]*redactedEntry{}
	}
	if o.entries[path] == nil {
		o.entries[path] = &redactedEntry{}
	}
	return o.entries[path]
}

// stateOf returns the current state of a capture.
func stateOf(ctx context.Context, c *Capture) (captureState, error) {
	id, err := c.ID(ctx)
	if err != nil {
		return captureState{}, err
	}
	last, err := c.LastNumber(ctx)
	return captureState{string(id), last}, err
}

// audit searches a capture for secrets, and writes a redacted copy if it has any. The result is stored in
// e.
func (o *RedactedOpener) audit(ctx context.Context, e *redactedEntry, path string, original *Capture) error {
	if e.path != "" {
		// Captures that are opened already keep reading the copy that was removed.
		removeCapture(e.path)
		e.path, e.redaction = "", Redaction{}
	}
	rules, err := o.Rules(ctx, path)
	if err != nil {
		return err
	}
	found, err := secret.Audit(ctx, original.Store, redact.New(redact.Options{Profile: original.Profile()}), rules)
	counts := secret.Count(found)
	clean := counts.Values == 0 && counts.Unsearched == 0
	if err != nil && clean {
		return err
	}
	if clean {
		return nil
	}

	copied := o.copyPath()
	omitted, err := writeClean(ctx, copied, original, rules)
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		removeCapture(copied)
		return fmt.Errorf("cannot redact %s: %w", path, err)
	}
	e.path, e.redaction = copied, Redaction{Copied: true, Omitted: omitted}
	return nil
}

// writeClean writes a redacted copy of a capture to path, and returns what the copy lacks.
func writeClean(ctx context.Context, path string, original *Capture, rules *secret.Rules) (omitted secret.Omitted, err error) {
	redactor := redact.New(redact.Options{Profile: original.Profile()}).Omitting()
	to, err := store.Create(path, store.Options{Redactor: redactor, Profile: original.Profile(), NoAdditions: true})
	if err != nil {
		return omitted, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, _, omitted, err = secret.Clean(ctx, to, original.Store, rules)
	return omitted, err
}

// copyPath returns a new path for a redacted copy.
func (o *RedactedOpener) copyPath() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.copies++
	return filepath.Join(o.Folder, fmt.Sprintf("redacted-%d.uwc", o.copies))
}

// removeCapture deletes a capture file and the database files next to it.
func removeCapture(path string) {
	files, err := filepath.Glob(path + "*")
	if err != nil {
		return // of a pattern that is wrong, which this is not
	}
	for _, file := range files {
		// What cannot be removed is removed with the folder.
		_ = os.Remove(file)
	}
}

// HidePath replaces the path of a redacted copy in a text, such as an error, by the path of the original.
func (o *RedactedOpener) HidePath(text string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for path, e := range o.entries {
		if e.mu.TryLock() {
			if e.path != "" {
				text = string(bytes.ReplaceAll([]byte(text), []byte(e.path), []byte(path)))
			}
			e.mu.Unlock()
		}
	}
	return text
}
