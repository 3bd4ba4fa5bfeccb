package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/apipb"

	"unwire/replay/probe"
)

// TestKilledProbe kills a probe of many requests; with its journal it goes on
// where it was, and ends where one that was let alone does.
func TestKilledProbe(t *testing.T) {
	bin := unwireCommand(t)
	work := t.TempDir()
	const killedAt = 60
	var requests, executed, connections atomic.Int64
	var holding atomic.Bool
	reached := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/test.v1.Test/Call", connect.NewUnaryHandler("/test.v1.Test/Call", func(_ context.Context, r *connect.Request[apipb.Api]) (*connect.Response[apipb.Api], error) {
		executed.Add(1)
		return connect.NewResponse(r.Msg), nil
	}))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); n == killedAt && holding.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // then the server hears of the client's end
			close(reached)
			<-r.Context().Done() // until its client is killed
			return
		}
		mux.ServeHTTP(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			connections.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)

	command := func(out string, more ...string) *exec.Cmd {
		// The server counts requests, and asking it for reflection is one that the probe does not count.
		args := append([]string{"probe", "--no-reflection", "--to", server.URL, "--method", "/test.v1.Test/Call", "--fields", "1-600", "--depth", "2", "--json", "-o", out}, more...)
		cmd := exec.Command(bin, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+filepath.Join(work, "config"))
		return cmd
	}
	run := func(cmd *exec.Cmd) *probe.Result {
		t.Helper()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		data, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.Bytes())
		}
		var res probe.Result
		if err := json.Unmarshal(data, &res); err != nil {
			t.Fatal(err)
		}
		return &res
	}
	whole := run(command("whole.json"))
	if whole.Requests < 200 {
		t.Fatalf("%d requests are too few to be killed among", whole.Requests)
	}

	requests.Store(0)
	holding.Store(true)
	killed := command("killed.json", "--rate", "400")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = killed.Process.Kill() })
	select {
	case <-reached:
	case <-time.After(time.Minute):
		t.Fatalf("%d requests in a minute", requests.Load())
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	holding.Store(false)
	for deadline := time.Now().Add(time.Minute); connections.Load() > 0; time.Sleep(time.Millisecond) { // what was under way counts
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are still open", connections.Load())
		}
	}
	before := requests.Swap(0)

	res := run(command("killed.json", "--resume"))
	if res.Requests != whole.Requests || res.Resumed < int(before)-1 || int(requests.Load()) != res.Requests-res.Resumed {
		t.Errorf("%d requests before the kill, %d of %d taken from the journal, %d after it", before, res.Resumed, res.Requests, requests.Load())
	}
	if !reflect.DeepEqual(res.Fields, whole.Fields) {
		t.Errorf("%+v\nis not\n%+v", res.Fields, whole.Fields)
	}
	if res.Executed != 0 || executed.Load() != 0 {
		t.Errorf("%d executed, %d said", executed.Load(), res.Executed)
	}
}
