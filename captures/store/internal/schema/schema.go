// Package schema defines the tables of each format of capture files. It creates them, migrates a file to the
// newest format, and verifies that an untrusted file has exactly these tables. Package store uses it; its
// FORMAT.md describes the tables.
//
//	err = schema.Migrate(ctx, db, 0, schema.Steps()) // 0: an empty database
package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"unwire/captures"
)

// ApplicationID marks an SQLite file as a capture: "UWC1" in the file's header.
const ApplicationID = 0x55574331

// Versions of the file format, as stored in SQLite's user_version. Readers accept all versions.
const (
	// WithSummaries is the first format with summaries.
	WithSummaries = 2
	// WithSegments is the first format with segments (rows of several chunks), processes, relations, notes and
	// definitions.
	WithSegments = 3
)

// A Migration converts a capture file from one format version to the next.
type Migration struct {
	// before are SQL statements that run before Statements.
	before string
	// Statements are the SQL statements that create the tables of the format version.
	Statements string
	// after copies data to the new tables; nil if there is nothing to copy.
	after func(ctx context.Context, tx *sql.Tx) error
}

// Steps returns all migrations; the migration with index i leads to format i+1. Migrations must never change,
// only be appended, because captures of every format exist.
func Steps() []Migration {
	return []Migration{{Statements: formatOne}, {Statements: formatTwo}, formatThree}
}

// formatOne is the first format.
//
// The numbers n of events and chunks come from one counter, in the order of recording. A follower therefore
// needs only the last number that it has seen (see store.Store.Follow).
//
// The tables frames and annotations are always empty.
const formatOne = `
CREATE TABLE meta (
	name  TEXT NOT NULL PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE exchanges (
	id                INTEGER PRIMARY KEY,
	method            TEXT NOT NULL,
	url               TEXT NOT NULL,
	http              TEXT NOT NULL,
	status            INTEGER NOT NULL,
	request_headers   TEXT NOT NULL,
	request_trailers  TEXT NOT NULL,
	response_headers  TEXT NOT NULL,
	response_trailers TEXT NOT NULL,
	started_ns        INTEGER NOT NULL,
	duration_ns       INTEGER NOT NULL,
	client            TEXT NOT NULL,
	server            TEXT NOT NULL,
	tls               TEXT NOT NULL,
	outcome           TEXT NOT NULL,
	error             TEXT NOT NULL,
	bytes_up          INTEGER NOT NULL,
	bytes_down        INTEGER NOT NULL,
	source            TEXT NOT NULL
) STRICT;

CREATE TABLE events (
	n        INTEGER PRIMARY KEY,
	exchange INTEGER NOT NULL,
	kind     INTEGER NOT NULL
) STRICT;

CREATE TABLE blobs (
	id     INTEGER PRIMARY KEY,
	sha256 BLOB NOT NULL UNIQUE,
	codec  INTEGER NOT NULL,
	size   INTEGER NOT NULL,
	data   BLOB NOT NULL
) STRICT;

CREATE TABLE chunks (
	n        INTEGER PRIMARY KEY,
	exchange INTEGER NOT NULL,
	seq      INTEGER NOT NULL,
	dir      INTEGER NOT NULL,
	t_ns     INTEGER NOT NULL,
	size     INTEGER NOT NULL,
	blob     INTEGER,
	data     BLOB
) STRICT;
CREATE UNIQUE INDEX chunks_exchange ON chunks (exchange, seq);

CREATE TABLE frames (
	exchange INTEGER NOT NULL,
	dir      INTEGER NOT NULL,
	seq      INTEGER NOT NULL,
	off      INTEGER NOT NULL,
	len      INTEGER NOT NULL,
	flags    INTEGER NOT NULL,
	t_ns     INTEGER NOT NULL,
	PRIMARY KEY (exchange, dir, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE annotations (
	exchange INTEGER NOT NULL,
	path     TEXT NOT NULL,
	key      TEXT NOT NULL,
	value    TEXT NOT NULL,
	PRIMARY KEY (exchange, path, key)
) STRICT, WITHOUT ROWID;
`

