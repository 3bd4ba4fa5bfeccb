package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
)

// megabyte is the size of the files of TestMegabytesAreCheap, and what each command may use to read one.
const (
	megabyte         = 1 << 20
	megabyteCPU      = 2 * time.Second
	megabyteMemory   = 500 << 10 // KiB
	megabyteDeadline = time.Minute

	// busyMemory is what a command may use without UNWIRE_LONG=1, in KiB: where other tests run at the same time,
	// the garbage collector falls behind. Processor time is not compared there, since it depends on what else
	// runs; megabyteDeadline is.
	busyMemory = 750 << 10
)

// TestMegabytesAreCheap has the commands read files of a megabyte that were made to be expensive. Without
// UNWIRE_LONG=1 it reads those only that were found to be expensive once, and does not compare processor time.
func TestMegabytesAreCheap(t *testing.T) {
	m := &megabytes{bin: unwireCommand(t), long: os.Getenv("UNWIRE_LONG") != ""}
	if m.long {
		m.payloads(t)
	}
	m.definitions(t)
	m.recordings(t)
	m.code(t)
	m.captures(t)
	m.settings(t)
}

// onceExpensive are the files that were found to be expensive once.
func onceExpensive() []string {
	return []string{
		"a.js equal messages", "a.json nested", "a.json balanced", "a.js.gz messages", "a.js.gz packages", "a.desc messages", "a.har entries",
		"a.har.gz", "a payload named 3000 times", "a payload of empty frames", "a payload of zero bytes in a page of text",
		"open messages", "many methods", "many imports",
	}
}

// megabytes runs a program on files of a megabyte.
type megabytes struct {
	bin  string
	long bool
	// folder is where commands run; "" is the folder of the test.
	folder string
	// wrong means that a command may end with the status for wrong usage, since its file is an argument that is wrong.
	wrong bool
}

// write writes a file under the first word of its name, by which the program may detect its format.
func (m *megabytes) write(t *testing.T, f megabyteFile) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), strings.Fields(f.name)[0])
	if err := os.WriteFile(path, f.data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// payloads reads messages, alone and as bodies of calls.
func (m *megabytes) payloads(t *testing.T) {
	for _, f := range payloads(t) {
		t.Run("payload/"+f.name, func(t *testing.T) {
			path := m.write(t, f)
			m.measure(t, "decode", path)
			m.measure(t, "decode", "--json", path)
			m.measure(t, "decode", "--hex", path)
			m.measure(t, "encode", path)
			m.measure(t, "diff", path, path)
			m.measure(t, "schema", "infer", "-o", filepath.Join(t.TempDir(), "out"), path)
			m.measure(t, "schema", "match", path)
			m.measure(t, "schema", "extract", "-o", filepath.Join(t.TempDir(), "out"), path)
			for _, codec := range []string{"application/connect+proto", "application/proto", "application/json", "text/event-stream"} {
				for _, args := range readers(recordBody(t, codec, f.data), t.TempDir()) {
					m.measure(t, args...)
				}
			}
		})
	}
}

// definitions reads .proto files.
func (m *megabytes) definitions(t *testing.T) {
	for _, f := range definitionTexts() {
		if !m.long && !slices.Contains(onceExpensive(), f.name) {
			continue
		}
		t.Run("definitions/"+f.name, func(t *testing.T) {
			path := m.write(t, megabyteFile{"a.proto", f.data})
			file := recordBody(t, "application/proto", []byte("\x08\x01"))
			m.measure(t, "schema", "ls", "--proto", path)
			m.measure(t, "schema", "print", "--proto", path, "a.v1.A")
			m.measure(t, "schema", "diff", path, path)
			m.measure(t, "schema", "check", "--proto", path, file)
			m.measure(t, "schema", "match", "--proto", path, file)
			m.measure(t, "drift", path, path)
			m.measure(t, "schema", "extract", "-o", filepath.Join(t.TempDir(), "out"), path)
		})
	}
}

// code reads scripts and archives.
func (m *megabytes) code(t *testing.T) {
	for _, f := range append(codeFiles(t), definitionFiles(t)...) {
		if !m.long && !slices.Contains(onceExpensive(), f.name) {
			continue
		}
		t.Run("code/"+f.name, func(t *testing.T) {
			path := m.write(t, f)
			m.measure(t, "schema", "extract", "-o", filepath.Join(t.TempDir(), "out"), path)
			m.measure(t, "drift", path, path)
		})
	}
}

// recordings reads files of other tools.
func (m *megabytes) recordings(t *testing.T) {
	for _, f := range append(recordings(), compressedRecordings(t)...) {
		if !m.long && !slices.Contains(onceExpensive(), f.name) {
			continue
		}
		t.Run("recording/"+f.name, func(t *testing.T) {
			path := m.write(t, f)
			file := filepath.Join(t.TempDir(), "a.uwc")
			m.measure(t, "import", path, "-o", file)
			if _, err := os.Stat(file); err != nil {
				return // nothing could be imported
			}
			m.measure(t, "ls", file)
			m.measure(t, "show", file, "1")

			// What compressed files contain is larger than a megabyte.
			for i, args := range readers(file, t.TempDir()) {
				if !strings.HasSuffix(path, ".gz") && (m.long || i%5 == 0) {
					m.measure(t, args...)
				}
			}
		})
	}
}

// captures reads forged captures with the default limits.
func (m *megabytes) captures(t *testing.T) {
	for i, f := range forgeries() {
		if !m.long && !slices.Contains(onceExpensive(), f.name) {
			continue
		}
		t.Run("capture/"+f.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f.uwc")
			f.forge(t, file)
			if info, err := os.Stat(file); err != nil || info.Size() > megabyte {
				t.Skipf("larger than a megabyte: %v", err)
			}
			for k, args := range readers(file, t.TempDir()) {
				if m.long || (i+k)%5 == 0 || args[0] == "show" {
					m.measure(t, args...)
				}
			}
		})
	}
}

