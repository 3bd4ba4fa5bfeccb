package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

// record makes a capture of one complete bidirectional call.
func record(t *testing.T, up, down []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.uwc")
	store, err := store.Create(file, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "zstd"}}
	rec, err := store.Begin(captures.Exchange{
		Method: "POST", URL: "https://127.0.0.1/a.B/C", HTTP: "2", Started: time.Now(), RequestHeaders: headers,
	})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, up)
	rec.Response(200, headers)
	rec.Chunk(captures.Down, down)
	rec.End(captures.Complete, "")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHostileCaptures has the program read captures that want to hurt it.
func TestHostileCaptures(t *testing.T) {
	bin := unwireCommand(t)
	t.Run("bombs", func(t *testing.T) { testBombs(t, bin) })
	t.Run("cut frame", func(t *testing.T) { testCutFrame(t, bin) })
}

// testBombs shows a stream of frames that each want to be 65 MiB, where a frame may have 64.
func testBombs(t *testing.T, bin string) {
	bomb, err := envelope.Compress("zstd", make([]byte, 65<<20))
	if err != nil {
		t.Fatal(err)
	}
	hello := envelope.Append(nil, 0, []byte("\x0a\x05hello"))
	stream := bytes.Repeat(envelope.Append(nil, envelope.Compressed, bomb), 3)
	file := record(t, append(bytes.Clone(hello), stream...), append(bytes.Clone(stream), hello...))
	for _, args := range [][]string{{"ls", file}, {"show", file, "1"}, {"show", "--json", file, "1"}, {"extract", file, "1"}, {"schema", "check", file}} {
		cmd := exec.Command(bin, args...)
		stdout, err := os.Create(filepath.Join(t.TempDir(), "out")) // not held: a child's peak begins with ours
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = stdout, &stderr
		_ = cmd.Run()
		stdout.Close()
		name := strings.Join(args[:len(args)-1], " ")
		if args[0] == "show" || args[0] == "extract" {
			if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(stderr.String(), "server frame 0: frame at offset 0x0") {
				t.Errorf("%s: %v, %.300s", name, cmd.ProcessState, stderr.String())
			}
			if exec.Command("grep", "-q", "hello", stdout.Name()).Run() != nil {
				t.Errorf("%s does not show what is whole", name)
			}
		}
		const most = 500 << 10 // KiB
		limit := max(most, ownPeak(t))
		if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; used > limit {
			t.Errorf("%s took %d KiB, may take %d", name, used, limit)
		} else {
			t.Logf("%s: %d KiB", name, used)
		}
	}
}

// testCutFrame shows a call that was complete although its last frame is not:
// that is bad input, not a call that broke off.
func testCutFrame(t *testing.T, bin string) {
	hello := envelope.Append(nil, 0, []byte("\x0a\x05hello"))
	file := record(t, hello, append(bytes.Clone(hello), hello[:9]...))
	cmd := exec.Command(bin, "show", file, "1")
	out, _ := cmd.CombinedOutput()
	for _, want := range []string{"hello", "server frame 1: frame at offset 0xc: the length is 7, but only 4 bytes arrived"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("status %d", code)
	}
}
