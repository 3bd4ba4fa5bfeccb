package launch_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"golang.org/x/net/dns/dnsmessage"

	"unwire/captures/need"
	"unwire/mitm/launch"
)

// runTransparent is run, in a namespace. It reports false where the system has
// no namespaces, after checking that the error says what is missing.
func (r *recorder) runTransparent(action string, argv []string, set func(*launch.Options)) (code int, stdout, stderr string, err error, can bool) {
	r.t.Helper()
	if argv == nil {
		argv = []string{os.Args[0]}
	}
	var out, errOut bytes.Buffer
	o := launch.Options{
		Argv: argv, CAFile: r.ca.CertFile, Env: os.Environ(),
		Stdout: &out, Stderr: &errOut,
	}
	if action != "" {
		o.Env = append(o.Env, "UNWIRE_TEST_CHILD="+action)
	}
	if set != nil {
		set(&o)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	code, err = launch.RunTransparent(ctx, o, launch.Namespace{
		Init:  []string{os.Args[0], "namespace-init"},
		Serve: r.proxy.ServeTransparent,
	})
	var unsupported *launch.UnsupportedError
	if errors.As(err, &unsupported) {
		if code != 126 || unsupported.Missing == "" || !strings.Contains(err.Error(), unsupported.Missing) {
			r.t.Errorf("status %d, %v: does not say what is missing", code, err)
		}
		r.t.Logf("this system has no namespaces: %v", err)
		return code, "", "", err, false
	}
	return code, out.String(), errOut.String(), err, true
}

// static builds the program that knows nothing of proxies.
func static(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("UNWIRE_TEST_STATIC"); path != "" {
		return path // made by the test that runs this one
	}
	dir, err := os.MkdirTemp("", "unwire-static-") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "static")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./testdata/static")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// resolver answers DNS queries for name, over UDP, with an address.
func resolver(t *testing.T, name string, addr [4]byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		var buf [1500]byte
		for {
			n, from, err := conn.ReadFrom(buf[:])
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			if strings.TrimSuffix(q.Name.String(), ".") == name && q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: addr},
				}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

func TestTransparent(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	dns := resolver(t, "made-up.example", [4]byte{192, 0, 2, 7})
	r := newRecorder(t, origin)
	code, out, stderr, err, can := r.runTransparent("", []string{
		static(t), origin.URL + "/tls", plain.URL + "/plain",
		strings.Replace(plain.URL, "127.0.0.1", "localhost", 1) + "/by-name",
		"lookup " + dns + " made-up.example", "lookup system localhost",
		"udp-refused 192.0.2.1:443",
		"inside 127.0.0.1:4321", "http://127.0.0.1:4321/inside",
	}, func(o *launch.Options) {
		o.Env = append(o.Env, "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1")
	})
	if !can {
		return
	}
	if code != 0 || err != nil {
		t.Fatalf("status %d, %v: %s", code, err, stderr)
	}
	want := "HTTP/2.0 hello /tls\nHTTP/1.1 hello /plain\nHTTP/1.1 hello /by-name\n" +
		"made-up.example 192.0.2.7\nlocalhost 127.0.0.1\n192.0.2.1:443 true\nHTTP/1.1 from inside\n"
	if out != want {
		t.Errorf("the program got\n%swant\n%s%s", out, want, stderr)
	}
	if got := r.recorded(); !slices.Equal(got, []string{"/by-name 1.1 complete", "/plain 1.1 complete", "/tls 2 complete"}) {
		t.Errorf("recorded %q", got)
	}
}

// TestTransparentQUIC has QUIC pass and be reported, or refused so that the client notices
// at once.
func TestTransparentQUIC(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	origin.StartTLS()
	defer origin.Close()
	config := origin.TLS.Clone()
	config.NextProtos = []string{"test"}
	server, err := quic.ListenAddr("127.0.0.1:0", config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	addr := server.Addr().String()
	program := static(t)
	for _, block := range []bool{false, true} {
		var reports []string // by one goroutine, which ends with the command
		var mu sync.Mutex
		began := time.Now()
		r := newRecorder(t, origin)
		code, out, stderr, err, can := r.runTransparent("", []string{program, "quic " + addr, "quic " + addr, "quic 192.0.2.1:443", origin.URL + "/x"}, func(o *launch.Options) {
			o.QUIC = launch.QUIC{Block: block, Report: func(to netip.AddrPort, refused bool) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, fmt.Sprint(to, refused))
			}}
		})
		if !can {
			return
		}
		want := fmt.Sprintf("quic %v\nquic %[1]v\nquic false\nHTTP/1.1 hello /x\n", !block)
		if code != 0 || err != nil || out != want {
			t.Fatalf("status %d, %v: got %q, want %q\n%s", code, err, out, want, stderr)
		}
		mu.Lock()
		if want := []string{fmt.Sprintf("%s %v", addr, block), "192.0.2.1:443 true"}; !slices.Equal(reports, want) {
			t.Errorf("reported %q, want %q", reports, want)
		}
		mu.Unlock()
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("it took %v", d)
		}
	}
}

