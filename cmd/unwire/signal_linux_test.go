package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

const (
	// signalLimit is how long a command may take to end after a signal. The
	// promise is one second; the rest is for a machine that runs other tests.
	signalLimit = 3 * time.Second

	// signalDelay is how long a command runs before it gets the signal.
	signalDelay = 250 * time.Millisecond

	// secondDelay is the time between two signals of one kind. If the second comes before the command has handled
	// the first, the system delivers one.
	secondDelay = 4 * signalDelay
)

// A signalCase is a command in a state in which it would never end, or not soon.
type signalCase struct {
	// args is the command line. In it, FIFO is a pipe that nobody writes to, BIG
	// and SMALL are captures, SILENT is the URL of a server that never answers, and
	// NEW is a file that does not exist.
	args string

	// stdin is "" for none, or "open" for a pipe that nobody writes to.
	stdin string

	// blocked says that stdout and stderr are full pipes that nobody reads.
	blocked bool

	// ends says how the command ends after the signal.
	ends ending
}

// An ending is how a command ends after a signal.
type ending int

const (
	// interrupted is exit status 130.
	interrupted ending = iota

	// inOrder is exit status 0: the command runs until it gets a signal.
	inOrder

	// asChild is the exit status of the child, which the signal ended.
	asChild
)

