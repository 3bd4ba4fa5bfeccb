package ui

import (
	"context"
	"sync"

	"unwire/cmd/internal/query"
	"unwire/decode/filter"
	"unwire/schema"
	"unwire/schema/check"
)

// keptDocuments is how many exchanges of a capture are kept decoded.
const keptDocuments = 4

// A file is a capture that the page shows, with what was derived of it.
type file struct {
	path    string
	options *Options

	mu      sync.Mutex
	capture *query.Capture // nil until it could be opened

	// The definitions, once they were loaded.
	defsMu sync.Mutex
	loaded bool
	defs   *schema.Schema

	// background ends with the file. listed is the list of exchanges, and selection those of it that a filter
	// selected last.
	background context.Context
	stop       context.CancelFunc
	listMu     sync.Mutex
	listed     *listing
	selection  *selection

	coverageMu sync.Mutex
	coverage   *coverage

	held heldFrames

	documentsMu sync.Mutex
	documents   []*document // the last used first
}

// A coverage is how far definitions explained a capture when its last number was last.
type coverage struct {
	last      int64
	report    *check.Report
	proposals []check.Proposal
}

func newFile(path string, o *Options) *file {
	f := &file{path: path, options: o}
	f.background, f.stop = context.WithCancel(context.Background())
	return f
}

// open returns the capture, which a recording may not have created yet.
func (f *file) open() (*query.Capture, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.capture == nil {
		c, err := f.options.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.capture = c
	}
	return f.capture, nil
}

func (f *file) close() error {
	f.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.capture == nil {
		return nil
	}
	err := f.capture.Close()
	f.capture = nil
	return err
}

// definitions returns those that apply to the capture; nil for none.
func (f *file) definitions(ctx context.Context) (*schema.Schema, error) {
	f.defsMu.Lock()
	defer f.defsMu.Unlock()
	if f.loaded {
		return f.defs, nil
	}
	defs, err := f.options.Definitions(ctx, f.path)
	if err != nil {
		return nil, err
	}
	f.defs, f.loaded = defs, true
	return defs, nil
}

// list returns the list of exchanges, which is up to date or about to be.
func (f *file) list(ctx context.Context) (*listing, error) {
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	f.listMu.Lock()
	if f.listed == nil {
		f.listed = newListing(c)
	}
	l := f.listed
	f.listMu.Unlock()
	return l, l.refresh(ctx, f.background)
}

// selector returns a selector for a filter.
func (f *file) selector(ctx context.Context, parsed *filter.Filter) (*query.Selector, error) {
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	var defs *schema.Schema
	if parsed.Needs()&filter.Types != 0 {
		if defs, err = f.definitions(ctx); err != nil {
			return nil, err
		}
	}
	return c.NewSelector(ctx, parsed, defs)
}
