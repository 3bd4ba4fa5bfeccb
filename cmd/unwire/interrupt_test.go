package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestInterruptedReading interrupts commands while they read definitions, of
// which each would take many seconds, and expects their end soon after.
func TestInterruptedReading(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals are sent to processes there")
	}
	bin := unwireCommand(t)
	dir := t.TempDir()
	const messages = 60_000
	var script, text bytes.Buffer
	text.WriteString("syntax = \"proto3\"; package p;")
	for i := range messages {
		fmt.Fprintf(&script, "export const M%d=proto3.makeMessageType(\"p.M%d\",()=>[", i, i)
		fmt.Fprintf(&text, "message M%d {", i)
		for j := range 10 {
			to := (i*7 + j*13) % messages
			fmt.Fprintf(&script, "{no:%d,name:\"f%d\",kind:\"message\",T:M%d},", j+1, j, to)
			fmt.Fprintf(&text, "M%d f%d = %d;", to, j, j+1)
		}
		script.WriteString("]);\n")
		text.WriteString("}\n")
	}
	file := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	js, proto := file("a.js", script.Bytes()), file("defs/a.proto", text.Bytes())
	small := file("small/a.proto", []byte("syntax = \"proto3\";\npackage p;\nmessage A {}\n"))
	for _, args := range [][]string{
		{"schema", "extract", js},
		{"schema", "diff", js, small},
		{"schema", "diff", small, proto},
		{"drift", small, js},
		{"schema", "update", "--proto", filepath.Dir(small), "--from", js},
		{"schema", "update", "--proto", filepath.Dir(proto), "--from", small},
		{"schema", "ls", "--proto", proto},
		{"schema", "print", "--proto", js, "p.M1"},
		{"decode", "--schema", filepath.Dir(proto), "--type", "p.M1", small},
	} {
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			// A program that has not begun to catch signals dies of one, which is as good; it
			// is tried again with more time, up to one that does.
			const soon = 5 * time.Second // on a machine that does much else; 1 s is promised
			var took time.Duration
			for wait := 400 * time.Millisecond; ; wait *= 2 {
				code := 0
				if took, code = interruptAfter(t, exec.Command(bin, args...), wait, signal); code == -1 && wait < soon {
					continue
				}
				if took > soon || code != 130 {
					t.Errorf("%v: ended %s after %v with status %d", args, took, signal, code)
				}
				break
			}
			t.Logf("%s %s ended %s after %v", args[0], filepath.Base(args[1]), took, signal)
		}
	}
}

// interruptAfter starts a command, sends it a signal after wait, and returns how long it
// went on and its exit status, -1 if the signal killed it.
func interruptAfter(t *testing.T, cmd *exec.Cmd, wait time.Duration, signal os.Signal) (took time.Duration, code int) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(wait) // it is reading, or has not come to it yet
	if err := cmd.Process.Signal(signal); err != nil {
		t.Errorf("%v: it ended before it was interrupted: %v", cmd.Args, err)
	}
	start := time.Now()
	_ = cmd.Wait()
	t.Logf("%.300s", stderr.String())
	return time.Since(start), cmd.ProcessState.ExitCode()
}
