package upload

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/internal/s3test"
	"unwire/captures/objectstore"
	"unwire/captures/store"
)

// segment records a file with one exchange.
func segment(t *testing.T, name, path string) string {
	t.Helper()
	s, err := store.Create(name, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	record(t, s, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// record records an exchange.
func record(t *testing.T, s *store.Store, path string) {
	t.Helper()
	rec, err := s.Begin(captures.Exchange{
		Method: "POST", URL: "https://h.example" + path, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Status: 200,
		RequestHeaders: captures.Headers{{Name: "user-agent", Value: "app/1.2 (test)"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, []byte(strings.Repeat("request ", 100)))
	rec.End(captures.Complete, "")
}

// results collects what an Uploader reports.
type results struct {
	mu   sync.Mutex
	list []Result
}

func (r *results) add(one Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, one)
}

// failed returns the errors so far.
func (r *results) failed() (list []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.list {
		if one.Err != nil {
			list = append(list, one.Err)
		}
	}
	return list
}

// start returns an Uploader to the service.
func start(t *testing.T, s3 *s3test.Service, check func(context.Context, *store.Store) error) (*Uploader, *results, objectstore.Store) {
	t.Helper()
	s, _, err := objectstore.Open("s3://bucket", objectstore.Options{Endpoint: s3.URL, Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	if check == nil {
		check = func(context.Context, *store.Store) error { return nil }
	}
	r := new(results)
	u := New(Options{Store: s, Prefix: "p", Check: check, Version: "test", Report: r.add, MinPause: time.Millisecond, MaxPause: 5 * time.Millisecond})
	return u, r, s
}

// uploaded returns the keys of a store, after comparing each segment with its name and manifest.
func uploaded(t *testing.T, s objectstore.Store) (keys []string) {
	t.Helper()
	list, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		keys = append(keys, o.Key)
		r, err := s.Open(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(o.Key, filepath.Ext(o.Key))
		if filepath.Ext(o.Key) == ".uwc" {
			if want := fmt.Sprintf("p/%x", sha256.Sum256(data)); base != want {
				t.Errorf("%s: the content is %s", o.Key, want)
			}
			continue
		}
		m, err := ParseManifest(data)
		if err != nil || "p/"+m.SHA256 != base || !m.Redacted || m.Unwire != "test" {
			t.Errorf("%s: %+v, %v", o.Key, m, err)
		}
	}
	return keys
}

// TestUpload: a segment and its manifest arrive, and the file is gone.
func TestUpload(t *testing.T) {
	u, r, s := start(t, s3test.New(t), nil)
	file := segment(t, filepath.Join(t.TempDir(), "a.uwc"), "/shop.v1.Shop/Buy")
	u.Add(file)
	if left := u.Close(t.Context()); len(left) > 0 {
		t.Errorf("%v: %v", left, r.failed())
	}
	if keys := uploaded(t, s); len(keys) != 2 || !missing(file) {
		t.Errorf("%q; the file is there: %v", keys, !missing(file))
	}
	m := r.list[0].Manifest
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := &Manifest{
		V: 1, SHA256: m.SHA256, Size: m.Size, First: at, Last: at, Exchanges: 1, Hosts: []string{"h.example"},
		Methods: []string{"shop.v1.Shop/Buy"}, Clients: []string{"app/1.2"}, Redacted: true, Unwire: "test",
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
}

// TestFaults: whatever the service does wrong, each segment is there in the end, once and unchanged.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]s3test.Fault{
		"500":  func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true },
		"slow": func(http.ResponseWriter, *http.Request) bool { time.Sleep(20 * time.Millisecond); return false },
		"cut": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		},
		"a wrong checksum": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("ETag", `"00000000000000000000000000000000"`)
			return true
		},
		"another content": func(_ http.ResponseWriter, r *http.Request) bool {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), io.LimitReader(r.Body, r.ContentLength-1)))
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			s3 := s3test.New(t)
			var left atomic.Int64
			left.Store(4)
			s3.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodPut && left.Add(-1) >= 0 && fault(w, r)
			})
			u, r, s := start(t, s3, nil)
			dir := t.TempDir()
			for i := range 3 {
				u.Add(segment(t, filepath.Join(dir, fmt.Sprint(i, ".uwc")), fmt.Sprint("/x/", i)))
			}
			if rest := u.Close(t.Context()); len(rest) > 0 {
				t.Errorf("%v: %v", rest, r.failed())
			}
			if keys := uploaded(t, s); len(keys) != 6 {
				t.Errorf("%q", keys)
			}
			if len(r.failed()) == 0 && name != "slow" {
				t.Error("no attempt failed")
			}
		})
	}
}

