package record

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures/redact"
	"unwire/captures/series"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render/capturetext"
	"unwire/mitm"
	"unwire/mitm/access"
	"unwire/mitm/ca"
	"unwire/mitm/launch"
	"unwire/mitm/refusal"
)

// shutdownGrace is how long running streams may go on when recording ends without a signal.
const shutdownGrace = 5 * time.Second

type CaptureFlags struct {
	Out, Listen, reverse, UpstreamCA string
	json, keepSecrets, transparent   bool
	passive, upstreamInsecure        bool
	share, blockQUIC                 bool
	UpstreamProxy                    string
	clientCerts, clientKeys          []string
	packets                          string
	only, skip, also                 []string
	maxBody, rotate, maxSize, keylog string
	browser                          string
	quiet, verbose                   bool

	Unsearched *UnsearchedLog
	announcer  *announcer // of exchanges that have ended; nil reports none
}

const captureLong = `capture starts a recording proxy on loopback. With CMD it runs that command with
its traffic captured (proxy variables, CA variables and a Node hook are set for
it) and exits with its status; without, it runs until it is interrupted. The
proxy speaks HTTP and SOCKS 5 (ALL_PROXY=socks5h://HOST:PORT).

--transparent (Linux) is for commands that ignore all that: CMD runs in a
network namespace of its own, whose TCP is captured whatever opens it. UDP, and
DNS with it, passes, except to port 443: HTTP/3 is refused, so that clients fall
back to TCP. QUIC to other ports passes unrecorded and is reported; --block-quic
refuses it as well. Anything else is refused. What listens on the host's loopback is
reached at the same address, unless CMD itself listens there.

--browser URL starts Chromium, Chrome or Edge with that page, in a new profile that is
removed at the end: it uses the proxy, trusts the CA, speaks no QUIC, and makes no
traffic of its own. The recording ends with the browser.

--passive (Linux) is for clients that pin certificates or measure: nothing stands
in the middle. CMD runs in a network of its own as with --transparent, its packets
are recorded as they pass, and it is told by NODE_OPTIONS and SSLKEYLOGFILE to log
its TLS keys (Node, curl, Chromium, Firefox, Python, many others do). Exchanges are made
while it runs; packets and keys are deleted when it ends. If it is killed, the next command
that reads F.uwc, or the next capture, completes F.uwc and deletes them. --packets FILE.pcapng keeps them for Wireshark, keys and content.

Servers are reached through the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY
names, unless NO_PROXY excepts them. Servers on this machine are reached directly.
--upstream-proxy sends all through another one instead, or through none; a password in it is visible
to other users of this machine, one in a variable is not.

--client-cert and --client-key are shown to any server that asks for a certificate, or
with HOST= to those hosts only (globs as with --only; the first that matches counts).

--reverse stands in front of one server, each --also in front of one more. Clients
speak HTTP/1.1 or HTTP/2 to it, in clear or in TLS, on the same port.

Secrets (authorization, cookies, tokens, API keys) are redacted as they are
recorded, unless --keep-secrets is given. What cannot be searched for them, such as
bodies with an unknown encoding, is recorded as it is, and capture says so.

WebSockets are recorded as messages. What is not HTTP, in TLS or in clear, passes as it
is and is recorded as the bytes of both directions (tls://HOST:PORT, tcp://HOST:PORT).

The proxy is for the user who runs capture (Linux): a connection of another user, root
too, is refused unless CMD has started its program. --share admits everybody on this
machine, who can then reach servers through your proxy and with your client certificates.

What --only and --skip leave out as a host passes undecrypted. A pattern with a
path (host/path*) chooses among the requests of a host, which has to be decrypted
for that; what it leaves out passes unrecorded. A * spans dots and slashes.

--max-size keeps a ring: the capture goes on in NAME-2.uwc and so on, each a sixteenth of
the size, and the oldest files are removed. A file with an exchange that still runs stays
while others can go; of a body, at most a sixteenth of the size is stored for each
direction, unless --max-body is less.

Each exchange that has ended has a line on a terminal: its number, the time, the program,
the call, how it ended, body bytes and duration. A command that writes to the same terminal
may draw on it, so its exchanges have no lines; -v prints them, -q never. --json prints an
event for each instead. At the end, capture prints how the exchanges ended, why some failed,
and what to do about it.

If recording has to stop (the disk is full, the file was deleted), that is said at
once, the traffic goes on unrecorded, and the exit status is 3 in the end.`