// formatTwo adds the table summaries, a cache for listings.
const formatTwo = `
CREATE TABLE summaries (
	exchange    INTEGER PRIMARY KEY,
	version     INTEGER NOT NULL,
	truth       INTEGER NOT NULL,
	protocol    TEXT NOT NULL,
	codec       TEXT NOT NULL,
	service     TEXT NOT NULL,
	rpc         TEXT NOT NULL,
	code        TEXT NOT NULL,
	frames_up   INTEGER NOT NULL,
	frames_down INTEGER NOT NULL,
	thread      TEXT NOT NULL
) STRICT;
CREATE INDEX summaries_thread ON summaries (thread, exchange) WHERE thread <> '';
`

// Migrate converts db from the format have to the newest one, in one transaction. Format 0 is an empty
// database.
func Migrate(ctx context.Context, db *sql.DB, have int, steps []Migration) error {
	if have == len(steps) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit, this does nothing.
	defer func() { _ = tx.Rollback() }()
	for i, step := range steps[have:] {
		if err := step.run(ctx, tx); err != nil {
			return fmt.Errorf("the capture cannot be converted to format %d: %w", have+i+1, err)
		}
	}
	header := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", ApplicationID, len(steps))
	if _, err := tx.ExecContext(ctx, header); err != nil {
		return fmt.Errorf("the header of the capture cannot be written: %w", err)
	}
	return tx.Commit()
}

// run executes one migration in a transaction.
func (m Migration) run(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, m.before+m.Statements); err != nil || m.after == nil {
		return err
	}
	return m.after(ctx, tx)
}

// Identify reads the header of a database file and returns its format version, which must be at most newest. It
// runs before SQLite parses the schema.
//
// Errors: ErrNotCapture, ErrNewerFormat, ErrDamaged.
func Identify(ctx context.Context, db *sql.Conn, newest int) (version int, err error) {
	var app int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, err
	}
	if app != ApplicationID {
		return 0, fmt.Errorf("%w: the file is an SQLite database of another program (application id %#x)", captures.ErrNotCapture, uint32(app))
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	switch {
	case version > newest:
		return version, fmt.Errorf("%w, in format %d; this version of unwire reads formats up to %d: update unwire", captures.ErrNewerFormat, version, newest)
	case version < 1:
		return version, captures.Damaged("the file claims to have format %d", version)
	}
	return version, nil
}

// Verify compares the file's schema with the one that the migrations create. Otherwise a view or trigger in the
// place of a table, a column of another type, or an additional index could change the effect of our statements.
func Verify(ctx context.Context, db *sql.Conn, steps []Migration) error {
	model, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	// Each connection would be a database of its own.
	model.SetMaxOpenConns(1)
	if err := Migrate(ctx, model, 0, steps); err != nil {
		return err
	}
	want, err := readSchema(ctx, model)
	if err != nil {
		return err
	}
	got, err := readSchema(ctx, db)
	if err != nil {
		return err
	}

	// Compare in both directions: nothing may be missing and nothing added.
	for name, w := range want {
		switch g, ok := got[name]; {
		case !ok:
			return captures.Damaged("%s is missing", name)
		case g != w:
			return captures.Damaged("%s differs from the format's definition", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return captures.Damaged("the format does not define %s", name)
		}
	}
	return nil
}

// A queryer is a database connection, connection pool or transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// maxSchemaObjects limits how many tables, indexes, views and triggers of an untrusted file are read.
const maxSchemaObjects = 256

// readSchema returns the SQL texts that define all tables, indexes, views and triggers, by kind and name.
func readSchema(ctx context.Context, db queryer) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema LIMIT ?`, maxSchemaObjects+1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	objects := make(map[string]string)
	for rows.Next() {
		var kind, name, table, text string
		if err := rows.Scan(&kind, &name, &table, &text); err != nil {
			return nil, captures.Damaged("schema: %v", err)
		}
		if strings.HasPrefix(name, "sqlite_stat") {
			// These are statistics of the query planner, created by ANALYZE.
			continue
		}
		objects[fmt.Sprintf("%s %q", kind, name)] = table + "\n" + text
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(objects) > maxSchemaObjects {
		return nil, captures.Damaged("schema: more than %d objects", maxSchemaObjects)
	}
	return objects, nil
}
