package mitm

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/mitm/launch"
)

// A seenCall is what two recordings of one call must agree in.
type seenCall struct {
	Call     string
	Status   int
	Trailers []string
	Frames   []string
	Outcome  captures.Outcome
}

// seenCalls are the calls of a capture by the name that the client gave them.
func seenCalls(t *testing.T, s *store.Store) map[string]seenCall {
	t.Helper()
	out := map[string]seenCall{}
	for ex, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d, err := decode.Decode(t.Context(), s, ex.ID, decode.Options{NoTrees: true})
		if err != nil {
			t.Fatal(err)
		}
		c := seenCall{Call: ex.Method + " " + ex.URL, Status: ex.Status, Outcome: ex.Outcome}
		for _, h := range ex.ResponseTrailers {
			c.Trailers = append(c.Trailers, strings.ToLower(h.Name)+": "+h.Value)
		}
		slices.Sort(c.Trailers)
		for _, dir := range []captures.Direction{captures.Up, captures.Down} { // how they interleave is the clock's affair
			for i := range d.Frames {
				if f := &d.Frames[i]; f.Dir == dir {
					c.Frames = append(c.Frames, fmt.Sprintf("%s %d %x", f.Dir, f.Flags, f.Data))
				}
			}
		}
		out[ex.RequestHeaders.Get("x-case")] = c
	}
	return out
}

// TestPassiveConnectES records connect-es clients on Node by the proxy and by
// their packets: the frames are the same.
func TestPassiveConnectES(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/node")
	dir := t.TempDir()
	unwire := filepath.Join(dir, "unwire")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", unwire, "unwire/cmd/unwire").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, protocol := range []string{"connect", "grpc", "connect-http1"} {
		t.Run(protocol, func(t *testing.T) {
			origin, _ := newTappedEcho(t)
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			caFile, file := filepath.Join(dir, "origin.pem"), filepath.Join(dir, protocol+".uwc")
			if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			argv := []string{node, "testdata/node/client.mjs", origin.URL, protocol, "same"}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var want, said bytes.Buffer
			code, err := launch.Run(ctx, launch.Options{Argv: argv, ProxyURL: "http://" + b.addr, CAFile: b.ca.CertFile, ControlToken: controlToken, Stdout: &want, Stderr: &want})
			if code != 0 || err != nil {
				t.Fatalf("proxy: status %d, %v: %s", code, err, want.String())
			}
			cmd := exec.CommandContext(ctx, unwire, append([]string{"capture", "--passive", "-o", file, "--"}, argv...)...)
			cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+caFile)
			cmd.Stderr = &said
			got, err := cmd.Output()
			if err != nil && strings.Contains(said.String(), "passive capture: ") {
				t.Skipf("this system has no namespaces: %s", said.String())
			}
			if err != nil || string(got) != want.String() {
				t.Fatalf("passive: %v: %s\n%s", err, said.String(), cmp.Diff(want.String(), string(got)))
			}
			store, err := store.Open(file, store.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := b.store.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			calls := bytes.Count(want.Bytes(), []byte("\nend of "))
			packets := seenCalls(t, store)
			if diff := cmp.Diff(seenCalls(t, b.store), packets); diff != "" || len(packets) < calls || calls < 6 {
				t.Errorf("%d calls of %d; by the proxy (-), by packets (+):\n%s\n%s", len(packets), calls, diff, said.String())
			}
			checkPassive(t, store, origin)
		})
	}
}

// checkPassive: the server is named by its own address, and its certificate was
// the one that the client saw.
func checkPassive(t *testing.T, s *store.Store, origin *httptest.Server) {
	t.Helper()
	for ex, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if ex.Source != "passive" || ex.Server != origin.Listener.Addr().String() || ex.TLS.Version != "1.3" || ex.Method == http.MethodConnect {
			t.Errorf("%+v", ex)
		}
	}
}
