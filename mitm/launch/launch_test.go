//go:build unix

package launch_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/mitm"
	"unwire/mitm/ca"
	"unwire/mitm/launch"
)

// TestMain lets the test binary be the command that is launched.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "namespace-init" {
		os.Exit(launch.NamespaceInit(os.Args[2:], nil))
	}
	switch action, arg, _ := strings.Cut(os.Getenv("UNWIRE_TEST_CHILD"), " "); action {
	case "":
		// Tests may be run with signals ignored, as nohup and shells do in the background,
		// which the commands would inherit. A signal that is caught has its default again in
		// a child.
		for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
		os.Exit(m.Run())
	case "environ":
		_ = json.NewEncoder(os.Stdout).Encode(os.Environ())
	case "read-bundle":
		data, err := os.ReadFile(os.Getenv(arg))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = os.Stdout.Write(data)
	case "rights":
		data, err := os.ReadFile("/proc/self/status")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for line := range strings.Lines(string(data)) {
			if name, value, _ := strings.Cut(line, ":"); name == "CapInh" || name == "CapEff" || name == "CapPrm" || name == "CapAmb" {
				fmt.Print(name, " ", strings.TrimLeft(strings.TrimSpace(value), "0"), "\n")
			}
		}
	case "unsupported":
		if err := os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		code, err := launch.RunTransparent(context.Background(), launch.Options{Argv: []string{"echo", "it ran"}, CAFile: arg},
			launch.Namespace{Init: []string{os.Args[0], "namespace-init"}})
		fmt.Println(code, err)
		code, _, err = launch.RunPassive(context.Background(), launch.Options{Argv: []string{"echo", "it ran"}},
			launch.Passive{Init: []string{os.Args[0], "namespace-init"}, KeyLog: arg + ".keys", Packet: func(time.Time, []byte, int) {}})
		fmt.Println(code, err)
	case "exit":
		var code int
		_, _ = fmt.Sscan(arg, &code)
		os.Exit(code)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "await":
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1) // not all: the runtime sends itself SIGURG
		fmt.Println("ready")
		fmt.Println(<-caught)
		os.Exit(42)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	}
}

// controlToken is the token of every recorder.
const controlToken = "made-up-control-token-of-the-tests"

// A recorder is a running proxy.
type recorder struct {
	t     *testing.T
	store *store.Store
	ca    *ca.Authority
	proxy *mitm.Proxy
	url   string
}

func newRecorder(t *testing.T, origins ...*httptest.Server) *recorder {
	t.Helper()
	dir := t.TempDir()
	ca, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := store.Create(filepath.Join(dir, "test.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for _, o := range origins {
		roots.AddCert(o.Certificate())
	}
	p, err := mitm.New(mitm.Options{CA: ca, Store: store, UpstreamRoots: roots, ControlToken: controlToken})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx)
		_ = store.Close()
	})
	return &recorder{t, store, ca, p, "http://" + ln.Addr().String()}
}

// run launches argv, or the test binary as a child that does what action says.
func (r *recorder) run(action string, argv []string, set func(*launch.Options)) (code int, stdout, stderr string, err error) {
	r.t.Helper()
	if argv == nil {
		argv = []string{os.Args[0]}
	}
	var out, errOut bytes.Buffer
	o := launch.Options{
		Argv: argv, ProxyURL: r.url, CAFile: r.ca.CertFile, ControlToken: controlToken,
		Env:    append(os.Environ(), "UNWIRE_TEST_CHILD="+action),
		Stdout: &out, Stderr: &errOut,
	}
	if set != nil {
		set(&o)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	code, err = launch.Run(ctx, o)
	return code, out.String(), errOut.String(), err
}

func TestEnvironment(t *testing.T) {
	r := newRecorder(t)
	code, out, _, err := r.run("environ", nil, func(o *launch.Options) {
		o.Env = append(o.Env, "NO_PROXY=localhost", "https_proxy=http://other:1", "NODE_OPTIONS=--max-old-space-size=100", "KEPT=1")
	})
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	var list []string
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	env := make(map[string]string)
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		env[name] = value
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if env[name] != r.url {
			t.Errorf("%s=%q, want %q", name, env[name], r.url)
		}
	}
	if env["NO_PROXY"] != "" || env["no_proxy"] != "" || env["KEPT"] != "1" {
		t.Errorf("NO_PROXY=%q, no_proxy=%q, KEPT=%q", env["NO_PROXY"], env["no_proxy"], env["KEPT"])
	}
	if o := env["NODE_OPTIONS"]; !strings.HasPrefix(o, `--require "`) || !strings.HasSuffix(o, `hook.cjs" --max-old-space-size=100`) {
		t.Errorf("NODE_OPTIONS=%s", o)
	}
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"} {
		if env[name] == "" {
			t.Errorf("%s is not set", name)
		}
		if _, err := os.Stat(filepath.Dir(env[name])); !os.IsNotExist(err) {
			t.Errorf("%s is left behind: %v", env[name], err)
		}
	}
}

