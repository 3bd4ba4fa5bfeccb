//go:build unix

package main

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
)

// largeCapture has enough frames to keep every command busy for longer than a test
// needs to notice that it has begun to write.
func largeCapture(t *testing.T, frames int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large.uwc")
	store, err := store.Create(file, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	for range 4 {
		rec, err := store.Begin(captures.Exchange{Method: "POST", URL: "https://127.0.0.1/a.B/C", HTTP: "2", RequestHeaders: headers})
		if err != nil {
			t.Fatal(err)
		}
		rec.Response(200, headers)
		for range frames / 4 {
			noise := make([]byte, 100)
			for i := range noise {
				noise[i] = byte(r.Uint32())
			}
			text := hex.EncodeToString(noise)
			frame := append([]byte{0, 0, 0, 0, byte(len(text) + 3), 0x0a, 0xc8, 0x01}, text...)
			rec.Chunk(captures.Down, frame)
		}
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// A wholeCase is a command that writes a result under a name.
type wholeCase struct {
	name, out string
	args      func(in, out string) []string
	stdin     bool // the input comes from a pipe that stays open
}

func wholeCases() []wholeCase {
	export := func(format string) func(in, out string) []string {
		return func(in, out string) []string {
			return []string{"export", "--as-recorded", "--format", format, "-o", out, in}
		}
	}
	return []wholeCase{
		{"redact", "clean.uwc", func(in, out string) []string { return []string{"redact", in, "-o", out} }, false},
		{"import", "new.uwc", func(_, out string) []string { return []string{"import", "-", "-o", out} }, true},
		{"export har", "x.har", export("har"), false},
		{"export jsonl", "x.jsonl", export("jsonl"), false},
		{"export pcapng", "x.pcapng", export("pcapng"), false},
		{"export parquet", "tables", export("parquet"), false},
		{"export raw", "frames", export("raw"), false},
	}
}

// startWhole starts a command and returns when it has begun to write its result.
func startWhole(t *testing.T, bin string, c wholeCase, in, dir string, lines []byte) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(bin, c.args(in, filepath.Join(dir, c.out))...)
	cmd.Stderr = new(bytes.Buffer)
	if c.stdin {
		pipe, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pipe.Close() })
		go func() { _, _ = pipe.Write(lines) }() // and no end
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); len(partials(t, dir)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not begin to write: %v", cmd.Stderr)
		}
	}
	return cmd
}

// partials are the temporary files and folders in a folder.
func partials(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ".*.unwire-partial-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestResultIsWholeOrNotThere ends commands in the middle of writing: there is
// nothing under the result's name, or what was there before. After an interrupt
// nothing else is left; after SIGKILL, a temporary file whose name says so.
func TestResultIsWholeOrNotThere(t *testing.T) {
	bin := unwireCommand(t)
	in := largeCapture(t, 60_000)
	lines, err := exec.Command(bin, "export", "--as-recorded", "--format", "jsonl", in).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range wholeCases() {
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			t.Run(c.name+" "+sig.String(), func(t *testing.T) {
				dir := t.TempDir()
				out := filepath.Join(dir, c.out)
				replaces := strings.Contains(c.out, ".") && !strings.HasSuffix(c.out, ".uwc")
				if replaces {
					if err := os.WriteFile(out, []byte("before"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cmd := startWhole(t, bin, c, in, dir, lines[:len(lines)/2])
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				got, err := os.ReadFile(out)
				if replaces && string(got) != "before" || !replaces && !os.IsNotExist(err) {
					t.Errorf("%s has %d bytes: %v", c.out, len(got), err)
				}
				if left := partials(t, dir); sig == syscall.SIGKILL && len(left) == 0 || sig == syscall.SIGTERM && len(left) > 0 {
					t.Errorf("left: %q", left)
				}
				if sig == syscall.SIGTERM && cmd.ProcessState.ExitCode() != 130 {
					t.Errorf("%v: %s", cmd.ProcessState, cmd.Stderr)
				}
			})
		}
	}
}

// TestResultAfterWriteError: a limit on the size of files, as a full disk.
func TestResultAfterWriteError(t *testing.T) {
	bin := unwireCommand(t)
	in := largeCapture(t, 20_000)
	lines, err := exec.Command(bin, "export", "--as-recorded", "--format", "jsonl", in).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range wholeCases() {
		if c.out == "frames" {
			continue // none of its files reaches the limit
		}
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := c.args(in, filepath.Join(dir, c.out))
			cmd := exec.Command("sh", append([]string{"-c", `ulimit -f 600; exec "$0" "$@"`, bin}, args...)...)
			cmd.Stdin = bytes.NewReader(lines)
			text, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 3 {
				t.Errorf("%v: %s", cmd.ProcessState, text)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) > 0 {
				t.Errorf("left: %v", entries)
			}
		})
	}
}

// TestResultPermissions: results are readable by their owner only, complete, and
// have nothing next to them; a link to a result stays a link.
func TestResultPermissions(t *testing.T) {
	bin := unwireCommand(t)
	in := largeCapture(t, 40)
	lines, err := exec.Command(bin, "export", "--as-recorded", "--format", "jsonl", in).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range wholeCases() {
		dir := t.TempDir()
		out := filepath.Join(dir, c.out)
		cmd := exec.Command(bin, c.args(in, out)...)
		cmd.Stdin = bytes.NewReader(lines)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, text)
		}
		info, err := os.Stat(out)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if info.Mode().Perm()&0o077 != 0 || !info.IsDir() && info.Size() == 0 {
			t.Errorf("%s: %v, %d bytes", c.name, info.Mode(), info.Size())
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: left: %v, %v", c.name, entries, err)
		}
	}
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.jsonl"), filepath.Join(dir, "link.jsonl")
	if err := os.WriteFile(real, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(bin, "export", "--as-recorded", in, "-o", link).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got, err := os.ReadFile(real); err != nil || !bytes.Equal(got, lines) {
		t.Errorf("the link's target has %d bytes, %v", len(got), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
}
