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
	// Files returns the paths of the captures. A recording can add some.
	Files func() []string

	// Open opens a capture.
	Open func(path string) (*query.Capture, error)

	// Definitions loads the definitions that apply to a capture; nil for none.
	Definitions func(ctx context.Context, path string) (*schema.Schema, error)

	// Transcript returns how conversations are extracted, as the user has configured it; nil for the defaults.
	Transcript func() (query.TranscriptOptions, error)

	// Proto names the definitions, as --proto has them; "" for the default.
	Proto string

	// Live are the flags of --live that the user gave, for commands that send. The page cannot add any.
	Live []string

	// Filters is the file of the user's saved filters.
	Filters string

	// Run runs a command of unwire, without its name, and returns what it printed and its exit status.
	Run func(ctx context.Context, args ...string) (stdout, stderr []byte, status int)

	// Version is that of the program.
	Version string
}

// A library is the captures that the page shows.
type library struct {
	options Options

	mu    sync.Mutex
	files []*file

	probe probeRun
}

// fileAt returns the capture with a number, in the order of Options.Files.
func (l *library) fileAt(i int) (*file, error) {
	paths := l.options.Files()
	if i < 0 || i >= len(paths) {
		return nil, notFound("there is no capture %d", i)
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
