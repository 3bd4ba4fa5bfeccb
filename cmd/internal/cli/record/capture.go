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
	"unwire/cmd/internal/cli/workbench"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/capturetext"
	"unwire/cmd/internal/term"
	"unwire/mitm"
	"unwire/mitm/access"
	"unwire/mitm/ca"
	"unwire/mitm/launch"
	"unwire/mitm/refusal"
	"unwire/mitm/rules"
)

// shutdownGrace is how long running streams may continue when the recorded command has ended by itself.
const shutdownGrace = 5 * time.Second

const captureExamples = `  # Record a program until it ends
  unwire capture -o cli.uwc -- node client.mjs
  # Record all clients that use the proxy, until you interrupt capture
  unwire capture -o cli.uwc --listen 127.0.0.1:8080
  # Watch the traffic in your browser
  unwire capture -o cli.uwc --ui -- node client.mjs
  # Record a program that ignores proxy variables
  unwire capture -o cli.uwc --transparent -- ./static-binary
  # Record a browser that opens this page
  unwire capture -o page.uwc --browser https://www.example.com/
  # Record without a proxy, and keep the packets for Wireshark
  unwire capture -o cli.uwc --passive --packets cli.pcapng -- node client.mjs
  # Act as a server and forward requests, for clients that ignore proxies
  unwire capture -o cli.uwc --reverse https://127.0.0.1:9443 --upstream-ca ca.pem
  # Connect to servers through another proxy
  unwire capture -o cli.uwc --upstream-proxy socks5h://127.0.0.1:1080 -- node client.mjs
  # Present a client certificate to the hosts of one domain
  unwire capture -o cli.uwc --client-cert '*.corp.example=me.pem' --client-key '*.corp.example=me-key.pem'
  # Change messages by the rules in a file
  unwire capture -o cli.uwc --rules rules.yaml -- node client.mjs
  # Hold back messages of the server that have field 1.7, to edit them
  unwire capture -o cli.uwc --intercept 'method:Run dir:down path:1.7' -- node client.mjs
  # Imitate a slow network
  unwire capture -o cli.uwc --throttle 64KB/s,200ms -- node client.mjs
  # Record some hosts, shorten large bodies, and start a new file at 500 MB
  unwire capture -o cli.uwc --only '*.example.com' --skip '*/health*' --max-body 1MB --rotate 500MB
  # Move each finished file to an S3 bucket
  unwire capture -o cli.uwc --rotate 500MB --upload s3://bucket/segments --live --allow-host s3.eu-west-1.amazonaws.com`

// captureCommand returns the command 'unwire capture'. run executes unwire commands for the web page of
// --ui.
func captureCommand(a *app.App, run workbench.Runner) *cobra.Command {
	f := CaptureFlags{run: run}
	cmd := &cobra.Command{
		Use:     "capture [-o F.uwc] [flags] [-- CMD ARGS…]",
		Short:   "Record the traffic of a command, or of any client through a proxy",
		Long:    captureLong,
		Example: captureExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return capture(cmd.Context(), a, f, args) },
	}
	f.modeFlags(cmd)
	f.recordingFlags(cmd)
	f.rewrite.add(cmd)
	return cmd
}

// capture executes 'unwire capture'. argv is the command to run and record; if it is empty, capture
// records other clients until the user interrupts it.
func capture(ctx context.Context, a *app.App, f CaptureFlags, argv []string) error {
	if f.rewrite.schema {
		_, err := a.Out.Write([]byte(rules.SchemaJSON))
		return err
	}
	if f.Out == "" {
		f.Out = "capture-" + time.Now().Format("20060102-150405") + ".uwc"
	}

	// Check everything that can be wrong on the command line before any file is created.
	if err := checkModes(f, argv); err != nil {
		return err
	}
	if err := findCommand(f.browser, argv); err != nil {
		return err
	}
	if err := f.checkUpload(); err != nil {
		return err
	}
	f.Unsearched = new(UnsearchedLog)
	if f.json || printsLines(a, f, len(argv) > 0) {
		f.announcer = newAnnouncer(a, f.json)
	}

	// Finish what an earlier recorder left behind before a new one writes to the same names.
	recoverLeftOver(ctx, a, f.Out)
	if err := ctx.Err(); err != nil {
		return err
	}

	// From here on, finished files are uploaded; the deferred call waits for the last one.
	if err := f.prepareUpload(ctx, a); err != nil {
		return err
	}
	defer f.uploads.finish(ctx)

	// A capture that did not exist is removed again if the command cannot be started.
	isNew := isMissing(f.Out)
	if f.passive {
		return capturePassive(ctx, a, f, argv)
	}
	return captureProxied(ctx, a, f, argv, isNew)
}

