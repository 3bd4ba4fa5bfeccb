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
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures/atomicfile"
	"unwire/captures/budget"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/project"
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/credential"
)

// Exit codes of the program. They are part of the interface that scripts rely on, and never change
// their meaning.
const (
	exitOK          = 0
	ExitFinding     = 1 // a finding or a difference
	ExitUsage       = 2
	ExitInput       = 3 // bad input
	ExitCredentials = 4
	ExitConnect     = 64 // plus a Connect error code
	ExitInterrupted = 130
)

// A failure is an error together with the exit code of the program and the hint that is printed below the
// error.
type failure struct {
	// code is the exit code of the program.
	code int

	// err is the error that is printed; nil if the program exits without a message.
	err error

	// hint tells the user what to do about the error; "" for none.
	hint string
}

// Error returns the text of the wrapped error, which must not be nil.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the wrapped error, which may be nil.
func (f *failure) Unwrap() error { return f.err }

// Fail returns an error with which the program exits with the status code and prints hint after the
// error. If err is nil, the program exits with code and prints nothing.
func Fail(code int, err error, hint string) error { return &failure{code, err, hint} }

// Usagef formats an error about a wrong command line; the program then exits with status 2.
func Usagef(format string, args ...any) error {
	return Fail(ExitUsage, fmt.Errorf(format, args...), "")
}

// An App is the state of one run of the program: its standard streams, profile, and configuration.
// Every command gets it.
type App struct {
	// In is the process's standard input, for child processes and prompts. A read from it cannot be
	// interrupted; see Input.
	In io.Reader

	// Ctx is done when the command is interrupted. It is stored here for reads of pipes and terminals,
	// because io.Reader takes no context.
	Ctx context.Context

	// Input reads standard input. Its reads fail as soon as the command is interrupted.
	Input io.Reader

	// Signals delivers interrupt and termination signals to the running command.
	Signals *SignalHandler

	// Out is the standard output of the process.
	Out *term.Output

	// Err is the standard error of the process.
	Err *term.Output

	// started is true once the command line has been parsed without an error. Until then, every error is a
	// usage error.
	started bool

	// profile is the name of the chosen profile (the rules for the headers, endpoints and secrets of one
	// API), from --profile or unwire.yaml; "" if the user chose none.
	profile string

	// project is the parsed unwire.yaml, the settings file of the working folder; nil if there is none.
	project *project.File

	// Budget limits how much memory and time the command may spend on all untrusted input files together;
	// nil for a server, which creates a budget for each request.
	Budget *budget.Budget

	// redacted is true once a placeholder of a secret was written to stdout; see NoticePlaceholders.
	redacted bool

	// Reflection fetches protobuf definitions from servers by gRPC server reflection, for --proto
	// reflect:URL.
	Reflection reflected.Asker
}

// New returns the App for one run of the program. Its command is cancelled when ctx ends, and shares the budget of ctx.
func New(ctx context.Context, signals *SignalHandler, stdin io.Reader, stdout, stderr io.Writer) *App {
	return &App{
		In: stdin, Budget: budget.Of(ctx), Ctx: ctx, Input: &interruptibleReader{ctx: ctx, from: stdin}, Signals: signals,
		Out: term.New(stdout, "auto"), Err: term.New(stderr, "auto"),
	}
}

// Start applies the flag --color to the standard streams, and records that the command line was parsed
// without an error.
func (a *App) Start(color string, stdout, stderr io.Writer) error {
	switch color {
	case "auto", "always", "never":
	default:
		return Usagef("--color must be auto, always or never, not %q", color)
	}
	a.Out, a.Err = term.New(stdout, color), term.New(stderr, color)
	a.started = true
	return nil
}

// Started reports whether the command line was parsed without an error.
func (a *App) Started() bool { return a.started }

// Report prints an error of cmd with a hint to stderr, and returns the exit status of the program for it.
func (a *App) Report(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	f := a.failureOf(ctx, err)
	typed := options.AsTyped(cmd.Flags(), f.text(), f.hint)
	if text, hint := typed[0], typed[1]; text != "" {
		a.Err.Sayf("unwire: %s %s\n", a.Err.Red("error:"), text)
		if hint != "" {
			a.Err.Sayf("unwire: hint: %s\n", hint)
		}
	}
	return f.code
}

// failureOf returns the exit status for an error and the hint that is printed below it.
func (a *App) failureOf(ctx context.Context, err error) *failure {
	// An error without an exit code is bad input, unless its cause has a code of its own.
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

	// After an interrupt, errors are consequences of it; only an exit code that a command chose
	// remains.
	if _, coded := errors.AsType[*failure](err); ctx.Err() != nil && (errors.Is(err, context.Canceled) || !coded) {
		f = &failure{ExitInterrupted, errors.New("interrupted"), ""}
	}
	if f.hint == "" && f.err != nil {
		f.hint = hintFor(f.err)
	}
	return f
}

// text returns the error message that the user sees, without control characters; "" if the program exits
// without a message.
func (f *failure) text() string {
	if f.err == nil {
		return ""
	}
	return term.CleanText(withoutRepeats(atomicfile.ResultNames(PlainText(f.err))))
}

// ExactArgs returns a check that a command gets exactly one argument for each name. Its error names the argument that
// is missing.
func ExactArgs(names ...string) cobra.PositionalArgs { return ArgsBetween(len(names), names...) }

// ArgsBetween returns a check that a command gets at least the first least arguments of names, and at
// most one argument for each name. Its error names the missing argument.
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

// OneOf returns a usage error if value, the value of the named flag, is not one of the allowed values.
func OneOf(flag, value string, allowed ...string) error {
	for _, v := range allowed {
		if value == v {
			return nil
		}
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(v string) bool { return v == "" })
	return Usagef("%s must be one of %s, not %q", flag, strings.Join(named, ", "), value)
}

// WithRemarks returns a copy of a for one request of a server. Warnings and other diagnostics go to w
// instead of stderr. The copy has its own budget, and its own cache of definitions fetched by server
// reflection.
func (a *App) WithRemarks(w io.Writer) *App {
	request := *a
	request.Err = term.New(w, "never")
	request.Reflection = reflected.Asker{}
	request.Budget = budget.New()
	return &request
}

// Serving prepares a for a command that runs as a server until it is interrupted, and returns the
// command's context. There is no common budget for its requests, since their number is not limited.
func (a *App) Serving(ctx context.Context) context.Context {
	a.Budget = nil
	return budget.With(ctx, nil)
}

// Explain returns the message and the hint that a user sees for an error; both can be "". The message
// is "" if the exit status is the whole result, for instance that a search found something.
func (a *App) Explain(ctx context.Context, err error) (text, hint string) {
	if err == nil {
		return "", ""
	}
	f := a.failureOf(ctx, err)
	return f.text(), f.hint
}