// TestBundle: the command trusts the CA, and what it trusted before.
func TestBundle(t *testing.T) {
	r := newRecorder(t)
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	file := filepath.Join(t.TempDir(), "corporate.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		code, out, stderr, err := r.run("read-bundle "+name, nil, func(o *launch.Options) { o.Env = append(o.Env, name+"="+file) })
		if err != nil || code != 0 {
			t.Fatal(code, err, stderr)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(out))
		for _, c := range []*x509.Certificate{r.ca.Certificate, other.Certificate()} {
			if _, err := c.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestExitStatus(t *testing.T) {
	r := newRecorder(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		action string
		argv   []string
		code   int
		fails  bool
	}{
		"success":        {"exit 0", nil, 0, false},
		"failure":        {"exit 3", nil, 3, false},
		"signal":         {"die", nil, 128 + 9, false},
		"not found":      {"", []string{"unwire-no-such-command"}, 127, true},
		"no such file":   {"", []string{"./no/such/file"}, 127, true},
		"not executable": {"", []string{plain}, 126, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr, err := r.run(c.action, c.argv, nil)
			if code != c.code || (err != nil) != c.fails {
				t.Errorf("status %d, %v, want %d: %s", code, err, c.code, stderr)
			}
		})
	}
}

func TestStdin(t *testing.T) {
	r := newRecorder(t)
	_, out, _, err := r.run("cat", nil, func(o *launch.Options) { o.Stdin = strings.NewReader("through") })
	if err != nil || out != "through" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestSignalsArePassedOn sends this process signals, which its command gets.
func TestSignalsArePassedOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		r := newRecorder(t)
		pr, pw := io.Pipe()
		ready := make(chan struct{})
		var said bytes.Buffer
		read := make(chan struct{})
		go func() {
			defer close(read)
			line := make([]byte, len("ready\n"))
			_, _ = io.ReadFull(pr, line)
			close(ready)
			_, _ = io.Copy(&said, pr)
		}()
		go func() {
			<-ready
			_ = syscall.Kill(os.Getpid(), sig)
		}()
		code, _, _, err := r.run("await", nil, func(o *launch.Options) { o.Stdout = pw })
		pw.Close()
		<-read
		if code != 42 || err != nil || said.String() != sig.String()+"\n" {
			t.Errorf("%v: status %d, %v, %q", sig, code, err, said.String())
		}
	}
}

func TestContextEndsTheCommand(t *testing.T) {
	r := newRecorder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pr, pw := io.Pipe()
	go func() {
		_, _ = io.ReadFull(pr, make([]byte, len("ready\n")))
		cancel()
	}()
	code, err := launch.Run(ctx, launch.Options{Argv: []string{"sh", "-c", "echo ready; exec sleep 60"}, ProxyURL: r.url, CAFile: r.ca.CertFile, ControlToken: controlToken, Stdout: pw})
	if code != 128+15 || err != nil {
		t.Errorf("status %d, %v", code, err)
	}
}

func TestProxyThatIsNone(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	r := newRecorder(t)
	for _, u := range []string{other.URL, "socks5://127.0.0.1:1", "http://127.0.0.1:1"} {
		r.url = u
		if _, _, _, err := r.run("exit 0", nil, nil); err == nil || !strings.HasPrefix(err.Error(), "launch: ") || !strings.Contains(err.Error(), "proxy") {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// recorded lists what was recorded, as "METHOD PATH HTTP-version outcome".
func (r *recorder) recorded() []string {
	r.t.Helper()
	return r.list(func(ex *captures.Exchange) string { return fmt.Sprint(ex.HTTP, " ", ex.Outcome) })
}

// programs returns the path of each exchange and the program that made it.
func (r *recorder) programs() []string {
	r.t.Helper()
	return r.list(func(ex *captures.Exchange) string { return fmt.Sprint(ex.Process.Name, " ", ex.Process.PID) })
}

// list returns the path of each exchange and what describe returns for it.
func (r *recorder) list(describe func(*captures.Exchange) string) []string {
	r.t.Helper()
	if err := r.store.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for ex, err := range r.store.Exchanges(r.t.Context()) {
		if err != nil {
			r.t.Fatal(err)
		}
		_, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(ex.URL, "https://"), "http://"), "/")
		out = append(out, fmt.Sprintf("/%s %s", path, describe(ex)))
	}
	slices.Sort(out)
	return out
}

func hello(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "hello "+r.URL.Path)
}

// fetchVersion is the HTTP version that a Node's fetch prefers: since 26 it is 2.
func fetchVersion(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path, "-p", "process.versions.node.split('.')[0] >= 26 ? 2 : 1.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// installed returns the path of a program of testdata/runtimes, or skips the test.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata/runtimes/node_modules", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("testdata/runtimes/node_modules is missing or incomplete: run 'make test-deps' (Linux on x86-64)")
	}
	return need.Program(t, path, "it with 'make test-deps' (Linux on x86-64)", "--version")
}

