package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// checkPath refuses what cannot be a capture by its directory entry alone;
// fresh says that it is an empty file, which Create may fill.
func checkPath(path string) (fresh bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err // the path stands in front already
		}
		return false, err
	case info.IsDir():
		return false, fmt.Errorf("%w: a directory", captures.ErrNotCapture)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%w: no regular file", captures.ErrNotCapture)
	case info.Size() == 0:
		return true, fmt.Errorf("%w: the file is empty", captures.ErrNotCapture)
	}
	return false, nil
}

// openChecked opens the file for reading, says which format it has and
// verifies its schema. The header is read through SQLite, not through a file
// of our own: closing one would drop the locks that a recorder in this very
// process holds on it.
func openChecked(ctx context.Context, path string, steps []schema.Migration) (db *sql.DB, version int, err error) {
	db, version, err = openIdentified(ctx, path, "ro", len(steps))
	if err != nil && cannotShare(err) {
		// A folder that cannot be written to has no place for the
		// write-ahead log's index. Without a log none is needed.
		if info, serr := os.Stat(path + "-wal"); serr == nil && info.Size() > 0 {
			return nil, 0, fmt.Errorf("%w: its write-ahead log cannot be read in this folder: copy it together with %s-wal to one that can be written to", err, filepath.Base(path))
		}
		db, version, err = openIdentified(ctx, path, "immutable", len(steps))
	}
	if err != nil {
		return nil, 0, explain(err)
	}
	if err = wholePages(ctx, db, path); err == nil {
		err = checkSchema(ctx, db, steps[:version])
	}
	if err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	return db, version, nil
}

// checkSchema is verifySchema on a connection that reads no long definitions.
func checkSchema(ctx context.Context, db *sql.DB, steps []schema.Migration) error {
	conn, err := limitedConn(ctx, db, maxSchemaText)
	if err != nil {
		return explainTime(ctx, explain(err))
	}
	defer func() { _ = conn.Close() }()
	return explainTime(ctx, explain(schema.Verify(ctx, conn, steps)))
}

// openPart opens a file that is cut short, so that what is there can be read.
// SQLite refuses it as long as the schema counts as sound; here that is found
// out by comparing it, as ever.
func openPart(ctx context.Context, path string, steps []schema.Migration) (*sql.DB, int, error) {
	db, version, err := openIdentified(ctx, path, "part", len(steps))
	if err != nil {
		return nil, 0, err
	}
	if err := checkSchema(ctx, db, steps[:version]); err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	return db, version, nil
}

// wholePages refuses a file that ends within a page: SQLite would read zeros
// there. With a write-ahead log beside it that is no harm: the log has the page.
func wholePages(ctx context.Context, db *sql.DB, path string) error {
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var size int64
	if err := db.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return explain(err)
	}
	if size > 0 && info.Size()%size != 0 {
		return captures.Damaged("cut short: %d bytes are no whole pages of %d", info.Size(), size)
	}
	return nil
}

func openIdentified(ctx context.Context, path, mode string, newest int) (*sql.DB, int, error) {
	db, err := openDB(path, mode)
	if err != nil {
		return nil, 0, err
	}
	conn, err := limitedConn(ctx, db, maxSchemaText)
	if err != nil {
		_ = db.Close()
		return nil, 0, explainTime(ctx, err)
	}
	version, err := schema.Identify(ctx, conn, newest)
	if err != nil {
		_ = errors.Join(conn.Close(), db.Close())
		return nil, 0, explainTime(ctx, explain(err))
	}
	return db, version, conn.Close()
}

// cannotShare reports whether SQLite could not set up the index of a
// write-ahead log, as opposed to being unable to open the file itself.
func cannotShare(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	code := se.Code() & 0xff
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY
}

// openDB opens a connection pool without reading the file yet. Mode is "ro",
// "rw", "immutable", or "part".
func openDB(path, mode string) (*sql.DB, error) {
	// Without this (Linux has it, others not), any part of the program that
	// reads the file and closes it would drop SQLite's locks on it.
	_, _ = sqlite.OFDLocking(true)
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := filepath.ToSlash(abs)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // C:/…
	}
	// The pragmas run before anything reads the file's schema.
	options := "_defensive=1&_dqs=0&_error_rc=1&_pragma=busy_timeout(5000)&_pragma=trusted_schema(OFF)" +
		"&_pragma=cell_size_check(ON)&_pragma=mmap_size(0)&_pragma=temp_store(MEMORY)"
	switch mode {
	case "rw":
		options += "&mode=rw&_txlock=immediate"
	case "part":
		options = strings.Replace(options, "_defensive=1", "_defensive=0&_pragma=writable_schema(ON)", 1) +
			"&mode=ro&_pragma=query_only(ON)"
	case "immutable":
		options += "&mode=ro&immutable=1&_pragma=query_only(ON)"
	default:
		options += "&mode=ro&_pragma=query_only(ON)"
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: name}).EscapedPath()+"?"+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4) // no reader holds one while its caller runs
	db.SetMaxIdleConns(4)
	return db, nil
}

// Bounds of one value of a foreign file: a few forged bytes can make SQLite read
// the same page a million times.
const (
	maxValue      = payload.MaxSize + 1<<20 // a chunk, with what SQLite needs around it
	maxHeadValue  = 16 << 20                // any other value: headers, for one
	maxSchemaText = 64 << 10                // the definition of a table
)

// reader returns a connection on which no value of more than limit bytes can be
// read.
func (s *Store) reader(ctx context.Context, limit int) (*sql.Conn, error) {
	return limitedConn(ctx, s.read, limit)
}

func limitedConn(ctx context.Context, db *sql.DB, limit int) (*sql.Conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := limitValues(c, limit); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// limitValues bounds the values that are read on a connection from now on.
func limitValues(c *sql.Conn, limit int) error {
	_, err := sqlite.Limit(c, sqlite3.SQLITE_LIMIT_LENGTH, limit)
	return err
}

// HasMagic reports whether a file's bytes begin as those of a capture do.
func HasMagic(b []byte) bool {
	const at = 68 // of the application's id in the header of SQLite
	return len(b) >= at+4 && bytes.HasPrefix(b, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(b[at:]) == schema.ApplicationID
}
