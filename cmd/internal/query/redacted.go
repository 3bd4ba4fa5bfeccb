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

// A RedactedOpener opens captures so that no answer contains a secret, whatever is asked. It audits
// each capture when it is first opened. A capture in which nothing is found is opened as it is.
// Otherwise, a copy without the secrets is opened instead, as 'unwire redact' writes it. What is
// asked of the copy cannot contain a secret, and a search cannot find one.
//
// The audit is repeated if the capture has changed, such as while it is recorded. It is for any
// number of goroutines.
//
// Limits: an audit reads the whole capture. Those of secret.Audit and secret.Clean apply.
type RedactedOpener struct {
	// Folder is where copies are written; only the user should have access to it.
	Folder string

	// Open opens a capture as it is.
	Open func(path string) (*Capture, error)

	// Rules returns the rules for fields that contain secrets in a capture.
	Rules func(ctx context.Context, path string) (*secret.Rules, error)

	mu      sync.Mutex
	entries map[string]*redactedEntry
	copies  int
}

// A Redaction says how an opened capture differs from the file.
type Redaction struct {
	// Copied means that the capture is a copy in which secrets were replaced.
	Copied bool

	// Omitted counts what the copy lacks because it cannot be searched for secrets.
	Omitted secret.Omitted
}

// A redactedEntry is what is known of one capture.
type redactedEntry struct {
	// mu is held while the capture is audited, so that it is audited once.
	mu sync.Mutex

	state captureState
	known bool

	// path is that of the copy; "" if the capture itself has no secrets.
	path      string
	redaction Redaction
}

// A captureState tells whether a capture has changed.
type captureState struct {
	id   string
	last int64
}

// OpenRedacted opens a capture without its secrets.
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

// entry is the entry of a path, which is made if it is new.
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

func stateOf(ctx context.Context, c *Capture) (captureState, error) {
	id, err := c.ID(ctx)
	if err != nil {
		return captureState{}, err
	}
	last, err := c.LastNumber(ctx)
	return captureState{string(id), last}, err
}

// audit finds out whether a capture has secrets, and writes the copy if it has.
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

// writeClean writes the copy of a capture without its secrets.
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

// copyPath is the path of a new copy.
func (o *RedactedOpener) copyPath() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.copies++
	return filepath.Join(o.Folder, fmt.Sprintf("redacted-%d.uwc", o.copies))
}

// removeCapture removes a capture with the files next to it.
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

// HidePath replaces the path of a redacted copy in a text, such as that of an error, by the path
// that the user knows.
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
