package cli

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/mitm"
	"unwire/mitm/ca"
	"unwire/mitm/launch"
	"unwire/proto"
)

// shutdownGrace is how long running streams may go on when recording ends without a signal.
const shutdownGrace = 5 * time.Second

type captureFlags struct {
	out, listen, reverse, upstreamCA string
	json, keepSecrets, transparent   bool
	passive, upstreamInsecure        bool
	packets                          string
	only, skip, also                 []string
	maxBody, rotate, keylog          string

	unsearched *unsearchedLog
}

func (a *app) captureCommand() *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture [-o F.uwc] [-- CMD ARGS…]",
		Short: "Record traffic through a proxy; with CMD, run it with its traffic captured",
		Long: `capture starts a recording proxy on loopback. With CMD it runs that command with
its traffic captured (proxy variables, CA variables and a Node hook are set for
it) and exits with its status; without, it runs until it is interrupted. The
proxy speaks HTTP and SOCKS 5 (ALL_PROXY=socks5h://HOST:PORT).

--transparent (Linux) is for commands that ignore all that: CMD runs in a
network namespace of its own, whose TCP is captured whatever opens it. UDP, and
DNS with it, passes, except to port 443: HTTP/3 is refused, so that clients fall
back to TCP. Anything else is refused. What listens on the host's loopback is
reached at the same address, unless CMD itself listens there.

--passive (Linux) is for clients that pin certificates or measure: nothing stands
in the middle. CMD runs in a network of its own as with --transparent, its packets
are recorded as they pass, and it is told by NODE_OPTIONS and SSLKEYLOGFILE to log
its TLS keys (Node, curl, Chromium, Firefox, Python, many others do). When it ends,
packets and keys become exchanges and are deleted (by the next capture, if this one
is killed). --packets FILE.pcapng keeps them for Wireshark, keys and content.

--reverse stands in front of one server, each --also in front of one more.

Secrets (authorization, cookies, tokens, API keys) are redacted as they are
recorded, unless --keep-secrets is given. What cannot be searched for them, such as
payloads of WebSockets, is recorded as it is, and capture says so.

What --only and --skip leave out as a host passes undecrypted. A pattern with a
path (host/path*) chooses among the requests of a host, which has to be decrypted
for that; what it leaves out passes unrecorded. A * spans dots and slashes.

If recording has to stop (the disk is full, the file was deleted), that is said at
once, the traffic goes on unrecorded, and the exit status is 3 in the end.`,
		Example: `  unwire capture -o cli.uwc -- node client.mjs
  unwire capture -o cli.uwc --listen 127.0.0.1:8080
  unwire capture -o cli.uwc --transparent -- ./static-binary
  unwire capture -o cli.uwc --passive --packets cli.pcapng -- node client.mjs
  unwire capture -o cli.uwc --reverse https://127.0.0.1:9443 --upstream-ca ca.pem
  unwire capture -o cli.uwc --only '*.example.com' --skip '*/health*' --max-body 1MB --rotate 500MB`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.capture(cmd.Context(), f, args) },
	}
	f.modeFlags(cmd)
	f.recordingFlags(cmd)
	return cmd
}

// modeFlags are those of how traffic comes by.
func (f *captureFlags) modeFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address of the proxy")
	flags.StringVar(&f.reverse, "reverse", "", "be a server in front of this URL instead of a proxy")
	flags.StringArrayVar(&f.also, "also", nil, "with --reverse: be a server in front of this URL too, on a port of its own")
	flags.BoolVar(&f.transparent, "transparent", false, "run CMD in a network of its own, and capture all its TCP (Linux)")
	flags.BoolVar(&f.passive, "passive", false, "run CMD in a network of its own, record its packets, and open them with the keys that it logs (Linux)")
	flags.StringVar(&f.packets, "packets", "", "with --passive: keep the packets in this pcapng file, with the TLS secrets that open them")
	flags.StringVar(&f.upstreamCA, "upstream-ca", "", "PEM file of further CAs to trust for servers")
	flags.BoolVar(&f.upstreamInsecure, "upstream-insecure", false, "do not verify servers' certificates; each exchange says so")
}