// TestAway: while the store is away, files stay; the next Uploader finds them.
func TestAway(t *testing.T) {
	s3 := s3test.New(t)
	s3.SetFault(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true })
	u, r, _ := start(t, s3, nil)
	dir := t.TempDir()
	first := filepath.Join(dir, "a.uwc")
	for _, name := range []string{"a.uwc", "a-2.uwc", "a-10.uwc", "other.uwc", "a-x.uwc", "a-02.uwc"} {
		file := segment(t, filepath.Join(dir, name), "/"+name)
		if strings.Count(name, "-") == 0 && name != "other.uwc" {
			u.Add(file)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if left := u.Close(ctx); !slices.Equal(left, []string{first}) || len(r.failed()) < 2 {
		t.Errorf("%q left, %v", left, r.failed())
	}

	s3.SetFault(nil)
	files, err := Leftover(first)
	if want := []string{first, filepath.Join(dir, "a-2.uwc"), filepath.Join(dir, "a-10.uwc")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%q, want %q, %v", files, want, err)
	}
	u, _, s := start(t, s3, nil)
	for _, file := range files {
		u.Add(file)
	}
	if left := u.Close(t.Context()); len(left) > 0 {
		t.Errorf("%q", left)
	}
	if keys := uploaded(t, s); len(keys) != 6 {
		t.Errorf("%q", keys)
	}
}

// TestUnfit: a segment that fails the check stays, is not tried again, and does not stop others.
func TestUnfit(t *testing.T) {
	u, r, s := start(t, s3test.New(t), func(ctx context.Context, s *store.Store) error {
		if strings.Contains(s.Path, "bad") {
			return fmt.Errorf("%w: it has a secret", ErrUnfit)
		}
		return nil
	})
	dir := t.TempDir()
	bad := segment(t, filepath.Join(dir, "bad.uwc"), "/1")
	u.Add(bad)
	u.Add(segment(t, filepath.Join(dir, "good.uwc"), "/2"))
	if left := u.Close(t.Context()); !slices.Equal(left, []string{bad}) || missing(bad) {
		t.Errorf("%q", left)
	}
	if keys := uploaded(t, s); len(keys) != 2 {
		t.Errorf("%q", keys)
	}
	if errs := r.failed(); len(errs) != 1 || !errors.Is(errs[0], ErrUnfit) {
		t.Errorf("%v", errs)
	}
}

// TestRepeated: a segment that is there already is not sent again.
func TestRepeated(t *testing.T) {
	s3 := s3test.New(t)
	dir := t.TempDir()
	file := segment(t, filepath.Join(dir, "a.uwc"), "/1")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		u, r, _ := start(t, s3, nil)
		u.Add(file)
		if left := u.Close(t.Context()); len(left) > 0 {
			t.Error(r.failed())
		}
	}
	if n := s3.Count(".uwc"); n != 3 {
		t.Errorf("%d requests for the segment, want two questions and one upload", n)
	}
}

// TestKilled kills a recorder, whose segment is uploaded with what was in SQLite's log.
func TestKilled(t *testing.T) {
	if name := os.Getenv("UNWIRE_TEST_RECORD"); name != "" {
		s, err := store.Create(name, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		record(t, s, "/1")
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			fmt.Println("recorded")
			time.Sleep(10 * time.Millisecond)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "a.uwc")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
	cmd.Env = append(os.Environ(), "UNWIRE_TEST_RECORD="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(out, make([]byte, 200))
	if missing(file + "-wal") {
		t.Error("there is no log")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	u, r, s := start(t, s3test.New(t), nil)
	u.Add(file)
	if left := u.Close(t.Context()); len(left) > 0 {
		t.Fatal(r.failed())
	}
	if keys := uploaded(t, s); len(keys) != 2 || r.list[0].Manifest.Exchanges != 1 {
		t.Errorf("%q, %+v", keys, r.list[0].Manifest)
	}
}

func TestParseManifest(t *testing.T) {
	t.Parallel()
	good := `{"v":1,"sha256":"` + strings.Repeat("0a", 32) + `","size":1}`
	if _, err := ParseManifest([]byte(good)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "{}", strings.Replace(good, `"v":1`, `"v":2`, 1), strings.Replace(good, "0a", "0A", 1), strings.Replace(good, `:1}`, `:-1}`, 1)} {
		if _, err := ParseManifest([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

// FuzzParseManifest: no bytes make it panic.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"v":1,"sha256":"` + strings.Repeat("0a", 32) + `","size":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := ParseManifest(data); err == nil && (m.V != 1 || len(m.SHA256) != 64) {
			t.Errorf("%+v", m)
		}
	})
}
