package browser

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/mitm"
	"unwire/mitm/ca"
	"unwire/mitm/rules"
)

const page = `<!doctype html><link rel=icon href=data:,><title>test</title><script>
(async () => {
  const data = await (await fetch('/data', {method: 'POST', body: 'up'})).text()
  const ws = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
  ws.onopen = () => ws.send(data)
  ws.onmessage = async (m) => { await fetch('/done?' + m.data); ws.close() }
})()
</script>`

// TestRecorded has a page, a fetch and a WebSocket of Chromium recorded, and nothing else.
func TestRecorded(t *testing.T) {
	need.Program(t, "chromium", "chromium", "--version")
	need.Program(t, "certutil", "libnss3-tools")
	for name, byHash := range map[string]bool{"database": false, "hash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record(t, byHash, "", "up-down")
		})
	}
}

// TestRules: rules that match nothing change nothing of a page, and others exactly what they name.
func TestRules(t *testing.T) {
	need.Program(t, "chromium", "chromium", "--version")
	need.Program(t, "certutil", "libnss3-tools")
	for name, c := range map[string]struct{ rules, want string }{
		"no match":  {"{match: 'protocol:websocket text:\"in no message\"', drop: true}\n  - {match: 'url:*/data dir:down text:nothing', replace: text:x}", "up-down"},
		"WebSocket": {"{match: 'protocol:websocket dir:down text:up-down', replace: text:up-edited}", "up-edited"},
		"fetch":     {"{match: 'url:*/data dir:up text:up', replace: text:longer}", "longer-down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record(t, false, "rules:\n  - "+c.rules+"\n", c.want)
		})
	}
}

// record has a page recorded, whose traffic is changed by rules unless they are "". want is what the page tells at its
// end.
func record(t *testing.T, byHash bool, text, want string) {
	done := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		_, _ = io.WriteString(w, page)
	})
	mux.HandleFunc("POST /data", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		_, _ = io.WriteString(w, "-down")
	})
	mux.Handle("/ws", websocket.Handler(func(ws *websocket.Conn) { _, _ = io.Copy(ws, ws) }))
	mux.HandleFunc("/done", func(_ http.ResponseWriter, r *http.Request) { done <- r.URL.RawQuery })
	origin := httptest.NewUnstartedServer(mux)
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()

	options := rules.Options{Report: func(text string) { t.Log(text) }}
	x := startProxy(t, origin, text, options)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, ended, out := x.startBrowser(ctx, origin.URL+"/", byHash)
	select {
	case got := <-done:
		if got != want {
			t.Errorf("the page got %q", got)
		}
	case err := <-ended:
		t.Fatalf("the browser ended: %v\n%s", err, out.String())
	case <-ctx.Done():
		t.Fatalf("the page did not load\n%s", list(t, x.store))
	}
	time.Sleep(2 * time.Second) // in which it would make traffic of its own
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	<-ended
	check(t, x.browser.Close())
	if _, err := os.Stat(x.browser.profile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the profile: %v", err)
	}
	check(t, x.proxy.Shutdown(ctx))
	got := list(t, x.store)
	// What was received is recorded, whatever was forwarded.
	posted, _, _ := strings.Cut(want, "-edited")
	posted = strings.TrimSuffix(posted, "-down") + "-down"
	if messages := messagesOf(t, x.store); !slices.Equal(messages, []string{"up " + posted, "down " + posted}) {
		t.Errorf("messages of the WebSocket: %q", messages)
	}
	check(t, x.store.Close())
	host := strings.TrimPrefix(origin.URL, "https://")
	for _, want := range []string{"GET https://" + host + "/ 200", "POST https://" + host + "/data 200", "GET https://" + host + "/done?" + want + " 200"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not recorded: %q", want, got)
		}
	}
	if !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, host+"/ws 101") }) {
		t.Errorf("no WebSocket: %q", got)
	}
	for _, line := range got {
		if !strings.Contains(line, host) {
			t.Errorf("the browser's own: %s", line)
		}
	}
}

// A recorder records the pages of a browser.
type recorder struct {
	t       *testing.T
	ca      *ca.Authority
	addr    string
	store   *store.Store
	proxy   *mitm.Proxy
	browser *Browser
}

// startProxy starts a proxy before a server, with the rules in text unless it is "".
func startProxy(t *testing.T, origin *httptest.Server, text string, o rules.Options) *recorder {
	t.Helper()
	dir := t.TempDir()
	x := &recorder{t: t}
	var err error
	x.ca, err = ca.Load(filepath.Join(dir, "ca"))
	check(t, err)
	x.store, err = store.Create(filepath.Join(dir, "a.uwc"), store.Options{})
	check(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(origin.Certificate())
	options := mitm.Options{CA: x.ca, Store: x.store, UpstreamRoots: roots}
	if text != "" {
		path := filepath.Join(dir, "rules.yaml")
		check(t, os.WriteFile(path, []byte(text), 0o600))
		set, err := rules.Load(path)
		check(t, err)
		options.Rewrite = rules.New(set, o)
	}
	x.proxy, err = mitm.New(options)
	check(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	x.addr = ln.Addr().String()
	go func() { _ = x.proxy.Serve(ln) }()
	return x
}

// startBrowser opens a page. byHash means that the browser trusts the hash of the CA's key.
func (x *recorder) startBrowser(ctx context.Context, url string, byHash bool) (*exec.Cmd, <-chan error, *bytes.Buffer) {
	t := x.t
	t.Helper()
	b, err := Prepare(ctx, Options{URL: url, ProxyAddr: x.addr, CAFile: x.ca.CertFile, SPKI: x.ca.SPKI(), Args: []string{"--headless=new", "--disable-gpu"}})
	check(t, err)
	x.browser = b
	if byHash {
		check(t, os.RemoveAll(filepath.Join(b.profile, ".pki")))
		b.Argv = slices.Insert(b.Argv, 1, "--ignore-certificate-errors-spki-list="+x.ca.SPKI())
	}
	out := new(bytes.Buffer)
	cmd := exec.CommandContext(ctx, b.Argv[0], b.Argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = b.Env, out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended, out
}

func list(t *testing.T, st *store.Store) []string {
	t.Helper()
	check(t, st.Flush(t.Context()))
	var lines []string
	for ex, err := range st.Exchanges(t.Context()) {
		check(t, err)
		lines = append(lines, line(ex))
	}
	return lines
}

// messagesOf lists the data messages of WebSockets with their directions.
func messagesOf(t *testing.T, st *store.Store) (out []string) {
	t.Helper()
	for ex, err := range st.Exchanges(t.Context()) {
		check(t, err)
		if ex.Transport != captures.WebSocket {
			continue
		}
		for c, err := range st.Chunks(t.Context(), ex.ID, 0) {
			check(t, err)
			if k := c.Opcode.Kind(); k == captures.OpText || k == captures.OpBinary {
				out = append(out, fmt.Sprintf("%v %s", c.Dir, c.Data))
			}
		}
	}
	return out
}

func line(ex *captures.Exchange) string {
	u, err := url.Parse(ex.URL)
	if err != nil {
		return ex.URL
	}
	return fmt.Sprintf("%s %s %d", ex.Method, u, ex.Status)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMissing says what to install.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Prepare(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "apt install chromium") {
		t.Error(err)
	}
}