// recordingFlags are those of what is recorded, and where.
func (f *captureFlags) recordingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "capture file (default capture-TIME.uwc); an existing capture is added to")
	flags.BoolVar(&f.json, "json", false, "events as JSON Lines on stdout (CMD's stdout goes to stderr)")
	flags.BoolVar(&f.keepSecrets, "keep-secrets", false, "record tokens, cookies and keys as they are")
	flags.StringSliceVar(&f.only, "only", nil, "record only these hosts (globs; the others pass undecrypted) or HOST/PATH globs")
	flags.StringSliceVar(&f.skip, "skip", nil, "let these hosts (globs) pass undecrypted, HOST/PATH globs unrecorded")
	flags.StringVar(&f.maxBody, "max-body", "", "store at most this much of a body per direction, such as 1MB; the exchange says so")
	flags.StringVar(&f.rotate, "rotate", "", "go on in NAME-2.uwc and so on after this size or time, such as 500MB or 1h")
	flags.StringVar(&f.keylog, "keylog", "", "write the TLS sessions' secrets to this file, for Wireshark")
}

func (a *app) capture(ctx context.Context, f captureFlags, argv []string) error {
	if f.out == "" {
		f.out = "capture-" + time.Now().Format("20060102-150405") + ".uwc"
	}
	if err := checkModes(f, argv); err != nil {
		return err
	}
	f.unsearched = new(unsearchedLog)
	a.recoverLeftOver(ctx, f.out)
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.passive {
		return a.capturePassive(ctx, f, argv)
	}
	token := ""
	if len(argv) > 0 && !f.transparent {
		// the only way to run a command that has a hook
		token = rand.Text()
	}
	rec, err := a.startRecorder(f, token)
	if err != nil {
		return err
	}
	watch := a.watchEndpoints(rec, f)
	stop := watch.start(ctx, rec.store.Current())
	defer surviveFileLimit()()
	code, runErr := a.serve(ctx, rec, f, argv)
	if len(argv) > 0 {
		a.signals.startGrace()
	}
	stop()
	if err := rec.close(a.drainTime()); err != nil && runErr == nil {
		if runErr = err; rec.failed.Load() {
			runErr = fail(exitInput, nil, "") // it was told when it happened
		}
	}
	watch.finish(context.WithoutCancel(ctx), rec.store.Files())
	a.captureSummary(context.WithoutCancel(ctx), f, rec, len(argv) > 0)
	if runErr != nil {
		return runErr
	}
	if code != 0 {
		return fail(code, nil, "")
	}
	return nil
}

// A recorder is a proxy with its listener and its store.
type recorder struct {
	store   *store.Series
	proxy   *mitm.Proxy
	ca      *ca.Authority
	keys    *keyLog // nil: none is written
	token   string  // of the proxy's control endpoints; "": it has none
	report  launch.Report
	addr    string
	reverse []reverseListener
	served  chan error
	failed  *atomic.Bool // recording has stopped, and that was said
}

// startRecorder starts a proxy. The token is for the hook of a command that is
// run with its traffic captured; "" if there is none.
func (a *app) startRecorder(f captureFlags, token string) (*recorder, error) {
	ln, err := listenLoopback(f.listen)
	if err != nil {
		return nil, err
	}
	rec, err := a.newRecorder(ln, f, token)
	if err != nil {
		ln.Close()
		return nil, err
	}
	go func() { rec.served <- rec.proxy.Serve(ln) }()
	if err := a.startReverse(rec, f); err != nil {
		return nil, errors.Join(err, rec.close(a.drainTime()))
	}
	return rec, nil
}

func (a *app) newRecorder(ln net.Listener, f captureFlags, token string) (*recorder, error) {
	opts := mitm.Options{Source: "proxy", Only: f.only, Skip: f.skip, UpstreamInsecure: f.upstreamInsecure, ControlToken: token}
	opts.RouteConflict = func(c mitm.RouteConflict) { a.sayRouteConflict(c, f.json) }
	if f.upstreamInsecure {
		a.say("unwire: warning: servers' certificates are not verified: whoever answers is recorded as the server")
	}
	if f.reverse != "" {
		u, err := reverseURL("--reverse", f.reverse)
		if err != nil {
			return nil, err
		}
		opts.Reverse, opts.Source = u, "reverse"
	}
	var err error
	if opts.UpstreamRoots, err = upstreamRoots(f.upstreamCA); err != nil {
		return nil, err
	}
	dir, err := configDir()
	if err != nil {
		return nil, err
	}
	ca, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		return nil, err
	}
	var failed atomic.Bool
	series, err := a.seriesOptions(f, &failed)
	if err != nil {
		return nil, err
	}
	if token != "" { // a program may send its environment somewhere
		series.Redactor = redact.New(redact.Options{Profile: proto.Profile(), Secrets: []string{token}})
	}
	keys, err := a.openKeyLog(f.keylog)
	if err != nil {
		return nil, err
	}
	store, err := store.CreateSeries(f.out, series)
	if err != nil {
		keys.Close()
		return nil, err
	}
	opts.CA, opts.Store, opts.KeyLog = ca, store, keys.writer()
	proxy, err := mitm.New(opts)
	if err != nil {
		keys.Close()
		store.Close()
		return nil, err
	}
	return &recorder{
		store: store, proxy: proxy, ca: ca, keys: keys, token: token,
		addr: ln.Addr().String(), served: make(chan error, 1), failed: &failed,
	}, nil
}

