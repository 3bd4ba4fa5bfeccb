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
	"unwire/replay/agent"
	"unwire/replay/gateway"
	"unwire/replay/gateway/server"
)

// keyVariable is the environment variable with the API keys that clients may use, separated by spaces.
const keyVariable = "UNWIRE_SERVE_KEY"

// leastKey is the minimum length of an API key in a file, in bytes.
const leastKey = 8

// flags are the values of the flags of 'unwire serve'.
type flags struct {
	// Target has the flags about the upstream server and its credentials.
	app.Target

	// listen is the address of the server.
	listen string

	// key is the API key that clients must send; "" if the flag is not set.
	key string

	// keyFile is a file of accepted API keys; "" for none.
	keyFile string

	// out is the capture that records all traffic; "" for none.
	out string

	// transport is the upstream transport: auto, http2 or sse.
	transport string

	// clientVersion is the client version that is sent to the upstream.
	clientVersion string

	// script is the script of the stand-in server; "" for the built-in script.
	script string

	// toolMap is a JSON file that maps the agent's tools to the client's; "" for the built-in map.
	toolMap string

	// reuse is "on" if a request with tool results continues the open stream, and "off" if it opens a new one.
	reuse string

	// printConfig is the client whose configuration is printed; "" for none.
	printConfig string

	// model is the model in that configuration.
	model string

	// idle limits how long a stream waits for tool results.
	idle time.Duration

	// maxAge limits the age of a stream.
	maxAge time.Duration

	// silence limits the time during which the upstream sends nothing but heartbeats.
	silence time.Duration

	// debounce is the time to wait for more tool calls before a response ends.
	debounce time.Duration

	// maxSessions is the maximum number of open upstream streams.
	maxSessions int

	// maxResult is the size to which tool results are truncated, such as "256KB".
	maxResult string

	// origins are the origins of web pages that may use the server.
	origins []string

	// privacy requests the upstream's privacy mode.
	privacy bool

	// json prints the address as JSON.
	json bool

	// printParameters prints how API parameters are handled, and exits.
	printParameters bool

	// printToolMap prints the built-in tool map.
	printToolMap bool

	// aliases are the values of --model-alias, NAME=MODEL.
	aliases []string

	// strictModels rejects models that the upstream does not have.
	strictModels bool
}

// Commands returns the command serve.
func Commands(a *app.App) []*cobra.Command { return []*cobra.Command{serveCommand(a)} }

const long = `serve is a local server that accepts requests in the format of the OpenAI
and Anthropic APIs. serve sends each request to the server of an AI coding agent, and
translates the answer. In this text, the agent API is the API of this agent, whose
definitions are built into unwire, and the upstream is the server of the agent API. In
the agent API, a conversation is one long stream, on which the upstream asks its client
to run tools. Clients of serve can use these URLs:

  POST /v1/chat/completions    OpenAI Chat Completions
  POST /v1/responses           OpenAI Responses
  POST /v1/messages            Anthropic Messages
  GET /v1/models               the list of the upstream's models
  GET /healthz                 whether serve works; needs the API key
  GET /metrics                 counters of serve; needs the API key

When the upstream asks for a tool, serve ends its HTTP response to the client with the
tool call, and keeps the stream to the upstream open. The client sends the result of the
tool in its next request. If this request continues the conversation of the open stream,
with the same messages, model and tools, serve sends the result on this stream.
Otherwise serve opens a new stream, and sends all messages of the request on it. With
--reuse=off, serve opens a new stream for each request.

Without --to, the upstream is a built-in local server that answers from a script
('unwire standin'). serve has not been tested against the real service. To use an
upstream on another machine, give --live and --allow-host, use your own account, and
respect the terms of the service.

Clients must send an API key. The keys are in the variable ` + keyVariable + `, separated by spaces, or
in the lines of the file of --key-file. If you give neither, serve creates a key and
prints it at
the start. serve reads the token for the upstream from --credentials, and never stores
the token.

With -o F.uwc, serve records the requests of clients, and the streams that it opens to
the upstream, in one capture. serve replaces secrets in the capture by placeholders.
'unwire show' and 'unwire ls' print which stream belongs to a request. Without -o, serve
records no traffic.`

