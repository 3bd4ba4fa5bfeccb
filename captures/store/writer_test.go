package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// While the disk is slow, streams wait and nothing is dropped.
func TestBackpressure(t *testing.T) { synctest.Test(t, testBackpressure) }

func testBackpressure(t *testing.T) {
	const chunk, total = 10 << 10, 200
	path := filepath.Join(t.TempDir(), "a.uwc")
	gate := make(chan struct{})
	s := require.Value(create(path, Options{QueueBytes: 100 << 10}, testOptions{beforeCommit: func() { <-gate }}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	var passed atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range total {
			r.Chunk(captures.Down, []byte(strings.Repeat("\x00", chunk)))
			passed.Add(1)
		}
	}()
	synctest.Wait()
	if n := passed.Load(); n*chunk > 100<<10 || n < 5 {
		t.Errorf("%d chunks of 10 KiB passed a queue of 100 KiB", n)
	}
	close(gate)
	<-done
	require.NoError(t, s.Flush(t.Context()))
	if got := require.All(t, s.Chunks(t.Context(), 1, 0)); len(got) != total {
		t.Errorf("%d chunks", len(got))
	}
	r.Chunk(captures.Down, make([]byte, 1<<20)) // more than the queue holds gets through
	require.NoError(t, s.Close())
}

// A disk that takes long slows streams down before much is waiting: what a
// killed recorder loses is bounded in time, not only in bytes.
func TestSlowDisk(t *testing.T) { synctest.Test(t, testSlowDisk) }

func testSlowDisk(t *testing.T) {
	gate := make(chan struct{})
	s := require.Value(create(filepath.Join(t.TempDir(), "a.uwc"), Options{}, testOptions{beforeCommit: func() { <-gate }}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	time.Sleep(maxQueueAge + 50*time.Millisecond)
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		r.Chunk(captures.Down, []byte("late\n"))
	}()
	synctest.Wait()
	select {
	case <-passed:
		t.Error("a chunk passed while the one before waited for longer than maxLag")
	default:
	}
	close(gate)
	<-passed
	require.NoError(t, s.Close())
}

// A failure of the disk ends the recording: no call blocks, Close tells.
func TestWriteFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := require.Value(create(path, Options{QueueBytes: 1 << 20}, testOptions{maxPages: 60}))(t)
	var open []captures.Recording
	for range 4 {
		open = append(open, require.Value(s.Begin(captures.Exchange{}))(t))
	}
	var all sync.WaitGroup
	for _, r := range open {
		all.Go(func() {
			for i := range 2000 {
				r.Chunk(captures.Up, noise(uint64(i), 3000))
			}
			r.Response(200, nil)
			r.End(captures.Complete, "")
		})
	}
	all.Wait()
	err := s.Flush(t.Context())
	if err == nil || s.Err() == nil || !strings.Contains(s.Err().Error(), path) || !errors.Is(s.Err(), syscall.ENOSPC) {
		t.Errorf("Flush: %v, Err: %v", err, s.Err())
	}
	if _, err := s.Begin(captures.Exchange{}); err == nil {
		t.Error("Begin went on")
	}
	if err := s.Close(); err == nil {
		t.Error("Close has forgotten the error")
	}
	require.NoError(t, readAll(path))
}

// Close while streams wait for the queue does not leave them there.
func TestCloseWhileBlocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	gate := make(chan struct{})
	s := require.Value(create(path, Options{QueueBytes: 10 << 10}, testOptions{beforeCommit: func() { <-gate }}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	var stopped sync.WaitGroup
	stopped.Go(func() {
		for range 100 {
			r.Chunk(captures.Down, make([]byte, 4<<10))
		}
	})
	time.Sleep(20 * time.Millisecond)
	time.AfterFunc(50*time.Millisecond, func() { close(gate) })
	require.NoError(t, s.Close())
	stopped.Wait()
	require.NoError(t, readAll(path))
}

// A chunk that may end in a secret's beginning is written soon all the same,
// and the other direction does not wait for it.
func TestHeldBack(t *testing.T) { synctest.Test(t, testHeldBack) }

func testHeldBack(t *testing.T) {
	ctx := context.Background()
	s := require.Value(create(filepath.Join(t.TempDir(), "a.uwc"), Options{}, testOptions{holdFor: 100 * time.Millisecond}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	r := require.Value(s.Begin(captures.Exchange{RequestHeaders: captures.Headers{{Name: "authorization", Value: "Bearer made-up-secret-token"}}}))(t)
	r.Chunk(captures.Up, []byte("text made-up-"))
	r.Chunk(captures.Down, []byte("answer\n"))
	require.NoError(t, s.writer.flush(ctx))
	if got := require.All(t, s.Chunks(ctx, 1, 0)); len(got) != 1 || got[0].Seq != 1 {
		t.Errorf("before: %v", got)
	}
	require.NoError(t, s.Flush(ctx)) // waits for the timer
	r.Chunk(captures.Up, []byte("secret-token text"))
	require.NoError(t, s.Flush(ctx))
	var up []string
	for _, c := range require.All(t, s.Chunks(ctx, 1, 0)) {
		if c.Dir == captures.Up {
			up = append(up, string(c.Data))
		}
	}
	if len(up) != 2 || len(up[0]) != 13 || len(up[1]) != 17 || strings.Contains(strings.Join(up, ""), "made-up-") || !strings.HasSuffix(up[1], "..... text") {
		t.Errorf("%q", up)
	}
}

// A made-up token is in no byte of the file, wherever it passed.
func TestTokenIsNowhere(t *testing.T) {
	const token = "made-up-secret-token-without-digits"
	path := filepath.Join(t.TempDir(), "a.uwc")
	for _, keep := range []bool{false, true} {
		s := require.Value(Create(path, Options{KeepSecrets: keep}))(t)
		r := require.Value(s.Begin(captures.Exchange{
			URL: "https://h/" + token + "?q=" + token, Error: token, Source: token, Method: "GET",
			RequestHeaders: captures.Headers{{Name: "x-echo", Value: token}, {Name: "Authorization", Value: "Bearer " + token}},
		}))(t)
		r.Response(200, captures.Headers{{Name: "x-echo", Value: token}, {Name: "set-cookie", Value: "s=" + token}})
		for i := range len(token) {
			r.Chunk(captures.Down, []byte(token[i:i+1]))
		}
		r.Chunk(captures.Up, []byte(strings.Repeat("x", 5000)+token))
		r.Trailers(captures.Down, captures.Headers{{Name: "x", Value: token}})
		r.Connection(captures.TLS{}, token)
		r.End(captures.Failed, "dial "+token)
		require.NoError(t, s.Close())
		s = require.Value(Open(path, ReadOptions{}))(t)
		ex := require.Value(s.Exchange(t.Context(), r.ID()))(t)
		require.NoError(t, s.Close())
		if keep != strings.Contains(ex.URL, token) || keep != strings.Contains(ex.Error, token) {
			t.Errorf("keeping secrets is %v: %s, %s", keep, ex.URL, ex.Error)
		}
		if raw := string(require.Value(os.ReadFile(path))(t)); keep != strings.Contains(raw, token) {
			t.Errorf("keeping secrets is %v; in the file: %v", keep, !keep)
		}
	}
}

// A file that is deleted while it is recorded to ends the recording; so does a
// full disk. Each is reported once, at once.
func TestFailed(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int
		harm  func(path string) error
		want  error
	}{
		{"deleted", 0, os.Remove, captures.ErrGone},
		{"replaced", 0, func(p string) error {
			return errors.Join(os.Remove(p), os.WriteFile(p, []byte("x"), 0o600))
		}, captures.ErrGone},
		{"full", 40, func(string) error { return nil }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.uwc")
			var mu sync.Mutex
			var told []error
			first := make(chan struct{})
			s := require.Value(create(path, Options{Failed: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if told = append(told, err); len(told) == 1 {
					close(first)
				}
			}}, testOptions{maxPages: c.limit}))(t)
			r := require.Value(s.Begin(captures.Exchange{}))(t)
			require.NoError(t, s.Flush(t.Context()))
			require.NoError(t, c.harm(path))
			for i := range 200 {
				r.Chunk(captures.Down, noise(uint64(i), 5000))
			}
			select {
			case <-first:
			case <-time.After(time.Minute):
				t.Fatal("nobody was told")
			}
			r.End(captures.Complete, "")
			err := s.Close()
			if err == nil || c.want != nil && !errors.Is(err, c.want) || len(told) != 1 || !strings.Contains(told[0].Error(), path) {
				t.Errorf("Close: %v; told %v", err, told)
			}
		})
	}
}
