package ui

import (
	"context"
	"errors"
	"slices"
	"sync"

	"unwire/cmd/internal/query"
	"unwire/schema"
)

// Options are the options of New.
type Options struct {
	// Files returns the paths of the captures to show. The list can grow during a recording.
	Files func() []string

	// Open opens a capture.
	Open func(path string) (*query.Capture, error)

	// Definitions loads the definitions that apply to a capture; nil for none.
	Definitions func(ctx context.Context, path string) (*schema.Schema, error)

	// Transcript returns how conversations are extracted, as the user has configured it; nil for the defaults.
	Transcript func() (query.TranscriptOptions, error)

	// Proto is the value of --proto that selects the definitions; "" for the default.
	Proto string

	// Live are the --live arguments that the user started the workbench with, for commands that send
	// requests. The page cannot add any.
	Live []string

	// Filters is the path of the file with the user's saved filters; "" if there is none.
	Filters string

	// Run runs the unwire command with the arguments args, and returns what it printed and its exit
	// status.
	Run func(ctx context.Context, args ...string) (stdout, stderr []byte, status int)

	// Version is the version of the program.
	Version string
}

// A library is the set of captures that the page shows.
type library struct {
	// options are the options of the workbench.
	options Options

	// mu guards files.
	mu sync.Mutex

	// files are the captures that a request has named so far.
	files []*file

	// probe is the probe that runs or ran last.
	probe probeRun
}

// fileAt returns the capture with the index i in the list of Options.Files.
func (l *library) fileAt(i int) (*file, error) {
	paths := l.options.Files()
	if i < 0 || i >= len(paths) {
		return nil, notFound("the workbench has no capture %d", i)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.files, func(f *file) bool { return f.path == paths[i] })
	if at < 0 {
		l.files = append(l.files, newFile(paths[i], &l.options))
		at = len(l.files) - 1
	}
	return l.files[at], nil
}

// close ends a running probe and closes all captures.
func (l *library) close() (err error) {
	err = l.probe.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		err = errors.Join(err, f.close())
	}
	l.files = nil
	return err
}
