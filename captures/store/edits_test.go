package store

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/redact"
)

// recordEdited records an exchange of which rules changed something.
func recordEdited(t *testing.T, s *Store) int64 {
	t.Helper()
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://a.example/x", RequestHeaders: captures.Headers{{Name: "content-type", Value: "text/plain"}}})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, []byte("0123456"))
	rec.Chunk(captures.Up, []byte("789"))
	rec.Edit(captures.Up, 0, 0, "first", []byte("<"))
	rec.Edit(captures.Up, 2, 5, "middle", []byte("two to four"))
	rec.Edit(captures.Up, 6, 8, "over chunks", nil)
	rec.Edit(captures.Up, 9, 10, "large", bytes.Repeat([]byte("large "), 10_000))
	rec.Edit(captures.Up, 10, 10, "last", []byte(">"))
	rec.ForwardHead(captures.Down, "made up", captures.ForwardedHead{Status: 404, Headers: captures.Headers{{Name: "x-by", Value: "rule"}}})
	rec.Edit(captures.Down, 0, 0, "made up", []byte("authorization: Bearer abcdefghijklmnopqrstuvwx0123"))
	rec.End(captures.Complete, "")
	rec.Edit(captures.Up, 10, 10, "too late", []byte("!"))
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	return rec.ID()
}

// forwardedBody returns a direction as it was forwarded.
func forwardedBody(t *testing.T, s *Store, id int64, d captures.Direction) string {
	t.Helper()
	var out strings.Builder
	for c, err := range s.Forwarded().Chunks(context.Background(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Dir == d {
			out.Write(c.Data)
		}
	}
	return out.String()
}

// TestEdits: what was forwarded is stored next to what was received, without secrets, and is copied.
func TestEdits(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, err := Create(filepath.Join(dir, "a.uwc"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := recordEdited(t, s)
	to, err := Create(filepath.Join(dir, "b.uwc"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	ex, err := s.Exchange(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.CopyExchange(ctx, s, ex, [2][]redact.Edit{}); err != nil {
		t.Fatal(err)
	}
	if err := to.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Store{"recorded": s, "copied": to} {
		if got, want := forwardedBody(t, s, id, captures.Up), "<01two to four58"+strings.Repeat("large ", 10_000)+">"; got != want {
			t.Errorf("%s: forwarded %.80q", name, got)
		}
		if got := forwardedBody(t, s, id, captures.Down); strings.Contains(got, "abcdefghijkl") || !strings.Contains(got, "authorization: Bearer ") {
			t.Errorf("%s: %q", name, got)
		}
		edits, err := s.Edits(ctx, id)
		if err != nil || len(edits) != 6 || edits[1].Rule != "middle" || edits[1].Start != 2 || edits[1].End != 5 {
			t.Errorf("%s: %d edits, %v", name, len(edits), err)
		}
		heads, err := s.ForwardedHeads(ctx, id)
		want := []captures.ForwardedHead{{Exchange: id, Dir: captures.Down, Rule: "made up", Status: 404, Headers: captures.Headers{{Name: "x-by", Value: "rule"}}}}
		if err != nil || !reflect.DeepEqual(heads, want) {
			t.Errorf("%s: %+v, %v", name, heads, err)
		}
		if all, err := s.EditedExchanges(ctx); err != nil || !all[id] || len(all) != 1 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if ex, err := s.Forwarded().Exchange(ctx, id); err != nil || ex.Status != 404 || ex.ResponseHeaders.Get("x-by") != "rule" {
			t.Errorf("%s: %+v, %v", name, ex, err)
		}
	}
}

// TestDamagedEdits: edits that cannot be are damage.
func TestDamagedEdits(t *testing.T) {
	for _, statement := range []string{
		`UPDATE edits SET end_off = 1 WHERE rule = 'middle'`,
		`UPDATE edits SET start_off = 0, end_off = 4 WHERE rule = 'first'`,
		`UPDATE edits SET size = 3 WHERE rule = 'middle'`,
		`UPDATE edits SET size = 1 << 40 WHERE rule = 'middle'`,
		`UPDATE edits SET blob = 999999, data = NULL WHERE rule = 'middle'`,
		`UPDATE edits SET dir = 7`,
	} {
		path := filepath.Join(t.TempDir(), "a.uwc")
		s, err := Create(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		id := recordEdited(t, s)
		if _, err := s.writer.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Edits(context.Background(), id); !errors.Is(err, captures.ErrDamaged) {
			t.Errorf("%s: %v", statement, err)
		}
		s.Close()
	}
}
