package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
)

// recordCalls records n unary calls of one method, each with a message of some size.
func recordCalls(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calls.uwc")
	store, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		rec, err := store.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/demo.v1.Things/Get", HTTP: "2",
			RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, protowire.AppendVarint([]byte{0x08}, uint64(1000+i)))
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
		text := "thing " + strconv.Itoa(i) + strings.Repeat(" of words", 60)
		rec.Chunk(captures.Down, protowire.AppendString([]byte{0x0a}, text))
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is there of a damaged capture is read and written, with the error said, and
// other captures are read with it; of one that gives no message nothing is written.
func TestDamagedCaptureIsReadAsFarAsItGoes(t *testing.T) {
	const calls = 1500
	whole := recordCalls(t, calls)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hole := filepath.Join(dir, "hole.uwc")
	copy(data[len(data)/2:], bytes.Repeat([]byte{0x5a}, 3*8192))
	if err := os.WriteFile(hole, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, inputs := range [][]string{{hole}, {hole, whole}, {whole, hole}} {
		out := filepath.Join(dir, "out.proto")
		status, _, talk := run(append([]string{"schema", "infer", "--verbose", "-o", out}, inputs...)...)
		if status != app.ExitInput || !strings.Contains(talk, "the capture is damaged") {
			t.Fatalf("%v: status %d, %s", inputs, status, talk)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(out)
		_, rest, _ := strings.Cut(string(text), "message GetResponse")
		_, rest, _ = strings.Cut(rest, "Seen in ")
		word, _, _ := strings.Cut(rest, " ")
		least := calls/2 + calls*(len(inputs)-1)
		if seen, err := strconv.Atoi(word); err != nil || seen < least || seen >= calls*len(inputs) {
			t.Errorf("%v: seen in %q, want %d at least, and not all\n%s", inputs, word, least, text)
		}
	}
	status, report, talk := run("schema", "check", "--json", hole)
	if status != app.ExitInput || !strings.Contains(report, `"service":"demo.v1.Things"`) || !strings.Contains(talk, "the capture is damaged") {
		t.Errorf("check: status %d, %s%s", status, talk, report)
	}

	gone := filepath.Join(dir, "gone.uwc")
	if err := os.WriteFile(gone, data[:8192], 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "gone.proto")
	if status, _, talk := run("schema", "infer", "-o", out, gone); status != app.ExitInput || !strings.Contains(talk, "the capture is damaged") {
		t.Errorf("status %d, %s", status, talk)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there was no message, and definitions were written")
	}
}

// A capture that is not there is said before the others are read.
func TestMissingCaptureIsSaidAtOnce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.proto")
	status, _, talk := run("schema", "infer", "-o", out, recordCalls(t, 1), "missing.uwc")
	if status != app.ExitInput || !strings.Contains(talk, "missing.uwc") {
		t.Errorf("status %d, %s", status, talk)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("definitions were written of some of the captures")
	}
}
