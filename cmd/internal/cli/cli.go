// Package cli is the command line. The packages below it have the commands, one file
// per command with its flags and calls; package app has what a run of the program
// is. The work is done by libraries that return.
//
// Run handles the arguments, signals and the exit status; commands are listed by
// group in one place.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/captures/budget"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/completion"
	"unwire/cmd/internal/help"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/proto"
)

// Run runs the program with the arguments that follow the program's name, and returns its exit status.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in, stop := app.NewSignalHandler()
	defer stop()
	code, abandoned := in.Run(func(ctx context.Context) int {
		ctx = budget.With(ctx, budget.New())
		a := app.New(ctx, in, stdin, stdout, stderr)
		root := rootCommand(a, stdout, stderr)
		root.SetArgs(args)
		root.SetIn(stdin)
		root.SetOut(stdout)
		root.SetErr(stderr)
		cmd, err := root.ExecuteContextC(ctx)
		if err != nil && !a.Started() {
			if unknown := app.UnknownCommand(root, args); unknown != nil {
				err = unknown
			}
		}
		a.ExplainPlaceholders()
		return a.Report(ctx, cmd, err)
	})
	if abandoned {
		sayAbandoned(stderr)
	}
	return code
}

// sayAbandoned prints that the program was interrupted. It waits only briefly, because stderr may be
// blocked.
func sayAbandoned(stderr io.Writer) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		e := term.New(stderr, "auto")
		fmt.Fprintf(e, "unwire: %s interrupted\n", e.Red("error:"))
	}()
	select {
	case <-said:
	case <-time.After(app.GoodbyeTime):
	}
}

// withoutProject lists the commands that neither read nor record traffic. They ignore unwire.yaml, and
// so also work if that file is invalid.
var withoutProject = []string{"-", "version", "config", "ca", "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// writingCaptures lists the commands whose -o names a capture.
var writingCaptures = []string{
	"unwire call", "unwire capture", "unwire demo", "unwire import", "unwire mcp", "unwire redact", "unwire replay", "unwire replay suite", "unwire serve",
}

const rootExamples = `  # See what unwire can do, with a local client and server
  unwire demo
  # Record the traffic of a program
  unwire capture -o F.uwc -- node app.js
  # List the recorded requests and answers
  unwire ls F.uwc
  # Write .proto files that describe the recorded messages
  unwire schema infer -o inferred/ F.uwc`

// rootCommand returns the command 'unwire' with all its subcommands and global flags.
func rootCommand(a *app.App, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "unwire",
		Short:         "Record and decode Connect-RPC and protobuf traffic, and reconstruct .proto files",
		Long:          "unwire records Connect, gRPC and HTTP traffic, and decodes the messages without a schema.\nFrom the messages, unwire reconstructs .proto files. unwire also sends recorded requests again,\nwith edits, and compares the answers.",
		Example:       rootExamples,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       app.Version(),
	}
	var color string
	root.PersistentFlags().StringVar(&color, "color", "auto", "colours in the output: auto, always or never")
	var profile string
	root.PersistentFlags().StringVar(&profile, "profile", "", "profile (built-in .proto definitions and rules about secrets for one service): "+proto.Profile().Name+", "+app.NoDefinitions+", or "+app.AutoProfile+", which means "+proto.Profile().Name+" if the recorded calls use protobuf packages of "+proto.Profile().Name+", and "+app.NoDefinitions+" otherwise")
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := a.Start(color, stdout, stderr); err != nil {
			return err
		}
		if err := a.Configure(profile, !slices.Contains(withoutProject, strings.Fields(cmd.CommandPath() + " -")[1])); err != nil {
			return err
		}
		if err := app.MisspelledSubcommand(cmd, args); err != nil {
			return err
		}
		if out := cmd.Flags().Lookup("output"); out != nil && slices.Contains(writingCaptures, cmd.CommandPath()) {
			if err := app.CheckCaptureName(out.Value.String()); err != nil {
				return err
			}
		}
		completeCaptures(cmd, a, args)
		a.NoticePlaceholders(cmd)
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// The errors of many flags begin with the name of the flag, which is then not repeated.
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok && strings.HasPrefix(app.PlainText(invalid.Unwrap()), "--"+invalid.GetFlag().Name+" ") {
			err = invalid.Unwrap()
		}
		name := ""
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			name = unknown.GetSpecifiedName()
		}
		return app.Fail(app.ExitUsage, err, app.UnknownFlag(cmd, name))
	})
	root.AddCommand(commands(a)...)
	keepSchema(root)
	root.AddCommand(help.EnvironmentCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	app.RefuseUnknown(root)
	group(root)
	completion.Add(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := term.New(stdout, color)
		// Help that cannot be written is not reported: there is nowhere to.
		_ = help.NewPage(cmd).Text(out, out.Width, help.Style{Bold: out.Bold})
	})
	return root
}

// keepSchema adds --schema, as --proto was called before, to all commands below cmd that have --proto.
func keepSchema(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Flags().Lookup("proto") != nil {
			options.Alias(c.Flags(), "schema", "proto")
		}
		keepSchema(c)
	}
}

// completeCaptures completes the captures that args name if their recorder ('capture --passive') was
// killed: it imports the packets that the recorder left behind.
func completeCaptures(cmd *cobra.Command, a *app.App, args []string) {
	if cmd.Hidden {
		return
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { args = append(args, f.Value.String()) })
	for _, word := range args {
		a.CompleteKilled(cmd.Context(), query.ParseAddress(word).File)
	}
}