// TestHTTP3 has a client of HTTP/3 reach its server, which is reported, or go back to HTTP/2
// at once, which is recorded.
func TestHTTP3(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	addr := origin.Listener.Addr().String()
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http3.Server{Handler: http.HandlerFunc(hello), TLSConfig: http3.ConfigureTLSConfig(origin.TLS.Clone())}
	go func() { _ = server.Serve(conn) }()
	defer server.Close()
	defer conn.Close()
	roots := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := []string{static(t), "h3 " + origin.URL + "/one", "h3 " + origin.URL + "/two"}
	for _, passive := range []bool{false, true} {
		for _, block := range []bool{false, true} {
			t.Run(fmt.Sprintf("passive=%v,block=%v", passive, block), func(t *testing.T) {
				var mu sync.Mutex
				var reports []string
				options := launch.QUIC{Block: block, Report: func(to netip.AddrPort, refused bool) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, fmt.Sprint(to, " ", refused))
				}}
				want, recorded := "HTTP/3.0 hello /one\nHTTP/3.0 hello /two\n", []string{}
				if block {
					want, recorded = "HTTP/2.0 hello /one\nHTTP/2.0 hello /two\n", []string{"/one 2 complete", "/two 2 complete"}
				}
				began := time.Now()
				if passive {
					var out, stderr bytes.Buffer
					code, n, err := launch.RunPassive(t.Context(), launch.Options{Argv: argv, Env: append(os.Environ(), "SSL_CERT_FILE="+roots), Stdout: &out, Stderr: &stderr, QUIC: options}, launch.Passive{
						Init: []string{os.Args[0], "namespace-init"}, KeyLog: filepath.Join(t.TempDir(), "keys.txt"), Packet: func(time.Time, []byte, int) {},
					})
					if unsupported := (*launch.UnsupportedError)(nil); errors.As(err, &unsupported) {
						return
					}
					if code != 0 || err != nil || out.String() != want || n.Recorded == 0 {
						t.Errorf("status %d, %v: got %q, want %q\n%s", code, err, out.String(), want, stderr.String())
					}
				} else {
					r := newRecorder(t, origin)
					code, out, stderr, err, can := r.runTransparent("", argv, func(o *launch.Options) { o.QUIC = options })
					if !can {
						return
					}
					if code != 0 || err != nil || out != want {
						t.Errorf("status %d, %v: got %q, want %q\n%s", code, err, out, want, stderr)
					}
					if got := r.recorded(); !slices.Equal(got, recorded) && len(got)+len(recorded) > 0 {
						t.Errorf("recorded %q, want %q", got, recorded)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if want := []string{fmt.Sprint(addr, " ", block)}; !slices.Equal(reports, want) {
					t.Errorf("reported %q, want %q", reports, want)
				}
				if d := time.Since(began); d > 30*time.Second {
					t.Errorf("it took %v", d)
				}
			})
		}
	}
}

// TestTransparentProcess records the programs that run in the namespace.
func TestTransparentProcess(t *testing.T) {
	var r *recorder
	answer := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// The program lives until it is found.
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if slices.ContainsFunc(r.programs(), func(s string) bool { return strings.HasPrefix(s, req.URL.Path+" static ") }) {
				break
			}
		}
		hello(w, req)
	})
	origin := httptest.NewUnstartedServer(answer)
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	plain := httptest.NewServer(answer)
	defer plain.Close()
	r = newRecorder(t, origin)
	code, out, stderr, err, can := r.runTransparent("", []string{
		"sh", "-c", `"$0" "$@" & echo $!; wait $!`, static(t), origin.URL + "/tls", plain.URL + "/plain",
	}, nil)
	if !can {
		return
	}
	lines := strings.Fields(out)
	if code != 0 || err != nil || len(lines) == 0 {
		t.Fatalf("status %d, %v, %q: %s", code, err, out, stderr)
	}
	want := []string{"/plain static " + lines[0], "/tls static " + lines[0]}
	if got := r.programs(); !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestTransparentCurl(t *testing.T) {
	path := need.Curl(t)
	origin := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	r := newRecorder(t, origin)
	code, out, stderr, err, can := r.runTransparent("", []string{path, "-sS", "--noproxy", "*", origin.URL + "/curl"}, nil)
	if !can {
		return
	}
	if code != 0 || err != nil || out != "hello /curl" {
		t.Fatalf("status %d, %v, %q: %s", code, err, out, stderr)
	}
	if got := r.recorded(); len(got) != 1 || !strings.HasPrefix(got[0], "/curl ") {
		t.Errorf("recorded %q", got)
	}
}

