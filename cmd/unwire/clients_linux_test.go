package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/mitm/ca"
)

// A loggedServer logs what it gets and what it answers: requests with their answers, the
// messages of WebSockets, and the bytes of other connections.
type loggedServer struct {
	url, caFile string
	raw         map[string]string // addresses of servers that are not HTTP, by name

	mu  sync.Mutex
	log []string
}

func (s *loggedServer) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, line)
}

// take returns the log in order of its text, and begins a new one.
func (s *loggedServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	slices.Sort(log)
	return log
}

func requestLine(method, uri string, status int, up, down []byte) string {
	return fmt.Sprintf("%s %s %d: %d bytes up %.4x, %d down %.4x", method, uri, status, len(up), sha256.Sum256(up), len(down), sha256.Sum256(down))
}

// A loggedWriter keeps what is answered.
type loggedWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *loggedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *loggedWriter) Write(p []byte) (int, error) {
	w.body.Write(p)
	return w.ResponseWriter.Write(p)
}

func (w *loggedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newLoggedServer(t *testing.T) *loggedServer {
	t.Helper()
	dir := t.TempDir()
	authority, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("localhost")
	if err != nil {
		t.Fatal(err)
	}
	s := &loggedServer{caFile: authority.CertFile, raw: make(map[string]string)}
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %q", r.Method, body)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("a large file\n", 100_000))
	})
	s.serveRegistry(mux)
	s.serveModules(t, mux)
	s.serveRepository(t, mux)
	all := http.NewServeMux()
	all.HandleFunc("/websocket", s.websocket)
	all.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		l := &loggedWriter{ResponseWriter: w, status: http.StatusOK}
		var up bytes.Buffer
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &up), r.Body}
		method := r.Method
		mux.ServeHTTP(l, r)
		_, _ = io.Copy(io.Discard, r.Body)
		s.add(requestLine(method, r.RequestURI, l.status, up.Bytes(), l.body.Bytes()))
	})
	web := httptest.NewUnstartedServer(all)
	web.EnableHTTP2 = true
	web.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"h2", "http/1.1", "http/1.0"}}
	web.StartTLS()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s.url = strings.Replace(web.URL, "127.0.0.1", "localhost", 1)
	s.raw["mail"] = s.serveRaw(t, leaf, "220 mail\r\n", mailAnswers)
	s.raw["broker"] = s.serveRaw(t, leaf, "", func() func(*bufio.Reader) string { return brokerAnswer })
	return s
}

// websocket answers each message with the same.
func (s *loggedServer) websocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1, InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	var messages [2][]byte
	for {
		kind, p, err := c.Read(r.Context())
		if err != nil {
			break
		}
		for dir := range messages {
			messages[dir] = fmt.Appendf(messages[dir], "%d %d %s\n", kind, len(p), p)
		}
		if c.Write(r.Context(), kind, p) != nil {
			break
		}
	}
	s.add(requestLine("WebSocket", r.RequestURI, 0, messages[captures.Up], messages[captures.Down]))
}

// serveRegistry is a registry of npm's with one package.
func (s *loggedServer) serveRegistry(mux *http.ServeMux) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{{"package/package.json", `{"name":"held","version":"1.0.0"}`}, {"package/index.js", "module.exports = 'from the registry'\n"}} {
		_ = w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})
		_, _ = io.WriteString(w, f[1])
	}
	_, _ = w.Close(), z.Close()
	mux.HandleFunc("GET /npm/held", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": "held", "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{"name": "held", "version": "1.0.0", "dist": map[string]string{"tarball": s.url + "/npm/held-1.0.0.tgz"}}},
		})
	})
	mux.HandleFunc("GET /npm/held-1.0.0.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed.Bytes()) })
}