const examples = `  # Answer from a built-in script, to try serve without an account
  unwire serve
  # Use a local server of the agent API, and record all traffic
  unwire serve --to https://127.0.0.1:9443 --upstream-ca ca.pem -o serve.uwc
  # Write a configuration with which opencode uses serve
  unwire serve --print-config opencode > opencode.json
  # Use a server on another machine, with the token in a variable
  unwire serve --to https://agent.example --live --allow-host agent.example --credentials env:TOKEN`

// serveCommand returns the command 'unwire serve', a gateway from the OpenAI and Anthropic APIs to the
// agent API.
func serveCommand(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Answer OpenAI and Anthropic API requests through the server of an AI coding agent",
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

// serverFlags adds the flags about the API that clients use and its sessions.
func (f *flags) serverFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8787", "loopback address at which the server listens, such as 127.0.0.1:8080, or only its port, such as 8080")
	flags.StringVar(&f.key, "key", "", "API key that clients must send; other users of this machine can read the values of flags, so "+keyVariable+" and --key-file are safer")
	flags.StringVar(&f.keyFile, "key-file", "", "file with the API keys that serve accepts, one on each line (file mode 0600)")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "accept requests from web pages of this origin, such as http://localhost:3000")
	flags.StringVar(&f.reuse, "reuse", "on", "on: a request that returns the results of tool calls continues the stream to the upstream that asked for them; off: each request opens a new stream")
	flags.DurationVar(&f.idle, "idle", 15*time.Minute, "close a stream to the upstream if it has waited longer than this time for the results of tool calls")
	flags.DurationVar(&f.maxAge, "max-age", 4*time.Hour, "close a stream to the upstream if it has been open longer than this time")
	flags.DurationVar(&f.debounce, "debounce", 20*time.Millisecond, "after a tool call, wait this time for more tool calls, before serve ends its response to the client")
	options.Alias(flags, "settle", "debounce")
	flags.DurationVar(&f.silence, "silence", 10*time.Minute, "end a request with an error if the upstream sends only heartbeats for this time")
	flags.IntVar(&f.maxSessions, "max-sessions", 24, "keep at most this many streams to the upstream open; if serve needs one more, it closes the stream that has been idle for the longest time")
	flags.StringVar(&f.maxResult, "max-result", "256KB", "truncate the results of tool calls to this size; serve adds a notice for the model to a truncated result")
	flags.StringArrayVar(&f.aliases, "model-alias", nil, "NAME=MODEL: if a request names the model NAME, use the upstream's model MODEL; a * in NAME matches any text without a slash")
	flags.BoolVar(&f.strictModels, "strict-models", false, "reject requests for models that the upstream does not have; without this flag, serve uses the upstream's first model for requests that name "+strings.Join(defaultModels, ", "))
	flags.StringVarP(&f.out, "output", "o", "", "record the requests of clients, and the streams to the upstream, in this capture file; if the file exists, append them")
	flags.StringVar(&f.printConfig, "print-config", "", "print a configuration with which this client uses serve, and exit: "+strings.Join(clientNames(), ", "))
	flags.BoolVar(&f.printToolMap, "print-tool-map", false, "print the built-in table that maps tools of the upstream to tools of clients, and exit; --tool-map overrides rows of this table")
	flags.BoolVar(&f.printParameters, "print-parameters", false, "print how serve handles each parameter of the OpenAI and Anthropic APIs, as Markdown, and exit")
	flags.StringVar(&f.model, "model", "composer-1", "with --print-config: name of the model in the configuration")
	flags.BoolVar(&f.json, "json", false, "print the address at which the server listens, as a JSON object on stdout")
}

// upstreamFlags adds the flags about the upstream, the server of the agent API.
func (f *flags) upstreamFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.To, "to", "", "URL of the upstream, the server of the agent API (default: the built-in server of 'unwire standin')")
	flags.StringVar(&f.script, "script", "", "without --to: script from which the built-in server answers, see 'unwire standin' (default: the built-in script)")
	flags.StringVar(&f.transport, "transport", "auto", "transport to the upstream: http2, sse (several HTTP/1.1 calls instead of one stream) or auto (serve chooses)")
	flags.StringVar(&f.Credentials, "credentials", "", "source of the token that serve sends to the upstream: FILE, env:NAME, keyring:SERVICE/ACCOUNT or the name of a profile")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that serve trusts when it connects to the server of --to")
	flags.StringVar(&f.clientVersion, "client-version", agent.DefaultClientVersion, "version of the client that serve reports to the upstream")
	flags.BoolVar(&f.privacy, "privacy", false, "turn on the privacy mode of the upstream's service, with a header; if the service has a separate host for this mode, serve uses it")
	flags.StringVar(&f.toolMap, "tool-map", "", "JSON file that maps built-in tools of the upstream to tools of the client")
	flags.BoolVar(&f.Live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
}

