// Package app is a run of the program, as all commands see it: what they share, and
// none of their work. A command gets an App, and returns an error, which Report
// prints with a hint as an exit status.
//
// Input is read from a file or stdin, mapped into memory (in pages) if it is large;
// captures are opened for reading with limits, and indexed when they are closed;
// definitions are loaded from what a user names. An address names an exchange or a
// frame. Output is objects of the contract on stdout and remarks on stderr; a result
// file gets its name when it is complete.
//
// Flags that several commands have are read here: the target of requests with its
// policy, headers whose value a command makes (header-from), sizes and network
// addresses. The rest is the process: signals, the memory limit and the file size
// limit of the shell, and the version.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/credential"
)

// Exit codes, as the contract has them.
const (
	exitOK          = 0
	ExitFinding     = 1 // a finding or a difference
	ExitUsage       = 2
	ExitInput       = 3 // bad input
	ExitCredentials = 4
	ExitConnect     = 64 // plus a Connect error code
	ExitInterrupted = 130
)

// A failure is an error with the exit code and the hint that go with it.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Fail makes a failure; a nil err leaves with the code and says nothing.
func Fail(code int, err error, hint string) error { return &failure{code, err, hint} }

func Usagef(format string, args ...any) error {
	return Fail(ExitUsage, fmt.Errorf(format, args...), "")
}

// An App is one run of the program.
type App struct {
	// In is standard input as the process got it, for child processes and prompts.
	In io.Reader

	// Ctx ends when the command is interrupted. It is for the reads of pipes and
	// terminals, which take no context.
	Ctx context.Context

	// Input reads standard input until ctx ends.
	Input io.Reader

	Signals *SignalHandler

	Out     *term.Output
	Err     *term.Output
	started bool   // arguments were understood; what fails now is not usage
	profile string // what --profile chooses
}

// New returns a run of the program whose command ends with ctx.
func New(ctx context.Context, signals *SignalHandler, stdin io.Reader, stdout, stderr io.Writer) *App {
	return &App{
		In: stdin, Ctx: ctx, Input: &interruptibleReader{ctx: ctx, from: stdin}, Signals: signals,
		Out: term.New(stdout, "auto"), Err: term.New(stderr, "auto"),
	}
}

// Start takes the flag that all commands share; the arguments were understood.
func (a *App) Start(color string, stdout, stderr io.Writer) error {
	switch color {
	case "auto", "always", "never":
	default:
		return Usagef("--color is auto, always or never, not %q", color)
	}
	a.Out, a.Err = term.New(stdout, color), term.New(stderr, color)
	a.started = true
	return nil
}

// Started reports whether the arguments were understood.
func (a *App) Started() bool { return a.started }

// Report prints what went wrong and maps it to an exit status.
func (a *App) Report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{ExitInput, err, ""}
		if errors.Is(err, credential.ErrCredentials) {
			f.code = ExitCredentials
		}
		if errors.Is(err, replay.ErrTransport) {
			f.code = ExitUsage
		}
		if !a.started {
			f.code, f.hint = ExitUsage, "see 'unwire --help'"
		}
		if hint := hintFor(err); hint != "" {
			f.hint = hint
		}
	}
	if _, coded := errors.AsType[*failure](err); ctx.Err() != nil && (errors.Is(err, context.Canceled) || !coded) {
		f = &failure{ExitInterrupted, errors.New("interrupted"), ""}
	}
	if f.err != nil {
		a.Err.Sayf("unwire: %s %s\n", a.Err.Red("error:"), term.CleanText(plainText(f.err)))
		if f.hint != "" {
			a.Err.Sayf("unwire: hint: %s\n", f.hint)
		}
	}
	return f.code
}

// ExactArgs is cobra.ExactArgs with the names of what is missing.
func ExactArgs(names ...string) cobra.PositionalArgs { return ArgsBetween(len(names), names...) }

// ArgsBetween wants at least least of the named arguments and no more than all.
func ArgsBetween(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		hint := fmt.Sprintf("usage: %s", cmd.UseLine())
		if len(args) < least {
			return Fail(ExitUsage, fmt.Errorf("%s: missing argument %s", cmd.CommandPath(), names[len(args)]), hint)
		}
		if len(args) > len(names) {
			return Fail(ExitUsage, fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), args[len(names)]), hint)
		}
		return nil
	}
}

// OneOf checks a flag's value.
func OneOf(flag, value string, allowed ...string) error {
	for _, v := range allowed {
		if value == v {
			return nil
		}
	}
	return Usagef("%s is one of %v, not %q", flag, allowed, value)
}
