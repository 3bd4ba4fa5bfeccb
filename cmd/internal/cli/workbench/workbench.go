// Package workbench has the command ui, which shows captures in a browser, and what
// 'unwire capture --ui' needs of it.
//
// Start serves package ui on loopback, for the user of this process alone, and opens a
// browser. The page's downloads and command lines are those of other commands, which Start
// is given as a function.
package workbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/ui"
	"unwire/mitm/access"
	"unwire/mitm/process"
	"unwire/schema"
)

// A Runner runs an unwire command, given by its arguments, and returns what it printed and its exit
// status.
type Runner func(ctx context.Context, args ...string) (stdout, stderr []byte, status int)

// flags are the values of the flags of 'unwire ui'.
type flags struct {
	// listen is the address of the web server.
	listen string

	// proto names definitions; "" for the default.
	proto string

	// noOpen does not open the page in a browser.
	noOpen bool

	// json prints the address as JSON.
	json bool

	// live lets the page replay and probe on other machines.
	live bool

	// allow are the hosts that live allows.
	allow []string
}

// Commands returns the command ui.
func Commands(a *app.App, run Runner) []*cobra.Command { return []*cobra.Command{uiCommand(a, run)} }

const long = `ui shows captures in a browser: exchanges (requests with their answers),
messages with their fields and bytes, inferred types with the reasons for them,
conversations, .proto definitions, and the differences between two exchanges. F.uwc can
be a folder of captures; without F.uwc, ui shows the captures in the working folder. ui
also shows captures that are being recorded. 'unwire capture --ui' records a capture,
and shows it at the same time.

ui listens on a loopback address, and opens the page in your browser. The URL of the
page contains a random token. ui rejects requests without this token, requests from
other web sites, and, on Linux, requests from other users of this machine. In the
captures, ui stores your notes, your marks, and the field types that you choose. For a
secret that was replaced during the recording, the page shows only the placeholder. From
the page, you can send recorded requests again ('unwire replay'), and probe servers
('unwire probe'). The page sends requests only to servers on this machine, unless you
start ui with --live and --allow-host.

Each view of the page has its own URL, which you can bookmark. Press ? in the page for a
list of keys.`

// uiCommand returns the command 'unwire ui'. run executes unwire commands for the page.
func uiCommand(a *app.App, run Runner) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "ui [F.uwc…]",
		Short: "Show captures in a browser",
		Long:  long,
		Example: `  # Open one capture in your browser
  unwire ui F.uwc
  # Open all captures in this folder
  unwire ui
  # Use a fixed port, for a browser that you start yourself
  unwire ui --no-open --listen 127.0.0.1:8899 F.uwc G.uwc`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runUI(cmd.Context(), a, f, run, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address at which the server listens, such as 127.0.0.1:8080, or only its port, such as 8080")
	fl.BoolVar(&f.noOpen, "no-open", false, "print the URL of the page, but do not open a browser")
	fl.StringVar(&f.proto, "proto", "", ".proto definitions, from which the page takes field names; with the word none, the page shows only field numbers (default: the first that exists of UNWIRE_PROTO, the definitions in the capture, unwire.yaml, and the built-in definitions)")
	fl.BoolVar(&f.live, "live", false, "let the page send requests to other machines; --allow-host must name each machine")
	fl.StringSliceVar(&f.allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	fl.BoolVar(&f.json, "json", false, "print the address at which the server listens, as a JSON object on stdout")
	return cmd
}

// runUI serves the web page for the given captures and folders of captures, or for the captures in the working
// folder, until the user interrupts it.
func runUI(ctx context.Context, a *app.App, f flags, run Runner, files []string) error {
	if err := f.check(); err != nil {
		return err
	}
	files, err := capturesToShow(a, files)
	if err != nil {
		return err
	}
	// Wrong definitions are an error on the command line, too, and not only on the page.
	if f.proto != "" {
		if _, err := a.LoadDefinitions(ctx, f.proto, files[0]); err != nil {
			return err
		}
	}
	ctx = a.Serving(ctx)

	// The list of files is fixed, so the page gets a copy; a recording passes a function that returns
	// its current files.
	b, err := Start(ctx, a, Options{Listen: f.listen, Proto: f.proto, Open: !f.noOpen, Files: func() []string { return slices.Clone(files) }, Run: run, Live: f.liveFlags()})
	if err != nil {
		return err
	}
	defer b.Close()
	if f.json {
		err = a.Print(&contract.Listening{Event: "listening", URL: b.URL})
	} else if _, err = fmt.Fprintln(a.Out, b.URL); err == nil {
		a.Say("unwire: showing %s; stop with Ctrl-C", app.Counted(len(files), "capture"))
	}
	if err != nil {
		return err
	}

	// Serve until the user interrupts, or the server fails.
	select {
	case <-ctx.Done():
		return nil
	case err := <-b.served:
		return err
	}
}

// check returns an error if one of --live and --allow-host is used without the other.
func (f *flags) check() error {
	if len(f.allow) > 0 && !f.live {
		return app.Usagef("--allow-host requires --live")
	}
	target := app.Target{Live: f.live, Allow: f.allow}
	_, _, err := target.Server()
	return err
}

// capturesToShow returns the captures that names are, and those in the folders that names are; the captures of the
// working folder if names is empty. Each capture is opened once, so that a wrong name is an error on the command line
// and not on the page. Files of a folder that cannot be opened are left out, with a warning.
func capturesToShow(a *app.App, names []string) ([]string, error) {
	folder := "working folder"
	if len(names) == 0 {
		names = []string{"."}
	} else {
		folder = "folder " + strings.Join(names, ", ")
	}
	var list []string
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			if err := tryOpen(a, name); err != nil {
				return nil, err
			}
			list = append(list, name)
			continue
		}
		found, err := app.CapturesIn(name)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if err := tryOpen(a, path); err != nil {
				a.Say("unwire: warning: %v; it is not shown", err)
				continue
			}
			list = append(list, path)
		}
	}
	if len(list) == 0 {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("unwire ui: the %s contains no capture", folder), "name a capture, or record one with 'unwire capture --ui'")
	}
	return list, nil
}

