package democmd

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/demo"
	"unwire/replay/credential"
)

// demoClientCommand is the connect-go client of the demo. It is a command of
// its own because a client that is to be captured is another process.
func demoClientCommand(a *app.App) *cobra.Command {
	var o demo.ClientOptions
	cmd := &cobra.Command{
		Use:    "demo-client --url URL",
		Short:  "The demo's connect-go client, as a process to capture",
		Long:   "demo-client holds the demo's conversation with a stand-in. Its bearer token is " + credential.EnvToken + ".",
		Hidden: true,
		Args:   app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demoClient(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVar(&o.URL, "url", "", "the server's base URL")
	cmd.Flags().StringVar(&o.CAFile, "upstream-ca", "", "PEM file of a CA to trust besides the system's")
	cmd.Flags().StringVar(&o.Prompt, "prompt", "", "what is asked (default: the scenario's question)")
	cmd.Flags().StringVar(&o.Fallback, "fallback", "", "speak HTTP/1.1 and the SSE fallback, with appends as hex or binary")
	return cmd
}

func demoClient(ctx context.Context, a *app.App, o demo.ClientOptions) error {
	if o.URL == "" {
		return app.Usagef("demo-client wants --url URL")
	}
	if o.Fallback != "" {
		if err := app.OneOf("--fallback", o.Fallback, demo.FallbackHex, demo.FallbackBinary); err != nil {
			return err
		}
	}
	if o.Token = os.Getenv(credential.EnvToken); o.Token == "" {
		return app.Fail(app.ExitCredentials, errors.New("no token"), "set "+credential.EnvToken+"; the stand-in takes any unless it was given one")
	}
	o.Out = a.Out
	return demo.RunClient(ctx, o)
}