// settings reads files that configure commands.
func (m *megabytes) settings(t *testing.T) {
	if !m.long {
		return
	}
	file := recordBody(t, "application/proto", []byte("\x08\x01"))
	for _, f := range settings() {
		t.Run("settings/"+f.name, func(t *testing.T) {
			path := m.write(t, f)
			switch name := filepath.Base(path); name {
			case "unwire.yaml":
				m.folder = filepath.Dir(path)
				m.measure(t, "config")
				m.folder = ""
			case "evidence.json", "evidence.pb":
				m.measure(t, "schema", "infer", "-o", filepath.Join(t.TempDir(), "out"), path)
				m.measure(t, "schema", "merge-evidence", "-o", filepath.Join(t.TempDir(), "all.json"), path, path)
			case "keys.txt":
				m.measure(t, "import", m.write(t, recordings()[0]), "--keylog", path, "-o", filepath.Join(t.TempDir(), "a.uwc"))
			case "a.patch":
				m.wrong = true
				m.measure(t, "replay", "--dry-run", "--omit-secrets", "--patch", path, file, "1")
				m.wrong = false
			case "a.replay":
				m.wrong = true
				m.measure(t, "replay", "--dry-run", "--omit-secrets", path)
				m.wrong = false
			}
		})
	}
}

// recordBody makes a capture of a call with a body of a type in both directions.
func recordBody(t *testing.T, contentType string, body []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.uwc")
	s, err := store.Create(file, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	headers := captures.Headers{{Name: "content-type", Value: contentType}}
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://127.0.0.1/a.B/C", HTTP: "2", Started: time.Now(), RequestHeaders: headers})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, body)
	rec.Response(200, headers)
	rec.Chunk(captures.Down, body)
	rec.End(captures.Complete, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// measure runs a command and compares its processor time and memory with the limits.
func (m *megabytes) measure(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), megabyteDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.bin, args...)
	cmd.Dir = m.folder
	cmd.Env = append(os.Environ(), "UNWIRE_TOKEN=made-up-token", "NO_COLOR=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run() // the status is looked at below

	name := args[0]
	for _, arg := range args[1:] {
		name += " " + filepath.Base(arg)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	// The format raw has a file for each frame, and too many of them are a wrong use.
	wrong := m.wrong || slices.Contains(args, "raw")
	switch code := cmd.ProcessState.ExitCode(); {
	case ctx.Err() != nil:
		t.Errorf("%s did not end within %v", name, megabyteDeadline)
	case code == app.ExitCredentials && args[0] == "probe":
		// A payload that looks like a token was redacted.
	case code != 0 && code != 1 && code != 3 && (code != app.ExitUsage || !wrong) && code < 64 || code > 64+16 || strings.Contains(stderr.String(), "goroutine "):
		t.Errorf("%s: %v: %.2000s", name, cmd.ProcessState, stderr.String())
	}
	mostMemory := int64(busyMemory)
	if m.long {
		mostMemory = megabyteMemory
	}
	if m.long && cpu > megabyteCPU {
		t.Errorf("%s: %.1f s of processor time, may take %v: %.200s", name, cpu.Seconds(), megabyteCPU, stderr.String())
	}
	if limit := max(mostMemory, ownPeak(t)); used > limit {
		t.Errorf("%s: %d MiB, may take %d: %.200s", name, used>>10, limit>>10, stderr.String())
	}
}