// serveModules is a module proxy of Go's with one module.
func (s *loggedServer) serveModules(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	const mod = "module held.example/m\n"
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, text := range map[string]string{"go.mod": mod, "m.go": "package m\n"} {
		w, err := z.Create("held.example/m@v1.0.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"v1.0.0.info": []byte(`{"Version":"v1.0.0","Time":"2026-01-02T03:04:05Z"}`), "v1.0.0.mod": []byte(mod), "v1.0.0.zip": packed.Bytes(), "list": []byte("v1.0.0\n"),
	} {
		mux.HandleFunc("GET /go/held.example/m/@v/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
}

// serveRepository serves a repository by git's own server.
func (s *loggedServer) serveRepository(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		return // its test is skipped
	}
	root := t.TempDir()
	script := `set -e; cd "$1"; git init -q work; cd work
for i in $(seq 200); do echo "line $i of the file" >>file; done; head -c 300000 /dev/zero | tr '\0' x >large
git add . && git -c user.name=test -c user.email=test@example.com commit -q -m first
git clone -q --bare . ../repository.git`
	if out, err := exec.Command("sh", "-c", script, "sh", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/git/", http.StripPrefix("/git", &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard,
		InheritEnv: []string{"PATH", "HOME"},
	}))
}

// serveRaw serves connections in TLS that are not HTTP. For each, answers makes a function
// that reads from the client and returns what it is answered, "" at the end.
func (s *loggedServer) serveRaw(t *testing.T, leaf *tls.Certificate, greeting string, answers func() func(*bufio.Reader) string) string {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*leaf}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				var up bytes.Buffer
				down := []byte(greeting)
				_, _ = conn.Write(down)
				r := bufio.NewReaderSize(io.TeeReader(conn, &up), 16)
				answer := answers()
				for {
					text := answer(r)
					if text == "" {
						break
					}
					down = append(down, text...)
					_, _ = io.WriteString(conn, text)
				}
				_, _ = io.Copy(io.Discard, r)
				s.add(requestLine("tls", "", 0, up.Bytes(), down))
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return "localhost:" + port
}

// mailAnswers are those of SMTP as far as Python's client needs it.
func mailAnswers() func(*bufio.Reader) string {
	mail := false
	return func(r *bufio.Reader) string {
		line, err := r.ReadString('\n')
		if mail {
			for line != ".\r\n" && err == nil {
				line, err = r.ReadString('\n')
			}
			mail = false
			return "250 queued\r\n"
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); {
		case err != nil:
			return ""
		case verb == "EHLO":
			return "250-mail\r\n250 8BITMIME\r\n"
		case verb == "DATA":
			mail = true
			return "354 go on\r\n"
		case verb == "QUIT":
			return "221 bye\r\n"
		}
		return "250 ok\r\n"
	}
}

// brokerAnswer is MQTT 3.1.1 as far as testdata/clients/mqtt.py needs it: what is published
// comes back.
func brokerAnswer(r *bufio.Reader) string {
	kind, err := r.ReadByte()
	if err != nil {
		return ""
	}
	size, err := r.ReadByte()
	if err != nil {
		return ""
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return ""
	}
	switch kind >> 4 {
	case 1: // CONNECT
		return "\x20\x02\x00\x00"
	case 8: // SUBSCRIBE
		return "\x90\x03" + string(body[:2]) + "\x00"
	case 3: // PUBLISH
		return string(append([]byte{kind, size}, body...))
	case 12: // PINGREQ
		return "\xd0\x00"
	}
	return ""
}