// run starts the server, and returns when the user interrupts it.
func run(ctx context.Context, a *app.App, f flags) (err error) {
	// Check all flags before the upstream server is contacted.
	if err := app.OneOf("--reuse", f.reuse, "on", "off"); err != nil {
		return err
	}
	if f.idle <= 0 || f.maxAge <= 0 || f.silence <= 0 || f.debounce <= 0 || f.maxSessions < 1 {
		return app.Usagef("--idle, --max-age, --silence, --debounce and --max-sessions must be greater than 0")
	}
	maxResult, err := app.ParseSize(f.maxResult)
	if err != nil || maxResult < 1 || maxResult > 1<<30 {
		return app.Usagef("--max-result must be a size such as 256KB, not %q", f.maxResult)
	}
	aliases, err := f.modelAliases()
	if err != nil {
		return err
	}
	keys, made, err := f.keys()
	if err != nil {
		return err
	}

	// Open the upstream before the listener: without it, the server could answer no request.
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

	// Sessions are kept by the core, so that all front ends share them.
	core := gateway.New(up, gateway.Options{
		Idle: f.idle, MaxAge: f.maxAge, Silence: f.silence, Settle: f.debounce, MaxSessions: f.maxSessions, MaxResult: int(maxResult), NoReuse: f.reuse == "off", Models: aliases,
	})
	srv, err := server.New(core, server.Options{Keys: keys, Origins: f.origins, Recorder: up.recorder, Idle: f.idle})
	if err != nil {
		return err
	}
	defer a.Shutdown(srv.Shutdown)

	return app.ServeUntil(ctx, func() error { return srv.Serve(listener) }, func() error {
		return announce(a, f, listener.Addr(), keys[0], made, up)
	})
}

// defaultModels are patterns for models that clients of the OpenAI and Anthropic APIs request by default.
// Unless --strict-models is set, the upstream's first model is used for them.
var defaultModels = []string{"gpt-*", "o[0-9]*", "codex-*", "claude-*"}

// modelAliases returns which model is used for requests that name another one: the aliases of
// --model-alias, and defaultModels.
func (f *flags) modelAliases() (list []gateway.ModelAlias, err error) {
	for _, text := range f.aliases {
		pattern, model, ok := strings.Cut(text, "=")
		if _, err := path.Match(pattern, ""); !ok || err != nil || pattern == "" || model == "" {
			return nil, app.Usagef("--model-alias must be NAME=MODEL, such as 'gpt-*=composer-1', not %q", text)
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

// keys returns the API keys that clients may use, from the environment, --key and --key-file. made is
// true if none was configured, so that a random one was made.
func (f *flags) keys() (keys []string, made bool, err error) {
	keys = append(strings.Fields(os.Getenv(keyVariable)), strings.Fields(f.key)...)
	if f.keyFile != "" {
		more, err := app.ReadSecretLines(f.keyFile, leastKey)
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, more...)
		if len(keys) == 0 {
			return nil, false, app.Fail(app.ExitInput, fmt.Errorf("%s contains no key", f.keyFile), "write one key on each line")
		}
	}
	if len(keys) == 0 {
		return []string{"uw-" + rand.Text()}, true, nil
	}
	return keys, false, nil
}

// announce prints the server's URL and how to configure clients. The key is printed only if unwire has
// made it (made).
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
		a.Say("key       as configured")
	}
	a.Say("\nCommands with which clients use this server:")
	for _, c := range clients {
		// A wrapped command could not be copied.
		fmt.Fprintln(a.Err, c.command(url, shown, f.model))
	}
	a.Say("")
	a.Say("Stop with Ctrl-C. 'unwire serve --print-config NAME' prints the configuration for a client: %s", strings.Join(clientNames(), ", "))
	return nil
}
