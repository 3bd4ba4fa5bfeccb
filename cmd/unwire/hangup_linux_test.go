package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures/need"
)

// newHangupOrigin answers in full, except that /open begins an answer and goes on with
// it until the client leaves.
func newHangupOrigin(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answered")
		if r.URL.Path == "/open" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// checkListed reads a capture with `unwire ls`, and wants as many exchanges, so many of
// them incomplete, and no file of SQLite's left beside it.
func checkListed(t *testing.T, file string, exchanges, incomplete int) {
	t.Helper()
	out, err := exec.Command(unwireCommand(t), "ls", "--json", file).Output()
	if err != nil {
		t.Fatalf("unwire ls: %v", err)
	}
	n, cut := bytes.Count(out, []byte(`"v":1`)), bytes.Count(out, []byte(`"outcome":"incomplete"`))
	if n != exchanges || cut != incomplete {
		t.Errorf("%d exchanges, %d of them incomplete, want %d and %d:\n%s", n, cut, exchanges, incomplete, out)
	}
	beside, err := filepath.Glob(file + "-*")
	if err != nil || len(beside) > 0 {
		t.Errorf("left: %v, %v", beside, err)
	}
}

// TestHangupEndsRecording hangs up a recording without a command, while an answer is
// on its way.
func TestHangupEndsRecording(t *testing.T) {
	t.Parallel()
	origin := newHangupOrigin(t)
	for _, mode := range []string{"", "--rotate 1h", "--keylog keys", "--reverse " + origin} {
		t.Run("capture "+mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "a.uwc")
			cmd := exec.Command(unwireCommand(t), append([]string{"capture", "--json", "-o", file}, strings.Fields(mode)...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
			proxy := startListening(t, cmd)

			base := origin
			transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
			if strings.HasPrefix(mode, "--reverse") {
				base, transport.Proxy = proxy.String(), nil
			}
			client := &http.Client{Transport: transport}
			for _, path := range []string{"/whole", "/open"} {
				res, err := client.Get(base + path)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if _, err := io.ReadFull(res.Body, make([]byte, len("answered"))); err != nil {
					t.Fatal(err)
				}
			}

			took, state := endAfter(t, cmd, syscall.SIGHUP)
			if took > signalLimit || state.ExitCode() != 0 {
				t.Errorf("%v after %v", state, took)
			}
			checkListed(t, file, 2, 1)
		})
	}
}

// startListening starts a recording with --json, and returns its address.
func startListening(t *testing.T, cmd *exec.Cmd) *url.URL {
	t.Helper()
	events, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
	line, err := bufio.NewReader(events).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(line, `"proxy":"`)
	address, _, _ := strings.Cut(rest, `"`)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		t.Fatalf("no address in %q: %v", line, err)
	}
	return u
}

// TestHangupIsTheChilds hangs up a recording with a command: the command gets the
// signal, ends in its own time and with its own status, and recording ends after it.
func TestHangupIsTheChilds(t *testing.T) {
	t.Parallel()
	curl := need.Curl(t)
	origin := newHangupOrigin(t)
	for name, c := range map[string]struct {
		script    string
		status    int
		exchanges int
		atLeast   time.Duration
	}{
		"ends":      {"exec sleep 100", 128 + int(syscall.SIGHUP), 1, 0},
		"takes 2 s": {"trap '" + curl + " -sS " + origin + "/last; sleep 2; exit 7' HUP; while :; do sleep 0.05; done", 7, 2, 2 * time.Second},
	} {
		for _, mode := range []string{"", "--transparent", "--passive"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				file, ready := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "ready")
				script := fmt.Sprintf("%s -sS %s/whole; echo > %s; %s", curl, origin, ready, c.script)
				cmd := captureScript(t, file, mode, script)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
				awaitFile(t, ready)
				time.Sleep(signalDelay) // the script is now at its end
				took, state := endAfter(t, cmd, syscall.SIGHUP)
				if took < c.atLeast || took > c.atLeast+signalLimit || state.ExitCode() != c.status {
					t.Errorf("%v after %v, want exit status %d\n%s", state, took, c.status, cmd.Stderr)
				}
				checkListed(t, file, c.exchanges, 0)
			})
		}
	}
}

// captureScript is a recording of a shell's script.
func captureScript(t *testing.T, file, mode, script string) *exec.Cmd {
	t.Helper()
	args := append([]string{"capture", "-o", file}, strings.Fields(mode)...)
	cmd := exec.Command(unwireCommand(t), append(args, "--", "sh", "-c", script)...)
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir(), "TMPDIR="+t.TempDir())
	cmd.Stderr = new(bytes.Buffer)
	return cmd
}

// TestTerminalIsClosed closes the terminal of a recording: the system hangs up on it.
func TestTerminalIsClosed(t *testing.T) {
	t.Parallel()
	for mode, status := range map[string]int{"no command": 0, "": 129, "--transparent": 129, "--passive": 129} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, ready := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "ready")
			cmd := captureScript(t, file, mode, "echo > "+ready+"; exec sleep 100")
			if mode == "no command" {
				cmd.Args = []string{cmd.Args[0], "capture", "-o", file, "--keylog", ready}
			}
			master, terminal := openTerminal(t)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			terminal.Close()
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
			awaitFile(t, ready)
			time.Sleep(signalDelay)
			master.Close()
			took, state := endAfter(t, cmd, syscall.Signal(0))
			if took > signalLimit || state.ExitCode() != status {
				t.Errorf("%v after %v, want exit status %d", state, took, status)
			}
			checkListed(t, file, 0, 0)
		})
	}
}

// TestSecondHangupKillsTheChild hangs up on a command that ignores it.
func TestSecondHangupKillsTheChild(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--transparent", "--passive"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, ready := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "ready")
			cmd := captureScript(t, file, mode, "trap '' HUP; echo > "+ready+"; while :; do sleep 0.05; done")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
			awaitFile(t, ready)
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(secondDelay)
			took, state := endAfter(t, cmd, syscall.SIGHUP)
			if took > signalLimit || state.ExitCode() != 128+int(syscall.SIGKILL) {
				t.Errorf("%v after %v\n%s", state, took, cmd.Stderr)
			}
			checkListed(t, file, 0, 0)
		})
	}
}

// TestNohup: what was started with SIGHUP ignored goes on recording, and so does its
// command.
func TestNohup(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--transparent", "--passive", "no command"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, ready := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "ready")
			// The command hangs up on itself, too.
			inner := captureScript(t, file, mode, "kill -HUP $$; echo > "+ready+"; exec sleep 100")
			want := 128 + int(syscall.SIGTERM)
			if mode == "no command" {
				inner = exec.Command(unwireCommand(t), "capture", "-o", file, "--keylog", ready)
				inner.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
				want = 0
			}
			cmd := exec.Command("sh", append([]string{"-c", `trap '' HUP; exec "$@"`, "sh"}, inner.Args...)...)
			cmd.Env = inner.Env
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
			awaitFile(t, ready)
			for range 3 {
				if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				time.Sleep(signalDelay)
			}
			took, state := endAfter(t, cmd, syscall.SIGTERM)
			if took > signalLimit || state.ExitCode() != want {
				t.Errorf("%v after %v, want exit status %d", state, took, want)
			}
			checkListed(t, file, 0, 0)
		})
	}
}