// recordedLines are the lines that a loggedServer would have logged.
func recordedLines(t *testing.T, file string) []string {
	t.Helper()
	s, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out []string
	for ex, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		// A program that exits may reset a connection that it has no more use for.
		if ex.Outcome != captures.Complete && (ex.Transport == "" || ex.Outcome != captures.Canceled) {
			t.Errorf("%s %s: %s %s", ex.Method, ex.URL, ex.Outcome, ex.Error)
		}
		if ex.Status == http.StatusSwitchingProtocols {
			continue
		}
		u, err := url.Parse(ex.URL)
		if err != nil {
			t.Fatal(err)
		}
		var bodies, message [2][]byte
		var kind [2]captures.Opcode
		for c, err := range s.Chunks(t.Context(), ex.ID, 0) {
			switch {
			case err != nil:
				t.Fatal(err)
			case ex.Transport != captures.WebSocket:
				bodies[c.Dir] = append(bodies[c.Dir], c.Data...)
				continue
			case c.Opcode.Kind() > captures.OpBinary:
				continue
			}
			if k := c.Opcode.Kind(); k != captures.OpContinuation {
				kind[c.Dir] = k
			}
			message[c.Dir] = append(message[c.Dir], c.Data...)
			if c.Opcode&captures.OpFinal != 0 {
				bodies[c.Dir] = fmt.Appendf(bodies[c.Dir], "%d %d %s\n", kind[c.Dir], len(message[c.Dir]), message[c.Dir])
				message[c.Dir] = nil
			}
		}
		method, uri := ex.Method, u.RequestURI()
		switch ex.Transport {
		case captures.WebSocket:
			method = "WebSocket"
		case captures.RawTLS:
			method, uri = "tls", ""
		}
		out = append(out, requestLine(method, uri, ex.Status, bodies[captures.Up], bodies[captures.Down]))
	}
	slices.Sort(out)
	return out
}

// A realClient is a program with its arguments.
type realClient struct {
	argv        []string
	want        string // in what it prints
	logged      int    // how many lines the server logs at least
	transparent bool   // it knows nothing of proxies
	varies      bool   // the server's answers are not the same each time
}

