// Package mcpcmd has the command mcp, which lets agents ask about captures with the Model Context
// Protocol, and mcp install, which configures the programs that start it.
//
// The server is cmd/internal/mcp; the configurations are edited by its package clientconfig.
package mcpcmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/mcp"
	"unwire/replay/outbound"
)

// tokenVariable is the environment variable with the access token that HTTP clients must send.
const tokenVariable = "UNWIRE_MCP_TOKEN"

// leastToken is the minimum length of that token, in bytes.
const leastToken = 16

// flags are the values of the flags of 'unwire mcp'.
type flags struct {
	// Target has the flags that select the server to which requests are sent.
	app.Target

	// proto names the definitions; "" for the default.
	proto string

	// listen is the address for HTTP; "" serves on standard input and output.
	listen string

	// out is the capture that records answers to sent requests; "" for none.
	out string

	// allowSend offers the tool that sends requests.
	allowSend bool

	// json prints the server's address as JSON.
	json bool

	// budget is the maximum number of requests to other machines.
	budget int
}

// Commands returns the commands mcp and mcp install.
func Commands(a *app.App) []*cobra.Command { return []*cobra.Command{mcpCommand(a)} }

const long = `mcp is a server of the Model Context Protocol (MCP). Through this server,
AI agents, such as coding agents, can examine captures with tools that do the same as
unwire's commands. The tools return the same JSON as the flag --json. 'unwire mcp
install' configures AI programs so that they start this server. 'unwire mcp skill'
prints instructions for AI agents.

The arguments are captures, or folders of captures. Agents can read only these captures,
also while the captures are being recorded. mcp first searches each capture for secrets.
If a capture contains secrets, mcp answers from a copy in which placeholders replace the
secrets. In each answer, mcp marks texts from captures as recorded data, so that an
agent does not follow them like instructions.

mcp offers these tools: list, show, decode, explain, search, diff, transcript, infer,
check, match, definitions, replay_plan, probe_plan, note. Agents can also read exchanges
and messages as MCP resources, such as uwc://F.uwc#7/up/0 (the first message that the
client sent in exchange 7). mcp divides a large answer into pages.

By default, mcp sends no requests to any server. With --allow-send, mcp also offers the
tool replay_send. This tool sends recorded requests again, to servers on this machine.
To allow requests to other hosts, also give --live and --allow-host.

By default, mcp serves one client on stdin and stdout. With --listen, mcp serves any
number of
clients over HTTP (MCP's streamable transport), at a loopback address. Clients must then
send a
token: the one in the variable ` + tokenVariable + `, or, if this variable is not set, a new token
that mcp prints when it starts.

If the name of a capture is also the name of a subcommand, such as install, write the
capture as ./install.`

// mcpCommand returns the command 'unwire mcp', a server of the Model Context Protocol.
func mcpCommand(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "mcp F.uwc…",
		Short: "Let AI agents read captures through the Model Context Protocol",
		Long:  long,
		Example: `  # Serve one capture on stdin and stdout
  unwire mcp F.uwc
  # Configure the AI programs on this machine so that they start mcp
  unwire mcp install F.uwc
  # Serve all captures in a folder, with field names from .proto files
  unwire mcp --proto proto/ captures/
  # Serve over HTTP at a free port
  unwire mcp --listen 127.0.0.1:0 F.uwc
  # Let agents send recorded requests again, to servers on this machine
  unwire mcp --allow-send -o answers.uwc F.uwc`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire mcp: missing argument F.uwc"), "usage: "+cmd.UseLine()+"; F.uwc can be a folder of captures")
			}
			return run(cmd.Context(), a, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.proto, "proto", "", ".proto definitions, from which mcp takes field names, and with which the tool named check compares messages; the word none means no definitions (default: the first that exists of UNWIRE_PROTO, the definitions in the capture, unwire.yaml, and the built-in definitions)")
	flags.StringVar(&f.listen, "listen", "", "serve over HTTP at this loopback address, such as 127.0.0.1:8080, or only its port, such as 8080 (default: serve on stdin and stdout)")
	flags.BoolVar(&f.json, "json", false, "with --listen: print the address at which the server listens, as a JSON object on stdout")
	flags.BoolVar(&f.allowSend, "allow-send", false, "offer agents the tool replay_send, which sends recorded requests again")
	flags.StringVarP(&f.out, "output", "o", "", "with --allow-send: write the sent requests and their answers to this capture file, which agents can read; if the file exists, append them")
	flags.BoolVar(&f.Live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	flags.IntVar(&f.budget, "live-budget", 20, "send at most this many requests to other machines")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "if a secret is missing, send the request without the header that contained the secret")
	cmd.AddCommand(installCommand(a), skillCommand(a))
	return cmd
}