// TestTransparentRuntimes: Bun takes neither the hook nor, for http2 and https,
// a proxy; Deno takes the hook, but not in its workers.
func TestTransparentRuntimes(t *testing.T) {
	origin, plain := bothOrigins(t)
	for name, args := range map[string][]string{
		"bun/bin/bun": nil,
		"deno/deno":   {"run", "-A"},
	} {
		t.Run(name, func(t *testing.T) {
			argv := append([]string{installed(t, name)}, args...)
			r := newRecorder(t, origin)
			code, out, stderr, err, can := r.runTransparent("", append(argv, "testdata/clients.mjs", origin.URL, plain.URL), nil)
			if !can {
				return
			}
			wantClients(t, code, out, stderr, err)
			if got := r.recorded(); len(got) != 6 {
				t.Errorf("recorded %q, want six", got)
			}
		})
	}
}

func TestTransparentStatus(t *testing.T) {
	r := newRecorder(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o755); err != nil {
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
		"not executable": {"", []string{plain}, 126, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr, err, can := r.runTransparent(c.action, c.argv, nil)
			if can && (code != c.code || (err != nil) != c.fails) {
				t.Errorf("status %d, %v, want %d: %s", code, err, c.code, stderr)
			}
		})
	}
}

func TestTransparentStdin(t *testing.T) {
	r := newRecorder(t)
	_, out, _, err, can := r.runTransparent("cat", nil, func(o *launch.Options) { o.Stdin = strings.NewReader("through") })
	if can && (err != nil || out != "through") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTransparentPassesSignalsOn(t *testing.T) {
	r := newRecorder(t)
	pr, pw := io.Pipe()
	ready, read := make(chan struct{}), make(chan struct{})
	var said bytes.Buffer
	go func() {
		defer close(read)
		line := make([]byte, len("ready\n"))
		if _, err := io.ReadFull(pr, line); err != nil {
			return
		}
		close(ready)
		_, _ = io.Copy(&said, pr)
	}()
	go func() {
		select {
		case <-ready:
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		case <-t.Context().Done():
		}
	}()
	code, _, _, err, can := r.runTransparent("await", nil, func(o *launch.Options) { o.Stdout = pw })
	pw.Close()
	<-read
	if can && (code != 42 || err != nil || said.String() != "terminated\n") {
		t.Errorf("status %d, %v, %q", code, err, said.String())
	}
}

func TestTransparentTermination(t *testing.T) {
	r := newRecorder(t)
	started := time.Now()
	// The process in between is told to terminate, as by the end of the context.
	code, _, _, err, can := r.runTransparent("", []string{"sh", "-c", "kill -TERM $PPID; exec sleep 60"}, nil)
	if can && (code != 128+15 || err != nil || time.Since(started) > 30*time.Second) {
		t.Errorf("status %d, %v, after %v", code, err, time.Since(started))
	}
}

// TestTransparentRights: who is not root gains no rights by running in a
// namespace of their own.
func TestTransparentRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root keeps its rights; TestTransparentUnprivileged runs this as somebody else")
		return
	}
	r := newRecorder(t)
	_, out, stderr, err, can := r.runTransparent("rights", nil, nil)
	if can && (err != nil || out != "CapInh \nCapPrm \nCapEff \nCapAmb \n") {
		t.Errorf("%v, %q: %s", err, out, stderr)
	}
}

// TestTransparentUnprivileged runs the tests above without root's rights.
func TestTransparentUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: the other tests have shown it")
		return
	}
	need.OtherUser(t)
	dir, err := os.MkdirTemp("", "unwire-nobody-") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "launch.test")
	for _, err := range []error{os.WriteFile(binary, self, 0o755), os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o700), os.Chown(filepath.Join(dir, "tmp"), need.Nobody, need.Nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	skipped := "^TestTransparentRuntimes$"
	if _, err := need.CheckCurl(); err != nil {
		t.Log("without TestTransparentCurl:", err)
		skipped += "|^TestTransparentCurl$"
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^Test(Transparent|RunPassive|PassiveEnvironment)", "-test.skip="+skipped, "-test.v", "-test.timeout=60s")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+filepath.Join(dir, "tmp"), "UNWIRE_TEST_STATIC="+static(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: need.Nobody, Gid: need.Nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestTransparentRights")) || bytes.Contains(out, []byte("--- SKIP")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTransparentUnsupported: where no namespace can be had, the error says so
// and the command is not run. The system is made one by the limits of an outer
// namespace.
func TestTransparentUnsupported(t *testing.T) {
	r := newRecorder(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "UNWIRE_TEST_CHILD=unsupported "+r.ca.CertFile)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Logf("no user namespaces at all, as the other tests have shown: %v", err)
		return
	}
	const why = "the system does not allow users to create namespaces (user.max_net_namespaces is 0): "
	transparent, passive, _ := strings.Cut(string(out), "\n")
	if err != nil || !strings.HasPrefix(transparent, "126 launch: transparent capture: "+why) || !strings.HasPrefix(passive, "126 launch: passive capture: "+why) {
		t.Errorf("%v: %s", err, out)
	}
}
