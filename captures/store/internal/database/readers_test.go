package database

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"unwire/captures/internal/require"
)

// TestReaders runs queries on many goroutines: each sees its own rows, also when statements are used again and when
// there are more queries than a connection keeps statements for. After Close, nothing holds the database.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	db := require.Value(Open(path, "rw"))(t)
	if _, err := db.Exec(`CREATE TABLE numbers (n INTEGER, text TEXT)`); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := db.Exec(`INSERT INTO numbers VALUES (?, ?)`, i, fmt.Sprint("text ", i)); err != nil {
			t.Fatal(err)
		}
	}
	p := NewReaders(db)
	var wg sync.WaitGroup
	for g := range 2 * maxReaders {
		wg.Go(func() {
			for i := range 50 {
				n := (7*g + i) % 100
				query := `SELECT text FROM numbers WHERE n = ?`
				if i%2 == 1 {
					query += fmt.Sprintf(" AND n < %d", 1000+g*50+i)
				}
				if got, err := p.text(t, query, n); err != nil || got != fmt.Sprint("text ", n) {
					t.Errorf("%d: %q, %v", n, got, err)
				}
			}
		})
	}
	wg.Wait()

	// A limit for one query is not that of the next.
	if _, err := db.Exec(`INSERT INTO numbers VALUES (200, ?)`, string(make([]byte, 10_000))); err != nil {
		t.Fatal(err)
	}
	long := `SELECT text FROM numbers WHERE n = ?`
	r := require.Value(p.Get(t.Context(), 5_000))(t)
	if rows, err := r.QueryContext(t.Context(), long, 200); err == nil {
		if rows.Next() {
			t.Error("a value above the limit was read")
		}
		_ = rows.Close()
	}
	p.Put(r)
	if got, err := p.text(t, long, 200); err != nil || len(got) != 10_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	require.NoError(t, p.Close())
	if open := db.Stats().InUse; open != 0 {
		t.Errorf("%d connections are in use", open)
	}
	require.NoError(t, db.Close())
}

// text runs a query for one text.
func (p *Readers) text(t *testing.T, query string, n int) (text string, err error) {
	r, err := p.Get(t.Context(), 1<<20)
	if err != nil {
		return "", err
	}
	defer p.Put(r)
	rows, err := r.QueryContext(t.Context(), query, n)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&text)
	}
	return text, err
}