// check returns an error if flags are combined that exclude each other.
func (f *flags) check() error {
	switch {
	case f.Live && !f.allowSend:
		return app.Usagef("--live requires --allow-send")
	case len(f.Allow) > 0 && !f.Live:
		return app.Usagef("--allow-host requires --live")
	case f.out != "" && !f.allowSend:
		return app.Usagef("-o requires --allow-send")
	case f.budget < 1:
		return app.Usagef("--live-budget must be 1 or more")
	case f.json && f.listen == "":
		return app.Usagef("--json requires --listen, because otherwise stdout is used by the MCP protocol")
	}
	_, _, err := f.Server()
	return err
}

// run executes 'unwire mcp' for the given captures, until the client or the user ends it.
func run(ctx context.Context, a *app.App, f flags, captures []string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	for _, name := range captures {
		warnUnreadable(a, name)
	}
	folder, err := os.MkdirTemp("", "unwire-mcp-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	ctx = a.Serving(ctx)
	server := mcp.New(mcp.Options{
		App: a, Captures: captures, Proto: f.proto, Folder: folder, Target: f.Target, AllowSend: f.allowSend, Output: f.out,
		Pace: &outbound.Pace{Interval: time.Second, Budget: f.budget},
	})
	if f.listen == "" {
		if a.InputIsTerminal() {
			a.Say("unwire: mcp reads requests of a program from stdin, and answers on stdout; 'unwire mcp install' configures programs to start it; stop with Ctrl-C")
		}
		return server.ServeStdio(ctx, a.Input, a.Out)
	}
	return listen(ctx, a, f, server)
}

// warnUnreadable prints a warning if name is neither a capture nor a folder with captures. This is no error: the
// capture may be recorded later.
func warnUnreadable(a *app.App, name string) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		a.Say("unwire: warning: %v; agents can read the capture as soon as it exists", err)
	case info.IsDir():
		if found, err := app.CapturesIn(name); err != nil {
			a.Say("unwire: warning: %v", err)
		} else if len(found) == 0 {
			a.Say("unwire: warning: %s: there is no capture in this folder yet", name)
		}
	default:
		c, err := a.OpenCapture(name)
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			a.Say("unwire: warning: %v", err)
		}
	}
}

// listen serves MCP over HTTP until ctx is done.
func listen(ctx context.Context, a *app.App, f flags, server *mcp.Server) error {
	token := os.Getenv(tokenVariable)
	made := token == ""
	switch {
	case made:
		token = "uwm-" + rand.Text()
	case len(token) < leastToken:
		return app.Usagef("%s has %d characters; at least %d are needed", tokenVariable, len(token), leastToken)
	}
	listener, err := app.ListenLoopback(f.listen)
	if err != nil {
		return err
	}
	// The server has closed it, if it got that far.
	defer func() { _ = listener.Close() }()
	if err := announce(a, f, listener, token, made); err != nil {
		return err
	}
	return server.ServeHTTP(ctx, listener, token, a.Shutdown)
}

// announce prints the URL of the server. made means that unwire has generated the token, which is then
// printed, too.
func announce(a *app.App, f flags, listener net.Listener, token string, made bool) error {
	if f.json {
		event := &contract.Listening{Event: "listening", URL: mcp.URL(listener)}
		if made {
			event.Key = token
		}
		return a.Print(event)
	}
	if _, err := fmt.Fprintln(a.Out, mcp.URL(listener)); err != nil {
		return err
	}
	if made {
		a.Say("token  %s (new at each start; set %s to choose one)", token, tokenVariable)
	} else {
		a.Say("token  as in %s", tokenVariable)
	}
	a.Say("Clients must send the token as 'Authorization: Bearer TOKEN'. Stop the server with Ctrl-C.")
	return nil
}