const captureExamples = `  unwire capture -o cli.uwc -- node client.mjs
  unwire capture -o cli.uwc --listen 127.0.0.1:8080
  unwire capture -o cli.uwc --transparent -- ./static-binary
  unwire capture -o page.uwc --browser https://www.example.com/
  unwire capture -o cli.uwc --passive --packets cli.pcapng -- node client.mjs
  unwire capture -o cli.uwc --reverse https://127.0.0.1:9443 --upstream-ca ca.pem
  unwire capture -o cli.uwc --upstream-proxy socks5h://127.0.0.1:1080 -- node client.mjs
  unwire capture -o cli.uwc --client-cert '*.corp.example=me.pem' --client-key '*.corp.example=me-key.pem'
  unwire capture -o cli.uwc --only '*.example.com' --skip '*/health*' --max-body 1MB --rotate 500MB`

func captureCommand(a *app.App) *cobra.Command {
	var f CaptureFlags
	cmd := &cobra.Command{
		Use:     "capture [-o F.uwc] [-- CMD ARGS…]",
		Short:   "Record traffic through a proxy; with CMD, run it with its traffic captured",
		Long:    captureLong,
		Example: captureExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return capture(cmd.Context(), a, f, args) },
	}
	f.modeFlags(cmd)
	f.recordingFlags(cmd)
	return cmd
}

// modeFlags are those of how traffic comes by.
func (f *CaptureFlags) modeFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:0", "loopback address of the proxy, or a port of 127.0.0.1")
	flags.BoolVar(&f.share, "share", false, "let other users of this machine use the proxy")
	flags.StringVar(&f.reverse, "reverse", "", "be a server in front of this URL instead of a proxy")
	flags.StringArrayVar(&f.also, "also", nil, "with --reverse: be a server in front of this URL too, on a port of its own")
	flags.StringVar(&f.browser, "browser", "", "start Chromium with this page, in a new profile; what follows -- are further flags for it")
	flags.BoolVar(&f.transparent, "transparent", false, "run CMD in a network of its own, and capture all its TCP (Linux)")
	flags.BoolVar(&f.passive, "passive", false, "run CMD in a network of its own, record its packets, and open them with the keys that it logs (Linux)")
	flags.BoolVar(&f.blockQUIC, "block-quic", false, "with --transparent or --passive: refuse QUIC on all ports, so that clients fall back to TCP")
	flags.StringVar(&f.packets, "packets", "", "with --passive: keep the packets in this pcapng file, with the TLS secrets that open them")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of further CAs to trust for servers")
	flags.BoolVar(&f.upstreamInsecure, "upstream-insecure", false, "do not verify servers' certificates; each exchange says so")
	f.upstreamFlags(cmd)
}

// recordingFlags are those of what is recorded, and where.
func (f *CaptureFlags) recordingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Out, "output", "o", "", "capture file (default capture-TIME.uwc); an existing capture is added to")
	flags.BoolVar(&f.json, "json", false, "events as JSON Lines on stdout (CMD's stdout goes to stderr)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no line for each exchange")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "a line on stderr for each exchange, even if CMD shares the terminal or there is none")
	flags.BoolVar(&f.keepSecrets, "keep-secrets", false, "record tokens, cookies and keys as they are")
	flags.StringSliceVar(&f.only, "only", nil, "record only these hosts (globs; the others pass undecrypted) or HOST/PATH globs")
	flags.StringSliceVar(&f.skip, "skip", nil, "let these hosts (globs) pass undecrypted, HOST/PATH globs unrecorded")
	flags.StringVar(&f.maxBody, "max-body", "", "store at most this much of a body per direction, such as 1MB; the exchange says so")
	flags.StringVar(&f.rotate, "rotate", "", "go on in NAME-2.uwc and so on after this size or time, such as 500MB or 1h")
	flags.StringVar(&f.maxSize, "max-size", "", "keep the newest traffic only, in at most this much on disk, such as 500MB")
	flags.StringVar(&f.keylog, "write-keylog", "", "write the TLS sessions' secrets to this file, for Wireshark")
	options.Alias(flags, "keylog", "write-keylog")
}

