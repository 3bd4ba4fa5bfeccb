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

// demoClientCommand returns the hidden command 'unwire demo-client', the demo's connect-go client. The
// demo runs it as a child process, because capture records other processes.
func demoClientCommand(a *app.App) *cobra.Command {
	var o demo.ClientOptions
	cmd := &cobra.Command{
		Use:    "demo-client --url URL",
		Short:  "Run the connect-go client of the demo",
		Long:   "demo-client runs the demo's conversation against a stand-in server. The bearer token comes from " + credential.EnvToken + ".",
		Hidden: true,
		Args:   app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demoClient(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVar(&o.URL, "url", "", "the server's base URL")
	cmd.Flags().StringVar(&o.CAFile, "upstream-ca", "", "PEM file of an additional CA to trust")
	cmd.Flags().StringVar(&o.Prompt, "prompt", "", "prompt to send (default: the scenario's question)")
	cmd.Flags().StringVar(&o.Fallback, "fallback", "", "use HTTP/1.1 and the SSE fallback, with BidiAppend data as hex or binary")
	return cmd
}

// demoClient runs the demo's client against a server, with the bearer token in the environment.
func demoClient(ctx context.Context, a *app.App, o demo.ClientOptions) error {
	if o.URL == "" {
		return app.Usagef("demo-client requires --url URL")
	}
	if o.Fallback != "" {
		if err := app.OneOf("--fallback", o.Fallback, demo.FallbackHex, demo.FallbackBinary); err != nil {
			return err
		}
	}
	if o.Token = os.Getenv(credential.EnvToken); o.Token == "" {
		return app.Fail(app.ExitCredentials, errors.New("demo-client needs a token"), "set "+credential.EnvToken+" to a bearer token; the stand-in accepts any token by default")
	}
	o.Out = a.Out
	return demo.RunClient(ctx, o)
}
