package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilledWhileHolding kills a recorder that holds a frame. The capture says which frame it was, and the client got
// nothing of it.
func TestKilledWhileHolding(t *testing.T) {
	t.Parallel()
	bin, file := unwireCommand(t), filepath.Join(t.TempDir(), "a.uwc")
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(origin.Close)
	recorder := exec.Command(bin, "capture", "--json", "-o", file, "--reverse", origin.URL, "--intercept", "dir:down")
	stdout, err := recorder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = recorder.Process.Kill(); _ = recorder.Wait() })
	var proxy struct{ Proxy string }
	if err := json.NewDecoder(stdout).Decode(&proxy); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() {
		res, err := http.Post(proxy.Proxy, "application/json", strings.NewReader(`{"a":1}`))
		if err != nil {
			answered <- ""
			return
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		answered <- string(body)
	}()

	show := func() string {
		out, _ := exec.Command(bin, "show", file, "1").CombinedOutput()
		return string(out)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(show(), "[held]"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no frame is held: %s", show())
		}
	}
	if err := recorder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = recorder.Wait()
	if got := <-answered; got != "" {
		t.Errorf("the client got %q", got)
	}
	text := show()
	if _, down, ok := strings.Cut(text, "\n↓ frame 0 "); !ok || !strings.Contains(down, "mark: [held]\n    {\"a\":1}\n") {
		t.Errorf("the capture has\n%s", text)
	}
}
