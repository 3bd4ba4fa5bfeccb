package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"unwire/captures"
)

// pathError wraps err with the file it is about.
func pathError(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("captures: %s: %w", path, err)
}

// explain turns what SQLite says about a file into the package's own terms.
// Errors that are about the system (a full disk, no permission) stay as they are.
func explain(err error) error {
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
