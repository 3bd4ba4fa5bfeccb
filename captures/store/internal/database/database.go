// Package database opens capture files as SQLite databases: those of others are only read,
// with SQLite's defences on, and their header and schema are checked before anything else
// is. Package store does all else.
package database

import (
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
	"unwire/captures/store/internal/schema"
)

// CheckPath refuses what cannot be a capture by its directory entry alone;
// fresh says that it is an empty file, which Create may fill.
func CheckPath(path string) (fresh bool, err error) {
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

// OpenChecked opens the file for reading, says which format it has and
// verifies its schema. The header is read through SQLite, not through a file
// of our own: closing one would drop the locks that a recorder in this very
// process holds on it.
func OpenChecked(ctx context.Context, path string, steps []schema.Migration) (db *sql.DB, version int, err error) {
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
		return nil, 0, Explain(err)
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
	conn, err := Conn(ctx, db, maxSchemaText)
	if err != nil {
		return ExplainTime(ctx, Explain(err))
	}
	defer func() { _ = conn.Close() }()
	return ExplainTime(ctx, Explain(schema.Verify(ctx, conn, steps)))
}

// OpenPart opens a file that is cut short, so that what is there can be read.
// SQLite refuses it as long as the schema counts as sound; here that is found
// out by comparing it, as ever.
func OpenPart(ctx context.Context, path string, steps []schema.Migration) (*sql.DB, int, error) {
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
		return Explain(err)
	}
	if size > 0 && info.Size()%size != 0 {
		return captures.Damaged("cut short: %d bytes are no whole pages of %d", info.Size(), size)
	}
	return nil
}

func openIdentified(ctx context.Context, path, mode string, newest int) (*sql.DB, int, error) {
	db, err := Open(path, mode)
	if err != nil {
		return nil, 0, err
	}
	conn, err := Conn(ctx, db, maxSchemaText)
	if err != nil {
		_ = db.Close()
		return nil, 0, ExplainTime(ctx, err)
	}
	version, err := schema.Identify(ctx, conn, newest)
	if err != nil {
		_ = errors.Join(conn.Close(), db.Close())
		return nil, 0, ExplainTime(ctx, Explain(err))
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

// Open opens a connection pool without reading the file yet. Mode is "ro",
// "rw", "immutable", or "part".
func Open(path, mode string) (*sql.DB, error) {
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

// maxSchemaText bounds the definition of a table.
const maxSchemaText = 64 << 10

// Conn returns a connection on which no value of more than limit bytes can be read.
func Conn(ctx context.Context, db *sql.DB, limit int) (*sql.Conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := LimitValues(c, limit); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// LimitValues bounds the values that are read on a connection from now on.
func LimitValues(c *sql.Conn, limit int) error {
	_, err := sqlite.Limit(c, sqlite3.SQLITE_LIMIT_LENGTH, limit)
	return err
}

// CheckWhole refuses a file that is shorter than its first page says: to write to a part of
// a capture could lose more of it.
func CheckWhole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var head [32]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return fmt.Errorf("%w: %w", captures.ErrDamaged, err)
	}

	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 { // stands for 65,536, which two bytes cannot hold
		pageSize = 1 << 16
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	if pages*pageSize > info.Size() {
		return fmt.Errorf("%w: %d bytes of %d", captures.ErrDamaged, info.Size(), pages*pageSize)
	}
	return nil
}

// ExplainTime returns what ended a query: the cause of its context's end, or else err.
func ExplainTime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx) // SQLite may call it an interrupt
}

// Explain turns what SQLite says about a file into the package's own terms.
// Errors that are about the system (a full disk, no permission) stay as they are.
func Explain(err error) error {
	var se *sqlite.Error
	if err == nil || !errors.As(err, &se) {
		return err
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: no SQLite database", captures.ErrNotCapture)
	case sqlite3.SQLITE_CORRUPT:
		return captures.Damaged("%v", err)
	case sqlite3.SQLITE_IOERR:
		if se.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return captures.Damaged("cut short: %v", err)
		}
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		// The statements are fixed, so one that fails to run or a value
		// that is too long tells of the file, not of the statement.
		return captures.Damaged("%v", err)
	}
	return err
}
