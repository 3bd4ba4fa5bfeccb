package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/demo"
	"unwire/replay/credential"
)

// demoClientCommand is the connect-go client of the demo. It is a command of
// its own because a client that is to be captured is another process.
func (a *app) demoClientCommand() *cobra.Command {
	var o demo.ClientOptions
	cmd := &cobra.Command{
		Use:    "demo-client --url URL",
		Short:  "The demo's connect-go client, as a process to capture",
		Long:   "demo-client holds the demo's conversation with a stand-in. Its bearer token is " + credential.EnvToken + ".",
		Hidden: true,
		Args:   exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demoClient(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.URL, "url", "", "the server's base URL")
	cmd.Flags().StringVar(&o.CAFile, "upstream-ca", "", "PEM file of a CA to trust besides the system's")
	cmd.Flags().StringVar(&o.Prompt, "prompt", "", "what is asked (default: the scenario's question)")
	cmd.Flags().StringVar(&o.Fallback, "fallback", "", "speak HTTP/1.1 and the SSE fallback, with appends as hex or binary")
	return cmd
}

func (a *app) demoClient(ctx context.Context, o demo.ClientOptions) error {
	if o.URL == "" {
		return usagef("demo-client wants --url URL")
	}
	if o.Fallback != "" {
		if err := oneOf("--fallback", o.Fallback, demo.FallbackHex, demo.FallbackBinary); err != nil {
			return err
		}
	}
	if o.Token = os.Getenv(credential.EnvToken); o.Token == "" {
		return fail(exitCredentials, errors.New("no token"), "set "+credential.EnvToken+"; the stand-in takes any unless it was given one")
	}
	o.Out = a.out
	return demo.RunClient(ctx, o)
}