func capture(ctx context.Context, a *app.App, f CaptureFlags, argv []string) error {
	if f.Out == "" {
		f.Out = "capture-" + time.Now().Format("20060102-150405") + ".uwc"
	}
	if err := checkModes(f, argv); err != nil {
		return err
	}
	if err := findCommand(f.browser, argv); err != nil {
		return err
	}
	f.Unsearched = new(UnsearchedLog)
	if f.json || printsLines(a, f, len(argv) > 0) {
		f.announcer = newAnnouncer(a, f.json)
	}
	isNew := isMissing(f.Out)
	recoverLeftOver(ctx, a, f.Out)
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.passive {
		return capturePassive(ctx, a, f, argv)
	}
	return captureProxied(ctx, a, f, argv, isNew)
}

// printsLines reports whether each exchange has a line. A command that shares the terminal
// may draw on it, so its exchanges have none unless that was asked for.
func printsLines(a *app.App, f CaptureFlags, runs bool) bool {
	switch {
	case f.quiet:
		return false
	case f.verbose:
		return true
	}
	return a.Err.TTY && (!runs || f.browser != "" || !a.Out.TTY)
}

// captureProxied records what comes through a proxy. If the command cannot start, a capture
// that is new is removed.
func captureProxied(ctx context.Context, a *app.App, f CaptureFlags, argv []string, isNew bool) error {
	token := ""
	if (len(argv) > 0 || f.browser != "") && !f.transparent {
		// the only way to run a command that has a hook
		token = rand.Text()
	}
	rec, err := StartRecorder(a, f, token)
	if err != nil {
		return errors.Join(err, removeEmpty(ctx, isNew, f.Out))
	}
	var env []string
	if f.browser != "" {
		b, err := prepareBrowser(ctx, rec, f, argv)
		if err != nil {
			return errors.Join(err, rec.Close(DrainTime(a)), removeEmpty(ctx, isNew, f.Out))
		}
		defer b.Close() //nolint:errcheck // a temporary folder
		argv, env = b.Argv, b.Env
	}
	watch := watchEndpoints(a, rec, f)
	stop := watch.start(ctx, rec.store.Current())
	defer app.SurviveFileLimit()()
	code, runErr := serve(ctx, a, rec, f, argv, env)
	unstarted := runErr != nil
	if len(argv) > 0 {
		a.Signals.StartGrace()
	}
	stop()
	if err := rec.Close(DrainTime(a)); err != nil && runErr == nil {
		if runErr = err; rec.failed.Load() {
			runErr = app.Fail(app.ExitInput, nil, "") // it was told when it happened
		}
	}
	if unstarted {
		if runErr = errors.Join(runErr, removeEmpty(ctx, isNew, f.Out)); isMissing(f.Out) {
			return runErr
		}
	}
	watch.finish(context.WithoutCancel(ctx), rec.store.Files())
	captureSummary(context.WithoutCancel(ctx), a, f, rec, len(argv) > 0)
	if runErr != nil {
		return runErr
	}
	if code != 0 {
		return app.Fail(code, nil, "")
	}
	return nil
}

// A Recorder is a proxy with its listener and its store.
type Recorder struct {
	store   *series.Series
	proxy   *mitm.Proxy
	CA      *ca.Authority
	keys    *keyLog // nil: none is written
	Token   string  // of the proxy's control endpoints; "": it has none
	report  launch.Report
	Addr    string
	reverse []reverseListener
	served  chan error
	failed  *atomic.Bool // recording has stopped, and that was said
	began   time.Time
}

// StartRecorder starts a proxy. The token is for the hook of a command that is
// run with its traffic captured; "" if there is none.
func StartRecorder(a *app.App, f CaptureFlags, token string) (*Recorder, error) {
	ln, err := app.ListenLoopback(f.Listen)
	if err != nil {
		return nil, err
	}
	rec, err := newRecorder(a, ln, f, token)
	if err != nil {
		ln.Close()
		return nil, err
	}
	go func() { rec.served <- rec.proxy.Serve(ln) }()
	if err := startReverse(a, rec, f); err != nil {
		return nil, errors.Join(err, rec.Close(DrainTime(a)))
	}
	return rec, nil
}

