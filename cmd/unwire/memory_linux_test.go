package main

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A large message goes through decode and encode in little memory, from a file
// and from a pipe.
func TestLargeMessageInBoundedMemory(t *testing.T) {
	bin := unwireCommand(t)
	dir := t.TempDir()
	text := bytes.Repeat([]byte("some words of a text, "), 3000)
	field := append([]byte{0x0a, byte(len(text)&0x7f | 0x80), byte(len(text)>>7&0x7f | 0x80), byte(len(text) >> 14)}, text...)
	field = append(field, 0x10, 0x96, 0x01)
	const size, most = 128 << 20, 96 << 10 // bytes, KiB
	in, err := os.Create(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	want := sha256.New()
	for n := 0; n < size; n += len(field) {
		want.Write(field)
		if _, err := in.Write(field); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	decode := exec.Command(bin, "decode", in.Name())
	encode := exec.Command(bin, "encode", "-")
	pipe, err := decode.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	encode.Stdin = pipe
	got := sha256.New()
	encode.Stdout = got
	if err := decode.Start(); err != nil {
		t.Fatal(err)
	}
	if err := encode.Run(); err != nil {
		t.Fatal(err)
	}
	if err := decode.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Error("it does not come back")
	}
	limit := max(most, ownPeak(t))
	for name, cmd := range map[string]*exec.Cmd{"decode": decode, "encode": encode} {
		if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; used > limit {
			t.Errorf("%s: %d KiB, want at most %d", name, used, limit)
		} else {
			t.Logf("%s: %d KiB", name, used)
		}
	}
}

// ownPeak is the most memory that this process had, in KiB: a child's peak
// counts that of the process it was forked from.
func ownPeak(t *testing.T) int64 {
	t.Helper()
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		t.Fatal(err)
	}
	return self.Maxrss
}
