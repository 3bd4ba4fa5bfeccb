package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/mitm/ca"
	"unwire/mitm/launch"
	"unwire/mitm/process"
)

// namespaceCommand returns the hidden command with which unwire starts itself inside a new network
// namespace, for capture --transparent and --passive. It sets up the namespace, and then runs the user's
// command.
func namespaceCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:                "namespace-init PATH ARGS…",
		Short:              "Set up the network namespace of a command that capture --transparent runs",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			// Signals go to the command, which may take its time to end.
			if code := launch.NamespaceInit(args, a.Signals.ChildRuns); code != 0 {
				return app.Fail(code, nil, "")
			}
			return nil
		},
	}
}

// checkModes returns a usage error for flags that exclude each other, before any file is created.
func checkModes(f CaptureFlags, argv []string) error {
	if err := checkPassive(f, argv); err != nil {
		return err
	}

	// Each way to record excludes others; a contradiction is reported before anything starts.
	switch {
	case f.browser != "" && (f.transparent || f.passive || f.reverse != ""):
		return app.Usagef("--browser cannot be used with --transparent, --passive or --reverse")
	case f.transparent && len(argv) == 0:
		return app.Fail(app.ExitUsage, errors.New("--transparent requires a command to run"), "usage: unwire capture --transparent -- CMD ARGS…")
	case f.blockQUIC && !f.transparent && !f.passive:
		return app.Fail(app.ExitUsage, errors.New("--block-quic requires --transparent or --passive"),
			"unwire can block QUIC packets only if CMD runs in its own network namespace; the proxy itself does not offer QUIC")
	case f.transparent && f.reverse != "":
		return app.Usagef("--transparent and --reverse cannot be used together")
	case len(f.also) > 0 && f.reverse == "":
		return app.Fail(app.ExitUsage, errors.New("--also requires --reverse"), "usage: unwire capture --reverse URL --also URL…")
	}
	if f.browser != "" {
		if err := checkBrowserURL(f.browser); err != nil {
			return err
		}
	}
	for _, s := range f.also {
		if _, err := reverseURL("--also", s); err != nil {
			return err
		}
	}
	return nil
}

// runLaunch runs the user's command so that its traffic reaches the recorder: through proxy variables or,
// with --transparent, in a network namespace. It returns the command's exit status.
func runLaunch(ctx context.Context, a *app.App, rec *Recorder, f CaptureFlags, o launch.Options) (int, error) {
	if !f.transparent {
		return launch.Run(ctx, o)
	}
	o.QUIC = quicOptions(a, f)
	return runTransparent(ctx, o, rec.proxy.ServeTransparent)
}

// quicOptions returns how the command's QUIC traffic, which is not recorded, is blocked and reported.
func quicOptions(a *app.App, f CaptureFlags) launch.QUIC {
	return launch.QUIC{Block: f.blockQUIC, Report: func(to netip.AddrPort, refused bool) {
		if refused {
			a.Say("unwire: rejected QUIC (HTTP/3) to %s, so that the client falls back to TCP", to)
		} else {
			a.Say("unwire: warning: QUIC (HTTP/3) to %s is not recorded: with --block-quic, the client falls back to TCP", to)
		}
		if f.json {
			// stdout may be gone: the traffic goes on
			_ = a.Print(&contract.QUIC{Event: "quic", To: to.String(), Refused: refused})
		}
	}}
}

// runTransparent runs a command in its own network namespace, whose connections serve accepts. It returns
// the command's exit status.
func runTransparent(ctx context.Context, o launch.Options, serve func(net.Listener, *process.Sockets)) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return launch.RunTransparent(ctx, o, launch.Namespace{Init: []string{self, "namespace-init"}, Serve: serve})
}

// tryTransparent runs a command that does nothing in a network namespace. 'unwire doctor' uses it to
// check whether --transparent works.
func tryTransparent(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "unwire-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ca, err := ca.Load(dir) // one for the trial: looking makes none
	if err != nil {
		return err
	}
	nothing := func(net.Listener, *process.Sockets) {} // nothing connects
	code, err := runTransparent(ctx, launch.Options{
		Argv: []string{self, "--version"}, CAFile: ca.CertFile, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
	}, nothing)
	if err == nil && code != 0 {
		err = fmt.Errorf("a test command ended with exit status %d", code)
	}
	return err
}
