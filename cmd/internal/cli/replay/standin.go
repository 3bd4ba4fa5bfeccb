package replaycmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/replay/standin"
)

// standinTokenVar is the environment variable with the token that clients of the stand-in server must
// send. If it is not set, the server accepts any token.
const standinTokenVar = "UNWIRE_STANDIN_TOKEN"

// standinFlags are the values of the flags of 'unwire standin'.
type standinFlags struct {
	// listen is the address of the server.
	listen string

	// script is a file with its answers; "" for the built-in script.
	script string

	// caFile is the file to which its CA certificate is written; "" for none.
	caFile string

	// seed makes the generated identifiers reproducible.
	seed uint64

	// json prints the address as JSON.
	json bool

	// print prints the built-in script and exits.
	print bool
}

// standinCommand returns the command 'unwire standin', a local server that imitates the reconstructed
// API.
func standinCommand(a *app.App) *cobra.Command {
	var f standinFlags
	cmd := &cobra.Command{
		Use:   "standin",
		Short: "Run a local server that imitates the built-in agent API",
		Long: `standin imitates the agent API whose definitions are built into unwire, on loopback and
without a model. A script defines the agent's answers, tool calls, delays and faults. The
same script and seed give the same answers. standin creates a new certificate at each
start.

The built-in script reacts to these words in a prompt: "tools demo" (three commands of
the client's shell one after the other, then three at once), "builtin tools" (a call
of each tool that runs on the client's machine), "queries demo" (questions to the user),
"image demo" (the answer lists the images in the prompt), and fault:NAME (the answer has
this fault). NAME is error, reset, drop-end, slow, drift, rate-limit,
outdated, login, model, too-long, thinking, no-turn-end, no-end, parked, kv, hang or
abort. If the stream of a conversation is still open, standin rejects a second stream,
unless the script has "second_run": "allow".

GET /standin/stats returns the counts of streams, tool calls, key-value requests and
heartbeats as JSON; standin prints the totals when it ends.

If ` + standinTokenVar + ` is set, standin rejects calls without that bearer token.
standin's behaviour was reconstructed from the code of clients, and has never been
compared with the live service.`,
		Example: `  unwire standin --listen 127.0.0.1:9443
  unwire standin --print-script > script.json
  unwire standin --script script.json --json
  curl --cacert ca.pem https://127.0.0.1:9443/standin/stats`,
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runStandin(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address, such as 127.0.0.1:8080, or only a port, at which the server listens")
	cmd.Flags().StringVar(&f.script, "script", "", "JSON file with the conversation and its faults (default: the built-in script)")
	cmd.Flags().StringVar(&f.caFile, "ca-file", "", "file to write the CA certificate to (default: a temporary file)")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed for generated IDs")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the server's address as a JSON object on stdout")
	cmd.Flags().BoolVar(&f.print, "print-script", false, "print the built-in script and exit")
	return cmd
}

// runStandin executes 'unwire standin' until the user interrupts it.
func runStandin(ctx context.Context, a *app.App, f standinFlags) error {
	if f.print {
		_, err := a.Out.Write(standin.DefaultScript())
		return err
	}
	opts := standin.Options{Seed: f.seed, Token: strings.TrimSpace(os.Getenv(standinTokenVar)), CAFile: f.caFile}
	if f.script != "" {
		script, err := a.ReadInput(f.script)
		if err != nil {
			return err
		}
		opts.Script = script
	}

	// Listen before the server is created, so that its certificate and URL can name the port.
	ln, err := app.ListenLoopback(f.listen)
	if err != nil {
		return err
	}
	srv, err := standin.New(opts)
	if err != nil {
		ln.Close()
		if f.script != "" {
			return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", f.script, err), "'unwire standin --print-script' prints a valid script")
		}
		return err
	}
	defer a.Shutdown(srv.Shutdown)
	err = app.ServeUntil(ctx, func() error { return srv.Serve(ln) }, func() error {
		return sayStandin(a, srv, "https://"+ln.Addr().String(), f.json, opts.Token != "")
	})
	if err == nil {
		sayStats(a, srv.Stats())
	}
	return err
}

// sayStats prints how many streams and tool calls the stand-in server has handled, if there were any.
func sayStats(a *app.App, n standin.Stats) {
	if n.Streams.Opened+n.Streams.Refused == 0 {
		return
	}
	a.Say("clients opened %s, at most %d at the same time; standin rejected %d streams", app.Counted(n.Streams.Opened, "stream"), n.Streams.MostOpen, n.Streams.Refused)
	a.Say("standin sent %s, of which clients answered %d", app.Counted(n.Execs.Asked, "tool call"), n.Execs.Answered)
}

// sayStandin prints the server's address, its CA certificate, and whether clients must send a token.
func sayStandin(a *app.App, srv *standin.Server, url string, asJSON, wantsToken bool) error {
	if asJSON {
		return a.Print(&contract.Listening{Event: "listening", URL: url, CA: srv.CAFile})
	}
	fmt.Fprintf(a.Out, "%s\n", url)
	a.Say("the stand-in server listens at %s; stop it with Ctrl-C", url)
	a.Say("certificate of its CA, which clients must trust: %s", srv.CAFile)
	if wantsToken {
		a.Say("clients must send the bearer token in %s", standinTokenVar)
	}
	return nil
}
