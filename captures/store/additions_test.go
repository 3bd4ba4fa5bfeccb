package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/redact"
	"unwire/captures/store/internal/database"
)

// Readings are stored by the recorder, by way of it, and beside a reader; they are replaced
// and forgotten, and outlive what is derived.
func TestReadings(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	one := captures.Reading{Method: "/a.B/C", Dir: captures.Down, Path: "1.2", Type: "string"}
	two := captures.Reading{Method: "/a.B/C", Dir: captures.Up, Path: "1.2", Type: "packed varint"}
	other := captures.Reading{Method: "/a.B/CD", Dir: captures.Up, Path: "3", Type: "bytes"}
	require.NoError(t, w.PutReading(ctx, one))

	r := require.Value(Open(path, ReadOptions{}))(t)
	require.NoError(t, r.PutReading(ctx, other)) // while it is recorded to
	if got := require.Value(r.Readings(ctx, ""))(t); !slices.Equal(got, []captures.Reading{one, other}) {
		t.Errorf("while it is recorded to: %v", got)
	}
	require.NoError(t, w.Close())
	for _, put := range []captures.Reading{two, other, {Method: "/a.B/C", Dir: captures.Down, Path: "1.2", Type: "bytes"}, one} {
		require.NoError(t, r.PutReading(ctx, put))
	}
	if got := require.Value(r.Readings(ctx, "/a.B/C"))(t); !slices.Equal(got, []captures.Reading{two, one}) {
		t.Errorf("%v", got)
	}
	require.NoError(t, r.PutReading(ctx, captures.Reading{Method: one.Method, Dir: one.Dir, Path: one.Path}))
	if got := require.Value(r.Readings(ctx, ""))(t); !slices.Equal(got, []captures.Reading{two, other}) {
		t.Errorf("%v", got)
	}
	for _, bad := range []captures.Reading{{Method: strings.Repeat("m", 5000), Dir: captures.Up, Path: "1", Type: "bytes"}} {
		if err := r.PutReading(ctx, bad); err == nil {
			t.Errorf("stored: %.20q", bad.Method)
		}
	}
	require.NoError(t, r.Close())
}

// noted makes a note of a frame's field, or of what is above it.
func noted(exchange int64, frame int, path, value string) captures.Note {
	return captures.Note{Place: captures.Place{Exchange: exchange, Dir: captures.Down, Frame: frame, Path: path}, Kind: captures.TextNote, Value: value}
}

// texts are the places and values of notes.
func texts(list []captures.Note) (out []string) {
	for _, n := range list {
		out = append(out, fmt.Sprintf("%d/%s/%d %s %s=%s", n.Exchange, n.Dir, n.Frame, n.Path, n.Kind, n.Value))
	}
	return out
}