// printsLines reports whether a line is printed for each exchange. By default that is not so if a command
// runs (runs) that may draw on the same terminal.
func printsLines(a *app.App, f CaptureFlags, runs bool) bool {
	switch {
	case f.quiet:
		return false
	case f.verbose:
		return true
	}
	return a.Err.TTY && (!runs || f.browser != "" || !a.Out.TTY)
}

// captureProxied records the traffic that arrives at a proxy. isNew means that the capture file did not
// exist before; it is then deleted if the command cannot be started.
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
	f.uploads.began(rec.store)

	// A browser is a command like any other, with a profile that trusts the proxy.
	var env []string
	if f.browser != "" {
		b, err := prepareBrowser(ctx, rec, f, argv)
		if err != nil {
			return errors.Join(err, rec.Close(DrainTime(a)), removeEmpty(ctx, isNew, f.Out))
		}
		defer b.Close() //nolint:errcheck // a temporary folder
		argv, env = b.Argv, b.Env
	}
	page, err := startWorkbench(ctx, a, f, rec, rec.store.Files)
	if err != nil {
		return errors.Join(err, rec.Close(DrainTime(a)), removeEmpty(ctx, isNew, f.Out))
	}
	defer stay(ctx, a, page)
	if page != nil {
		rec.ui = page.URL
	}

	// Servers may name further endpoints, which a reverse proxy would not see.
	watch := watchEndpoints(a, rec, f)
	stop := watch.start(ctx, rec.store.Current())
	defer app.SurviveFileLimit()()
	code, runErr := serve(ctx, a, rec, f, argv, env)
	unstarted := runErr != nil

	// After the command has ended, a second signal stops waiting for open streams.
	if len(argv) > 0 {
		a.Signals.StartGrace()
	}
	stop()
	if err := rec.Close(DrainTime(a)); err != nil && runErr == nil {
		if runErr = err; rec.failed.Load() {
			runErr = app.Fail(app.ExitInput, nil, "") // it was reported when it happened
		}
	}

	// If nothing could be started, an empty capture would only be confusing.
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

// A Recorder is a running proxy with its listener and the capture that it writes.
type Recorder struct {
	// store is the series of capture files that is written.
	store *series.Series

	// proxy is the recording proxy.
	proxy *mitm.Proxy
	// changes rewrites traffic while it is recorded; nil leaves it unchanged.
	changes *rewriter
	// CA is the authority that signs the proxy's certificates.
	CA *ca.Authority

	// keys is the TLS key log file; nil if none is written.
	keys *keyLog

	// Token authorises requests to the proxy's control endpoints, which the hook in Node programs uses; ""
	// if the proxy has none.
	Token string

	// report describes the command that ran, such as its language runtime, for hints.
	report launch.Report
	// Addr is the host and port at which the proxy listens.
	Addr string

	// ui is the URL of the web page of --ui; "" if there is none.
	ui string

	// reverse are the additional reverse proxies of --also.
	reverse []reverseListener

	// served receives the error with which the proxy stops serving.
	served chan error

	// failed is set when recording has failed, after that was printed. Traffic continues unrecorded.
	failed *atomic.Bool

	// began is when the recording began. Older exchanges in the same file are not counted as recorded.
	began time.Time
}