// TestNodeHook runs programs that use each of Node's clients, none of which
// takes a proxy from the environment.
func TestNodeHook(t *testing.T) {
	origin, plain := bothOrigins(t)
	for _, version := range []string{"installed", "22", "24", "26"} {
		t.Run(version, func(t *testing.T) {
			var path string
			if version == "installed" {
				path = need.Node(t)
			} else {
				path = installed(t, "node"+version+"/bin/node")
			}
			r := newRecorder(t, origin)
			code, out, stderr, err := r.run("", []string{path, "testdata/clients.mjs", origin.URL, plain.URL}, func(o *launch.Options) {
				dir := filepath.Join(t.TempDir(), `with space`) // the hook's path needs quoting
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				t.Setenv("TMPDIR", dir)
			})
			wantClients(t, code, out, stderr, err)
			wantRecorded := []string{
				"/child 2 complete", "/fetch " + fetchVersion(t, path) + " complete", "/http 1.1 complete",
				"/http2 2 complete", "/https 1.1 complete", "/worker 2 complete",
			}
			if got := r.recorded(); !slices.Equal(got, wantRecorded) {
				t.Errorf("recorded %q, want %q", got, wantRecorded)
			}
		})
	}
}

// bothOrigins starts the servers that testdata/clients.mjs calls: one with TLS
// and both versions of HTTP, one without TLS.
func bothOrigins(t *testing.T) (secure, plain *httptest.Server) {
	t.Helper()
	secure = httptest.NewUnstartedServer(http.HandlerFunc(hello))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	secure.TLS.NextProtos = []string{"h2", "http/1.1"}
	plain = httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(plain.Close)
	return secure, plain
}

// wantClients checks how a run of testdata/clients.mjs ended.
func wantClients(t *testing.T, code int, out, stderr string, err error) {
	t.Helper()
	if err != nil || code != 0 {
		t.Fatalf("status %d, %v: %s", code, err, stderr)
	}
	want := "http2 hello /http2\nhttps hello /https\nfetch hello /fetch\nhttp hello /http\nworker hello /worker\nchild hello /child\n"
	if out != want {
		t.Errorf("the program got\n%swant\n%s%s", out, want, stderr)
	}
}

// TestNodeHookLeavesOthersAlone: a protocol that is not HTTP passes as it is, and a
// client that speaks to the proxy by itself is recorded once.
func TestNodeHookLeavesOthersAlone(t *testing.T) {
	path := need.Node(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 ready\n")
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	r := newRecorder(t)
	code, out, stderr, err := r.run("", []string{path, "testdata/others.mjs", ln.Addr().String(), plain.URL}, nil)
	if err != nil || code != 0 {
		t.Fatalf("status %d, %v: %s", code, err, stderr)
	}
	if want := "220 ready\nHELO\nproxied hello /proxied\n"; out != want {
		t.Errorf("the program got %q, want %q", out, want)
	}
	if got := r.recorded(); !slices.Equal(got, []string{"//" + ln.Addr().String() + "  complete", "/proxied 1.1 complete"}) {
		t.Errorf("recorded %q", got)
	}
}

// TestOtherPrograms: programs that know nothing of the proxy use it and trust
// its CA by their environment alone.
func TestOtherPrograms(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	for name, argv := range map[string][]string{
		"curl":    {"curl", "-sS", origin.URL + "/curl"},
		"python3": {"python3", "-c", "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')", origin.URL + "/python3"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "curl" {
				need.Curl(t)
			} else {
				need.Python(t, "ssl", "urllib.request")
			}
			r := newRecorder(t, origin)
			code, out, stderr, err := r.run("", argv, nil)
			if code != 0 || err != nil || out != "hello /"+name {
				t.Fatalf("status %d, %v, %q: %s", code, err, out, stderr)
			}
			if got := r.recorded(); len(got) != 1 || !strings.HasPrefix(got[0], "/"+name) || !strings.HasSuffix(got[0], "complete") {
				t.Errorf("recorded %q", got)
			}
		})
	}
}

// A signal that comes while the command is being prepared reaches the command: here
// while the proxy is asked where the hook is to connect to.
func TestSignalBeforeStart(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond) // the signal is caught meanwhile
		_, _ = io.WriteString(w, `{"addr":"127.0.0.1:9"}`)
	}))
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	code, err := launch.Run(ctx, launch.Options{
		Argv: []string{"sleep", "30"}, ProxyURL: proxy.URL, CAFile: newRecorder(t).ca.CertFile, ControlToken: controlToken,
	})
	if want := 128 + int(syscall.SIGUSR1); code != want || err != nil {
		t.Errorf("status %d, %v, want %d", code, err, want)
	}
}
