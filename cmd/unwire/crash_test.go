package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures/store"
	"unwire/decode"
)

// slowScript talks for longer than any test waits: a heartbeat every 20 ms.
const slowScript = `{"v": 1, "turns": [{"name": "slow", "steps": [{"wait": {"ms": 60000, "heartbeat_every_ms": 20}}, {"turn_ended": {}}]}]}`

// TestKilledRecorder kills the recorder in the middle of a stream. The file
// opens, and has every frame that is older than a second. A machine may stall
// for longer than that, so one of a few recorders has to show it.
func TestKilledRecorder(t *testing.T) {
	const tries = 5
	for n := 1; !t.Failed(); n++ {
		lost := killRecorder(t)
		if lost <= time.Second {
			return
		}
		t.Logf("the last frame is %v older than the kill", lost)
		if n == tries {
			t.Fatalf("%d times more than a second was lost", n)
		}
	}
}

// killRecorder kills a recorder, and returns how much older than that the last
// frame is that its file has.
func killRecorder(t *testing.T) time.Duration {
	bin := unwireCommand(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "slow.json"), []byte(slowScript), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(report any, args ...string) *exec.Cmd {
		cmd := exec.Command(bin, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+filepath.Join(work, "config"), "UNWIRE_TOKEN=made-up-token")
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if report != nil {
			if err := json.NewDecoder(stdout).Decode(report); err != nil {
				t.Fatal(err)
			}
		}
		return cmd
	}
	var server, proxy struct{ URL, Proxy, CA string }
	start(&server, "standin", "--json", "--script", "slow.json")
	recorder := start(&proxy, "capture", "--json", "-o", "a.uwc", "--reverse", server.URL, "--upstream-ca", server.CA)
	client := exec.Command(bin, "demo-client", "--url", proxy.Proxy)
	client.Env = append(os.Environ(), "UNWIRE_TOKEN=made-up-token")
	client.Stdout, client.Stderr = new(bytes.Buffer), new(bytes.Buffer) // it is left in mid-stream
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Process.Kill(); _ = client.Wait() })

	file := filepath.Join(work, "a.uwc")
	waitForFrames(t, file, 100)
	killed := time.Now()
	if err := recorder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = recorder.Wait()

	ex := lastExchange(t, file)
	last := time.Duration(0)
	for i := range ex.Frames {
		last = ex.Frames[i].T
		if ex.Frames[i].Err != nil {
			t.Errorf("frame %d: %v", i, ex.Frames[i].Err)
		}
	}
	if len(ex.Frames) < 100 {
		t.Errorf("%d frames of the 100 that had been recorded", len(ex.Frames))
	}
	return killed.Sub(ex.Started.Add(last))
}

// waitForFrames waits until the last exchange of a capture that is being
// recorded has n frames.
func waitForFrames(t *testing.T, file string, n int) {
	deadline := time.Now().Add(time.Minute)
	for len(lastExchange(t, file).Frames) < n {
		if time.Now().After(deadline) {
			t.Fatalf("no %d frames in %s", n, file)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// lastExchange decodes the newest exchange of a capture.
func lastExchange(t *testing.T, file string) *decode.Exchange {
	store, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var id int64
	for ex, err := range store.Exchanges(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		id = ex.ID
	}
	if id == 0 {
		return &decode.Exchange{}
	}
	ex, err := decode.Decode(context.Background(), store, id, decode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ex
}