// signalCases has at least one case for each command: TestEveryCommandEndsAfterSignal
// fails for a command that is missing here.
var signalCases = []signalCase{
	{args: "demo"},
	{args: "demo-client --url SILENT"},
	{args: "capture -o NEW.uwc", ends: inOrder},
	{args: "capture -o NEW.uwc --reverse SILENT", ends: inOrder},
	{args: "capture -o NEW.uwc -- sleep 100", ends: asChild},
	{args: "capture -o NEW.uwc --transparent -- sleep 100", ends: asChild},
	{args: "capture -o NEW.uwc --passive -- sleep 100", ends: asChild},
	{args: "capture -o NEW.uwc", blocked: true},
	{args: "capture -o NEW.uwc --intercept dir:up --throttle 1KB/s", ends: inOrder},
	{args: "intercept SMALL.uwc", blocked: true},
	{args: "capture -o NEW.uwc --ui --no-open", ends: inOrder},
	{args: "capture -o NEW.uwc --ui --no-open -- sleep 100", ends: asChild},
	{args: "ui --no-open SMALL.uwc", ends: inOrder},
	{args: "ui --no-open BIG.uwc SMALL.uwc", ends: inOrder},
	{args: "ui --no-open SMALL.uwc", blocked: true},
	{args: "import FIFO -o NEW.uwc"},
	{args: "import - -o NEW.uwc", stdin: "open"},
	{args: "import BIG.har -o NEW.uwc"},
	{args: "ls SMALL.uwc", blocked: true},
	{args: "ls BIG.uwc"},
	{args: "show SMALL.uwc 1", blocked: true},
	{args: "show BIG.uwc 1"},
	{args: "show BIG.uwc 1", blocked: true},
	{args: "show --follow NEW.uwc"},
	{args: "decode FIFO"},
	{args: "decode", stdin: "open"},
	{args: "decode --follow NEW.uwc"},
	{args: "decode BIG.bin"},
	{args: "encode FIFO"},
	{args: "encode", stdin: "open"},
	{args: "grep . SMALL.uwc", blocked: true},
	{args: "grep nowhere BIG.uwc"},
	{args: "note SMALL.uwc", blocked: true},
	{args: "note BIG.uwc 1/up/0 text"},
	{args: "use FIFO SMALL.uwc"},
	{args: "use --list SMALL.uwc", blocked: true},
	{args: "config --json", blocked: true},
	{args: "config schema", blocked: true},
	{args: "chat SMALL.uwc", blocked: true},
	{args: "chat BIG.uwc"},
	{args: "chat --follow NEW.uwc"},
	{args: "chat fit FIFO"},
	{args: "chat weights", blocked: true},
	{args: "diff --all SMALL.uwc BIG.uwc", blocked: true},
	{args: "diff BIG.uwc BIG.uwc"},
	{args: "version", blocked: true},
	{args: "schema infer SMALL.uwc", blocked: true},
	{args: "schema infer BIG.uwc"},
	{args: "schema infer --raw FIFO"},
	{args: "schema merge-evidence FIFO FIFO"},
	{args: "schema history FIFO"},
	{args: "schema check SMALL.uwc", blocked: true},
	{args: "schema check BIG.uwc"},
	{args: "schema match SMALL.uwc", blocked: true},
	{args: "schema match BIG.uwc"},
	{args: "schema extract FIFO"},
	{args: "schema extract reflect:SILENT"},
	{args: "call a.B/C --proto reflect:SILENT --to SILENT"},
	{args: "schema diff FIFO FIFO"},
	{args: "schema update --proto SMALL --from SMALL.uwc", blocked: true},
	{args: "schema print --proto FIFO agent.v1.AgentRunRequest"},
	{args: "schema print agent.v1.AgentRunRequest", blocked: true},
	{args: "schema ls", blocked: true},
	{args: "schema find --proto FIFO request"},
	{args: "schema find request", blocked: true},
	{args: "schema refs --number 1", blocked: true},
	{args: "mcp SMALL.uwc", stdin: "open", ends: inOrder},
	{args: "mcp --listen 127.0.0.1:0 SMALL.uwc", ends: inOrder},
	{args: "mcp install --client cursor --dry-run SMALL.uwc", blocked: true},
	{args: "mcp skill", blocked: true},
	{args: "align SMALL.uwc", blocked: true},
	{args: "align BIG.uwc"},
	{args: "drift FIFO FIFO"},
	{args: "export SMALL.uwc -o NEW", blocked: true},
	{args: "export --format jsonl BIG.uwc -o NEW"},
	{args: "export --format jsonl BIG.uwc", blocked: true},
	{args: "replay SMALL.uwc 1 --to SILENT", blocked: true},
	{args: "replay SMALL.uwc 1 --to SILENT --omit-secrets"},
	{args: "replay verify SMALL.uwc --to SILENT", blocked: true},
	{args: "replay verify SMALL.uwc --to SILENT"},
	{args: "replay suite SUITE --to SILENT --omit-secrets"},
	{args: "probe --to SILENT --method /a.v1.S/M"},
	{args: "probe --to SILENT --from SMALL.uwc#1", blocked: true},
	{args: "credentials file:FIFO"},
	{args: "standin", ends: inOrder},
	{args: "standin --script FIFO"},
	{args: "mock SMALL.uwc", ends: inOrder},
	{args: "reflection --proto SMALL --to SILENT", ends: inOrder},
	{args: "reflection --proto FIFO --to SILENT"},
	{args: "probe-client SMALL.uwc -- sleep 100"},
	{args: "probe-client SMALL.uwc --dry-run", blocked: true},
	{args: "serve --listen 127.0.0.1:0", ends: inOrder},
	{args: "serve --listen 127.0.0.1:0 -o NEW.uwc", ends: inOrder},
	{args: "serve --listen 127.0.0.1:0 --to SILENT", ends: inOrder},
	{args: "serve --listen 127.0.0.1:0 --script FIFO"},
	{args: "redact SMALL.uwc -o NEW.uwc", blocked: true},
	{args: "redact BIG.uwc -o NEW.uwc"},
	{args: "audit SMALL.uwc", blocked: true},
	{args: "audit BIG.uwc"},
	{args: "ca", blocked: true},
	{args: "ca new", blocked: true},
	{args: "ca export", blocked: true},
	{args: "ca install --dry-run", blocked: true},
	{args: "ca remove --dry-run", blocked: true},
	{args: "doctor", blocked: true},
	{args: "help", blocked: true},
	{args: "completion bash", blocked: true},
	{args: "completion fish", blocked: true},
	{args: "completion powershell", blocked: true},
	{args: "completion zsh", blocked: true},
}