// StartRecorder starts a recording proxy. token authorises the hook of the command that is run through
// the proxy; "" if there is none.
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

// newRecorder creates the proxy that will serve the listener ln, and the files that it writes.
func newRecorder(a *app.App, ln net.Listener, f CaptureFlags, token string) (*Recorder, error) {
	opts := mitm.Options{Source: "proxy", Only: f.only, Skip: f.skip, UpstreamInsecure: f.upstreamInsecure, ControlToken: token}
	opts.Share, opts.RefusedUser = f.share, func(u access.User) { sayRefusedUser(a, u, f.json) }
	opts.RouteConflict = func(c mitm.RouteConflict) { sayRouteConflict(a, c, f.json) }
	if f.upstreamInsecure {
		a.Say("unwire: warning: capture does not verify the certificates of servers, so another machine can pretend to be a server")
	}

	// In reverse mode the listener accepts requests for a single server.
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

		// The summary is printed even after an interrupt, so its work must not be cancelled.
	}

	// The CA is created on first use; its key never leaves the configuration folder.
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

	// The proxy's token is a secret of this run; a program may send its environment somewhere.
	var failed atomic.Bool
	files, err := seriesOptions(a, f, &failed)
	if err != nil {
		return nil, err
	}
	if token != "" { // a program may send its environment somewhere
		files.Redactor = redact.New(redact.Options{Profile: a.Profile(), Secrets: []string{token}})
	}

	// The key log and the capture are opened last, because they create files.
	keys, err := openKeyLog(a, f.keylog)
	if err != nil {
		return nil, err
	}
	store, changes, err := createFiles(a, f, files, &opts)
	if err != nil {
		keys.Close()
		return nil, err
	}
	opts.CA, opts.Store, opts.KeyLog = ca, store, keys.writer()
	opts.CertificateRefused = func(r refusal.Refusal) { sayRefusedCertificate(a, r, ca.CertFile, f.json) }
	proxy, err := mitm.New(opts)
	if err != nil {
		keys.Close()
		return nil, errors.Join(err, changes.close(), store.Close())
	}
	return &Recorder{
		changes: changes,
		began:   time.Now(),
		store:   store, proxy: proxy, CA: ca, keys: keys, Token: token,
		Addr: ln.Addr().String(), served: make(chan error, 1), failed: &failed,
	}, nil
}

// createFiles creates the capture files and, if flags change traffic, the rewriter, which it also adds to
// opts.
func createFiles(a *app.App, f CaptureFlags, files series.Options, opts *mitm.Options) (*series.Series, *rewriter, error) {
	changes, err := newRewriter(a, &f)
	if err != nil {
		return nil, nil, err
	}
	if changes != nil {
		opts.Rewrite = changes.policy
	}
	store, err := series.Create(f.Out, files)
	if err == nil {
		err = changes.serve(f.Out, store.Current)
	}
	if err != nil {
		return nil, nil, errors.Join(err, changes.close())
	}
	return store, changes, nil
}

// seriesOptions returns the options for writing the capture files. If writing fails, failed, which may be
// nil, is set.
func seriesOptions(a *app.App, f CaptureFlags, failed *atomic.Bool) (series.Options, error) {
	// A capture that is full or fails to be written must not stop the traffic: the proxy goes on
	// without recording.
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
	f.uploads.options(&o)

	// Sizes limit a body, the whole capture, or one file of a series.
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

		// Each file of a series is a complete capture of its own.
		o.Rotated = func(path string) { a.Say("unwire: recording continues in %s", path) }
	}
	return o, nil
}

