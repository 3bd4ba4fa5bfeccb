// Package database opens capture files as SQLite databases for package store. The files may be forged: SQLite's
// defences are switched on, and the header and the schema are checked before anything else is read.
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
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"unwire/captures"
	"unwire/captures/store/internal/schema"
)

// CheckPath returns an error if the path cannot be a capture, without opening the file. fresh means
// that it is an empty file, which store.Create may use.
func CheckPath(path string) (fresh bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			// The caller's error names the path already.
			err = pe.Err
		}
		return false, err
	case info.IsDir():
		return false, fmt.Errorf("%w: the path is a folder", captures.ErrNotCapture)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%w: the path is not a regular file", captures.ErrNotCapture)
	case info.Size() == 0:
		return true, fmt.Errorf("%w: the file is empty", captures.ErrNotCapture)
	}
	return false, nil
}

// OpenChecked opens a capture for reading, determines its format and verifies its schema. steps are the
// migrations that define the schema. It reads the header through SQLite: opening and closing the file here
// would drop the POSIX locks that a recorder in this process has on it.
func OpenChecked(ctx context.Context, path string, steps []schema.Migration) (db *sql.DB, version int, err error) {
	db, version, err = openIdentified(ctx, path, "ro", len(steps))
	if err != nil && isSharedMemoryError(err) {
		// In a folder without write permission, SQLite cannot create the index of the write-ahead log. If there
		// is no log, it is not needed.
		if info, serr := os.Stat(path + "-wal"); serr == nil && info.Size() > 0 {
			return nil, 0, fmt.Errorf("%w: SQLite's write-ahead log cannot be read in a read-only folder: copy the capture and %s-wal to a writable folder", err, filepath.Base(path))
		}
		db, version, err = openIdentified(ctx, path, "immutable", len(steps))
	}
	if err != nil {
		return nil, 0, explainOpen(path, err)
	}
	if err = checkWholePages(ctx, db, path); err == nil {
		err = checkSchema(ctx, db, steps[:version])
	}
	if err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	return db, version, nil
}

// checkSchema verifies the schema of a capture, on a connection that refuses to read long table definitions.
func checkSchema(ctx context.Context, db *sql.DB, steps []schema.Migration) error {
	conn, err := Conn(ctx, db, maxSchemaText)
	if err != nil {
		return ExplainTime(ctx, Explain(err))
	}
	defer func() { _ = conn.Close() }()
	return ExplainTime(ctx, Explain(schema.Verify(ctx, conn, steps)))
}

// OpenDamaged opens a capture that is truncated, so that the rest can be read. SQLite itself would refuse the
// file, so its check of the schema is switched off; schema.Verify replaces it.
func OpenDamaged(ctx context.Context, path string, steps []schema.Migration) (*sql.DB, int, error) {
	db, version, err := openIdentified(ctx, path, "part", len(steps))
	if err != nil {
		return nil, 0, err
	}
	if err := checkSchema(ctx, db, steps[:version]); err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	return db, version, nil
}

// checkWholePages returns an error if the file ends within a database page, for which SQLite would read zeros.
// If there is a write-ahead log, it contains the page, so this is not an error.
func checkWholePages(ctx context.Context, db *sql.DB, path string) error {
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
		return captures.Damaged("the file is truncated: its %d bytes are not a multiple of the page size, %d", info.Size(), size)
	}
	return nil
}

// openIdentified opens a capture file, and returns its format version, which must be at most newest. mode is as
// for Open.
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

// explainOpen is Explain for a file that SQLite could not open: SQLite does not say that the user may not read it.
func explainOpen(path string, err error) error {
	var se *sqlite.Error
	if !errors.As(err, &se) || se.Code()&0xff != sqlite3.SQLITE_CANTOPEN {
		return Explain(err)
	}
	f, oerr := os.Open(path)
	if oerr == nil {
		return errors.Join(Explain(err), f.Close())
	}
	if pe, ok := errors.AsType[*os.PathError](oerr); ok {
		// The caller's error names the path already.
		return pe.Err
	}
	return oerr
}

// isSharedMemoryError reports whether SQLite could not create the index of a write-ahead log (-shm), as opposed
// to not being able to open the file.
func isSharedMemoryError(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	code := se.Code() & 0xff
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY
}

// Open returns a connection pool. It does not read the file yet. mode is "ro", "rw", "immutable" (read-only,
// without locks and log) or "part" (read-only, of a truncated file).
func Open(path, mode string) (*sql.DB, error) {
	// Use open file description locks where they exist (on Linux). Otherwise, any code in this process that
	// opens and closes the file drops SQLite's locks on it.
	_, _ = sqlite.OFDLocking(true)
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := filepath.ToSlash(abs)
	if !strings.HasPrefix(name, "/") {
		// On Windows, the path begins with a drive: C:/…
		name = "/" + name
	}
	// These settings apply before SQLite reads the schema.
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
	// A read uses a connection only while it fetches a page, so a few are enough: those of Readers, which keeps them, and
	// one more for a transaction.
	db.SetMaxOpenConns(maxReaders + 1)
	db.SetMaxIdleConns(maxReaders + 1)
	return db, nil
}

// maxSchemaText limits the SQL text of a table's definition, in bytes.
const maxSchemaText = 64 << 10

// Conn returns a connection that refuses to read values of more than limit bytes.
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

// LimitValues sets the size in bytes above which a connection refuses to read a value.
func LimitValues(c *sql.Conn, limit int) error {
	_, err := sqlite.Limit(c, sqlite3.SQLITE_LIMIT_LENGTH, limit)
	return err
}

// CheckNotTruncated returns an error if the file is shorter than its header declares. Writing to such a file
// could destroy more of it.
func CheckNotTruncated(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}

	// The header has the page size at offset 16 and the number of pages at offset 28.
	var head [32]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return fmt.Errorf("%w: %w", captures.ErrDamaged, err)
	}

	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	// 1 stands for 65,536, which does not fit into two bytes.
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	if pages*pageSize > info.Size() {
		return fmt.Errorf("%w: the file has only %d of %d bytes", captures.ErrDamaged, info.Size(), pages*pageSize)
	}
	return nil
}

// ExplainTime returns the cause of the context's end if ctx has ended, and err otherwise.
func ExplainTime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	// SQLite may report the end of the context as an interrupt.
	return context.Cause(ctx)
}

// Explain converts an SQLite error that concerns the contents of the file to an error of package captures.
// A full disk is reported as the system reports it to other writers. Other errors are returned unchanged.
func Explain(err error) error {
	var se *sqlite.Error
	if err == nil || !errors.As(err, &se) {
		return err
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: the file is not an SQLite database", captures.ErrNotCapture)
	case sqlite3.SQLITE_CORRUPT:
		return captures.Damaged("%v", err)
	case sqlite3.SQLITE_FULL:
		return syscall.ENOSPC
	case sqlite3.SQLITE_IOERR:
		if se.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return captures.Damaged("the file is truncated: %v", err)
		}
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		// Our statements are constant. If one fails, or a value is too long, the file is damaged.
		return captures.Damaged("%v", err)
	}
	return err
}
