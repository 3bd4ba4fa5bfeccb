package series

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/store"
)

// A stream that runs while the series goes on ends in the file it began in.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a-2.uwc"), []byte("taken"), 0o600))
	var rotated []string
	s := require.Value(Create(filepath.Join(dir, "a.uwc"), Options{MaxBytes: 200 << 10, Rotated: func(p string) { rotated = append(rotated, p) }}))(t)
	long := require.Value(s.Begin(captures.Exchange{URL: "https://h/long"}))(t)
	long.Chunk(captures.Down, []byte("begins"))
	for i := range 20 {
		r := require.Value(s.Begin(captures.Exchange{URL: "https://h/short", RequestHeaders: captures.Headers{{Name: "authorization", Value: "Bearer made-up-token-1"}}}))(t)
		r.Chunk(captures.Down, []byte(strings.Repeat(string(rune('a'+i)), 3000)+" made-up-token-1\n"+randomText(40<<10, i)))
		r.End(captures.Complete, "")
		require.NoError(t, s.current.Flush(t.Context()))
	}
	long.Chunk(captures.Down, []byte(", ends"))
	long.End(captures.Complete, "")
	require.NoError(t, s.Close())
	files := s.Files()
	if len(files) < 3 || filepath.Base(files[1]) != "a-3.uwc" || strings.Join(files[1:], " ") != strings.Join(rotated, " ") {
		t.Fatalf("%v, told of %v", files, rotated)
	}
	n := 0
	for i, file := range files {
		st := require.Value(store.Open(file, store.ReadOptions{}))(t)
		for _, ex := range require.All(t, st.Exchanges(t.Context())) {
			n++
			if ex.Outcome != captures.Complete {
				t.Errorf("%s#%d: %s", file, ex.ID, ex.Outcome)
			}
			if strings.HasSuffix(ex.URL, "long") != (i == 0 && ex.ID == 1) {
				t.Errorf("%s#%d is %s", file, ex.ID, ex.URL)
			}
		}
		if i == 0 {
			if chunks := require.All(t, st.Chunks(t.Context(), 1, 0)); len(chunks) != 2 || string(chunks[1].Data) != ", ends" {
				t.Errorf("the long one has %d chunks", len(chunks))
			}
		}
		require.NoError(t, st.Close())
		if whole := require.Value(os.ReadFile(file))(t); bytes.Contains(whole, []byte("made-up-token-1")) {
			t.Errorf("%s has the secret", file)
		}
		if _, err := os.Stat(file + "-lock"); err == nil {
			t.Errorf("%s is locked still", file)
		}
	}
	if n != 21 {
		t.Errorf("%d exchanges", n)
	}
}

// randomText does not compress well.
func randomText(n, seed int) string {
	var b strings.Builder
	x := uint64(seed) + 1
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		b.WriteByte(byte(32 + (x>>33)%64))
	}
	return b.String()
}

func TestSeriesByAge(t *testing.T) {
	s := require.Value(Create(filepath.Join(t.TempDir(), "a.uwc"), Options{MaxAge: time.Nanosecond}))(t)
	for range 3 {
		r := require.Value(s.Begin(captures.Exchange{}))(t)
		r.End(captures.Complete, "")
	}
	if files := s.Files(); len(files) != 3 {
		t.Errorf("%v", files)
	}
	require.NoError(t, s.Close())
}

// Where the next file cannot be made, that is told once and ends the recording.
func TestSeriesCannotGoOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(dir, 0o700))
	told := 0
	s := require.Value(Create(filepath.Join(dir, "a.uwc"), Options{MaxAge: time.Nanosecond, Options: store.Options{Failed: func(error) { told++ }}}))(t)
	require.Value(s.Begin(captures.Exchange{}))(t).End(captures.Complete, "")
	require.NoError(t, s.current.Flush(t.Context()))
	require.NoError(t, os.Rename(dir, dir+"-moved"))
	for range 3 {
		if _, err := s.Begin(captures.Exchange{}); err == nil {
			t.Error("recorded nowhere")
		}
	}
	if err := s.Close(); err == nil || told != 1 {
		t.Errorf("Close: %v; told %d times", err, told)
	}
}
