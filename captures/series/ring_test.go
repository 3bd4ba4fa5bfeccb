package series

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/series/internal/ring"
	"unwire/captures/store"
)

// diskSize is what a folder takes.
func diskSize(t *testing.T, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it has just been removed
			n += info.Size()
		}
	}
	return n
}

// TestRing keeps the newest exchanges and one that still runs, in no more than a size.
func TestRing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := require.Value(Create(filepath.Join(dir, "a.uwc"), Options{MaxTotal: MinTotal}))(t)
	long := require.Value(s.Begin(captures.Exchange{URL: "https://h/long"}))(t)
	long.Chunk(captures.Down, []byte("begins"))
	const n = 500 // times 64 KB: twice the size
	most := int64(0)
	for i := range n {
		r := require.Value(s.Begin(captures.Exchange{URL: "https://h/short", Status: i + 1}))(t)
		r.Chunk(captures.Down, []byte(randomText(64<<10, i)))
		r.End(captures.Complete, "")
		if i%10 == 9 {
			time.Sleep(15 * time.Millisecond) // 40 MB a second
			most = max(most, diskSize(t, dir))
		}
	}
	long.Chunk(captures.Down, []byte(", ends"))
	long.End(captures.Complete, "")
	require.NoError(t, s.Close())
	most = max(most, diskSize(t, dir))
	if most > MinTotal {
		t.Errorf("%d bytes on disk, the limit is %d", most, MinTotal)
	}

	files := s.Files()
	if len(files) < 3 || len(files) > ring.Parts+2 {
		t.Errorf("%d files", len(files))
	}
	var newest []int
	longs := 0
	for _, file := range files {
		st := require.Value(store.Open(file, store.ReadOptions{}))(t)
		for _, ex := range require.All(t, st.Exchanges(t.Context())) {
			if ex.Outcome != captures.Complete {
				t.Errorf("%s#%d: %s", file, ex.ID, ex.Outcome)
			}
			if strings.HasSuffix(ex.URL, "long") {
				longs++
			} else if longs == 0 || file != files[0] {
				newest = append(newest, ex.Status)
			}
		}
		require.NoError(t, st.Close())
	}
	if longs != 1 {
		t.Errorf("%d exchanges that ran all the time, want 1", longs)
	}
	if !slices.IsSorted(newest) || len(newest) < n/8 || newest[len(newest)-1] != n || newest[0] != n-len(newest)+1 {
		t.Errorf("%d exchanges are kept, from %d to %d of %d", len(newest), newest[0], newest[len(newest)-1], n)
	}
}

// TestRingIsFullOfRunning ends what runs where nothing else can go.
func TestRingIsFullOfRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := require.Value(Create(filepath.Join(dir, "a.uwc"), Options{MaxTotal: MinTotal}))(t)
	for i := range 24 {
		r := require.Value(s.Begin(captures.Exchange{URL: "https://h/long"}))(t)
		for j := range 16 { // 1 MB, the most that is stored
			r.Chunk(captures.Down, []byte(randomText(80<<10, 100*i+j)))
		}
		time.Sleep(50 * time.Millisecond)
		if size := diskSize(t, dir); size > MinTotal {
			t.Fatalf("%d bytes on disk after %d exchanges", size, i+1)
		}
	}
	require.NoError(t, s.Close())
	if size := diskSize(t, dir); size > MinTotal {
		t.Errorf("%d bytes on disk", size)
	}
}

func TestRingTooSmall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.uwc")
	if _, err := Create(file, Options{MaxTotal: MinTotal - 1}); err == nil {
		t.Error("it is taken")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was made")
	}
}
