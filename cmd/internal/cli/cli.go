// Package cli is the command line: one file per command. Flags and exit codes
// live only here; the work is done by packages that return.
package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/term"
)

// Run runs the program and returns its exit status.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in, stop := newSignalHandler()
	defer stop()
	code, abandoned := in.run(func(ctx context.Context) int {
		a := newApp(ctx, in, stdin, stdout, stderr)
		root := rootCommand(a, stdout, stderr)
		root.SetArgs(args)
		root.SetIn(stdin)
		root.SetOut(stdout)
		root.SetErr(stderr)
		return a.report(ctx, root.ExecuteContext(ctx))
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
	case <-time.After(goodbyeTime):
	}
}

func rootCommand(a *app, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "unwire",
		Short:         "Record, decode and reconstruct Connect-RPC and protobuf traffic",
		Long:          "unwire records Connect-RPC traffic, explains it without a schema, reconstructs the\n.proto files behind it, and checks them by replaying edited requests.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	var color string
	root.PersistentFlags().StringVar(&color, "color", "auto", "colour: auto, always or never")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		return a.start(color, stdout, stderr)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fail(exitUsage, err, fmt.Sprintf("see '%s --help'", cmd.CommandPath()))
	})
	root.AddCommand(commands(a)...)
	return root
}