// equal compares lists of texts.
func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Notes are stored by the recorder, through it by a reader, and by a reader alone; each is
// seen at once, replaced and removed, and a secret that the recorder knows is not stored.
func TestNotes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	red := redact.New(redact.Options{})
	w := require.Value(Create(path, Options{Redactor: red}))(t)
	w.Redactor.Learn("hunter2-made-up-0001")
	for range 2 {
		require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}))(t)
	}
	whole := captures.Note{Place: captures.Place{Exchange: 1, Frame: captures.NoFrame}, Kind: captures.TextNote, Value: "by the recorder"}
	require.NoError(t, w.PutNote(ctx, whole))

	r := require.Value(Open(path, ReadOptions{}))(t)
	defer r.Close()
	before := require.Value(r.LastNumber(ctx))(t)
	require.NoError(t, r.PutNote(ctx, noted(2, 0, "1.2", "it is hunter2-made-up-0001")))
	mark := captures.Note{Place: whole.Place, Kind: captures.MarkNote, Value: "star"}
	require.NoError(t, r.PutNote(ctx, mark))
	if after := require.Value(r.LastNumber(ctx))(t); after < before+2 {
		t.Errorf("the last number went from %d to %d", before, after)
	}
	list := require.Value(r.Notes(ctx, 0))(t)
	if len(list) != 3 || strings.Contains(list[2].Value, "hunter2") || !strings.HasPrefix(list[2].Value, "it is [redacted") {
		t.Errorf("%v", texts(list))
	}
	if since := time.Since(list[0].Changed); since < 0 || since > time.Hour {
		t.Errorf("changed %v ago", since)
	}
	for _, c := range []struct {
		note captures.Note
		want error
	}{
		{noted(9, captures.NoFrame, "", "x"), captures.ErrNoExchange},
		{noted(1, 0, "", strings.Repeat("x", 64<<10+1)), captures.ErrTooLarge},
		{captures.Note{Place: whole.Place, Kind: captures.MarkNote, Value: strings.Repeat("x", 65)}, captures.ErrTooLarge},
		{captures.Note{Place: whole.Place, Kind: captures.MarkNote, Value: "two words"}, nil},
		{captures.Note{Place: whole.Place, Kind: "other", Value: "x"}, nil},
		{noted(1, captures.NoFrame, "1", "x"), nil},
	} {
		if err := r.PutNote(ctx, c.note); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.note.Place, err)
		}
	}
	require.NoError(t, w.Close())
	if _, err := os.Lstat(path + "-control"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control file is still there: %v", err)
	}

	require.NoError(t, r.PutNote(ctx, noted(2, 0, "1.2", "")))
	require.NoError(t, r.PutNote(ctx, noted(2, 3, "", strings.Repeat("ä", 32<<10))))
	whole.Value = "by a reader"
	require.NoError(t, r.PutNote(ctx, whole))
	equal(t, "of 1", texts(require.Value(r.Notes(ctx, 1))(t)), "1/up/-1  mark=star", "1/up/-1  note=by a reader")
	if list := require.Value(r.Notes(ctx, 2))(t); len(list) != 1 || list[0].Frame != 3 || len(list[0].Value) != 64<<10 {
		t.Errorf("of 2: %d", len(list))
	}
	if err := r.PutNote(ctx, noted(9, captures.NoFrame, "", "x")); !errors.Is(err, captures.ErrNoExchange) {
		t.Errorf("of an exchange that does not exist: %v", err)
	}
	if _, err := os.Lstat(path + "-lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
}

// Definitions are kept by content: added while a capture is recorded and afterwards,
// replaced, and taken back by name.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	r := require.Value(Open(path, ReadOptions{}))(t)
	defer r.Close()
	large := bytes.Repeat([]byte("made-up "), 1<<18)
	define := func(kind captures.DefinitionKind, name string, data []byte) error {
		return r.PutDefinition(ctx, captures.Definition{Kind: kind, Name: name, Data: data, Active: true})
	}
	require.NoError(t, define(captures.ProtoFile, "shop/v1/shop.proto", []byte("one")))
	require.NoError(t, define(captures.DescriptorSet, "shop", large))
	require.NoError(t, w.Close())
	require.NoError(t, define(captures.ProtoFile, "shop/v1/shop.proto", []byte("two")))
	require.NoError(t, define(captures.ProtoFile, "other.proto", []byte("three")))
	require.NoError(t, r.PutDefinition(ctx, captures.Definition{Name: "other.proto"}))
	for _, bad := range []captures.Definition{
		{Kind: captures.ProtoFile, Name: "", Data: large, Active: true},
		{Kind: captures.DescriptorSet, Name: "a/b", Data: large, Active: true},
		{Kind: captures.ProtoFile, Name: "a.proto", Active: true},
		{Kind: "other", Name: "a.proto", Data: large, Active: true},
		{Name: "not-there"},
	} {
		if err := r.PutDefinition(ctx, bad); err == nil {
			t.Errorf("%s %q was stored", bad.Kind, bad.Name)
		}
	}
	var got []string
	for _, d := range require.Value(r.Definitions(ctx))(t) {
		got = append(got, fmt.Sprintf("%s %s %t %d", d.Kind, d.Name, d.Active, len(d.Data)))
	}
	equal(t, "definitions", got, "descriptors shop true 2097152", "proto other.proto false 0", "proto shop/v1/shop.proto true 3")
}

