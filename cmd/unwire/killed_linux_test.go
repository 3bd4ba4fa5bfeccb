package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
)

// A killedCapture is a passive capture that was killed while its command ran.
type killedCapture struct {
	*secretRun
	folder string // with its packets and keys
}

// newSecretRun is a secretRun with folders for captures, of which work is the
// one for temporary files.
func newSecretRun(t *testing.T) *secretRun {
	t.Helper()
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), config: clientConfig(t), ran: map[string]bool{}}
	for _, name := range []string{"out", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(s.work, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// killPassive starts a passive capture of a shell script that ends by waiting,
// and kills it when the folder has what enough wants.
func killPassive(t *testing.T, s *secretRun, script string, enough func(folder string) bool, flags ...string) killedCapture {
	t.Helper()
	pid := filepath.Join(t.TempDir(), "pid")
	args := append([]string{"capture", "-o", "out/a.uwc", "--passive"}, flags...)
	cmd := s.command(append(args, "--", "sh", "-c", script+`; echo $$ >"$1.new"; mv "$1.new" "$1"; exec sleep 600`, "sh", pid)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second // the command lives on, with stderr open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if data, err := os.ReadFile(pid); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			if strings.Contains(said.String(), "passive capture: ") {
				t.Skipf("this system has no namespaces: %s", said.String())
			}
			t.Fatalf("it has ended: %s", said.String())
		default:
		}
		folders, _ := filepath.Glob(filepath.Join(s.work, "unwire-passive-*"))
		if _, err := os.Stat(pid); err == nil && len(folders) == 1 && enough(folders[0]) {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-ended
			return killedCapture{s, folders[0]}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not recorded in a minute: %q", folders)
		}
	}
}

// capture runs a command that does nothing with its traffic captured, in another
// folder, and returns what unwire said.
func (k killedCapture) capture() string {
	k.t.Helper()
	cmd := k.command("capture", "-o", "later.uwc", "--", "true")
	cmd.Dir = filepath.Join(k.work, "elsewhere")
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// importable reports whether packets that are still being recorded have n calls
// that are complete.
func (s *secretRun) importable(packets, keys string, n int) bool {
	file := filepath.Join(s.t.TempDir(), "trial.uwc")
	cmd := s.command("import", packets, "--keylog", keys, "-o", file)
	_ = cmd.Run() // the packets may end within one
	store, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		return false
	}
	defer store.Close()
	for ex, err := range store.Exchanges(s.t.Context()) {
		if err == nil && ex.Outcome == captures.Complete {
			n--
		}
	}
	return n <= 0
}

// demoScript has the demo's client make three calls of the stand-in.
func demoScript(s *secretRun) string {
	standin := s.start("standin", "--json")
	return s.bin + " demo-client --url " + standin.URL + " --upstream-ca " + standin.CA + " >/dev/null 2>&1"
}

// alone fails unless the capture has the calls of demoScript, once each, and nothing is
// left of its recorder.
func (k killedCapture) alone(said string) {
	k.t.Helper()
	if out := k.ok(0, "ls", "--json", "out/a.uwc"); bytes.Count(out, []byte("\n")) != 3 || bytes.Count(out, []byte(`"complete":true`)) != 3 {
		k.t.Errorf("the capture has\n%s\n%s", out, said)
	}
	files, _ := filepath.Glob(filepath.Join(k.work, "*", "*"))
	for _, name := range files {
		if base := filepath.Base(name); strings.HasPrefix(base, "unwire-recovered") || strings.HasSuffix(base, "-packets") {
			k.t.Errorf("there is %s: %s", name, said)
		}
	}
	if _, err := os.Lstat(k.folder); !os.IsNotExist(err) {
		k.t.Errorf("%s is still there: %v", k.folder, err)
	}
	if info, err := os.Stat(filepath.Join(k.work, "out/a.uwc")); err != nil || info.Mode().Perm() != 0o600 {
		k.t.Errorf("%v, %v", info, err)
	}
	k.searchCapture(filepath.Join(k.work, "out/a.uwc"))
}

