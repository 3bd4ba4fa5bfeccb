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

// A file is a capture that the page shows, with what was derived from it.
type file struct {
	// path is the path of the capture.
	path string

	// options are the options of the workbench.
	options *Options

	// mu guards capture.
	mu sync.Mutex

	// capture is the open capture; nil until it could be opened.
	capture *query.Capture

	// defsMu guards loaded and defs.
	defsMu sync.Mutex

	// loaded means that the definitions were loaded.
	loaded bool

	// defs are the definitions that apply to the capture; nil for none.
	defs *schema.Schema

	// background is the context of the work that goes on between requests. It ends when the file is
	// closed.
	background context.Context

	// stop ends background.
	stop context.CancelFunc

	// listMu guards listed and selection.
	listMu sync.Mutex

	// listed is the list of exchanges; nil until it is needed.
	listed *listing

	// selection are the exchanges that the last filter selected; nil until it is needed.
	selection *selection

	// coverageMu guards coverage.
	coverageMu sync.Mutex

	// coverage is the last result of coverageOf; nil until it is needed.
	coverage *coverage

	// held are the frames that the recorder of the capture holds.
	held heldFrames

	// documentsMu guards documents.
	documentsMu sync.Mutex

	// documents are the exchanges that were shown last, the most recent first.
	documents []*document
}

// A coverage is how far the definitions explain a capture.
type coverage struct {
	// last is the capture's last number when the coverage was computed.
	last int64

	// report is the report of 'unwire schema check'.
	report *check.Report

	// proposals are the fields that can be added to the definitions.
	proposals []check.Proposal
}

// newFile returns the file for the capture at path. It opens the capture when it is needed.
func newFile(path string, o *Options) *file {
	f := &file{path: path, options: o}
	f.background, f.stop = context.WithCancel(context.Background())
	return f
}

// open returns the open capture. It fails while a recording has not created the capture yet.
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

// close ends the background work and closes the capture.
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

// openWithDefinitions returns the open capture, and the definitions that apply to it; nil for none.
func (f *file) openWithDefinitions(ctx context.Context) (*query.Capture, *schema.Schema, error) {
	c, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	defs, err := f.definitions(ctx)
	return c, defs, err
}

// definitions returns the definitions that apply to the capture; nil for none. It loads them once.
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

// list returns the list of exchanges, after a short wait for its update. In a large capture, the update
// can go on afterwards.
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

// selector returns a selector of the exchanges of the capture that match a filter.
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
