package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/term"
	"unwire/replay/credential"
)

// Exit codes, as the contract has them.
const (
	exitOK          = 0
	exitFinding     = 1 // a finding or a difference
	exitUsage       = 2
	exitInput       = 3 // bad input
	exitCredentials = 4
	exitConnect     = 64 // plus a Connect error code
	exitInterrupted = 130
)

// A failure is an error with the exit code and the hint that go with it.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes a failure; a nil err leaves with the code and says nothing.
func fail(code int, err error, hint string) error { return &failure{code, err, hint} }

func usagef(format string, args ...any) error {
	return fail(exitUsage, fmt.Errorf(format, args...), "")
}

// An app is one run of the program.
type app struct {
	// in is standard input as the process got it, for child processes and prompts.
	in io.Reader

	// ctx ends when the command is interrupted. It is for the reads of pipes and
	// terminals, which take no context.
	ctx context.Context

	// input reads standard input until ctx ends.
	input io.Reader

	signals *signalHandler

	out     *term.Output
	err     *term.Output
	started bool // arguments were understood; what fails now is not usage
}

// newApp returns a run of the program whose command ends with ctx.
func newApp(ctx context.Context, signals *signalHandler, stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{
		in: stdin, ctx: ctx, input: &interruptibleReader{ctx: ctx, from: stdin}, signals: signals,
		out: term.New(stdout, "auto"), err: term.New(stderr, "auto"),
	}
}

// start takes the flag that all commands share; the arguments were understood.
func (a *app) start(color string, stdout, stderr io.Writer) error {
	switch color {
	case "auto", "always", "never":
	default:
		return usagef("--color is auto, always or never, not %q", color)
	}
	a.out, a.err = term.New(stdout, color), term.New(stderr, color)
	a.started = true
	return nil
}

// report prints what went wrong and maps it to an exit status.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{exitInput, err, ""}
		if errors.Is(err, credential.ErrCredentials) {
			f.code = exitCredentials
		}
		if !a.started {
			f.code, f.hint = exitUsage, "see 'unwire --help'"
		}
		if hint := hintFor(err); hint != "" {
			f.hint = hint
		}
	}
	if _, coded := errors.AsType[*failure](err); ctx.Err() != nil && (errors.Is(err, context.Canceled) || !coded) {
		f = &failure{exitInterrupted, errors.New("interrupted"), ""}
	}
	if f.err != nil {
		fmt.Fprintf(a.err, "unwire: %s %s\n", a.err.Red("error:"), term.CleanText(f.err.Error()))
		if f.hint != "" {
			fmt.Fprintf(a.err, "unwire: hint: %s\n", f.hint)
		}
	}
	return f.code
}

// exactArgs is cobra.ExactArgs with the names of what is missing.
func exactArgs(names ...string) cobra.PositionalArgs { return argsBetween(len(names), names...) }

// argsBetween wants at least least of the named arguments and no more than all.
func argsBetween(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		hint := fmt.Sprintf("usage: %s", cmd.UseLine())
		if len(args) < least {
			return fail(exitUsage, fmt.Errorf("%s: missing argument %s", cmd.CommandPath(), names[len(args)]), hint)
		}
		if len(args) > len(names) {
			return fail(exitUsage, fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), args[len(names)]), hint)
		}
		return nil
	}
}

// oneOf checks a flag's value.
func oneOf(flag, value string, allowed ...string) error {
	for _, v := range allowed {
		if value == v {
			return nil
		}
	}
	return usagef("%s is one of %v, not %q", flag, allowed, value)
}
