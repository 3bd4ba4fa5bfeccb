//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An interrupted 'schema infer -o' says whether it wrote its result, and says so truthfully.
func TestInterruptedInfer(t *testing.T) {
	t.Parallel()
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), config: clientConfig(t), ran: map[string]bool{}, unredacted: true}
	shop, err := filepath.Abs("testdata/screens/shop.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.ok(0, "import", shop, "-o", "shop.uwc")

	// How fast the machine reads is not known, so the signal comes later and later, until a result was written.
	for wait := 100 * time.Millisecond; wait < 20*time.Second; wait *= 2 {
		out := filepath.Join(t.TempDir(), "inferred")
		cmd := exec.Command(s.bin, append([]string{"schema", "infer", "-o", out + "/"}, slices.Repeat([]string{"shop.uwc"}, 3000)...)...)
		cmd.Dir, cmd.Env = s.work, append(os.Environ(), "UNWIRE_CONFIG="+s.config)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			continue // before the program handled signals
		}
		if got := cmd.ProcessState.ExitCode(); got != 130 {
			t.Fatalf("exit status %d\n%s", got, &said)
		}
		files, err := filepath.Glob(filepath.Join(out, "*", "*", "*.proto"))
		if err != nil {
			t.Fatal(err)
		}
		switch text := said.String(); {
		case strings.Contains(text, "so nothing was written") && len(files) == 0:
		case strings.Contains(text, "covers only the data that was read before") && len(files) > 0:
			return
		default:
			t.Fatalf("%d files, and:\n%s", len(files), text)
		}
	}
	t.Error("no interrupted run wrote a result")
}
