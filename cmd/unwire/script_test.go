package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// A process is a command that runs beside a script.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan error
}

type processesKey struct{}

// stopTimeout is how long a command may take to end after a signal.
const stopTimeout = time.Minute

// cmdSpawn starts a command that reports itself with a line of JSON, and sets
// $NAME_url, $NAME_proxy, $NAME_ui and $NAME_ca from it; what it prints after that is in
// NAME.stdout when it has ended:
//
//	spawn NAME COMMAND ARGS…
func cmdSpawn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: spawn NAME COMMAND ARGS…")
	}
	p := &process{done: make(chan error, 1)}
	p.cmd = exec.Command(lookPath(ts, args[1]), args[2:]...)
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = environ(ts)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	ts.Defer(func() { _ = p.cmd.Process.Kill() })
	r := bufio.NewReader(stdout)
	line, err := r.ReadBytes('\n')
	if err != nil {
		_ = p.cmd.Wait()
		ts.Fatalf("%s said nothing: %v\n%s", args[0], err, p.stderr.String())
	}
	var event struct{ URL, Proxy, CA, UI string }
	ts.Check(json.Unmarshal(line, &event))
	ts.Setenv(args[0]+"_url", event.URL)
	ts.Setenv(args[0]+"_proxy", event.Proxy)
	ts.Setenv(args[0]+"_ca", event.CA)
	ts.Setenv(args[0]+"_ui", event.UI)
	rest, err := os.Create(ts.MkAbs(args[0] + ".stdout"))
	ts.Check(err)
	go func() {
		defer rest.Close()
		_, _ = r.WriteTo(rest)
		p.done <- p.cmd.Wait()
	}()
	ts.Value(processesKey{}).(map[string]*process)[args[0]] = p
}

// cmdSignal ends a spawned command with a signal (INT, TERM or KILL) and checks
// its exit status, if one is given; what it printed on stderr is in NAME.stderr:
//
//	signal NAME SIGNAL [STATUS]
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: signal NAME SIGNAL [STATUS]")
	}
	p := ts.Value(processesKey{}).(map[string]*process)[args[0]]
	if p == nil {
		ts.Fatalf("no process %s", args[0])
	}
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]
	if !ok {
		ts.Fatalf("signal is INT, TERM or KILL")
	}
	ts.Check(p.cmd.Process.Signal(sig))
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		ts.Fatalf("%s did not end after SIG%s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), p.stderr.Bytes(), 0o600))
	if len(args) > 2 && strconv.Itoa(p.cmd.ProcessState.ExitCode()) != args[2] {
		ts.Fatalf("%s ended with %s, not %s\n%s", args[0], p.cmd.ProcessState, args[2], p.stderr.String())
	}
}

// cmdStatus runs a command and checks its exit status and that stderr holds a text:
//
//	status STATUS 'TEXT' COMMAND ARGS…
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: status STATUS 'TEXT' COMMAND ARGS…")
	}
	cmd := exec.Command(lookPath(ts, args[2]), args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("run: %v", err)
	}
	ts.Logf("[stdout]\n%s[stderr]\n%s", clip(out.String()), clip(errOut.String()))
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
	if !strings.Contains(errOut.String(), args[1]) {
		ts.Fatalf("stderr lacks %q", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), out.Bytes(), 0o600))
}

func clip(s string) string { return s[:min(len(s), 4000)] }

// cmdBytes writes a file of bytes: hex runs, each repeated N times if it ends in *N:
//
//	bytes FILE 0a05 68656c6c6f 00*100
func cmdBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: bytes FILE HEX[*N]…")
	}
	var data []byte
	for _, a := range args[1:] {
		digits, times, repeated := strings.Cut(a, "*")
		n := 1
		if repeated {
			var err error
			n, err = strconv.Atoi(times)
			ts.Check(err)
		}
		b, err := hex.DecodeString(digits)
		ts.Check(err)
		data = append(data, bytes.Repeat(b, n)...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// cmdHead cuts a copy of a file after N bytes:
//
//	head N FROM TO
func cmdHead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head N FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	data, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), data[:min(n, len(data))], 0o600))
}

// cmdFound sets a variable to what the first group of a regular expression finds
// in the last command's stdout:
//
//	found NAME REGEXP
func cmdFound(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: found NAME REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	match := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(match) != 2 {
		ts.Fatalf("no match, or not one group, for %#q", args[1])
	}
	ts.Setenv(args[0], match[1])
}

// environ is the script's environment.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "WORK", "UNWIRE_CONFIG", "NO_COLOR",
		"UNWIRE_TOKEN", "UNWIRE_MACHINE_ID", "UNWIRE_STANDIN_TOKEN", "XDG_CONFIG_HOME",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// lookPath finds a command in the script's PATH, not in the test's own.
func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	ts.Fatalf("no command %s in the script's PATH", name)
	return ""
}
