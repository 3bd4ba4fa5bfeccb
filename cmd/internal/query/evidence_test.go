package query

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
)

// record appends unary calls of one method to a capture, each with a text.
func record(t testing.TB, path string, texts ...string) {
	t.Helper()
	s, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		r, err := s.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/a.B/C", HTTP: "1.1", Started: time.Unix(1_700_000_000, 0),
			RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "connect-protocol-version", Value: "1"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Chunk(captures.Up, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text))
		r.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
		r.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *Capture {
	t.Helper()
	c, err := Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// read returns the fields of an exchange's first frame.
func read(t testing.TB, c *Capture, id int64) (fields string, messages int) {
	t.Helper()
	at, err := c.Resolve(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	v := c.Views(t.Context(), at, nil)
	data, err := json.Marshal(v.Of(at.Call, captures.Up).Fields(at.Frames[0].Tree))
	if err != nil {
		t.Fatal(err)
	}
	return string(data), v.Messages(captures.Up)
}

func sentences(n int) (list []string) {
	list = []string{"\n\x05Lagos"} // by itself, it looks like a message
	for i := range n {
		list = append(list, fmt.Sprintf("\nline %d of a text that one reads, with words in it", i))
	}
	return list
}

// Evidence is derived once: what is kept in the file decides in the next run, until
// something is recorded.
func TestEvidenceIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, sentences(40)...)
	derived, messages := read(t, open(t, path), 1)
	if messages != 41 || !strings.Contains(derived, `"kind":"string"`) {
		t.Fatalf("derived from %d messages: %s", messages, derived)
	}
	if again, n := read(t, open(t, path), 1); again != derived || n != messages {
		t.Errorf("read again from %d messages:\n%s\nwant\n%s", n, again, derived)
	}

	// Evidence that says something else is believed, so it is what was read.
	c := open(t, path)
	name := "evidence of 1"
	at, err := c.Resolve(t.Context(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	last, err := c.LastNumber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.keepEvidence(t.Context(), name, last, decode.NewPool(t.Context(), nil, at.Exchange))
	if other, n := read(t, open(t, path), 1); n != 1 || other == derived {
		t.Errorf("the stored evidence was not used: %d messages", n)
	}

	record(t, path, sentences(3)...)
	if _, n := read(t, open(t, path), 1); n != 45 {
		t.Errorf("after more was recorded: %d messages, want 45", n)
	}
}

// Stored evidence that is damaged is derived again.
func TestEvidenceIsDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, sentences(5)...)
	want, _ := read(t, open(t, path), 1)
	c := open(t, path)
	value, err := c.Derived(t.Context(), "evidence of 1")
	if err != nil || len(value) < 9 {
		t.Fatalf("%x, %v", value, err)
	}
	for _, bad := range [][]byte{{}, value[:4], value[:8], value[:len(value)-3], append(value[:8:8], "no zstd"...)} {
		if err := c.PutDerived(t.Context(), "evidence of 1", bad); err != nil {
			t.Fatal(err)
		}
		if got, _ := read(t, open(t, path), 1); got != want {
			t.Errorf("%x: %s", bad, got)
		}
	}
}

// BenchmarkViews compares evidence that is derived with evidence that was kept.
func BenchmarkViews(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.uwc")
	record(b, path, sentences(200)...)
	at, err := open(b, path).Resolve(b.Context(), 100, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("derived", func(b *testing.B) {
		c := open(b, path)
		for b.Loop() {
			decode.NewPool(b.Context(), c.Store, at.Exchange)
		}
	})
	b.Run("kept", func(b *testing.B) {
		c := open(b, path)
		c.Views(b.Context(), at, nil)
		for b.Loop() {
			clear(c.evidence)
			c.Views(b.Context(), at, nil)
		}
	})
}
