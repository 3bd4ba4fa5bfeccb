package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/replay/standin"
)

// standinTokenVar holds the token that the stand-in wants, where it wants one.
const standinTokenVar = "UNWIRE_STANDIN_TOKEN"

// standinGrace is how long running calls get when the stand-in is told to end.
const standinGrace = time.Second

type standinFlags struct {
	listen, script, caFile string
	seed                   uint64
	json, print            bool
}

func (a *app) standinCommand() *cobra.Command {
	var f standinFlags
	cmd := &cobra.Command{
		Use:   "standin",
		Short: "Run the local server of the reconstructed API",
		Long: `standin serves the reconstructed API on loopback from a script: a conversation
with its tool calls, delays and faults. The same script and seed give the same
answers. It makes a certificate of its own at each start.

With ` + standinTokenVar + ` set, calls without that bearer token are refused.
It is a stand-in: what it does was reconstructed, and never compared with the
live service.`,
		Example: `  unwire standin --listen 127.0.0.1:9443
  unwire standin --print-script > script.json
  unwire standin --script script.json --json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.standin(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address")
	cmd.Flags().StringVar(&f.script, "script", "", "JSON file with the conversation and its faults (default: built in)")
	cmd.Flags().StringVar(&f.caFile, "ca-file", "", "where to write its CA certificate (default: a temporary file)")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "what its IDs are made from")
	cmd.Flags().BoolVar(&f.json, "json", false, "the listening event as JSON on stdout")
	cmd.Flags().BoolVar(&f.print, "print-script", false, "print the built-in script and leave")
	return cmd
}

func (a *app) standin(ctx context.Context, f standinFlags) error {
	if f.print {
		_, err := a.out.Write(standin.DefaultScript())
		return err
	}
	opts := standin.Options{Seed: f.seed, Token: strings.TrimSpace(os.Getenv(standinTokenVar)), CAFile: f.caFile}
	if f.script != "" {
		script, err := a.readInput(f.script)
		if err != nil {
			return err
		}
		opts.Script = script
	}
	ln, err := listenLoopback(f.listen)
	if err != nil {
		return err
	}
	srv, err := standin.New(opts)
	if err != nil {
		ln.Close()
		return err
	}
	defer a.shutdownStandin(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if err := a.sayStandin(srv, "https://"+ln.Addr().String(), f.json, opts.Token != ""); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// shutdownStandin ends what the stand-in still does, and removes its CA file.
func (a *app) shutdownStandin(srv *standin.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), a.signals.within(standinGrace, interruptedDrain))
	defer cancel()
	// what runs after the grace is cut off: nothing of it is kept
	_ = srv.Shutdown(ctx)
}

func (a *app) sayStandin(srv *standin.Server, url string, asJSON, wantsToken bool) error {
	if asJSON {
		return a.printJSON(listeningEvent{V: 1, Event: "listening", URL: url, CA: srv.CAFile()})
	}
	fmt.Fprintf(a.out, "%s\n", url)
	a.say("stand-in at %s; Ctrl-C ends it", url)
	a.say("CA  %s", srv.CAFile())
	if wantsToken {
		a.say("it wants the bearer token of %s", standinTokenVar)
	}
	return nil
}