// seriesOptions says how the capture is written.
func (a *app) seriesOptions(f captureFlags, failed *atomic.Bool) (store.SeriesOptions, error) {
	o := store.SeriesOptions{Options: a.indexedWhenClosed(store.Options{
		KeepSecrets: f.keepSecrets,
		Unsearched:  f.unsearched.report(a, f.json),
		Failed: func(err error) {
			if failed != nil {
				failed.Store(true)
			}
			a.say("unwire: %s recording has stopped: %v", a.err.Red("error:"), err)
			kept := "; what was recorded before this stays readable"
			if errors.Is(err, captures.ErrGone) {
				kept = ""
			}
			a.say("unwire: hint: the traffic goes on, unrecorded%s", kept)
		},
	})}
	var err error
	if f.maxBody != "" {
		if o.MaxBody, err = parseSize(f.maxBody); err != nil {
			return o, usagef("--max-body: %v", err)
		}
	}
	if f.rotate != "" {
		if o.MaxBytes, o.MaxAge, err = parseRotate(f.rotate); err != nil {
			return o, usagef("--rotate: %v", err)
		}
		o.Rotated = func(path string) { a.say("unwire: goes on in %s", path) }
	}
	return o, nil
}

// listenLoopback listens, and refuses an address that others could reach.
func listenLoopback(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--listen wants HOST:PORT, not %q", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fail(exitUsage, fmt.Errorf("--listen %s is not a loopback address", addr),
			"the proxy decrypts traffic: it listens on 127.0.0.1 or ::1 only")
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fail(exitInput, err, "choose another port, or 127.0.0.1:0 for any free one")
	}
	return ln, nil
}

// upstreamRoots is the system's roots and those of a file; nil for none.
func upstreamRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fail(exitInput, fmt.Errorf("%s holds no PEM certificate", file), "")
	}
	return pool, nil
}

// serve waits for the command or for the end of ctx; the status is the command's.
func (a *app) serve(ctx context.Context, rec *recorder, f captureFlags, argv []string) (int, error) {
	scheme := "http://"
	if f.json {
		if err := a.printJSON(listeningEvent{1, "listening", scheme + rec.addr, "", rec.ca.CertFile()}); err != nil {
			return 0, err
		}
	}
	if err := a.sayReverse(rec, f.json); err != nil {
		return 0, err
	}
	if len(argv) > 0 {
		stdout := a.out.Writer
		if f.json {
			stdout = a.err.Writer
		}
		// Signals go to the command, and the recording ends when the command does.
		defer a.signals.childRuns()()
		code, err := a.launch(context.WithoutCancel(ctx), rec, f, launch.Options{
			Argv: argv, ProxyURL: scheme + rec.addr, CAFile: rec.ca.CertFile(), ControlToken: rec.token,
			Stdin: a.in, Stdout: stdout, Stderr: a.err.Writer, Report: &rec.report,
		})
		if err != nil {
			return code, fail(code, err, launchHint(err))
		}
		return code, nil
	}
	if !f.json {
		a.sayListening(rec, f)
	}
	select {
	case <-ctx.Done():
		return 0, nil
	case err := <-rec.served:
		return 0, err
	}
}

// sayRouteConflict warns of a second route for a connection: the hook announces
// each once, so somebody else has the token.
func (a *app) sayRouteConflict(c mitm.RouteConflict, json bool) {
	a.say("unwire: warning: a second address was announced for the connection from port %d: it goes to %s;\n%s is refused. Only the command knows the token for this: look at what it runs", c.Port, c.To, c.Refused)
	if json {
		// stdout may be gone: the traffic goes on
		_ = a.printJSON(routeConflictEvent{1, "route-conflict", c.Port, c.To, c.Refused})
	}
}