// A follower sees what is added in the order of the numbers, whoever adds it.
func TestFollowAdditions(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	r := require.Value(Open(path, ReadOptions{}))(t)
	defer r.Close()
	rec := require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}))(t)
	next := make(chan captures.Event)
	go func() {
		defer close(next)
		for e, err := range r.Follow(ctx, time.Millisecond) {
			if err != nil {
				t.Error(err)
				return
			}
			next <- e
		}
	}()
	last := int64(0)
	expect := func(kind captures.EventKind) captures.Addition {
		t.Helper()
		e := <-next
		if e.Kind != kind || e.N <= last {
			t.Errorf("%v %d after %d, want %v", e.Kind, e.N, last, kind)
		}
		last = e.N
		return e.Addition
	}
	expect(captures.Began)
	require.NoError(t, r.PutNote(ctx, noted(1, 0, "", "one")))
	if a := expect(captures.Added); a.Note == nil || a.Note.Value != "one" {
		t.Errorf("%+v", a)
	}
	rec.Chunk(captures.Down, []byte("x"))
	expect(captures.Received)
	require.NoError(t, r.PutReading(ctx, captures.Reading{Method: "/a/B", Path: "1", Type: "string"}))
	if a := expect(captures.Added); a.Reading == nil || a.Reading.Type != "string" {
		t.Errorf("%+v", a)
	}
	require.NoError(t, w.PutDefinition(ctx, captures.Definition{Kind: captures.ProtoFile, Name: "a.proto", Data: []byte("x"), Active: true}))
	if a := expect(captures.Added); a.Definition == nil || a.Definition.Name != "a.proto" {
		t.Errorf("%+v", a)
	}
	rec.End(captures.Complete, "")
	expect(captures.Ended)
	require.NoError(t, w.Close())
	require.NoError(t, r.PutNote(ctx, noted(1, 0, "", "")))
	if a := expect(captures.Added); a.Note == nil || a.Note.Value != "" {
		t.Errorf("%+v", a)
	}
	cancel()
	<-next
}

// Many readers add at once while it is recorded, while it ends, and when it has ended:
// nothing is lost.
func TestNotesMeanwhile(t *testing.T) {
	t.Parallel()
	const readers, each = 20, 10 // more than may be connected
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}))(t)
	require.NoError(t, w.Flush(ctx))
	results := make(chan error)
	for i := range readers {
		go func() {
			r, err := Open(path, ReadOptions{})
			for k := 0; k < each && err == nil; k++ {
				err = r.PutNote(ctx, noted(1, i*each+k, "", "x"))
			}
			if r != nil {
				err = errors.Join(err, r.Close())
			}
			results <- err
		}()
	}
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, w.Close())
	for range readers {
		require.NoError(t, <-results)
	}
	r := require.Value(Open(path, ReadOptions{}))(t)
	defer r.Close()
	if list := require.Value(r.Notes(ctx, 0))(t); len(list) != readers*each {
		t.Errorf("%d notes of %d", len(list), readers*each)
	}
}

// A writer without a socket, and one that was killed and left its control file.
func TestNotesWithoutSocket(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}))(t)
	require.NoError(t, w.Flush(ctx))
	stale := require.Value(os.ReadFile(path + "-control"))(t)
	require.NoError(t, w.control.Close())
	w.control = nil
	r := require.Value(Open(path, ReadOptions{}))(t)
	defer r.Close()
	if err := r.PutNote(ctx, noted(1, 0, "", "x")); !errors.Is(err, captures.ErrInUse) {
		t.Errorf("a writer without a socket: %v", err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path+"-control", stale, 0o600))
	require.NoError(t, r.PutNote(ctx, noted(1, 0, "", "x")))
	w = require.Value(Create(path, Options{}))(t)
	require.NoError(t, r.PutNote(ctx, noted(1, 1, "", "x")))
	require.NoError(t, w.Close())
}

