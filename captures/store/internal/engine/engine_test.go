package engine

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"unwire/captures/internal/require"
)

// TestRows: values of all kinds and sizes go in and come out, as another program reads them,
// and errors name their cause.
func TestRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := require.Value(sql.Open("sqlite", path))(t)
	defer func() { require.NoError(t, db.Close()) }()
	require.Value(db.Exec(`PRAGMA journal_mode=WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b BLOB) STRICT`))(t)

	c := require.Value(Open(path))(t)
	insert := require.Value(c.Prepare(`INSERT INTO t (id, a, b) VALUES (?, ?, ?)`))(t)
	find := require.Value(c.Prepare(`SELECT id, b FROM t WHERE a = ?`))(t)
	blobs := [][]byte{nil, {}, []byte("\x00b\xff"), bytes.Repeat([]byte("large"), 100_000), bytes.Repeat([]byte("larger"), 1_000_000)}
	require.NoError(t, c.Exec("BEGIN IMMEDIATE"))
	for i, b := range blobs {
		insert.Int(int64(i) - 1<<62)
		insert.Text(strings.Repeat("é", i*50_000))
		if b == nil {
			insert.Null()
		} else {
			insert.Blob(b)
		}
		require.NoError(t, insert.Run())
		if got := c.LastInsertID(); got != int64(i)-1<<62 {
			t.Errorf("row %d has the number %d", i, got)
		}
	}
	require.NoError(t, c.Exec("COMMIT"))

	for i, b := range blobs {
		var isNull bool
		var got []byte
		require.NoError(t, db.QueryRow(`SELECT b IS NULL, b FROM t WHERE length(a) = ?`, i*50_000).Scan(&isNull, &got))
		if isNull != (b == nil) || !bytes.Equal(got, b) {
			t.Errorf("row %d: %d bytes, NULL: %v", i, len(got), isNull)
		}
		find.Text(strings.Repeat("é", i*50_000))
		found, err := find.Row(func(r Columns) {
			if r.Int(0) != int64(i)-1<<62 || !bytes.Equal(r.Blob(1), b) {
				t.Errorf("row %d: %d, %d bytes", i, r.Int(0), len(r.Blob(1)))
			}
		})
		if !found || err != nil {
			t.Errorf("row %d: %v, %v", i, found, err)
		}
	}
	find.Text("none")
	if found, err := find.Row(func(Columns) { t.Error("a row that there is not") }); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}

	insert.Int(-1 << 62)
	insert.Text("again")
	insert.Null()
	if err := insert.Run(); err == nil || !strings.Contains(err.Error(), "UNIQUE constraint failed: t.id (1555)") {
		t.Errorf("a number that is there: %v", err)
	}
	insert.Int(5)
	insert.Text("goes on")
	insert.Null()
	require.NoError(t, insert.Run())
	if _, err := c.Prepare("SELECT x FROM t"); err == nil || !strings.Contains(err.Error(), "no such column: x") {
		t.Errorf("a column that there is not: %v", err)
	}
	require.NoError(t, c.Close())
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "unable to open database file") {
		t.Errorf("a file that there is not: %v", err)
	}
}

// BenchmarkRows inserts small rows, and reports what they take with database/sql.
func BenchmarkRows(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.db")
	db := require.Value(sql.Open("sqlite", path))(b)
	db.SetMaxOpenConns(1)
	defer func() { require.NoError(b, db.Close()) }()
	require.Value(db.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB, c INTEGER)`))(b)
	c := require.Value(Open(path))(b)
	defer func() { require.NoError(b, c.Close()) }()
	insert := require.Value(c.Prepare(`INSERT INTO t (a, b, c) VALUES (?, ?, ?)`))(b)
	data := make([]byte, 100)
	b.ReportAllocs()
	for i := range b.N {
		if i%100 == 0 {
			if i > 0 {
				require.NoError(b, c.Exec("COMMIT"))
			}
			require.NoError(b, c.Exec("BEGIN IMMEDIATE"))
		}
		insert.Text("https://h.example/p.S/M")
		insert.Blob(data)
		insert.Int(int64(i))
		require.NoError(b, insert.Run())
	}
	require.NoError(b, c.Exec("COMMIT"))
}
