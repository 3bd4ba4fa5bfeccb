// Package serve has the command serve, which presents the agent API as the APIs of OpenAI
// and Anthropic.
//
// upstream.go builds the client of the agent (or starts the stand-in), clientconfig.go the
// configurations of clients. The work is done by replay/gateway and replay/agent.
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/proto"
	"unwire/replay/agent"
	"unwire/replay/gateway"
	"unwire/replay/gateway/server"
)

// keyVariable is the environment variable of the API keys that clients must send.
const keyVariable = "UNWIRE_SERVE_KEY"

// leastKey is the shortest key of a file, in bytes.
const leastKey = 8

type flags struct {
	app.Target
	listen, key, keyFile, out       string
	transport, clientVersion        string
	script, toolMap                 string
	reuse, printConfig, model       string
	idle, maxAge, silence, debounce time.Duration
	maxSessions                     int
	maxResult                       string
	origins                         []string
	privacy, json, printParameters  bool
	printToolMap                    bool
	aliases                         []string
	strictModels                    bool
}

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command { return []*cobra.Command{serveCommand(a)} }

const long = `serve lets clients of the APIs of OpenAI and Anthropic use the agent API, whose
conversation is one long stream on which the server asks the client to run tools:

  POST /v1/chat/completions    OpenAI Chat Completions
  POST /v1/responses           OpenAI Responses
  POST /v1/messages            Anthropic Messages
  GET  /v1/models              the models of the upstream
  GET  /healthz, /metrics      state, and counters behind the key

When the agent asks for a tool, the response ends with the call, and the stream stays
open. The request with the tool's results continues it, if its transcript, model and
tools are the ones that the session knows; otherwise it starts a new stream with the
whole transcript. --reuse=off starts one for each request.

Without --to the upstream is the stand-in, a local server that plays a script. Nothing
here was verified against the live service. Other hosts need --live and --allow-host; use
your own account there, and respect the service's terms.

Clients must send a key: one of ` + keyVariable + ` (separated by spaces), one of the lines of
--key-file, or the one that is made at the start and printed. The upstream's token comes
from --credentials, and is written nowhere.

-o records each request and the upstream's stream that answers it in one capture,
redacted; show and ls name the other one of the two. Without it nothing is kept.`

const examples = `  unwire serve
  unwire serve --to https://127.0.0.1:9443 --upstream-ca ca.pem -o serve.uwc
  unwire serve --print-config opencode > opencode.json
  unwire serve --to https://agent.example --live --allow-host agent.example --credentials env:TOKEN`

func serveCommand(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the agent API as OpenAI- and Anthropic-compatible endpoints",
		Long:    long,
		Example: examples,
		Args:    app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.printParameters {
				return server.WriteParameters(a.Out)
			}
			if f.printToolMap {
				_, err := a.Out.Write(agent.BuiltinToolMap())
				return err
			}
			if f.printConfig != "" {
				return printConfig(a, f)
			}
			return run(cmd.Context(), a, f)
		},
	}
	f.serverFlags(cmd)
	f.upstreamFlags(cmd)
	return cmd
}

// serverFlags are those of what clients see.
func (f *flags) serverFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8787", "loopback address, or a port of 127.0.0.1")
	flags.StringVar(&f.key, "key", "", "API key that clients must send; other users of this machine can see it: "+keyVariable+" and --key-file are safer")
	flags.StringVar(&f.keyFile, "key-file", "", "file of API keys that clients may send, one a line, mode 0600")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "origin of a web page that may use the server, such as http://localhost:3000")
	flags.StringVar(&f.reuse, "reuse", "on", "on: results of tools continue the open stream; off: each request starts a stream")
	flags.DurationVar(&f.idle, "idle", 15*time.Minute, "how long a stream waits for results of tools")
	flags.DurationVar(&f.maxAge, "max-age", 4*time.Hour, "how long a stream may be continued in all")
	flags.DurationVar(&f.debounce, "debounce", 20*time.Millisecond, "how long the agent must be silent after a call before the response ends; later calls come in the next response")
	options.Alias(flags, "settle", "debounce")
	flags.DurationVar(&f.silence, "silence", 10*time.Minute, "how long the upstream may send nothing but heartbeats while a client waits")
	flags.IntVar(&f.maxSessions, "max-sessions", 24, "streams that may be open; above it the one that has waited longest is closed")
	flags.StringVar(&f.maxResult, "max-result", "256KB", "how much of a tool's result the model sees; the rest is cut, and the model is told")
	flags.StringArrayVar(&f.aliases, "model-alias", nil, "NAME=MODEL: MODEL answers requests that ask for NAME; * in NAME is any text without a slash")
	flags.BoolVar(&f.strictModels, "strict-models", false, "refuse names that the upstream does not have; without it its first model answers for "+strings.Join(defaultModels, ", "))
	flags.StringVarP(&f.out, "output", "o", "", "capture to which requests and upstream streams are added")
	flags.StringVar(&f.printConfig, "print-config", "", "print the configuration of a client and leave: "+strings.Join(clientNames(), ", "))
	flags.BoolVar(&f.printToolMap, "print-tool-map", false, "print the built-in table of --tool-map and leave; rows of a file go before it")
	flags.BoolVar(&f.printParameters, "print-parameters", false, "print what becomes of each parameter of the three APIs, as Markdown, and leave")
	flags.StringVar(&f.model, "model", "composer-1", "with --print-config: the model to use")
	flags.BoolVar(&f.json, "json", false, "the listening event as JSON on stdout")
}