// tryOpen returns the error of opening a capture, nil if it can be opened.
func tryOpen(a *app.App, path string) error {
	c, err := a.OpenCapture(path)
	if err != nil {
		return err
	}
	return c.Close()
}

// liveFlags returns the flags --live and --allow-host as arguments for commands that the page starts.
func (f *flags) liveFlags() (list []string) {
	if f.live {
		list = append(list, "--live")
	}
	for _, host := range f.allow {
		list = append(list, "--allow-host="+host)
	}
	return list
}

// Options are the options for starting the workbench, the web page that shows captures.
type Options struct {
	// Listen is the loopback address of the web server.
	Listen string

	// Proto is the value of --proto.
	Proto string

	// Live are the flags --live and --allow-host that are passed to the commands replay and probe; empty
	// if other machines are not allowed.
	Live []string

	// Open opens the page in the user's browser.
	Open bool

	// Files returns the paths of the captures that the page lists.
	Files func() []string

	// Run executes unwire commands that the user starts from the page.
	Run Runner
}

// A Workbench is a running web server that shows captures in a browser.
type Workbench struct {
	// URL is the address of the page, including its access token.
	URL string

	// Addr is the network address at which the server listens.
	Addr net.Addr

	// app is the running program.
	app *app.App

	// server is the web server.
	server *ui.Server

	// served receives the error with which the server ends.
	served chan error
}

// Start starts the workbench's web server on a loopback address.
func Start(ctx context.Context, a *app.App, o Options) (*Workbench, error) {
	listener, err := app.ListenLoopback(o.Listen)
	if err != nil {
		return nil, err
	}

	// Saved filters are kept in the configuration folder. Without one, they last as long as the
	// process.
	filters := ""
	if dir, err := app.ConfigDir(); err == nil {
		filters = filepath.Join(dir, "filters.json")
	}
	server, err := ui.New(ui.Options{
		Files: o.Files, Proto: o.Proto, Live: o.Live, Filters: filters, Version: app.Version(), Run: o.Run,
		Open: func(path string) (*query.Capture, error) { return a.OpenCapture(path) },
		Transcript: func() (o query.TranscriptOptions, err error) {
			o.Weights, err = a.LoadWeights(a.Weights(""))
			return o, err
		},
		Definitions: func(ctx context.Context, path string) (*schema.Schema, error) {
			return a.LoadDefinitions(ctx, o.Proto, path)
		},
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	b := &Workbench{URL: server.URL(listener.Addr()), Addr: listener.Addr(), app: a, server: server, served: make(chan error, 1)}

	// Other users of this machine can see the URL with its token among the arguments of the browser,
	// so their connections are refused.
	guarded := &ownListener{listener, &access.Guard{Finder: process.NewFinder()}}
	go func() { b.served <- server.Serve(guarded) }()

	// The page works without the browser being opened, so a failure is only reported.
	if o.Open {
		if err := openBrowser(ctx, b.URL); err != nil {
			a.Say("unwire: cannot open a browser (%v): open the URL yourself", err)
		}
	}
	return b, nil
}

// Close stops the web server.
func (b *Workbench) Close() { b.app.Shutdown(b.server.Shutdown) }

// An ownListener accepts only connections of the user who runs unwire. The URL with the access token is
// an argument of the browser's process, which other users of the machine can see.
type ownListener struct {
	// Listener is the wrapped listener.
	net.Listener

	// guard finds out which user opened a connection.
	guard *access.Guard
}

// Accept returns the next connection of this user, and closes those of others.
func (l *ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.guard.Deny(conn) == "" {
			return conn, err
		}
		_ = conn.Close()
	}
}
