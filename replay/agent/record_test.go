package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/proto"
	"unwire/replay/agent"
	"unwire/replay/agent/turn"
)

// TestRecording records turns over both transports, one of which ends in an error that
// repeats the token. The capture has all exchanges with both directions, and the token is
// nowhere.
func TestRecording(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{agent.HTTP2, agent.SSE} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "turn.uwc")
			capture, err := store.Create(path, store.Options{Profile: proto.Profile()})
			if err != nil {
				t.Fatal(err)
			}
			c := connect(t, script(`{"text":"hello"},{"tool":{"name":"mcp","args":{"name":"add","toolName":"add"}}},{"error":{"code":"internal","message":"who is Bearer `+token+`?"}}`),
				func(o *agent.Options) { o.Transport, o.Recorder = transport, capture })
			if _, err := c.Models(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := run(t, c, user("go", turn.Tool{Name: "add"}))
			_, _, _, err = finish(t, s, echo)
			if e := turn.AsError(err); err == nil || strings.Contains(e.Message, token) || e.Code != "upstream_internal" {
				t.Errorf("got %v", err)
			}
			id := s.ExchangeID()
			// The server may answer the last message after the end of the turn; closing would cancel that call.
			awaitOthers(t, capture, id)
			s.Close()
			if err := capture.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkCapture(t, capture, id)
			if err := capture.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(path + "*")
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(token)) {
					t.Errorf("%s has the token", f)
				}
			}
		})
	}
}

// awaitOthers waits until all exchanges of a capture have ended, apart from that of the stream, which lasts until it is
// closed.
func awaitOthers(t *testing.T, capture *store.Store, stream int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if err := capture.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		running := 0
		for ex, err := range capture.Exchanges(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if ex.ID != stream && !ex.Ended() {
				running++
			}
		}
		if running == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d exchanges have not ended", running)
		}
	}
}

func checkCapture(t *testing.T, capture *store.Store, id int64) {
	t.Helper()
	if id == 0 {
		t.Error("the stream has no number")
	}
	paths := map[string]int{}
	for ex, err := range capture.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		paths[ex.URL[strings.LastIndex(ex.URL, "/")+1:]]++
		if ex.Outcome != captures.Complete || ex.Status != 200 {
			t.Errorf("%s: %s, status %d: %s", ex.URL, ex.Outcome, ex.Status, ex.Error)
		}
		if strings.Contains(ex.RequestHeaders.Get("authorization"), token) {
			t.Error("a header has the token")
		}
		var up, down int
		for chunk, err := range capture.Chunks(t.Context(), ex.ID, -1) {
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(chunk.Data, []byte(token)) {
				t.Error("a body has the token")
			}
			if chunk.Dir == captures.Up {
				up += len(chunk.Data)
			} else {
				down += len(chunk.Data)
			}
		}
		if ex.ID == id && (up == 0 || down == 0) {
			t.Errorf("the stream has %d bytes up and %d down", up, down)
		}
	}
	if paths["GetUsableModels"] != 1 || paths["Run"]+paths["RunSSE"] != 1 || paths["RunSSE"] == 1 && paths["BidiAppend"] < 2 {
		t.Errorf("exchanges = %v", paths)
	}
}
