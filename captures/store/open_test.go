package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/store/internal/schema"
)

// alter runs statements on a capture, as somebody with the sqlite3 shell would.
func alter(t testing.TB, path string, statements ...string) {
	t.Helper()
	db := require.Value(sql.Open("sqlite", path))(t)
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	require.NoError(t, db.Close())
}

// readAll reads everything there is and returns the first error.
func readAll(path string) error {
	s, err := Open(path, ReadOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for e, err := range s.Exchanges(ctx) {
		if err != nil {
			return err
		}
		for _, err := range s.Chunks(ctx, e.ID, 0) {
			if err != nil {
				return err
			}
		}
	}
	_, _, _, err = s.eventsAfter(ctx, 0)
	return err
}

func TestWhatIsNoCapture(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	foreign := filepath.Join(dir, "foreign")
	alter(t, foreign, "CREATE TABLE exchanges (id)", "PRAGMA application_id=7")
	plain := filepath.Join(dir, "plain")
	alter(t, plain, "CREATE TABLE exchanges (id)")
	newer := record(t, "x")
	alter(t, newer, "PRAGMA user_version=9")
	zero := record(t, "x")
	alter(t, zero, "PRAGMA user_version=0")
	for _, c := range []struct {
		name, path string
		want       error
		says       string
	}{
		{"missing", filepath.Join(dir, "none"), os.ErrNotExist, "no such file"},
		{"directory", dir, captures.ErrNotCapture, "the path is a folder"},
		{"empty", file("empty", ""), captures.ErrNotCapture, "the file is empty"},
		{"text", file("text", strings.Repeat("hello ", 1000)), captures.ErrNotCapture, "not an SQLite database"},
		{"short", file("short", "hello"), captures.ErrNotCapture, "not an SQLite database"},
		{"random", file("random", "SQLite format 3\x00"+strings.Repeat("\x93\x01\xfe", 2000)), nil, ""},
		{"foreign", foreign, captures.ErrNotCapture, "another program (application id 0x7)"},
		{"plain database", plain, captures.ErrNotCapture, "another program"},
		{"device", os.DevNull, captures.ErrNotCapture, "not a regular file"},
		{"newer", newer, captures.ErrNewerFormat, "a newer version of unwire wrote the file, in format 9; this version of unwire reads formats up to 3: update unwire"},
		{"no version", zero, captures.ErrDamaged, "format 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			_, err := Open(c.path, ReadOptions{})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("Open: %v", err)
			}
			if c.name == "missing" || c.name == "empty" {
				return
			}
			if _, err := Create(c.path, Options{}); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Create: %v", err)
			}
			if after, _ := os.ReadFile(c.path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	s := require.Value(Create(filepath.Join(dir, "empty"), Options{}))(t) // as mktemp leaves it
	require.NoError(t, s.Close())
	if left := require.Value(filepath.Glob(filepath.Join(dir, "*-*")))(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A file whose schema is not ours could make our own statements do other things.
func TestForgedSchema(t *testing.T) {
	for name, statements := range map[string][]string{
		"a view for a table":  {"DROP TABLE headers", "CREATE VIEW headers AS SELECT 1 AS id, x'00' AS sha256, '[]' AS fields"},
		"a trigger":           {"CREATE TRIGGER t AFTER INSERT ON chunks BEGIN DELETE FROM exchanges; END"},
		"a missing table":     {"DROP TABLE notes"},
		"a missing column":    {"ALTER TABLE exchanges DROP COLUMN source"},
		"another type":        {"DROP TABLE events", "CREATE TABLE events (n INTEGER PRIMARY KEY, exchange TEXT, kind TEXT)"},
		"an index with code":  {"CREATE INDEX i ON chunks (abs(size))"},
		"a table of its own":  {"CREATE TABLE more (x)"},
		"a column more":       {"ALTER TABLE chunks ADD COLUMN x ANY"},
		"a generated column":  {"ALTER TABLE edits ADD COLUMN g INTEGER AS (size * 2)"},
		"a missing index":     {"DROP INDEX chunks_exchange"},
		"another primary key": {"DROP TABLE meta", "CREATE TABLE meta (name TEXT NOT NULL, value BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID"},
	} {
		t.Run(name, func(t *testing.T) {
			path := record(t, "x")
			alter(t, path, statements...)
			if _, err := Open(path, ReadOptions{}); !errors.Is(err, captures.ErrDamaged) {
				t.Errorf("Open: %v", err)
			}
			if _, err := Create(path, Options{}); !errors.Is(err, captures.ErrDamaged) {
				t.Errorf("Create: %v", err)
			}
		})
	}
	path := record(t, "x")
	alter(t, path, "ANALYZE", "VACUUM") // what people do to databases
	require.NoError(t, readAll(path))
}

// Values of a wrong type or size are refused with their place.
func TestForgedValues(t *testing.T) {
	big := strings.Repeat("payload ", 1000)
	for statement, says := range map[string]string{
		"UPDATE headers SET fields = 'no json'":                                                "exchange 1: ",
		"UPDATE headers SET fields = '[[\"one\"]]'":                                            "header field 0 has 1 parts",
		"UPDATE headers SET fields = '[[\"a\",\"*\",\"base64\"]]'":                             "header field 0",
		"UPDATE headers SET fields = '99'":                                                     "the payload is missing",
		"UPDATE headers SET fields = ''":                                                       "exchange 1: ",
		"UPDATE headers SET fields = (SELECT id FROM blobs)":                                   "invalid character",
		"UPDATE headers SET fields = (SELECT id FROM blobs); UPDATE blobs SET size = 1 << 25":  "a header section claims to have 33554432 bytes",
		"UPDATE exchanges SET response_headers = 99":                                           "exchange 1: ",
		"UPDATE exchanges SET process = 99":                                                    "exchange 1: ",
		"DELETE FROM exchanges":                                                                "the segment of chunk 0",
		"UPDATE segments SET last = last - 1":                                                  "the segment of chunk 0",
		"UPDATE segments SET entries = x'000016'":                                              "the segment of chunk 0 has",
		"UPDATE segments SET chunks = 3":                                                       "the segment of chunk 0 has",
		"UPDATE segments SET size_down = 0":                                                    "the segment of chunk 0",
		"UPDATE segments SET size_up = 1 << 60":                                                "claims to have 1152921504606846976",
		"UPDATE segments SET t_ns = -1":                                                        "the segment of chunk 0",
		"UPDATE segments SET codec = 3":                                                        "the segment has the unknown compression 3",
		"UPDATE segments SET codec = 1, data = x'28b52ffd', blob = NULL":                       "a payload cannot be decompressed",
		"UPDATE segments SET codec = 0, data = x'00', blob = NULL":                             "a payload has 1 bytes, but",
		"UPDATE segments SET blob = 99":                                                        "the payload is missing",
		"UPDATE exchanges SET tls = '7'":                                                       "exchange 1: ",
		"UPDATE exchanges SET status = -1":                                                     "exchange 1: ",
		"UPDATE exchanges SET bytes_up = -1":                                                   "exchange 1: ",
		"UPDATE chunks SET dir = 2":                                                            "contains the invalid number 2",
		"UPDATE chunks SET size = 3":                                                           "chunk 0 has 8000 bytes, but 3 were declared",
		"UPDATE chunks SET blob = 99":                                                          "the payload is missing",
		"UPDATE chunks SET blob = NULL":                                                        "chunk 0 has 0 bytes",
		"UPDATE blobs SET codec = 7":                                                           "unknown compression 7",
		"UPDATE blobs SET codec = 0":                                                           "were declared",
		"UPDATE blobs SET size = 1 << 40":                                                      "claims to have 1099511627776 bytes",
		"UPDATE blobs SET size = 7999":                                                         "chunk 0 in exchange 1 cannot be read: the capture is damaged: a payload",
		"UPDATE blobs SET data = x'28b52ffd'":                                                  "a payload cannot be decompressed",
		"UPDATE events SET kind = 3":                                                           "has the unknown kind 3",
		"UPDATE events SET kind = 77":                                                          "contains the invalid number 77",
		"UPDATE exchanges SET error = CAST(zeroblob(70000000) AS TEXT)":                        "",
		"UPDATE blobs SET data = zeroblob(100000000)":                                          "",
		"PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=2 WHERE name='chunks'":   "",
		"PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=99 WHERE name='headers'": "",
	} {
		t.Run(statement, func(t *testing.T) {
			path := record(t, big, big) // twice, so that it is a payload of its own
			if strings.Contains(statement, "chunks SET") {
				asOlderChunks(t, path)
			}
			alter(t, path, statement)
			if err := readAll(path); !errors.Is(err, captures.ErrDamaged) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A file that is cut off anywhere is an error or a part, never a panic.
func TestTruncated(t *testing.T) {
	whole := require.Value(os.ReadFile(record(t, "small", strings.Repeat("large ", 5000), "end")))(t)
	path := filepath.Join(t.TempDir(), "cut.uwc")
	for n := 1; n < len(whole); n += 1 + len(whole)/200 {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		if err := readAll(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		} else if !errors.Is(err, captures.ErrDamaged) && !errors.Is(err, captures.ErrNotCapture) {
			t.Errorf("%d of %d bytes: not one of the package's errors: %v", n, len(whole), err)
		}
	}
}

func TestMigration(t *testing.T) {
	ctx := context.Background()
	path := record(t, "kept")
	steps := append(schema.Steps(), schema.Migration{Statements: `ALTER TABLE exchanges ADD COLUMN note TEXT NOT NULL DEFAULT 'none'; CREATE TABLE extra (x INTEGER) STRICT`})
	if _, err := open(path, steps, len(steps)); !errors.Is(err, captures.ErrOlderFormat) || !strings.Contains(err.Error(), "format 3; this version of unwire reads format 4") {
		t.Errorf("an older file: %v", err)
	}
	broken := append(schema.Steps(), schema.Migration{Statements: `CREATE TABLE extra (x INTEGER) STRICT; SELECT nonsense`})
	if _, err := create(path, Options{}, testOptions{migrations: broken}); err == nil {
		t.Error("a migration that fails was taken")
	}
	require.NoError(t, readAll(path)) // and undone
	s := require.Value(create(path, Options{}, testOptions{migrations: steps}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	r.End(captures.Complete, "")
	require.NoError(t, s.Close())
	if _, err := Open(path, ReadOptions{}); !errors.Is(err, captures.ErrNewerFormat) {
		t.Errorf("the new file for an old program: %v", err)
	}
	s = require.Value(open(path, steps, len(steps)))(t)
	defer func() { require.NoError(t, s.Close()) }()
	if got := require.All(t, s.Exchanges(ctx)); len(got) != 2 {
		t.Errorf("%d exchanges", len(got))
	}
	if got := require.All(t, s.Chunks(ctx, 1, 0)); len(got) != 1 || string(got[0].Data) != "kept" {
		t.Errorf("%v", got)
	}
	var note string
	require.NoError(t, s.readDB.QueryRow("SELECT note FROM exchanges WHERE id = 1").Scan(&note))
	if note != "none" {
		t.Errorf("note %q", note)
	}
}

// FuzzOpen changes bytes of a capture.
func FuzzOpen(f *testing.F) {
	path := record(f, "small", strings.Repeat("large ", 2000))
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte("x"))
	f.Add(100, []byte{0, 0, 0, 1})
	f.Add(len(whole)-100, []byte("\xff\xff\xff\xff"))
	for i := 0; i < len(whole); i += 4096 {
		f.Add(i, []byte{5, 0, 0, 0, 200})
	}
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		if at < 0 || at >= len(whole) {
			return
		}
		p := append([]byte(nil), whole...)
		copy(p[at:], with)
		path := filepath.Join(t.TempDir(), "f.uwc")
		require.NoError(t, os.WriteFile(path, p, 0o600))
		if err := readAll(path); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}

func ExampleOpen() {
	_, err := Open("missing.uwc", ReadOptions{})
	fmt.Println(err)
	// Output: captures: missing.uwc: no such file or directory
}
