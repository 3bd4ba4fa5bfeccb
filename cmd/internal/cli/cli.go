// Package cli is the command line. The packages below it have the commands, one file
// per command with its flags and calls; package app has what a run of the program
// is. The work is done by libraries that return.
//
// Run handles the arguments, signals and the exit status; commands are listed by
// group in one place.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/proto"
)

// Run runs the program and returns its exit status.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in, stop := app.NewSignalHandler()
	defer stop()
	code, abandoned := in.Run(func(ctx context.Context) int {
		a := app.New(ctx, in, stdin, stdout, stderr)
		root := rootCommand(a, stdout, stderr)
		root.SetArgs(args)
		root.SetIn(stdin)
		root.SetOut(stdout)
		root.SetErr(stderr)
		err := root.ExecuteContext(ctx)
		if err != nil && !a.Started() {
			if unknown := app.UnknownCommand(root, args); unknown != nil {
				err = unknown
			}
		}
		return a.Report(ctx, err)
	})
	if abandoned {
		sayAbandoned(stderr)
	}
	return code
}

// sayAbandoned reports an interruption without waiting for a blocked stderr.
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

func rootCommand(a *app.App, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "unwire",
		Short:         "Record, decode and reconstruct Connect-RPC and protobuf traffic",
		Long:          "unwire records Connect-RPC traffic, explains it without a schema, reconstructs the\n.proto files behind it, and checks them by replaying edited requests.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       app.Version(),
	}
	var color string
	root.PersistentFlags().StringVar(&color, "color", "auto", "colour: auto, always or never")
	var profile string
	root.PersistentFlags().StringVar(&profile, "profile", app.AutoProfile, "known service whose definitions and conventions apply: "+app.AutoProfile+" (if its packages are in the traffic), "+proto.Profile().Name+", or "+app.NoDefinitions)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(a.Start(color, stdout, stderr), a.SetProfile(profile)); err != nil {
			return err
		}
		completeCaptures(cmd, a, args)
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return app.Fail(app.ExitUsage, err, fmt.Sprintf("see '%s --help'", cmd.CommandPath()))
	})
	root.AddCommand(commands(a)...)
	return root
}

// completeCaptures completes the captures that a command is about to use, if their recorder
// was killed.
func completeCaptures(cmd *cobra.Command, a *app.App, args []string) {
	if cmd.Hidden {
		return
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { args = append(args, f.Value.String()) })
	for _, word := range args {
		a.CompleteKilled(cmd.Context(), query.ParseAddress(word).File)
	}
}
