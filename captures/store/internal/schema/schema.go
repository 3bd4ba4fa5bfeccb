// Package schema has the tables of each format of capture files: it makes them, brings a
// file from one format to the next, and checks that a foreign file has these and nothing
// else. Package store, whose FORMAT.md describes them, uses it.
package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"unwire/captures"
)

// ApplicationID marks a SQLite file as a capture ("UWC1" in its header).
const ApplicationID = 0x55574331

// Formats, as user_version has them. Readers read all of them.
const (
	WithSummaries = 2 // the first format that has summaries
	WithSegments  = 3 // the first that has segments, and all else that is new
)

// A Migration brings a capture from one format to the next.
type Migration struct {
	before     string // statements that come first
	Statements string // what makes the tables of the format
	after      func(ctx context.Context, tx *sql.Tx) error
}

// Steps returns the steps from an empty database; step i leads to format i+1. Steps
// are only ever appended: captures of every age exist.
func Steps() []Migration {
	return []Migration{{Statements: formatOne}, {Statements: formatTwo}, formatThree}
}

// formatOne is the first format.
//
// The numbers n of events (what happened to an exchange) and of chunks are
// drawn from one counter, in the order in which things were recorded; a
// follower needs nothing else to miss nothing (see Follow).
//
// The tables frames and annotations are empty: nothing writes them.
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

// formatTwo adds what a listing need not derive again.
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

// Migrate brings db from format have to the newest of steps, in one transaction.
func Migrate(ctx context.Context, db *sql.DB, have int, steps []Migration) error {
	if have == len(steps) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for i, step := range steps[have:] {
		if err := step.run(ctx, tx); err != nil {
			return fmt.Errorf("to format %d: %w", have+i+1, err)
		}
	}
	header := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", ApplicationID, len(steps))
	if _, err := tx.ExecContext(ctx, header); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	return tx.Commit()
}

func (m Migration) run(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, m.before+m.Statements); err != nil || m.after == nil {
		return err
	}
	return m.after(ctx, tx)
}

// Identify reads the file's header and says which format it has. It runs
// before anything that parses the file's schema.
//
// Errors: ErrNotCapture, ErrNewerFormat, ErrDamaged.
func Identify(ctx context.Context, db *sql.Conn, newest int) (version int, err error) {
	var app int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, err
	}
	if app != ApplicationID {
		return 0, fmt.Errorf("%w: a SQLite database of another program (application id %#x)", captures.ErrNotCapture, uint32(app))
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	switch {
	case version > newest:
		return version, fmt.Errorf("%w, format %d; this one reads up to %d: update unwire", captures.ErrNewerFormat, version, newest)
	case version < 1:
		return version, captures.Damaged("format %d", version)
	}
	return version, nil
}

// Verify compares the file's schema with what the migrations make. A
// view or a trigger that poses as a table, a column of another type, or an
// index that was slipped in would all change what our statements do.
func Verify(ctx context.Context, db *sql.Conn, steps []Migration) error {
	model, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	model.SetMaxOpenConns(1) // every connection would be a database of its own
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
	for name, w := range want {
		switch g, ok := got[name]; {
		case !ok:
			return captures.Damaged("%s is missing", name)
		case g != w:
			return captures.Damaged("%s is not as this format defines it", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return captures.Damaged("unexpected %s", name)
		}
	}
	return nil
}

// A queryer is a connection or a pool of them.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// maxSchemaObjects bounds what is read of a foreign file's schema.
const maxSchemaObjects = 256

// readSchema returns the definition of each table, index, view and trigger
// by its kind and name.
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
			continue // the optimizer's statistics, made by ANALYZE
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
