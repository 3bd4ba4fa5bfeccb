//go:build unix

package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/need"
	"unwire/decode/envelope"
)

// TestMain lets the test binary be a recorder that is killed.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("CAPTURES_RECORD") != "":
		recordForever(os.Getenv("CAPTURES_RECORD"))
	case os.Getenv("CAPTURES_READ") != "":
		if err := readAll(os.Getenv("CAPTURES_READ")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// recordForever records numbered chunks and prints each number once it was
// handed over.
func recordForever(path string) {
	if limit, err := strconv.ParseUint(os.Getenv("CAPTURES_FILE_SIZE"), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	s, err := Create(path, Options{})
	if err != nil {
		panic(err)
	}
	r, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h/x", RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}})
	if err != nil {
		panic(err)
	}
	r.Response(200, captures.Headers{{Name: "content-type", Value: "application/connect+proto"}})
	for i := uint64(0); s.Err() == nil; i++ {
		p := binary.BigEndian.AppendUint64(nil, i)
		// Some end in what may be the beginning of a secret.
		r.Chunk(captures.Direction(i%2), append(envelope.Append(nil, 0, append(p, "eyJ"...)), envelope.Append(nil, 0, make([]byte, i%7*1000))...))
		fmt.Println(i)
		if i%100 == 99 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	fmt.Println("error:", s.Err())
	if err := s.Close(); err == nil {
		panic("Close has forgotten the error")
	}
	os.Exit(3)
}

func recorder(t *testing.T, path string, env ...string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "CAPTURES_RECORD="+path), env...)
	cmd.Stderr = os.Stderr
	out := require.Value(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// numbers reads the numbered chunks of exchange 1 and checks them.
func numbers(t *testing.T, s *Store) (n int) {
	t.Helper()
	for c, err := range s.Chunks(context.Background(), 1, 0) {
		require.NoError(t, err)
		if got := binary.BigEndian.Uint64(c.Data[5:]); got != uint64(n) || c.Seq != int64(n) || c.Dir != captures.Direction(n%2) {
			t.Fatalf("chunk %d has seq %d, number %d", n, c.Seq, got)
		}
		n++
	}
	return n
}

// What a killed recorder loses is younger than a second. A machine may stall
// for longer than that, so one of a few recorders has to show it.
func TestKilledRecorder(t *testing.T) {
	const tries = 5
	for n := 1; ; n++ {
		path := filepath.Join(t.TempDir(), "killed.uwc")
		lost := killRecorder(t, path)
		if !t.Failed() {
			checkGoesOn(t, path)
		}
		if lost == 0 || t.Failed() {
			return
		}
		if n == tries {
			t.Fatalf("%d chunks are lost that were older than a second", lost)
		}
		t.Logf("%d chunks are lost that were older than a second: tried again", lost)
	}
}

// killRecorder kills a recorder after a while, and returns how many chunks that
// it took more than a second before are not in the file.
func killRecorder(t *testing.T, path string) (lost int) {
	cmd, lines := recorder(t, path)
	type line struct {
		at time.Time
		n  int
	}
	var seen []line
	for lines.Scan() {
		seen = append(seen, line{time.Now(), require.Value(strconv.Atoi(lines.Text()))(t)})
		if seen[len(seen)-1].at.Sub(seen[0].at) > 1200*time.Millisecond {
			break
		}
	}
	if _, err := Create(path, Options{}); !errors.Is(err, captures.ErrInUse) {
		t.Errorf("a second recorder, in another process: %v", err)
	}
	killed := time.Now()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	s := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	got := numbers(t, s)
	second, quarter := 0, 0
	for _, l := range seen {
		if killed.Sub(l.at) > time.Second {
			second = l.n + 1
		}
		if killed.Sub(l.at) > time.Second/4 {
			quarter = l.n + 1
		}
	}
	t.Logf("%d handed over, %d older than 1 s, %d older than 0.25 s, %d in the file", len(seen), second, quarter, got)
	if ex := require.Value(s.Exchange(t.Context(), 1))(t); ex.Outcome != captures.InFlight || ex.Status != 200 || ex.BytesUp == 0 {
		t.Errorf("%+v", ex)
	}
	if second == 0 {
		t.Error("nothing was handed over a second before")
	}
	return max(0, second-got)
}

// checkGoesOn has the next recorder go on in the file of a killed one.
func checkGoesOn(t *testing.T, path string) {
	ctx := t.Context()
	s := require.Value(Open(path, ReadOptions{}))(t)
	got := numbers(t, s)
	ex := require.Value(s.Exchange(ctx, 1))(t)
	require.NoError(t, s.Close())
	s = require.Value(Create(path, Options{}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	if r.ID() != 2 {
		t.Errorf("id %d", r.ID())
	}
	r.End(captures.Complete, "")
	require.NoError(t, s.Close())
	s = require.Value(Open(path, ReadOptions{}))(t)
	if after := numbers(t, s); after != got {
		t.Errorf("%d chunks became %d", got, after)
	}
	now := require.Value(s.Exchange(ctx, 1))(t)
	if now.Outcome != captures.Incomplete || now.BytesUp != ex.BytesUp || now.BytesDown != ex.BytesDown || now.Duration <= 0 {
		t.Errorf("%+v", now)
	}
	for e, err := range s.Follow(ctx, 0) {
		require.NoError(t, err)
		if e.Kind == captures.Ended {
			if e.Exchange.ID == 2 {
				break
			}
			continue
		}
	}
	require.NoError(t, s.Close())
	if left := require.Value(filepath.Glob(path + "*"))(t); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
}

// A disk that is full stops the recording, not the program; what was written
// stays readable.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "full.uwc")
	cmd, lines := recorder(t, path, "CAPTURES_FILE_SIZE="+strconv.Itoa(8<<20))
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 || !strings.HasPrefix(last, "error: captures: "+path) {
		t.Errorf("%v, %s", err, last)
	}
	s := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	if n := numbers(t, s); n < 10 {
		t.Errorf("%d chunks", n)
	}
}

// In a folder that cannot be written to: root, who can write anywhere, becomes
// somebody else for it; others make the folder read-only for themselves.
func TestReadOnlyFolder(t *testing.T) {
	need.OtherUser(t)
	read := func(path string) (string, error) {
		self := filepath.Join(filepath.Dir(path), "reader")
		require.NoError(t, os.WriteFile(self, require.Value(os.ReadFile(os.Args[0]))(t), 0o755))
		cmd := exec.Command(self, "-test.run=^$")
		cmd.Env = append(os.Environ(), "CAPTURES_READ="+path)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: need.Nobody, Gid: need.Nobody}}
		} else {
			require.NoError(t, os.Chmod(filepath.Dir(path), 0o555))
			defer func() { require.NoError(t, os.Chmod(filepath.Dir(path), 0o755)) }()
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	dir := require.Value(os.MkdirTemp("", "uwc"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))

	closed := filepath.Join(dir, "closed.uwc")
	require.NoError(t, os.WriteFile(closed, require.Value(os.ReadFile(record(t, "x")))(t), 0o644))
	if out, err := read(closed); err != nil {
		t.Errorf("closed: %v: %s", err, out)
	}

	killed := filepath.Join(dir, "killed.uwc")
	cmd, lines := recorder(t, killed)
	for range 2000 {
		lines.Scan()
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, f := range require.Value(filepath.Glob(killed + "*"))(t) {
		require.NoError(t, os.Chmod(f, 0o644))
	}
	if out, err := read(killed); err != nil {
		t.Errorf("killed: %v: %s", err, out)
	}
	require.NoError(t, os.Remove(killed+"-shm"))
	if out, err := read(killed); err == nil || !strings.Contains(out, "copy the capture and killed.uwc-wal") {
		t.Errorf("killed, without the index: %v: %s", err, out)
	}

	// Closed while somebody was reading: still in the mode of a log, without one.
	busy := filepath.Join(t.TempDir(), "busy.uwc")
	s := require.Value(Create(busy, Options{}))(t)
	begin := require.Value(s.Begin(captures.Exchange{}))(t)
	begin.End(captures.Complete, "")
	require.NoError(t, s.Flush(t.Context()))
	follower := require.Value(Open(busy, ReadOptions{}))(t)
	require.NoError(t, readAll(busy))
	if got := require.All(t, follower.Exchanges(t.Context())); len(got) != 1 {
		t.Errorf("%d exchanges", len(got))
	}
	require.NoError(t, s.Close())
	alone := filepath.Join(dir, "alone.uwc")
	require.NoError(t, os.WriteFile(alone, require.Value(os.ReadFile(busy))(t), 0o644))
	require.NoError(t, follower.Close())
	if raw := require.Value(os.ReadFile(alone))(t); raw[18] != 2 {
		t.Errorf("the file is in journal mode %d, not in that of a log", raw[18])
	}
	if out, err := read(alone); err != nil {
		t.Errorf("closed while it was read: %v: %s", err, out)
	}
}