func newRecorder(a *app.App, ln net.Listener, f CaptureFlags, token string) (*Recorder, error) {
	opts := mitm.Options{Source: "proxy", Only: f.only, Skip: f.skip, UpstreamInsecure: f.upstreamInsecure, ControlToken: token}
	opts.Share, opts.RefusedUser = f.share, func(u access.User) { sayRefusedUser(a, u, f.json) }
	opts.RouteConflict = func(c mitm.RouteConflict) { sayRouteConflict(a, c, f.json) }
	if f.upstreamInsecure {
		a.Say("unwire: warning: servers' certificates are not verified: whoever answers is recorded as the server")
	}
	if f.reverse != "" {
		u, err := reverseURL("--reverse", f.reverse)
		if err != nil {
			return nil, err
		}
		opts.Reverse, opts.Source = u, "reverse"
	}
	var err error
	if opts.UpstreamRoots, err = app.UpstreamRoots(f.UpstreamCA); err != nil {
		return nil, err
	}
	dir, err := app.ConfigDir()
	if err != nil {
		return nil, err
	}
	ca, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		return nil, err
	}
	if err := f.reachServers(a, &opts, ln.Addr().String()); err != nil {
		return nil, err
	}
	var failed atomic.Bool
	files, err := seriesOptions(a, f, &failed)
	if err != nil {
		return nil, err
	}
	if token != "" { // a program may send its environment somewhere
		files.Redactor = redact.New(redact.Options{Profile: a.Profile(), Secrets: []string{token}})
	}
	keys, err := openKeyLog(a, f.keylog)
	if err != nil {
		return nil, err
	}
	store, err := series.Create(f.Out, files)
	if err != nil {
		keys.Close()
		return nil, err
	}
	opts.CA, opts.Store, opts.KeyLog = ca, store, keys.writer()
	opts.CertificateRefused = func(r refusal.Refusal) { sayRefusedCertificate(a, r, ca.CertFile, f.json) }
	proxy, err := mitm.New(opts)
	if err != nil {
		keys.Close()
		store.Close()
		return nil, err
	}
	return &Recorder{
		began: time.Now(),
		store: store, proxy: proxy, CA: ca, keys: keys, Token: token,
		Addr: ln.Addr().String(), served: make(chan error, 1), failed: &failed,
	}, nil
}

// seriesOptions says how the capture is written.
func seriesOptions(a *app.App, f CaptureFlags, failed *atomic.Bool) (series.Options, error) {
	o := series.Options{Options: a.IndexedWhenClosed(store.Options{
		KeepSecrets: f.keepSecrets,
		Unsearched:  f.Unsearched.report(a, f.json),
		Failed: func(err error) {
			if failed != nil {
				failed.Store(true)
			}
			a.SayStopped(err, "the traffic")
		},
	})}
	f.announcer.options(&o)
	var err error
	if f.maxBody != "" {
		if o.MaxBody, err = app.ParseSize(f.maxBody); err != nil {
			return o, app.Usagef("--max-body: %v", err)
		}
	}
	if f.maxSize != "" {
		if o.MaxTotal, err = parseMaxSize(f.maxSize, f.Out); err != nil {
			return o, err
		}
	}
	if f.rotate != "" {
		if o.MaxBytes, o.MaxAge, err = app.ParseRotate(f.rotate); err != nil {
			return o, app.Usagef("--rotate: %v", err)
		}
		o.Rotated = func(path string) { a.Say("unwire: goes on in %s", path) }
	}
	return o, nil
}