type routeConflictEvent struct {
	V       int    `json:"v"`
	Event   string `json:"event"`
	Port    int    `json:"port"`
	To      string `json:"to"`
	Refused string `json:"refused"`
}

type listeningEvent struct {
	V     int    `json:"v"`
	Event string `json:"event"`
	Proxy string `json:"proxy,omitempty"`
	URL   string `json:"url,omitempty"`
	CA    string `json:"ca"`
}

func (a *app) sayListening(rec *recorder, f captureFlags) {
	a.say("recording to %s; Ctrl-C ends it", f.out)
	if f.reverse != "" {
		a.say("point the client at http://%s, which stands in front of %s", rec.addr, f.reverse)
		return
	}
	a.say("proxy  http://%s", rec.addr)
	a.say("CA     %s", rec.ca.CertFile())
	a.say("SOCKS  socks5h://%s", rec.addr)
	a.say("try    HTTPS_PROXY=http://%s curl --cacert %s https://…", rec.addr, rec.ca.CertFile())
}

// drainTime is how long running streams may go on when recording ends.
func (a *app) drainTime() time.Duration {
	return a.signals.within(shutdownGrace, interruptedDrain)
}

// close lets running streams go on for drain, cuts them off, and closes the file.
func (r *recorder) close(drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	err := r.proxy.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // what still ran is marked incomplete
	}
	return errors.Join(err, r.store.Close(), r.keys.Close())
}

// captureSummary says what was recorded, and what to do if nothing was.
func (a *app) captureSummary(ctx context.Context, f captureFlags, rec *recorder, ran bool) {
	early := ""
	if rec.failed.Load() {
		early = ", up to where recording stopped"
	}
	n, err := a.sayEnded(ctx, f, rec.store.Files(), early)
	if err != nil {
		a.say("unwire: %v", err)
		return
	}
	if rec.report.NoToken {
		a.say("unwire: warning: the command started a Node program without UNWIRE_HOOK_TOKEN in its environment: the\nconnections of that program are not recorded")
	}
	switch {
	case early != "" || f.json:
	case n == 0 && ran && f.transparent:
		a.say("unwire: hint: the command opened no connection that speaks HTTP")
	case n == 0 && ran:
		a.say("unwire: hint: the command sent nothing through the proxy: %s", unreachedHint(rec.report))
	case ran && !f.transparent && (rec.report.Runtime == launch.Bun || rec.report.Runtime == launch.Deno):
		a.say("unwire: hint: %s", partlyReachedHint(rec.report.Runtime))
	}
}

// sayEnded says what was recorded, with a remark behind it, and counts it.
func (a *app) sayEnded(ctx context.Context, f captureFlags, files []string, remark string) (int, error) {
	n, unfinished, err := countExchanges(ctx, files)
	if err != nil {
		return n, err
	}
	if f.json {
		return n, a.printJSON(struct {
			V          int      `json:"v"`
			Event      string   `json:"event"`
			File       string   `json:"file"`
			Exchanges  int      `json:"exchanges"`
			Incomplete int      `json:"incomplete"`
			Files      []string `json:"files"`

			UnsearchedExchanges int   `json:"unsearched_exchanges"`
			UnsearchedBytes     int64 `json:"unsearched_bytes"`
		}{1, "ended", f.out, n, unfinished, files, f.unsearched.exchanges, f.unsearched.bytes})
	}
	where := f.out
	if len(files) > 1 {
		where = fmt.Sprintf("%d files, %s to %s", len(files), f.out, files[len(files)-1])
	}
	a.say("unwire: %s in %s (%d incomplete)%s", counted(n, "exchange"), where, unfinished, remark)
	if text := f.unsearched.summary(); text != "" {
		a.say("unwire: %s", text)
	}
	return n, nil
}

func countExchanges(ctx context.Context, files []string) (n, unfinished int, err error) {
	for _, file := range files {
		store, err := store.Open(file, store.ReadOptions{Profile: proto.Profile()})
		if err != nil {
			return n, unfinished, err
		}
		for ex, err := range store.Exchanges(ctx) {
			if err != nil {
				return n, unfinished, errors.Join(err, store.Close())
			}
			n++
			if ex.Outcome != captures.Complete {
				unfinished++
			}
		}
		if err := store.Close(); err != nil {
			return n, unfinished, err
		}
	}
	return n, unfinished, nil
}