// Clients that send garbage, huge lengths, nothing or a wrong token, 100 at once, neither
// stop the recording nor keep others from adding to it.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	rec := require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}))(t)
	require.NoError(t, w.Flush(ctx))
	var file struct{ Network, Address string }
	require.NoError(t, json.Unmarshal(require.Value(os.ReadFile(path+"-control"))(t), &file))
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			attacks := []string{
				"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x00\x00\x0f\xff{", "\x00\x00\x00\x02{}",
				"\x00\x00\x00\x13{\"v\":1,\"token\":\"0\"}",
			}
			for ctx.Err() == nil {
				conn, err := net.Dial(file.Network, file.Address)
				if err != nil {
					continue
				}
				_, _ = conn.Write([]byte(attacks[i%len(attacks)]))
				_ = conn.SetReadDeadline(time.Now().Add(time.Second / 4))
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
		})
	}
	r := require.Value(Open(path, ReadOptions{}))(t)
	defer r.Close()
	slowest := time.Duration(0)
	for i := range 2000 {
		began := time.Now()
		rec.Chunk(captures.Down, []byte("frame"))
		slowest = max(slowest, time.Since(began))
		if i%1000 == 500 {
			require.NoError(t, r.PutNote(ctx, noted(1, i, "", "meanwhile")))
		}
	}
	if slowest > time.Second {
		t.Errorf("a chunk waited for %v", slowest)
	}
	cancel()
	all.Wait()
	rec.End(captures.Complete, "")
	require.NoError(t, w.Close())
	if got := require.All(t, r.Chunks(t.Context(), 1, 0)); len(got) != 2000 {
		t.Errorf("%d chunks", len(got))
	}
	if list := require.Value(r.Notes(t.Context(), 0))(t); len(list) != 2 {
		t.Errorf("%v", texts(list))
	}
}

// What a foreign file may not hold is damage.
func TestDamagedAdditions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	note := func(rest string) string {
		return `INSERT INTO notes (n, exchange, dir, frame, path, kind, value, changed_ns) VALUES (` + rest + `, 0)`
	}
	for _, statement := range []string{
		note(`90, 7, -1, -1, '', 'note', 'no such exchange'`),
		note(`90, 1, 2, 0, '', 'note', 'x'`),
		note(`90, 1, -1, 0, '', 'note', 'x'`),
		note(`90, 1, 0, -1, '', 'note', 'x'`),
		note(`90, 1, -1, -1, '1', 'note', 'x'`),
		note(`90, 1, 0, -2, '', 'note', 'x'`),
		note(`-90, 1, 0, 0, '', 'note', 'x'`),
		note(`90, 1, 0, 0, '', 'note', replace(hex(zeroblob(40000)), '0', 'x')`),
		note(`90, 1, 0, 0, '', 'mark', replace(hex(zeroblob(40)), '0', 'x')`),
		`INSERT INTO readings (n, method, dir, path, type, changed_ns) VALUES (90, 'm', 2, '1', 'x', 0)`,
		`INSERT INTO readings (n, method, dir, path, type, changed_ns) VALUES (90, 'm', 0, '1', hex(zeroblob(3000)), 0)`,
		`INSERT INTO definitions (n, kind, name, blob, active, changed_ns) VALUES (90, 'proto', 'a', 77, 1, 0)`,
		`INSERT INTO definitions (n, kind, name, blob, active, changed_ns) VALUES (90, 'proto', 'a', 77, 2, 0)`,
	} {
		path := filepath.Join(t.TempDir(), "a.uwc")
		w := require.Value(Create(path, Options{}))(t)
		require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}))(t)
		require.NoError(t, w.Close())
		r := require.Value(Open(path, ReadOptions{}))(t)
		read := func() error {
			_, err := r.Notes(ctx, 0)
			_, err2 := r.Readings(ctx, "")
			_, err3 := r.Definitions(ctx)
			return errors.Join(err, err2, err3)
		}
		require.NoError(t, read())
		forge(t, path, statement)
		if err := read(); !errors.Is(err, captures.ErrDamaged) {
			t.Errorf("%s: %v", statement, err)
		}
		require.NoError(t, r.Close())
	}
}

// forge runs a statement on a capture.
func forge(t *testing.T, path, statement string) {
	t.Helper()
	db := require.Value(database.Open(path, "rw"))(t)
	require.Value(db.Exec(statement))(t)
	require.NoError(t, db.Close())
}

// BenchmarkPutNote is a note by way of the writer of a capture that is recorded.
func BenchmarkPutNote(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.uwc")
	w, err := Create(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Begin(captures.Exchange{Method: "GET", URL: "http://a/"}); err != nil {
		b.Fatal(err)
	}
	r, err := Open(path, ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for i := 0; b.Loop(); i++ {
		if err := r.PutNote(b.Context(), noted(1, i%1000, "", "x")); err != nil {
			b.Fatal(err)
		}
	}
}