// serve waits for the command or for the end of ctx; the status is the command's.
func serve(ctx context.Context, a *app.App, rec *Recorder, f CaptureFlags, argv, env []string) (int, error) {
	scheme := "http://"
	if f.json {
		if err := a.Print(&contract.Listening{Event: "listening", Proxy: scheme + rec.Addr, CA: rec.CA.CertFile}); err != nil {
			return 0, err
		}
	}
	if err := sayReverse(a, rec, f.json); err != nil {
		return 0, err
	}
	if len(argv) > 0 {
		f.announcer.begin()
	}
	if len(argv) > 0 {
		stdout := a.Out.Writer
		if f.json {
			stdout = a.Err.Writer
		}
		code, err := runLaunch(context.WithoutCancel(ctx), a, rec, f, launch.Options{
			// Signals go to the command, and the recording ends when the command does.
			Begin: a.Signals.ChildRuns,
			Argv:  argv, Env: env, ProxyURL: scheme + rec.Addr, CAFile: rec.CA.CertFile, ControlToken: rec.Token,
			Stdin: a.In, Stdout: stdout, Stderr: a.Err.Writer, Report: &rec.report,
		})
		switch {
		case errors.Is(err, context.Canceled):
			return 0, err
		case err != nil:
			return code, app.Fail(code, err, capturetext.LaunchHint(err))
		}
		return code, nil
	}
	if !f.json {
		sayListening(a, rec, f)
	}
	f.announcer.begin()
	select {
	case <-ctx.Done():
		return 0, nil
	case err := <-rec.served:
		return 0, err
	}
}

// sayRouteConflict warns of a second route for a connection: the hook announces
// each once, so somebody else has the token.
func sayRouteConflict(a *app.App, c mitm.RouteConflict, json bool) {
	a.Say("unwire: warning: a second address was announced for the connection from port %d: it goes to %s;\n%s is refused. Only the command knows the token for this: look at what it runs", c.Port, c.To, c.Refused)
	if json {
		// stdout may be gone: the traffic goes on
		_ = a.Print(&contract.RouteConflict{Event: "route-conflict", Port: c.Port, To: c.To, Refused: c.Refused})
	}
}

func sayListening(a *app.App, rec *Recorder, f CaptureFlags) {
	a.Say("recording to %s; Ctrl-C ends it", f.Out)
	if f.reverse != "" {
		a.Say("point the client at http://%s, which stands in front of %s,\nor at https://%s with the CA %s", rec.Addr, f.reverse, rec.Addr, rec.CA.CertFile)
		return
	}
	a.Say("proxy  http://%s", rec.Addr)
	a.Say("CA     %s", rec.CA.CertFile)
	a.Say("SOCKS  socks5h://%s", rec.Addr)
	a.Say("try    HTTPS_PROXY=http://%s curl --cacert %s https://…", rec.Addr, rec.CA.CertFile)
}

// DrainTime is how long running streams may go on when recording ends.
func DrainTime(a *app.App) time.Duration {
	return a.Signals.Within(shutdownGrace, app.InterruptedDrain)
}

// Close lets running streams go on for drain, cuts them off, and closes the file.
func (r *Recorder) Close(drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	err := r.proxy.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // what still ran is marked incomplete
	}
	return errors.Join(err, r.store.Close(), r.keys.Close())
}

// captureSummary says what was recorded, and what to do if nothing was.
func captureSummary(ctx context.Context, a *app.App, f CaptureFlags, rec *Recorder, ran bool) {
	early := ""
	if rec.failed.Load() {
		early = ", up to where recording stopped"
	}
	n, err := sayEnded(ctx, a, f, rec.store.Files(), rec.began, early)
	if err != nil {
		a.Say("unwire: %v", err)
		return
	}
	if rec.report.NoToken {
		a.Say("unwire: warning: the command started a Node program without UNWIRE_HOOK_TOKEN in its environment: the\nconnections of that program are not recorded")
	}
	switch {
	case early != "" || f.json:
	case n == 0 && ran && f.transparent:
		a.Say("unwire: hint: the command opened no connection that speaks HTTP")
	case n == 0 && ran:
		a.Say("unwire: hint: the command sent nothing through the proxy: %s", capturetext.UnreachedHint(rec.report))
	case ran && !f.transparent && (rec.report.Runtime == launch.Bun || rec.report.Runtime == launch.Deno):
		a.Say("unwire: hint: %s", capturetext.PartlyReachedHint(rec.report.Runtime))
	}
}
