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

const standinExamples = `  # Use a fixed port, and write the CA's certificate for clients to trust
  unwire standin --listen 127.0.0.1:9443 --ca-file ca.pem
  # Write the built-in script, as a start for your own
  unwire standin --print-script > script.json
  # Answer from your own script, and print the address as JSON
  unwire standin --script script.json --json
  # Read the counters while standin runs
  curl --cacert ca.pem https://127.0.0.1:9443/standin/stats`

// standinCommand returns the command 'unwire standin', a local server that imitates the reconstructed
// API.
func standinCommand(a *app.App) *cobra.Command {
	var f standinFlags
	cmd := &cobra.Command{
		Use:   "standin",
		Short: "Run a local server that imitates the server of an AI coding agent",
		Long: `standin is a local server that imitates the agent API: the API of an AI coding
agent, whose definitions are built into unwire. standin uses no AI model: a script
defines its answers, tool calls, delays and faults. With the same script and the same
--seed, standin always gives the same answers. At each start, standin creates a new TLS
certificate.

The built-in script answers differently if the prompt contains certain words. For "tools
demo", it asks the client to run three shell commands one after the other, and then
three at once. For "builtin tools", it calls each tool that runs on the client's
machine. For "queries demo", it asks the user questions. For "image demo", it lists the
images in the prompt. For the words in this list, the answer contains a fault:

  fault:error          an error after the beginning of the answer
  fault:rate-limit     an error: too many requests
  fault:outdated       an error: the version of the client is too old
  fault:login          an error: the user is not signed in
  fault:model          an error: the model does not exist
  fault:too-long       an error: the conversation is too long
  fault:reset          standin resets the stream during the answer
  fault:drop-end       the end-of-stream message is missing
  fault:no-turn-end    the message turn_ended is missing
  fault:no-end         both are missing
  fault:slow           the answer begins after 6 seconds
  fault:parked         3 minutes without an answer between two tool calls
  fault:hang           the answer begins, but never ends
  fault:drift          the answer contains a field that the definitions lack
  fault:thinking       the model thinks, but does not answer
  fault:kv             standin asks the client for values that were never stored
  fault:abort          standin cancels a tool call that it has requested

While the stream of a conversation is open, standin rejects a second stream of this
conversation, unless the script contains "second_run": "allow".

A GET request for /standin/stats returns as JSON how many streams, tool calls,
heartbeats, and requests to store or return a value there were. When standin ends, it
prints these numbers.

If the variable ` + standinTokenVar + ` is set, standin rejects calls that do not contain its value as
bearer token. The behaviour of standin was reconstructed from the code of clients. standin has never
been compared with the real service.`,
		Example: standinExamples,
		Args:    app.ExactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runStandin(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address at which the server listens, such as 127.0.0.1:8080, or only its port, such as 8080")
	cmd.Flags().StringVar(&f.script, "script", "", "JSON file that defines the answers, tool calls, delays and faults (default: the built-in script)")
	cmd.Flags().StringVar(&f.caFile, "ca-file", "", "file to which standin writes the certificate of its CA, for clients to trust (default: a temporary file)")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed for the random IDs that standin generates; the same seed gives the same IDs")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the address at which the server listens, as a JSON object on stdout")
	cmd.Flags().BoolVar(&f.print, "print-script", false, "print the built-in script, and exit")
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