// TestEveryCommandEndsAfterSignal sends SIGINT and SIGTERM to every command while
// it is blocked or busy.
func TestEveryCommandEndsAfterSignal(t *testing.T) {
	t.Parallel()
	bin := unwireCommand(t)
	inputs := newSignalInputs(t)
	tried := map[string]bool{}
	for i, c := range signalCases {
		words := strings.Fields(c.args)
		tried[words[0]] = true
		if len(words) > 1 {
			tried[words[0]+" "+words[1]] = true
		}
		sig := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i%2]
		t.Run(fmt.Sprintf("%s %v", c.args, sig), func(t *testing.T) {
			t.Parallel()
			inputs.run(t, bin, c, sig)
		})
	}
	for _, command := range allCommands(t, bin) {
		if !tried[command] {
			t.Errorf("unwire %s has no case: a new command belongs into signalCases", command)
		}
	}
}

// commandRow is a line of help that names a command: a word and its text.
var commandRow = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)  +[A-Z]`)

// allCommands are the commands that can be run, as the help texts list them.
func allCommands(t *testing.T, bin string, parents ...string) []string {
	t.Helper()
	help, err := exec.Command(bin, append(parents, "--help")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	rows := commandRow.FindAllSubmatch(help, -1)
	rows = slices.DeleteFunc(rows, func(row [][]byte) bool {
		// The help of a word that is no command, such as a format, is that of the command.
		below, err := exec.Command(bin, append(parents[:len(parents):len(parents)], string(row[1]), "--help")...).Output()
		return err != nil || bytes.Equal(below, help)
	})
	if len(rows) == 0 {
		return []string{strings.Join(parents, " ")}
	}
	var all []string
	if strings.Contains(string(help), "\n  unwire "+strings.Join(parents, " ")+" [flags]\n") {
		all = append(all, strings.Join(parents, " "))
	}
	for _, row := range rows {
		all = append(all, allCommands(t, bin, append(parents[:len(parents):len(parents)], string(row[1]))...)...)
	}
	return all
}

// signalInputs are files and a server for all cases.
type signalInputs struct {
	dir    string
	silent string
}

func newSignalInputs(t *testing.T) *signalInputs {
	t.Helper()
	in := &signalInputs{dir: t.TempDir()}
	in.capture(t, "SMALL.uwc", 1, 3)
	in.capture(t, "BIG.uwc", 200, 1000)
	in.write(t, "BIG.bin", bytes.Repeat([]byte("\x0a\x05hello\x10\x01"), 4<<20))
	in.write(t, "BIG.har", []byte(`{"log":{"entries":[`+strings.Repeat(`{"request":{"method":"GET","url":"https://h.example/"},"response":{"status":200}},`, 1<<20)+`{}]}}`))
	for dir, content := range map[string]string{
		"SUITE/a.replay": "capture ../SMALL.uwc\nexchange 1\nexpect verdict same\n",
		"SMALL/a.proto":  "syntax = \"proto3\"; package a.v1; message M {} service S {}",
	} {
		if err := os.MkdirAll(filepath.Join(in.dir, filepath.Dir(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
		in.write(t, dir, []byte(content))
	}
	for _, name := range []string{"FIFO", "FIFO.uwc"} {
		if err := unix.Mkfifo(filepath.Join(in.dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	in.silent = "http://" + ln.Addr().String() // connections are established by the kernel, and nobody accepts them
	return in
}

func (in *signalInputs) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(in.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// capture records exchanges of an agent's stream with frames that differ.
func (in *signalInputs) capture(t *testing.T, name string, exchanges, frames int) {
	t.Helper()
	store, err := store.Create(filepath.Join(in.dir, name), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range exchanges {
		rec, err := store.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/agent.v1.AgentService/Run", HTTP: "2",
			RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, envelope.Append(nil, 0, []byte("\x0a\x04\x0a\x02hi")))
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/connect+proto"}})
		for j := range frames {
			words := fmt.Sprintf("some words %d of answer %d, and more of them behind it", j, i)
			rec.Chunk(captures.Down, envelope.Append(nil, 0, append([]byte{0x0a, byte(len(words) + 4), 0x0a, byte(len(words) + 2), 0x0a, byte(len(words))}, words...)))
		}
		rec.Chunk(captures.Down, envelope.Append(nil, envelope.EndStream, []byte("{}")))
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// run starts a command, sends it the signal and waits for its end. On a busy machine
// the signal may come before the command catches it, before it starts its child, or before
// its server runs; then run tries again.
func (in *signalInputs) run(t *testing.T, bin string, c signalCase, sig syscall.Signal) {
	t.Helper()
	for delay := signalDelay; ; delay *= 4 {
		cmd, out, temp := in.start(t, bin, c)
		time.Sleep(delay)
		took, state := endAfter(t, cmd, sig)
		t.Logf("%v after the signal: %v", took.Round(time.Millisecond), state)
		early := state.Sys().(syscall.WaitStatus).Signaled() || c.ends != interrupted && state.ExitCode() == 130
		if early && delay < time.Minute {
			continue
		}
		c.check(t, state, sig, out.Bytes())
		if took > signalLimit {
			t.Errorf("it ended %v after the signal", took)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary folder: %v, %v", left, err)
		}
		return
	}
}

// check compares how the command ended with what the case wants.
func (c *signalCase) check(t *testing.T, state *os.ProcessState, sig syscall.Signal, out []byte) {
	t.Helper()
	want := map[ending]int{interrupted: 130, inOrder: 0, asChild: 128 + int(sig)}[c.ends]
	// A fast machine may be done with a large input before the signal comes.
	done := strings.Contains(c.args, "BIG") && !c.blocked && slices.Contains([]int{0, 1, 3}, state.ExitCode())
	if state.ExitCode() != want && !done {
		t.Errorf("%v, want exit status %d\n%s", state, want, out)
	}
}

// start starts the command of a case. What it prints is in out once it has ended, and
// temp is its folder for temporary files.
func (in *signalInputs) start(t *testing.T, bin string, c signalCase) (cmd *exec.Cmd, out *bytes.Buffer, temp string) {
	t.Helper()
	names := strings.NewReplacer("SILENT", in.silent, "NEW", filepath.Join(t.TempDir(), "new"), "FIFO", filepath.Join(in.dir, "FIFO"))
	cmd = exec.Command(bin, strings.Fields(names.Replace(c.args))...)
	cmd.Dir = in.dir
	temp = t.TempDir()
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir(), "TMPDIR="+temp, "UNWIRE_TOKEN=made-up")
	out = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = io.Discard, out
	if c.blocked {
		full := fullPipe(t)
		cmd.Stdout, cmd.Stderr = full, full
	}
	if c.stdin != "" {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		cmd.Stdin = r
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out, temp
}

// endAfter sends the signal, and returns how long the command took to end after it.
func endAfter(t *testing.T, cmd *exec.Cmd, sig os.Signal) (time.Duration, *os.ProcessState) {
	t.Helper()
	sent := time.Now()
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		t.Error("it did not end within a minute")
	}
	return time.Since(sent), cmd.ProcessState
}

// fullPipe is the write end of a pipe that is full.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]) })
	for {
		_, err := unix.Write(fds[1], make([]byte, 4096))
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "full pipe")
	t.Cleanup(func() { f.Close() })
	return f
}

// TestInterruptedImportLeavesNothing interrupts an import that waits for more input.
func TestInterruptedImportLeavesNothing(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(unwireCommand(t), "import", pipe, "-o", filepath.Join(dir, "new.uwc"))
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() //nolint:errcheck // it has ended unless the test failed
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	line := []byte(`{"request":{"method":"GET","url":"https://h.example/"},"response":{"status":200}},` + "\n")
	if _, err := w.Write(append([]byte(`{"log":{"entries":[`), bytes.Repeat(line, 4000)...)); err != nil {
		t.Fatal(err)
	}
	began := func() bool {
		names, err := os.ReadDir(dir)
		return err == nil && len(names) > 0
	}
	for range 6000 {
		if began() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !began() {
		t.Fatal("import did not begin to write")
	}
	took, state := endAfter(t, cmd, syscall.SIGINT)
	if state.ExitCode() != 130 || took > signalLimit {
		t.Errorf("%v after %v", state, took)
	}
	if !strings.Contains(said.String(), "new.uwc was not created") {
		t.Errorf("it reported %q", said.String())
	}
	if began() {
		names, _ := os.ReadDir(dir)
		t.Errorf("it left %v", names)
	}
}

// TestSecondSignalKillsTheChild runs a command that ignores SIGTERM.
func TestSecondSignalKillsTheChild(t *testing.T) {
	t.Parallel()
	bin := unwireCommand(t)
	for _, mode := range []string{"", "--transparent", "--passive"} {
		t.Run(strings.TrimPrefix(mode, "--"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ready := filepath.Join(dir, "ready")
			args := []string{"capture", "-o", filepath.Join(dir, "a.uwc")}
			if mode != "" {
				args = append(args, mode)
			}
			cmd := exec.Command(bin, append(args, "--", "sh", "-c", "trap '' TERM; echo > "+ready+"; while :; do sleep 0.05; done")...)
			cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir(), "TMPDIR="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill() //nolint:errcheck // it has ended unless the test failed
			awaitFile(t, ready)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			time.Sleep(secondDelay)
			took, state := endAfter(t, cmd, syscall.SIGTERM)
			if took > signalLimit || state.ExitCode() != 128+int(syscall.SIGKILL) {
				t.Errorf("%v after %v", state, took)
			}
		})
	}
}

func awaitFile(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not appear", name)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestCtrlCAtTheTerminal types Ctrl-C while a command waits for terminal input. On a busy machine, it may be typed before
// the command catches the signal; then it is tried again.
func TestCtrlCAtTheTerminal(t *testing.T) {
	t.Parallel()
	bin := unwireCommand(t)
	for _, args := range []string{"decode", "encode", "import - -o NEW.uwc", "ca install", "schema infer --raw -"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			for delay := 2 * signalDelay; ; delay *= 4 {
				cmd := exec.Command(bin, strings.Fields(strings.ReplaceAll(args, "NEW", filepath.Join(t.TempDir(), "new")))...)
				cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
				took, state, out := typeCtrlC(t, cmd, delay)
				if state.Sys().(syscall.WaitStatus).Signaled() && delay < time.Minute {
					continue
				}
				if state.ExitCode() != 130 || !regexp.MustCompile(`interrupted`).Match(out) {
					t.Errorf("%v: %s", state, out)
				}
				if took > signalLimit {
					t.Errorf("it ended %v after Ctrl-C", took)
				}
				break
			}
		})
	}
}

// typeCtrlC starts a command on a terminal, types Ctrl-C after a while, and returns how long the command took to end and
// what it printed.
func typeCtrlC(t *testing.T, cmd *exec.Cmd, delay time.Duration) (took time.Duration, state *os.ProcessState, out []byte) {
	t.Helper()
	master, terminal := openTerminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	defer cmd.Process.Kill() //nolint:errcheck // it has ended unless the test failed
	said := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(master) // ends with an error when the terminal is closed
		said <- data
	}()
	time.Sleep(delay)
	if _, err := master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	took, state = endAfter(t, cmd, syscall.Signal(0))
	return took, state, <-said
}

// openTerminal makes a pseudo-terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, terminal
}
