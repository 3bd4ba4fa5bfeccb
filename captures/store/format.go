package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"strings"

	"unwire/captures"
)

// applicationID marks a SQLite file as a capture ("UWC1" in its header).
const applicationID = 0x55574331

// HasMagic reports whether a file's bytes begin as those of a capture do.
func HasMagic(b []byte) bool {
	const at = 68 // of the application's id in the header of SQLite
	return len(b) >= at+4 && bytes.HasPrefix(b, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(b[at:]) == applicationID
}

// A migration brings a capture from one format to the next.
type migration string

// formatMigrations lists the steps from an empty database; step i leads to
// format i+1. Steps are only ever appended: captures of every age exist.
func formatMigrations() []migration {
	return []migration{formatOne, formatTwo}
}

// formatOne is the first format.
//
// The numbers n of events (what happened to an exchange) and of chunks are
// drawn from one counter, in the order in which things were recorded; a
// follower needs nothing else to miss nothing (see Follow).
//
// The tables frames and annotations are empty: nothing writes them.
const formatOne migration = `
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

// formatWithSummaries is the first format that has them; a reader does without.
const formatWithSummaries = 2

// oldestReadable is the oldest format that is read as it is.
const oldestReadable = 1

// formatTwo adds what a listing need not derive again.
const formatTwo migration = `
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

// migrate brings db from format have to the newest of steps, in one transaction.
func migrate(ctx context.Context, db *sql.DB, have int, steps []migration) error {
	if have == len(steps) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for i, step := range steps[have:] {
		if _, err := tx.ExecContext(ctx, string(step)); err != nil {
			return fmt.Errorf("to format %d: %w", have+i+1, err)
		}
	}
	header := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, len(steps))
	if _, err := tx.ExecContext(ctx, header); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	return tx.Commit()
}

// identify reads the file's header and says which format it has. It runs
// before anything that parses the file's schema.
//
// Errors: ErrNotCapture, ErrNewerFormat, ErrDamaged.
func identify(ctx context.Context, db *sql.Conn, newest int) (version int, err error) {
	var app int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, explain(err)
	}
	if app != applicationID {
		return 0, fmt.Errorf("%w: a SQLite database of another program (application id %#x)", captures.ErrNotCapture, uint32(app))
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, explain(err)
	}
	switch {
	case version > newest:
		return version, fmt.Errorf("%w, format %d; this one reads up to %d: update unwire", captures.ErrNewerFormat, version, newest)
	case version < 1:
		return version, damaged("format %d", version)
	}
	return version, nil
}

// verifySchema compares the file's schema with what the migrations make. A
// view or a trigger that poses as a table, a column of another type, or an
// index that was slipped in would all change what our statements do.
func verifySchema(ctx context.Context, db *sql.Conn, steps []migration) error {
	model, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	model.SetMaxOpenConns(1) // every connection would be a database of its own
	if err := migrate(ctx, model, 0, steps); err != nil {
		return err
	}
	want, err := readSchema(ctx, model)
	if err != nil {
		return err
	}
	got, err := readSchema(ctx, db)
	if err != nil {
		return explain(err)
	}
	for name, w := range want {
		switch g, ok := got[name]; {
		case !ok:
			return damaged("%s is missing", name)
		case g != w:
			return damaged("%s is not as this format defines it", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return damaged("unexpected %s", name)
		}
	}
	return nil
}

// maxSchemaObjects bounds what is read of a foreign file's schema.
const maxSchemaObjects = 256

// readSchema returns the definition of each table, index, view and trigger
// by its kind and name.
func readSchema(ctx context.Context, db readable) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema LIMIT ?`, maxSchemaObjects+1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	objects := make(map[string]string)
	for rows.Next() {
		var kind, name, table, text string
		if err := rows.Scan(&kind, &name, &table, &text); err != nil {
			return nil, damaged("schema: %v", err)
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
		return nil, damaged("schema: more than %d objects", maxSchemaObjects)
	}
	return objects, nil
}