// serve runs the command argv, if it is not empty, and otherwise waits until ctx is done. It returns the
// command's exit status. env are additional environment variables.
func serve(ctx context.Context, a *app.App, rec *Recorder, f CaptureFlags, argv, env []string) (int, error) {
	scheme := "http://"
	if f.json {
		// Scripts wait for this event before they connect.
		if err := a.Print(&contract.Listening{Event: "listening", Proxy: scheme + rec.Addr, CA: rec.CA.CertFile, UI: rec.ui}); err != nil {
			return 0, err
		}
	}
	f.uploads.uploadEarlier() // the first event is the one above
	if err := sayReverse(a, rec, f.json); err != nil {
		return 0, err
	}
	if len(argv) > 0 {
		f.announcer.begin()
	}

	// With --json, stdout belongs to the events, so that the command's output goes to stderr.
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

	// Without a command, record until the user interrupts.
	select {
	case <-ctx.Done():
		return 0, nil
	case err := <-rec.served:
		return 0, err
	}
}

// sayRouteConflict warns that a second process claimed to know the destination of a connection. The hook
// announces each destination once, so another process has the token.
func sayRouteConflict(a *app.App, c mitm.RouteConflict, json bool) {
	a.Say("unwire: warning: the connection from local port %d goes to %s, but another process\nreported that it goes to %s. unwire ignored this report. Only CMD and its child processes get the secret token for such reports: check which programs CMD runs", c.Port, c.To, c.Refused)
	if json {
		// stdout may be gone: the traffic goes on
		_ = a.Print(&contract.RouteConflict{Event: "route-conflict", Port: c.Port, To: c.To, Refused: c.Refused})
	}
}

// sayListening prints the proxy's address and how to connect a client to it.
func sayListening(a *app.App, rec *Recorder, f CaptureFlags) {
	a.Say("recording to %s; stop with Ctrl-C", f.Out)
	if f.reverse != "" {
		a.Say("connect the client to http://%s, which forwards to %s,\nor to https://%s with the CA %s", rec.Addr, f.reverse, rec.Addr, rec.CA.CertFile)
		return
	}
	a.Say("proxy  http://%s", rec.Addr)
	a.Say("CA     %s", rec.CA.CertFile)
	a.Say("SOCKS  socks5h://%s", rec.Addr)
	a.Say("try    HTTPS_PROXY=http://%s curl --cacert %s https://…", rec.Addr, rec.CA.CertFile)
}

// DrainTime returns how long running streams may continue when recording ends: shorter after a signal.
func DrainTime(a *app.App) time.Duration {
	return a.Signals.Within(shutdownGrace, app.InterruptedDrain)
}

// Close waits for running streams for at most drain, ends those that are still running, and closes the
// capture.
func (r *Recorder) Close(drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	r.changes.release()
	err := r.proxy.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // what still ran is marked incomplete
	}
	return errors.Join(err, r.changes.close(), r.store.Close(), r.keys.Close())
}

// captureSummary prints how many exchanges were recorded or, if there are none, the probable reason and
// what to do. ran means that capture ran a command.
func captureSummary(ctx context.Context, a *app.App, f CaptureFlags, rec *Recorder, ran bool) {
	early := ""
	if rec.failed.Load() {
		early = ", until the recording failed"
	}
	n, err := sayEnded(ctx, a, f, rec.store.Files(), rec.began, early)
	if err != nil {
		a.Say("unwire: %v", err)
		return
	}
	if rec.report.NoToken {
		a.Say("unwire: warning: CMD started a Node program without the variable UNWIRE_HOOK_TOKEN in its environment:\nthe connections of this program were not recorded")
	}
	switch {
	case early != "" || f.json:
	case n == 0 && ran && f.transparent:
		a.Say("unwire: hint: CMD opened no HTTP connection")
	case n == 0 && ran && f.reverse != "":
		a.Say("unwire: hint: CMD sent no request to the address of --listen, which unwire forwards to %s; configure CMD to use this address as its server, and fix its port with --listen PORT", term.Clean(f.reverse))
	case n == 0 && ran:
		a.Say("unwire: hint: no traffic of CMD reached the proxy: %s", capturetext.UnreachedHint(rec.report))
	case ran && !f.transparent && (rec.report.Runtime == launch.Bun || rec.report.Runtime == launch.Deno):
		a.Say("unwire: hint: %s", capturetext.PartlyReachedHint(rec.report.Runtime))
	}
}