// TestRealClients runs programs that people use, each directly and captured. It gets the
// same, and what is recorded is what the server logged.
func TestRealClients(t *testing.T) {
	t.Parallel()
	server := newLoggedServer(t)
	scripts, err := filepath.Abs("testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	script := func(name string) string { return filepath.Join(scripts, name) }
	runtime := func(t *testing.T, name string) string {
		path, err := filepath.Abs(filepath.Join("../../mitm/launch/testdata/runtimes/node_modules", name))
		if err != nil {
			t.Fatal(err)
		}
		return need.Program(t, path, "it with 'make test-deps' (Linux on x86-64)", "--version")
	}
	echo := server.url + "/echo"
	for _, c := range []struct {
		name string
		need func(t *testing.T) realClient
	}{
		{"curl", func(t *testing.T) realClient {
			curl := need.Curl(t, "HTTP2")
			return realClient{argv: []string{
				"sh", "-c", `for v in 1.0 1.1 2; do "$0" -sS --http$v -d "over $v" "$1/echo"; "$0" -sS --http$v "$1/large" | wc -c; done`, curl, server.url,
			}, want: `"over 1.0"1300000`, logged: 6}
		}},
		{"wget", func(t *testing.T) realClient {
			return realClient{argv: []string{need.Program(t, "wget", "wget"), "-q", "-O", "-", "--post-data=up", echo}, want: `"up"`, logged: 1}
		}},
		{"npm", func(t *testing.T) realClient {
			return realClient{argv: []string{
				"sh", "-c", `echo "cafile=$1" >.npmrc && echo '{"name":"x"}' >package.json && "$0" install --cache ./cache --registry "$2/npm/" --no-audit --no-fund --no-update-notifier --loglevel error held >log 2>&1 || cat log; cat node_modules/held/index.js`,
				need.Program(t, "npm", "npm"), server.caFile, server.url,
			}, want: "from the registry", logged: 2}
		}},
		{"go", func(t *testing.T) realClient {
			return realClient{argv: []string{
				"sh", "-c", `HOME=$PWD GOTOOLCHAIN=local GOFLAGS=-modcacherw GOMODCACHE=$PWD/mod GOPROXY=$1/go GONOSUMDB=* GOSUMDB=off "$0" mod download -json held.example/m@v1.0.0 | grep -E 'Sum|Error'`,
				need.Program(t, "go", "golang"), server.url,
			}, want: `"Sum": "h1:`, logged: 3, transparent: true}
		}},
		{"git", func(t *testing.T) realClient {
			return realClient{argv: []string{
				"sh", "-c", `"$0" clone -q "$1/git/repository.git" clone && "$0" -C clone rev-parse HEAD && tail -1 clone/file && wc -c <clone/large`,
				need.Program(t, "git", "git"), server.url,
			}, want: "line 200 of the file\n300000", logged: 2, varies: true}
		}},
		{"WebSocket in Node", func(t *testing.T) realClient {
			return realClient{argv: []string{runtime(t, "node24/bin/node"), script("web.mjs"), server.url}, want: "300000", logged: 2}
		}},
		{"WebSocket in Deno", func(t *testing.T) realClient {
			return realClient{argv: []string{runtime(t, "deno/deno"), "run", "-A", script("web.mjs"), server.url}, want: "300000", logged: 2, transparent: true}
		}},
		{"WebSocket in Bun", func(t *testing.T) realClient {
			return realClient{argv: []string{runtime(t, "bun/bin/bun"), script("web.mjs"), server.url}, want: "300000", logged: 2, transparent: true}
		}},
		{"MQTT", func(t *testing.T) realClient {
			return realClient{argv: []string{need.Python(t, "ssl"), script("mqtt.py"), server.raw["broker"]}, want: "50 messages", logged: 1, transparent: true}
		}},
		{"SMTP", func(t *testing.T) realClient {
			return realClient{argv: []string{need.Python(t, "ssl", "smtplib"), script("smtp.py"), server.raw["mail"]}, want: "(250, b'ok') {}", logged: 1, transparent: true}
		}},
	} {
		// Not in parallel: they share the server's log.
		t.Run(c.name, func(t *testing.T) { server.compare(t, c.need(t)) })
	}
}

// compare runs a client directly and captured.
func (s *loggedServer) compare(t *testing.T, c realClient) {
	t.Helper()
	environ := append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir(), "GIT_TERMINAL_PROMPT=0", "DENO_NO_UPDATE_CHECK=1", "DENO_DIR="+t.TempDir())
	run := func(environ []string, argv ...string) (out, errOut string, err error) {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		var stdout, stderr bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = t.TempDir(), environ, &stdout, &stderr, time.Second
		err = cmd.Run()
		return stdout.String(), stderr.String(), err
	}
	wgetrc := filepath.Join(t.TempDir(), "wgetrc")
	if err := os.WriteFile(wgetrc, []byte("ca_certificate = "+s.caFile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trusting := append(slices.Clone(environ), "WGETRC="+wgetrc)
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "DENO_CERT"} {
		trusting = append(trusting, name+"="+s.caFile)
	}
	s.take()
	want, errOut, err := run(trusting, c.argv...)
	direct := s.take()
	if err != nil || !strings.Contains(want, c.want) || len(direct) < c.logged {
		t.Fatalf("directly: %v, want %q in %q: %s\n%q", err, c.want, want, errOut, direct)
	}

	file := filepath.Join(t.TempDir(), "a.uwc")
	argv := []string{unwireCommand(t), "capture", "-o", file, "--upstream-ca", s.caFile}
	if c.transparent {
		argv = append(argv, "--transparent")
	}
	got, errOut, err := run(environ, append(append(argv, "--"), c.argv...)...)
	if strings.Contains(errOut, "transparent capture: ") {
		t.Skipf("this system has no namespaces: %s", errOut)
	}
	logged := s.take()
	if err != nil || got != want {
		t.Errorf("captured: %v, %q, want %q: %s", err, got, want, errOut)
	}
	if len(logged) != len(direct) || !c.varies && !slices.Equal(logged, direct) {
		t.Errorf("the server logged\n%s\ndirectly\n%s", strings.Join(logged, "\n"), strings.Join(direct, "\n"))
	}
	if recorded := recordedLines(t, file); !slices.Equal(recorded, logged) {
		t.Errorf("recorded\n%s\nthe server logged\n%s\n%s", strings.Join(recorded, "\n"), strings.Join(logged, "\n"), errOut)
	}
}