// upstreamFlags are those of the server of the agent API.
func (f *flags) upstreamFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.To, "to", "", "URL of a server of the agent API (default: the stand-in)")
	flags.StringVar(&f.script, "script", "", "script of the stand-in, see 'unwire standin' (default: built in)")
	flags.StringVar(&f.transport, "transport", "auto", "auto, http2, or sse: the fallback over HTTP/1.1")
	flags.StringVar(&f.Credentials, "credentials", "", "where the upstream's token is: a file (NAME: value a line, mode 0600), env:NAME, keyring:SERVICE/ACCOUNT, or "+proto.Profile().Name)
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of further CAs to trust for the upstream")
	flags.StringVar(&f.clientVersion, "client-version", agent.DefaultClientVersion, "client version that the upstream is told")
	flags.BoolVar(&f.privacy, "privacy", false, "ask the upstream for privacy mode, which also chooses its host")
	flags.StringVar(&f.toolMap, "tool-map", "", "JSON file that says which tool of the client does what a built-in tool of the agent does")
	flags.BoolVar(&f.Live, "live", false, "allow hosts other than this machine (see --allow-host)")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "host, or host:port, that --live may send to")
}

// run serves until the command is interrupted.
func run(ctx context.Context, a *app.App, f flags) (err error) {
	if err := app.OneOf("--reuse", f.reuse, "on", "off"); err != nil {
		return err
	}
	if f.idle <= 0 || f.maxAge <= 0 || f.silence <= 0 || f.debounce <= 0 || f.maxSessions < 1 {
		return app.Usagef("--idle, --max-age, --silence, --debounce and --max-sessions must be more than 0")
	}
	maxResult, err := app.ParseSize(f.maxResult)
	if err != nil || maxResult < 1 || maxResult > 1<<30 {
		return app.Usagef("--max-result wants a size such as 256KB, not %q", f.maxResult)
	}
	aliases, err := f.modelAliases()
	if err != nil {
		return err
	}
	keys, made, err := f.keys()
	if err != nil {
		return err
	}
	up, err := openUpstream(ctx, a, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.close()) }()
	listener, err := app.ListenLoopback(f.listen)
	if err != nil {
		return err
	}
	// The server has closed it, if it got that far.
	defer func() { _ = listener.Close() }()
	if err := up.begin(ctx, a, f.out); err != nil {
		if ctx.Err() != nil {
			return nil // ending before the first request is as good as after it
		}
		return err
	}

	core := gateway.New(up, gateway.Options{
		Idle: f.idle, MaxAge: f.maxAge, Silence: f.silence, Settle: f.debounce, MaxSessions: f.maxSessions, MaxResult: int(maxResult), NoReuse: f.reuse == "off", Models: aliases,
	})
	srv, err := server.New(core, server.Options{Keys: keys, Origins: f.origins, Recorder: up.recorder, Idle: f.idle})
	if err != nil {
		return err
	}
	defer a.Shutdown(srv.Shutdown)

	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	if err := announce(a, f, listener.Addr(), keys[0], made, up); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// defaultModels are patterns of the models that clients ask for unless they are told another
// one.
var defaultModels = []string{"gpt-*", "o[0-9]*", "codex-*", "claude-*"}

// modelAliases are those of the flags, and of defaultModels.
func (f *flags) modelAliases() (list []gateway.ModelAlias, err error) {
	for _, text := range f.aliases {
		pattern, model, ok := strings.Cut(text, "=")
		if _, err := path.Match(pattern, ""); !ok || err != nil || pattern == "" || model == "" {
			return nil, app.Usagef("--model-alias wants NAME=MODEL, such as 'gpt-*=composer-1', not %q", text)
		}
		list = append(list, gateway.ModelAlias{Pattern: pattern, Model: model})
	}
	if !f.strictModels {
		for _, pattern := range defaultModels {
			list = append(list, gateway.ModelAlias{Pattern: pattern})
		}
	}
	return list, nil
}

// keys returns the API keys; made says that the only one is new.
func (f *flags) keys() (keys []string, made bool, err error) {
	keys = append(strings.Fields(os.Getenv(keyVariable)), strings.Fields(f.key)...)
	if f.keyFile != "" {
		more, err := app.ReadSecretLines(f.keyFile, leastKey)
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, more...)
		if len(keys) == 0 {
			return nil, false, app.Fail(app.ExitInput, fmt.Errorf("%s has no key", f.keyFile), "write one key on each line")
		}
	}
	if len(keys) == 0 {
		return []string{"uw-" + rand.Text()}, true, nil
	}
	return keys, false, nil
}

// announce says where the server is and how clients reach it.
func announce(a *app.App, f flags, addr net.Addr, key string, made bool, up *upstream) error {
	url := "http://" + addr.String()
	if f.json {
		event := &contract.Listening{Event: "listening", URL: url}
		if made {
			event.Key = key
		}
		return a.Print(event)
	}
	// A key that was given is not printed, since it may be a secret that is kept elsewhere.
	shown := "KEY"
	switch {
	case made:
		shown = key
	case key == os.Getenv(keyVariable):
		shown = "$" + keyVariable
	}
	fmt.Fprintf(a.Out, "%s/v1\n", url)
	a.Say("upstream  %s", up.name)
	if made {
		a.Say("key       %s (new at each start; set %s to choose one)", key, keyVariable)
	} else {
		a.Say("key       as given")
	}
	a.Say("")
	for _, c := range clients {
		a.Say("%s", c.command(url, shown, f.model))
	}
	a.Say("")
	a.Say("Ctrl-C ends it. 'unwire serve --print-config NAME' prints a configuration: %s", strings.Join(clientNames(), ", "))
	return nil
}
