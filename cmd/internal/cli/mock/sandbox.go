package mock

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/mitm"
	"unwire/mitm/ca"
	"unwire/mitm/launch"
	"unwire/mitm/process"
	"unwire/mitm/rewrite"
	"unwire/replay/clientprobe"
)

// A sandbox runs a client program so that a mock server answers all its requests, if possible in an
// isolated network.
type sandbox struct {
	// a is the running program.
	a *app.App

	// argv is the client's command line. {url} and {https} in it are replaced by the mock's URL.
	argv []string

	// authority is the CA that the client must trust.
	authority *ca.Authority

	// noNamespace means that no network namespace is used, because the user asked for that or the system
	// does not permit it.
	noNamespace bool

	// isolated is set by a run that used a network namespace.
	isolated bool

	// reason says why the client is not isolated.
	reason string
}

// run runs the client once, and returns its exit status. An interrupt by the user is an error that ends
// the whole probe.
func (s *sandbox) run(ctx context.Context, r clientprobe.Run) (int, error) {
	exit, err := s.start(ctx, r)
	if s.a.Signals.Caught() {
		return exit, app.Fail(app.ExitInterrupted, errors.New("interrupted"), "")
	}
	if err != nil && exit >= statusNotExecutable && ctx.Err() == nil {
		return exit, app.Fail(exit, err, "check that CMD can be run: give its path, such as ./client")
	}
	return exit, err
}

// statusNotExecutable is the lowest exit status with which a shell reports that a command cannot be run.
const statusNotExecutable = 126

// start runs the client once with a new, empty home folder, in a network namespace if possible, and
// returns its exit status.
func (s *sandbox) start(ctx context.Context, r clientprobe.Run) (int, error) {
	home, err := os.MkdirTemp("", "unwire-home-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(home) //nolint:errcheck // a temporary folder
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	go func() { _ = r.Server.Serve(ln) }()
	addr := ln.Addr().String()
	o := launch.Options{
		Begin: s.a.Signals.ChildRuns, CAFile: s.authority.CertFile, Env: environment(home),
		QUIC: launch.QUIC{Block: true}, Stdout: r.Stdout, Stderr: r.Stderr,
	}

	// A client whose server can be configured needs no proxy.
	for _, arg := range s.argv {
		o.Argv = append(o.Argv, strings.NewReplacer("{url}", "http://"+addr, "{https}", "https://"+addr).Replace(arg))
	}
	if !s.noNamespace {
		exit, err := runIsolated(ctx, o, r)
		var unsupported *launch.UnsupportedError
		if !errors.As(err, &unsupported) {
			s.isolated = true
			return exit, err
		}
		s.noNamespace, s.reason = true, unsupported.Error()
	}
	if s.reason == "" {
		s.reason = "--no-namespace is set"
	}
	return s.runProxied(ctx, o, home, addr)
}

// runIsolated runs the client in a network namespace in which the mock accepts all connections.
func runIsolated(ctx context.Context, o launch.Options, r clientprobe.Run) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	serve := func(ln net.Listener, _ *process.Sockets) {
		// An error ends the run, which the client notices.
		_ = r.Server.Serve(ln)
	}
	return launch.RunTransparent(ctx, o, launch.Namespace{Init: []string{self, "namespace-init"}, Serve: serve})
}

// runProxied runs the client with proxy variables. The proxy sends all requests to the mock, which
// listens at addr.
func (s *sandbox) runProxied(ctx context.Context, o launch.Options, home, addr string) (int, error) {
	// A proxy records; what it records is thrown away with the home folder.
	out, err := store.Create(filepath.Join(home, ".unwire-probe.uwc"), store.Options{})
	if err != nil {
		return 0, err
	}
	defer out.Close() //nolint:errcheck // nobody reads it
	roots := x509.NewCertPool()
	roots.AddCert(s.authority.Certificate)
	token := rand.Text()
	proxy, err := mitm.New(mitm.Options{CA: s.authority, Store: out, UpstreamRoots: roots, ControlToken: token, Rewrite: everyHost("https://" + addr)})
	if err != nil {
		return 0, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	go func() { _ = proxy.Serve(ln) }()
	defer func() {
		// Requests that the client has left are cut off.
		down, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		_ = proxy.Shutdown(down)
	}()
	o.ProxyURL, o.ControlToken = "http://"+ln.Addr().String(), token
	return launch.Run(ctx, o)
}

// An everyHost is a rewriting rule that sends the requests for all hosts to one server, whose URL it is.
type everyHost string

// Maps returns true.
func (everyHost) Maps() bool { return true }

// Server returns the URL of the server for a request, whatever its host.
func (h everyHost) Server(string, string) string { return string(h) }

// Begin returns nil: requests and responses are not changed.
func (everyHost) Begin(*captures.Exchange, rewrite.Request) rewrite.Exchange { return nil }

// environment returns the environment variables for a client whose home and temporary folder is home.
func environment(home string) []string {
	own := map[string]string{
		"HOME": home, "USERPROFILE": home, "TMPDIR": home,
		"XDG_CONFIG_HOME": filepath.Join(home, ".config"), "XDG_CACHE_HOME": filepath.Join(home, ".cache"),
		"XDG_DATA_HOME": filepath.Join(home, ".local", "share"), "XDG_STATE_HOME": filepath.Join(home, ".local", "state"),
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return own[name] != ""
	})
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// explain adds a hint to the error that the unedited runs of the client did not work.
func (s *sandbox) explain(err error) error {
	switch {
	case errors.Is(err, clientprobe.ErrBaseline) && !s.isolated:
		return app.Fail(app.ExitInput, err, fmt.Sprintf("CMD is not isolated (%s), and may ignore proxy variables: write {url} or {https} into ARGS, which stand for the URL at which probe-client answers", s.reason))
	case errors.Is(err, clientprobe.ErrBaseline):
		return app.Fail(app.ExitInput, err, "run 'unwire capture -- CMD' to check that CMD sends requests; probe-client runs CMD in an empty home folder, so pass credentials in environment variables")
	}
	return err
}
