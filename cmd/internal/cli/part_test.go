package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
)

// run is a run of the program.
func run(args ...string) (status int, stdout, stderr string) {
	var out, talk bytes.Buffer
	status = Run(args, strings.NewReader(""), &out, &talk)
	return status, out.String(), talk.String()
}

// recordMany records n calls with a body each, and a first one that tells itself.
func recordMany(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.uwc")
	store, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		rec, err := store.Begin(captures.Exchange{Method: "GET", URL: "https://h.example/" + strconv.Itoa(i+1), HTTP: "2"})
		if err != nil {
			t.Fatal(err)
		}
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "text/plain"}})
		rec.Chunk(captures.Down, []byte("body "+strconv.Itoa(i+1)+strings.Repeat(" of words", 100)))
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Of a capture that is cut short, wherever, what is there is listed as it was,
// and shown; and every command that reads all of it fails.
func TestPartOfACapture(t *testing.T) {
	path := recordMany(t, 500)
	_, whole, _ := run("ls", path)
	lines := map[string]bool{}
	for line := range strings.Lines(whole) {
		lines[line] = true
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{len(data) / 2, len(data) * 3 / 4, len(data) * 3 / 4 / 8192 * 8192, len(data) - 8192, len(data) - 1} {
		part := filepath.Join(t.TempDir(), "part.uwc")
		if err := os.WriteFile(part, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, talk := run("ls", part)
		if status != app.ExitInput || !strings.Contains(talk, "the capture is damaged") || !strings.Contains(talk, "the output covers the readable part") {
			t.Errorf("%d of %d bytes: status %d, %s", cut, len(data), status, talk)
		}
		same := 0
		for line := range strings.Lines(out) {
			if lines[line] {
				same++
			}
		}
		if least := 500 * cut / len(data) / 3; same < least {
			t.Errorf("%d of %d bytes: %d lines are as they were, want %d\n%s", cut, len(data), same, least, talk)
		}
		if status, out, talk := run("show", part, "1"); status != 0 || !strings.Contains(out, "body 1 of words") {
			t.Errorf("%d of %d bytes: show: status %d, %s%s", cut, len(data), status, out, talk)
		}
		for _, args := range [][]string{
			{"audit", part},
			{"redact", part, "-o", part + ".clean"},
			{"export", part, "-o", part + ".jsonl"},
			{"chat", part},
			{"schema", "infer", part},
			{"schema", "check", part},
			{"diff", part, path},
		} {
			if status, _, talk := run(args...); status != app.ExitInput {
				t.Errorf("%d of %d bytes: %v: status %d, %s", cut, len(data), args, status, talk)
			}
		}
		if left, _ := filepath.Glob(part + "?*"); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if after, err := os.ReadFile(part); err != nil || !bytes.Equal(after, data[:cut]) {
			t.Errorf("%d of %d bytes: the file was changed", cut, len(data))
		}
	}
}

// The second listing is read from what the first one derived, and is the same;
// a capture that may not be written to is listed as well.
func TestListTwice(t *testing.T) {
	path := recordMany(t, 3)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	status, first, talk := run("ls", "--json", path)
	if status != 0 {
		t.Fatal(talk)
	}
	now, err := os.ReadFile(path)
	if err != nil || bytes.Equal(old, now) {
		t.Errorf("nothing was stored: %v", err)
	}
	if _, second, _ := run("ls", "--json", path); second != first {
		t.Errorf("first\n%s\nthen\n%s", first, second)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, now) {
		t.Errorf("stored again: %v", err)
	}
	if err := os.WriteFile(path, old, 0o400); err != nil {
		t.Fatal(err)
	}
	if status, third, talk := run("ls", "--json", path); third != first || status != 0 {
		t.Errorf("status %d, %s", status, talk)
	}
}
