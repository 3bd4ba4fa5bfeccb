package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
)

// A writingCommand is a command that writes files below a folder.
type writingCommand struct {
	name string

	// prepare makes what the command changes, if anything.
	prepare func(t *testing.T, dir string)
	// args are its arguments, which write to dir.
	args func(in writingInput, dir string) []string
	// status is its exit status.
	status int
	// varies is set if each run writes other bytes, such as other placeholders.
	varies bool
	// small is set if the result fits into some pages.
	small bool
	// series is set if the command writes captures until it ends, and accepts notes meanwhile: how many files there
	// are depends on when it was killed.
	series bool
	// updates is set if the command changes a capture that was there before: its database keeps journals.
	updates bool
}

// A writingInput is what writing commands read.
type writingInput struct {
	capture, lines, script, definitions string

	// server is the URL of a server that accepts uploads, and upload the file to send.
	server, upload string
}

// packages is how many packages the definitions have, and thus files.
const packages = 24

// newWritingInput makes inputs that take a while to write.
func newWritingInput(t *testing.T, bin string) writingInput {
	t.Helper()
	in := writingInput{capture: largeCapture(t, 8_000)}
	dir := t.TempDir()
	in.lines, in.script, in.definitions = filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "a.js"), filepath.Join(dir, "new")
	if text, err := exec.Command(bin, "export", "--as-recorded", "--format", "jsonl", in.capture, "-o", in.lines).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var script strings.Builder
	script.WriteString("const {proto3}=require(\"@bufbuild/protobuf\");\n")
	for i := range packages {
		for k := range 20 {
			fmt.Fprintf(&script, "const M%d_%d=proto3.makeMessageType(\"p%d.v1.M%d\",()=>[{no:1,name:\"a\",kind:\"scalar\",T:9}]);\n", i, k, i, k)
		}
	}
	if err := os.WriteFile(in.script, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	writeDefinitions(t, in.definitions, "\tstring b = 2;\n")

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client may have been killed
	}))
	t.Cleanup(server.Close)
	in.server, in.upload = server.URL, filepath.Join(dir, "upload")
	if err := os.WriteFile(in.upload, bytes.Repeat([]byte("some text "), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	return in
}

// writeDefinitions writes a file for each package, whose messages have further fields.
func writeDefinitions(t *testing.T, dir, further string) {
	t.Helper()
	for i := range packages {
		var text strings.Builder
		fmt.Fprintf(&text, "syntax = \"proto3\";\n\npackage p%d.v1;\n", i)
		for k := range 20 {
			fmt.Fprintf(&text, "\nmessage M%d {\n\tstring a = 1;\n%s}\n", k, further)
		}
		name := filepath.Join(dir, fmt.Sprintf("p%d/v1/p.proto", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writingCommands are all commands that write results to files. One that is new belongs here, unless it writes one
// file by app.WholeFile.
func writingCommands() []writingCommand {
	export := func(format, out string) writingCommand {
		return writingCommand{name: "export " + format, varies: format == "pcapng", args: func(in writingInput, dir string) []string {
			return []string{"export", "--as-recorded", "--format", format, "-o", filepath.Join(dir, out), in.capture}
		}}
	}
	return []writingCommand{
		{
			name: "schema update",
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				writeDefinitions(t, filepath.Join(dir, "defs"), "")
			},
			args: func(in writingInput, dir string) []string {
				return []string{"schema", "update", "--proto", filepath.Join(dir, "defs"), "--from", in.definitions, "--date", "2026-01-02", "--write"}
			},
		},
		{name: "schema extract", args: func(in writingInput, dir string) []string {
			return []string{"schema", "extract", "-o", filepath.Join(dir, "out"), in.script}
		}},
		{name: "schema infer", small: true, args: func(in writingInput, dir string) []string {
			return []string{"schema", "infer", "-o", filepath.Join(dir, "out"), in.capture}
		}},
		{name: "redact", varies: true, args: func(in writingInput, dir string) []string {
			return []string{"redact", in.capture, "-o", filepath.Join(dir, "a.uwc")}
		}},
		{name: "import", varies: true, args: func(in writingInput, dir string) []string {
			return []string{"import", in.lines, "-o", filepath.Join(dir, "a.uwc")}
		}},
		{name: "note", varies: true, updates: true, small: true, prepare: copyNoted, args: func(_ writingInput, dir string) []string {
			return []string{"note", filepath.Join(dir, "a.uwc"), "1", strings.Repeat("a long note ", 200)}
		}},
		{name: "use", varies: true, updates: true, small: true, prepare: copyNoted, args: func(in writingInput, dir string) []string {
			return []string{"use", in.definitions, filepath.Join(dir, "a.uwc")}
		}},
		// Nothing listens at the address, and the failed call is recorded.
		{name: "call", varies: true, small: true, status: 3, args: func(_ writingInput, dir string) []string {
			return []string{"call", "/agent.v1.AgentService/Run", "--data", "{}", "--proto", "../../proto", "--to", "http://127.0.0.1:1", "-o", filepath.Join(dir, "a.uwc")}
		}},
		{name: "replay", varies: true, small: true, status: 3, args: func(in writingInput, dir string) []string {
			return []string{"replay", "--omit-secrets", "--to", "http://127.0.0.1:1", "-o", filepath.Join(dir, "a.uwc"), in.capture, "1"}
		}},
		// Each upload is larger than a file may become.
		{name: "capture --rotate", varies: true, small: true, series: true, args: func(in writingInput, dir string) []string {
			upload := "curl -sS -o /dev/null --data-binary @" + in.upload + " " + in.server + "\n"
			return []string{"capture", "-o", filepath.Join(dir, "a.uwc"), "--rotate", "64KB", "--", "sh", "-ec", strings.Repeat(upload, 4)}
		}},
		{name: "probe", varies: true, small: true, status: 1, args: func(_ writingInput, dir string) []string {
			return []string{"probe", "--to", "http://127.0.0.1:1", "--method", "/a.v1.B/C", "--journal", filepath.Join(dir, "a.jsonl"), "--resume"}
		}},
		export("har", "a.har"),
		export("jsonl", "a.jsonl"),
		export("pcapng", "a.pcapng"),
		export("parquet", "tables"),
		export("raw", "frames"),
	}
}

// copyNoted makes a capture that commands change.
func copyNoted(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(recordBody(t, "application/proto", []byte("\x08\x01")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.uwc"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// isJournal reports whether a file belongs to a database that is open or was not closed.
func isJournal(name string) bool {
	return strings.HasSuffix(name, ".uwc-wal") || strings.HasSuffix(name, ".uwc-shm") || strings.HasSuffix(name, ".uwc-journal") || strings.HasSuffix(name, ".uwc-lock")
}

// isControl reports whether a file has the address to which a running recorder accepts notes.
func isControl(name string) bool { return strings.HasSuffix(name, ".uwc-control") }

// run runs the command to its end and returns how long it took.
func (c *writingCommand) run(t *testing.T, bin string, in writingInput, dir string) time.Duration {
	t.Helper()
	cmd := exec.Command(bin, c.args(in, dir)...)
	began := time.Now()
	text, _ := cmd.CombinedOutput() // the status is looked at
	if cmd.ProcessState.ExitCode() != c.status {
		t.Fatalf("%s: %v: %s", c.name, cmd.ProcessState, text)
	}
	return time.Since(began)
}

// treeOf has the files below a folder by their paths; those that a killed process has left are not among them, and
// returned by their paths.
func treeOf(t *testing.T, dir string) (files map[string]string, left []string) {
	t.Helper()
	files = map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.Contains(d.Name(), ".unwire-partial-") {
			left = append(left, path)
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, left
}

// TestWritersKilledAtAnyTime kills each command that writes, again and again: each file is the one from before or the
// new one. Then the command runs once more: the result is that of a command that was never killed, and nothing else is
// left. UNWIRE_LONG=1 kills each 100 times.
func TestWritersKilledAtAnyTime(t *testing.T) {
	bin := unwireCommand(t)
	in := newWritingInput(t, bin)
	kills := 4
	if os.Getenv("UNWIRE_LONG") != "" {
		kills = 100
	}
	for _, c := range writingCommands() {
		t.Run(c.name, func(t *testing.T) {
			fresh := func() string {
				dir := t.TempDir()
				if c.prepare != nil {
					c.prepare(t, dir)
				}
				return dir
			}
			whole := fresh()
			before, _ := treeOf(t, whole)
			takes := c.run(t, bin, in, whole)
			want, left := treeOf(t, whole)
			if len(left) > 0 || len(want) == 0 {
				t.Fatalf("it wrote %q and left %q", slices.Sorted(maps.Keys(want)), left)
			}

			dir, ended, r := fresh(), 0, rand.New(rand.NewPCG(1, 2))
			for range kills {
				c.killed(t, bin, in, dir, time.Duration(r.Int64N(int64(takes))))
				c.compare(t, bin, dir, before, want)

				// Commands have nothing to do, or refuse to replace the result, if it is there.
				if got, _ := treeOf(t, dir); !c.updates && len(got) == len(want) && (c.varies || maps.Equal(got, want)) {
					ended++
					dir = fresh()
				}
			}
			if ended == kills {
				t.Log("it was never killed in time")
			}
			c.run(t, bin, in, dir)
			got, left := treeOf(t, dir)
			for name := range got {
				// The next recorder of a series does not open the earlier files.
				if !c.series && (isJournal(name) || isControl(name)) {
					left = append(left, name)
				}
			}
			if len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if c.varies {
				return
			}
			if !maps.Equal(got, want) {
				t.Errorf("the result has %q, want %q, or their contents differ", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			t.Logf("%d of %d ended before they were killed", ended, kills)
		})
	}
}

// killed runs the command and kills it after a while.
func (c *writingCommand) killed(t *testing.T, bin string, in writingInput, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(bin, c.args(in, dir)...)
	var text bytes.Buffer
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != -1 && code != c.status {
		t.Errorf("%v: %s", cmd.ProcessState, text.String())
	}
}

// blocksOf returns the number of blocks of a pcapng file, which must end with a complete one.
func blocksOf(t *testing.T, data string) (count int) {
	t.Helper()
	for ; len(data) > 0; count++ {
		if len(data) < 12 {
			t.Errorf("%d bytes follow the last block", len(data))
			return count
		}
		length := binary.LittleEndian.Uint32([]byte(data[4:8]))
		if length < 12 || uint64(length) > uint64(len(data)) {
			t.Errorf("a block of %d bytes, of which %d are in the file", length, len(data))
			return count
		}
		data = data[length:]
	}
	return count
}

// compare has each file be the one from before, or the one that the command writes.
func (c *writingCommand) compare(t *testing.T, bin, dir string, before, want map[string]string) {
	t.Helper()
	files, _ := treeOf(t, dir)
	for name, data := range files {
		switch old, was := before[name]; {
		case isJournal(name) && c.varies:
			// The next process that opens the capture applies it or drops it.
		case isControl(name) && c.series:
			// It is of no use without its recorder.
		case was && data == old, data == want[name]:
		case c.varies && filepath.Ext(name) == ".jsonl":
			// A command that continues a journal ignores a line that was cut off.
			lines := strings.Split(data, "\n")
			for _, line := range lines[:len(lines)-1] {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s has the line %q", name, line)
				}
			}
		case c.varies && want[name] != "" && filepath.Ext(name) != ".uwc":
			// The certificate and the placeholders of secrets are random, and their encodings differ in length.
			if got, all := blocksOf(t, data), blocksOf(t, want[name]); got != all {
				t.Errorf("%s has %d blocks, in the result %d", name, got, all)
			}
		case c.varies && (want[name] != "" || c.series && filepath.Ext(name) == ".uwc"):
			if out, err := exec.Command(bin, "ls", filepath.Join(dir, name)).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", name, err, out)
			}
		default:
			t.Errorf("%s has %d bytes, before %d, in the result %d", name, len(data), len(old), len(want[name]))
		}
	}
}

// TestWritersOnAFullDisk has each command that writes fill a disk: it says so, what was there stays, and nothing else
// is left. When there is room, it succeeds.
func TestWritersOnAFullDisk(t *testing.T) {
	bin := unwireCommand(t)
	in := newWritingInput(t, bin)
	for _, c := range writingCommands() {
		t.Run(c.name, func(t *testing.T) {
			dir := need.SmallDisk(t, 96<<10)
			work := filepath.Join(dir, "work")
			if err := os.Mkdir(work, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				c.prepare(t, work)
			}
			before, _ := treeOf(t, work)

			// All but some pages of the disk are taken. Files of 1,000 bytes take a page each.
			ballast := filepath.Join(dir, "ballast")
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = f.Write(make([]byte, 1<<20))
			}
			f.Close()
			free := int64(5 * 4096)
			if c.small {
				free = 0
			}
			if err := os.Truncate(ballast, fileSize(t, ballast)-free); err != nil {
				t.Fatal(err)
			}

			cmd := exec.Command(bin, c.args(in, work)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			text, _ := cmd.CombinedOutput() // the status is looked at
			if code := cmd.ProcessState.ExitCode(); code == 0 || code == 2 || code < 0 || !bytes.Contains(text, []byte("no space left")) || bytes.Contains(text, []byte("unwire-partial")) {
				t.Errorf("%v: %s", cmd.ProcessState, text)
			}
			got, left := treeOf(t, work)
			for name, data := range before {
				if got[name] != data {
					t.Errorf("%s has changed", name)
				}
			}
			for name := range got {
				if c.updates && isJournal(name) {
					t.Errorf("left: %q", name)
				}
			}
			if len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			c.run(t, bin, in, work)
		})
	}
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