// TestKilledPassive kills a passive capture. The next command that reads it, or the next
// capture, completes it, without its secrets, and removes the keys.
func TestKilledPassive(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		keys  string   // the file with the keys, "" in the folder
		next  []string // the next command; nil: another capture
	}{
		"next capture":         {nil, "", nil},
		"ls":                   {nil, "", []string{"ls", "out/a.uwc"}},
		"export":               {nil, "", []string{"export", "out/a.uwc", "--format", "har", "-o", "a.har"}},
		"with keys of its own": {[]string{"--keylog", "keys.log", "--packets", "kept.pcapng"}, "keys.log", []string{"show", "out/a.uwc#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecretRun(t)
			k := killPassive(t, s, demoScript(s), func(folder string) bool {
				keys := filepath.Join(folder, "keys.txt")
				if c.keys != "" {
					keys = filepath.Join(s.work, c.keys)
				}
				return s.importable(filepath.Join(folder, "packets.pcapng"), keys, 3)
			}, c.flags...)

			if out := s.ok(0, "doctor", "--json"); !bytes.Contains(out, []byte(`"check":"killed captures","status":"warn","what":"`+k.folder)) {
				t.Errorf("doctor does not warn of %s: %s", k.folder, out)
			}
			said := ""
			if c.next == nil {
				said = k.capture()
			} else {
				out, err := s.command(c.next...).CombinedOutput()
				if said = string(out); err != nil {
					t.Errorf("%v", err)
				}
			}
			if !strings.Contains(said, "out/a.uwc is complete: ") {
				t.Errorf("said %s", said)
			}
			k.alone(said)
			if _, err := os.Stat(filepath.Join(s.work, "kept.pcapng")); (err == nil) != (len(c.flags) > 0) {
				t.Errorf("packets that were to be kept: %v: %s", err, said)
			}
			if out := s.ok(0, "doctor", "--json"); !bytes.Contains(out, []byte(`"check":"killed captures","status":"ok"`)) {
				t.Errorf("doctor still warns: %s", out)
			}
			if again := k.capture(); strings.Contains(again, "is complete") {
				t.Errorf("recovered twice: %s", again)
			}
		})
	}
}

