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

// standinTokenVar holds the token that the stand-in wants, where it wants one.
const standinTokenVar = "UNWIRE_STANDIN_TOKEN"

type standinFlags struct {
	listen, script, caFile string
	seed                   uint64
	json, print            bool
}

func standinCommand(a *app.App) *cobra.Command {
	var f standinFlags
	cmd := &cobra.Command{
		Use:   "standin",
		Short: "Run the local server of the reconstructed API",
		Long: `standin serves the reconstructed API on loopback by a script. The
script describes a conversation of an agent: its tool calls, delays and faults. The same script and seed give the same
answers. It makes a certificate of its own at each start.

The built-in script answers prompts that contain "tools demo" (three calls of the
client's own shell in a row, three at once), "builtin tools", "queries demo",
"image demo" or fault:NAME: error, reset, drop-end, slow, drift, rate-limit,
outdated, login, model, too-long, thinking, no-turn-end, no-end, parked, kv,
hang, abort. A second stream for a conversation whose stream is still open is
refused, unless the script has "second_run": "allow".

GET /standin/stats counts streams, tool calls, KV requests and heartbeats as
JSON; the totals are printed when the server ends.

With ` + standinTokenVar + ` set, calls without that bearer token are refused.
It is a stand-in: what it does was reconstructed, and never compared with the
live service.`,
		Example: `  unwire standin --listen 127.0.0.1:9443
  unwire standin --print-script > script.json
  unwire standin --script script.json --json
  curl --cacert ca.pem https://127.0.0.1:9443/standin/stats`,
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runStandin(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address, or a port of 127.0.0.1")
	cmd.Flags().StringVar(&f.script, "script", "", "JSON file with the conversation and its faults (default: built in)")
	cmd.Flags().StringVar(&f.caFile, "ca-file", "", "where to write its CA certificate (default: a temporary file)")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "what its IDs are made from")
	cmd.Flags().BoolVar(&f.json, "json", false, "the listening event as JSON on stdout")
	cmd.Flags().BoolVar(&f.print, "print-script", false, "print the built-in script and leave")
	return cmd
}

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
	ln, err := app.ListenLoopback(f.listen)
	if err != nil {
		return err
	}
	srv, err := standin.New(opts)
	if err != nil {
		ln.Close()
		return err
	}
	defer a.Shutdown(srv.Shutdown)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if err := sayStandin(a, srv, "https://"+ln.Addr().String(), f.json, opts.Token != ""); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		sayStats(a, srv.Stats())
		return nil
	case err := <-served:
		return err
	}
}

// sayStats prints what the server has counted, if anybody used it.
func sayStats(a *app.App, n standin.Stats) {
	if n.Streams.Opened+n.Streams.Refused == 0 {
		return
	}
	a.Say("%s opened, at most %d at once; %d refused", app.Counted(n.Streams.Opened, "stream"), n.Streams.MostOpen, n.Streams.Refused)
	a.Say("%s, %d answered", app.Counted(n.Execs.Asked, "tool call"), n.Execs.Answered)
}

func sayStandin(a *app.App, srv *standin.Server, url string, asJSON, wantsToken bool) error {
	if asJSON {
		return a.Print(&contract.Listening{Event: "listening", URL: url, CA: srv.CAFile})
	}
	fmt.Fprintf(a.Out, "%s\n", url)
	a.Say("stand-in at %s; Ctrl-C ends it", url)
	a.Say("CA  %s", srv.CAFile)
	if wantsToken {
		a.Say("it wants the bearer token of %s", standinTokenVar)
	}
	return nil
}