// TestKilledPassiveNeedsPackets kills a passive capture before the keys are logged: nothing
// could be recorded, and all is there when the capture is read. What was noted meanwhile
// keeps its place.
func TestKilledPassiveNeedsPackets(t *testing.T) {
	curl := need.Curl(t, "OpenSSL")
	s := newSecretRun(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answer "+r.URL.Path)
		if r.URL.Path == "/open" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	late := filepath.Join(s.work, "late.txt")
	script := fmt.Sprintf(`%[1]s -sk %[2]s/first >/dev/null; SSLKEYLOGFILE=%[3]s %[1]s -sk %[2]s/late >/dev/null; %[1]s -sNk %[2]s/open >opened &
		until [ -s opened ]; do sleep 0.05; done`, curl, server.URL, late)
	opened := regexp.MustCompile(`"id":(\d+),[^\n]*/open"`)
	var open string
	k := killPassive(t, s, script, func(string) bool {
		out, err := s.command("ls", "--json", "out/a.uwc").Output()
		m := opened.FindSubmatch(out)
		if err != nil || m == nil {
			return false
		}
		open = string(m[1])
		s.ok(0, "note", "out/a.uwc#"+open, "is open")
		return true
	})
	keys, err := os.ReadFile(late)
	if err != nil {
		t.Fatal(err)
	}
	// The command lives on, and can log keys.
	f, err := os.OpenFile(filepath.Join(k.folder, "keys.txt"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(keys); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := s.command("ls", "--json", "out/a.uwc").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said := string(out); !strings.Contains(said, "out/a.uwc is complete: 1 exchange added, 1 truncated ones repaired") {
		t.Errorf("said %s", said)
	}
	for _, path := range []string{"/first", "/late", "/open"} {
		if bytes.Count(out, []byte(server.URL+path+`"`)) != 1 {
			t.Errorf("%s is not there once: %s", path, out)
		}
	}
	if out := s.ok(0, "show", "out/a.uwc#"+open); !bytes.Contains(out, []byte("answer /open")) || !bytes.Contains(out, []byte("is open")) {
		t.Errorf("the open exchange is\n%s", out)
	}
}

// TestKilledPassiveWithNothing: what cannot become an exchange is said and
// removed; an import that fails leaves the folder, and says how to remove it.
func TestKilledPassiveWithNothing(t *testing.T) {
	wants := func(files ...string) func(string) bool {
		return func(folder string) bool {
			for _, name := range append(files, "about.json") {
				if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
					return false
				}
			}
			return true
		}
	}
	t.Run("no exchange", func(t *testing.T) {
		k := killPassive(t, newSecretRun(t), "true", wants("packets.pcapng", "keys.txt"))
		if said := k.capture(); !strings.Contains(said, k.folder) || !strings.Contains(said, "removed") {
			t.Errorf("said %s", said)
		}
		if _, err := os.Lstat(k.folder); !os.IsNotExist(err) {
			t.Error(err)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		k := killPassive(t, newSecretRun(t), "true", wants("packets.pcapng", "keys.txt"))
		garbage := bytes.Repeat([]byte("no packets at all "), 1000)
		if err := os.WriteFile(filepath.Join(k.folder, "packets.pcapng"), garbage, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the folder is unlocked again
			if said := k.capture(); !strings.Contains(said, "cannot import the packets") || !strings.Contains(said, "rm -r "+k.folder) {
				t.Errorf("said %s", said)
			}
		}
		if said, err := k.command("ls", "out/a.uwc").CombinedOutput(); err != nil || !strings.Contains(string(said), "rm -r "+k.folder) {
			t.Errorf("%v: %s", err, said)
		}
		if data, err := os.ReadFile(filepath.Join(k.folder, "packets.pcapng")); err != nil || !bytes.Equal(data, garbage) {
			t.Errorf("the folder did not stay as it was: %v", err)
		}
	})
	t.Run("its folder is gone", func(t *testing.T) {
		s := newSecretRun(t)
		k := killPassive(t, s, demoScript(s), func(folder string) bool {
			return s.importable(filepath.Join(folder, "packets.pcapng"), filepath.Join(folder, "keys.txt"), 3)
		})
		if err := os.RemoveAll(filepath.Join(s.work, "out")); err != nil {
			t.Fatal(err)
		}
		said := k.capture()
		if files, _ := filepath.Glob(filepath.Join(s.work, "elsewhere", "unwire-recovered-*.uwc")); len(files) != 1 {
			t.Errorf("recovered %q: %s", files, said)
		}
	})
}

// TestRunningPassiveIsNotLeftOver: another capture leaves the folder of one that
// runs alone.
func TestRunningPassiveIsNotLeftOver(t *testing.T) {
	s := newSecretRun(t)
	script := `cd "$TMPDIR" && "$UNWIRE" capture -o inner.uwc -- true 2>said && ls -d unwire-passive-* >folders`
	t.Setenv("UNWIRE", s.bin)
	cmd := s.command("capture", "-o", "out/a.uwc", "--passive", "--", "sh", "-c", script)
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "passive capture: ") {
			t.Skipf("this system has no namespaces: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	said, err := os.ReadFile(filepath.Join(s.work, "said"))
	if err != nil || strings.Contains(string(said), "unwire-passive-") {
		t.Errorf("%v: %s", err, said)
	}
	folders, err := os.ReadFile(filepath.Join(s.work, "folders"))
	if err != nil || strings.Count(string(folders), "\n") != 1 {
		t.Errorf("%v: %q", err, folders)
	}
	if left, _ := filepath.Glob(filepath.Join(s.work, "unwire-passive-*")); len(left) != 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestForgedFolderIsLeftAlone: a link with the name of a folder is reported by
// capture and doctor, and what it leads to is not touched.
func TestForgedFolderIsLeftAlone(t *testing.T) {
	s := newSecretRun(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lock", "packets.pcapng", "keys.txt", "about.json"} {
		if err := os.WriteFile(filepath.Join(target, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	forged := filepath.Join(s.work, "unwire-passive-123456")
	if err := os.Symlink(target, forged); err != nil {
		t.Fatal(err)
	}
	if said := (killedCapture{s, forged}).capture(); !strings.Contains(said, forged+", which has the name of a passive capture's temporary folder: the folder is a symbolic link") {
		t.Errorf("said %s", said)
	}
	seen := false
	for line := range bytes.Lines(s.ok(0, "doctor", "--json")) {
		var c struct{ Check, Status, What string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		seen = seen || c.Check == "killed captures" && c.Status == "warn" && strings.Contains(c.What, "symbolic link")
	}
	if !seen {
		t.Error("doctor does not report it")
	}
	n := 0
	err := filepath.WalkDir(target, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil || n != 4 {
		t.Errorf("%d files, %v", n, err)
	}
}
