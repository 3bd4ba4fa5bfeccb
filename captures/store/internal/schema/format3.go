package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// formatThree stores small chunks in segments and each header section once. It adds transports other than HTTP,
// processes, relations, edits, notes and definitions.
var formatThree = Migration{before: formatThreeBefore, Statements: formatThreeTables, after: toFormatThree}

// formatThreeBefore renames the table exchanges, which formatThreeTables creates again with other columns, and
// drops two tables that were never used.
const formatThreeBefore = `
ALTER TABLE exchanges RENAME TO exchanges_2;
DROP TABLE frames;
DROP TABLE annotations;
`

// formatThreeTables creates the tables that are new in format 3.
const formatThreeTables = `
CREATE TABLE exchanges (
	id                INTEGER PRIMARY KEY,
	protocol          TEXT NOT NULL,
	method            TEXT NOT NULL,
	url               TEXT NOT NULL,
	http              TEXT NOT NULL,
	status            INTEGER NOT NULL,
	request_headers   INTEGER NOT NULL,
	request_trailers  INTEGER NOT NULL,
	response_headers  INTEGER NOT NULL,
	response_trailers INTEGER NOT NULL,
	started_ns        INTEGER NOT NULL,
	duration_ns       INTEGER NOT NULL,
	client            TEXT NOT NULL,
	server            TEXT NOT NULL,
	process           INTEGER NOT NULL,
	tls               TEXT NOT NULL,
	outcome           TEXT NOT NULL,
	error             TEXT NOT NULL,
	bytes_up          INTEGER NOT NULL,
	bytes_down        INTEGER NOT NULL,
	source            TEXT NOT NULL
) STRICT;

CREATE TABLE headers (
	id     INTEGER PRIMARY KEY,
	sha256 BLOB NOT NULL UNIQUE,
	fields TEXT NOT NULL
) STRICT;

CREATE TABLE processes (
	id             INTEGER PRIMARY KEY,
	pid            INTEGER NOT NULL,
	name           TEXT NOT NULL,
	client         TEXT NOT NULL,
	client_version TEXT NOT NULL,
	UNIQUE (pid, name, client, client_version)
) STRICT;

CREATE TABLE segments (
	n         INTEGER PRIMARY KEY,
	last      INTEGER NOT NULL,
	exchange  INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	chunks    INTEGER NOT NULL,
	t_ns      INTEGER NOT NULL,
	size_up   INTEGER NOT NULL,
	size_down INTEGER NOT NULL,
	entries   BLOB NOT NULL,
	codec     INTEGER NOT NULL,
	blob      INTEGER,
	data      BLOB
) STRICT;
CREATE UNIQUE INDEX segments_exchange ON segments (exchange, seq);

CREATE TABLE edits (
	n         INTEGER PRIMARY KEY,
	exchange  INTEGER NOT NULL,
	dir       INTEGER NOT NULL,
	start_off INTEGER NOT NULL,
	end_off   INTEGER NOT NULL,
	t_ns      INTEGER NOT NULL,
	rule      TEXT NOT NULL,
	size      INTEGER NOT NULL,
	blob      INTEGER,
	data      BLOB
) STRICT;
CREATE INDEX edits_exchange ON edits (exchange, dir, start_off);

CREATE TABLE forwarded_heads (
	n        INTEGER PRIMARY KEY,
	exchange INTEGER NOT NULL,
	dir      INTEGER NOT NULL,
	rule     TEXT NOT NULL,
	method   TEXT NOT NULL,
	url      TEXT NOT NULL,
	status   INTEGER NOT NULL,
	headers  INTEGER NOT NULL,
	trailers INTEGER NOT NULL,
	UNIQUE (exchange, dir)
) STRICT;

CREATE TABLE relations (
	n        INTEGER PRIMARY KEY,
	exchange INTEGER NOT NULL,
	kind     TEXT NOT NULL,
	capture  BLOB NOT NULL,
	target   INTEGER NOT NULL,
	UNIQUE (exchange, kind, capture, target)
) STRICT;

CREATE TABLE notes (
	n          INTEGER PRIMARY KEY,
	exchange   INTEGER NOT NULL,
	dir        INTEGER NOT NULL,
	frame      INTEGER NOT NULL,
	path       TEXT NOT NULL,
	kind       TEXT NOT NULL,
	value      TEXT NOT NULL,
	changed_ns INTEGER NOT NULL,
	UNIQUE (exchange, dir, frame, path, kind)
) STRICT;

CREATE TABLE readings (
	n          INTEGER PRIMARY KEY,
	method     TEXT NOT NULL,
	dir        INTEGER NOT NULL,
	path       TEXT NOT NULL,
	type       TEXT NOT NULL,
	changed_ns INTEGER NOT NULL,
	UNIQUE (method, dir, path)
) STRICT;

CREATE TABLE definitions (
	n          INTEGER PRIMARY KEY,
	kind       TEXT NOT NULL,
	name       TEXT NOT NULL,
	blob       INTEGER NOT NULL,
	active     INTEGER NOT NULL,
	changed_ns INTEGER NOT NULL,
	UNIQUE (kind, name)
) STRICT;
`

// toFormatThree converts the data of formats 1 and 2 that format 3 stores differently.
func toFormatThree(ctx context.Context, tx *sql.Tx) error {
	if err := moveExchanges(ctx, tx); err != nil {
		return err
	}
	if err := moveReadings(ctx, tx); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		DROP TABLE exchanges_2;
		DELETE FROM meta WHERE name = 'summarised to' OR name >= 'reading' || char(31) AND name < 'reading ';
		DELETE FROM summaries;`)
	return err
}

// moveExchanges copies the exchanges. Each different header section is stored once.
func moveExchanges(ctx context.Context, tx *sql.Tx) error {
	const copied = `INSERT INTO exchanges SELECT id, 'http', method, url, http, status, ?2, ?3, ?4, ?5, started_ns, duration_ns,
		client, server, 0, tls, outcome, error, bytes_up, bytes_down, source FROM exchanges_2 WHERE id = ?1`
	insert, err := tx.PrepareContext(ctx, copied)
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()

	// Copy one exchange at a time: a capture can have millions.
	known := make(map[[sha256.Size]byte]int64)
	for after := int64(-1 << 63); ; {
		var sections [4]string
		var id int64
		err := tx.QueryRowContext(ctx, `SELECT id, request_headers, request_trailers, response_headers, response_trailers
			FROM exchanges_2 WHERE id > ? ORDER BY id LIMIT 1`, after).Scan(&id, &sections[0], &sections[1], &sections[2], &sections[3])
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		row := []any{id}
		for _, fields := range sections {
			at, err := putHeaders(ctx, tx, known, fields)
			if err != nil {
				return fmt.Errorf("exchange %d: %w", id, err)
			}
			row = append(row, at)
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return fmt.Errorf("exchange %d: %w", id, err)
		}
		after = id
	}
}

// putHeaders returns the row id of a header section, encoded in fields, and inserts the row unless known
// contains its hash.
func putHeaders(ctx context.Context, tx *sql.Tx, known map[[sha256.Size]byte]int64, fields string) (id int64, err error) {
	if fields == "[]" {
		return 0, nil
	}
	sum := sha256.Sum256([]byte(fields))
	if id, ok := known[sum]; ok {
		return id, nil
	}
	id = int64(len(known)) + 1
	known[sum] = id
	_, err = tx.ExecContext(ctx, `INSERT INTO headers (id, sha256, fields) VALUES (?, ?, ?)`, id, sum[:], fields)
	return id, err
}

// moveReadings moves the users' choices of field types from the table meta to the table readings,
// ordered by name.
func moveReadings(ctx context.Context, tx *sql.Tx) error {
	var last int64
	err := tx.QueryRowContext(ctx, `SELECT max(coalesce((SELECT max(n) FROM chunks), 0), coalesce((SELECT max(n) FROM events), 0))`).Scan(&last)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, `SELECT name, value FROM meta WHERE name >= 'reading' || char(31) AND name < 'reading ' ORDER BY name LIMIT 10000`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()

	// Read all rows before writing: the transaction has one connection.
	var moved [][]any
	for rows.Next() {
		var name string
		var value []byte
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		parts := strings.Split(name, "\x1f")
		if len(parts) != 4 || parts[2] != "up" && parts[2] != "down" || len(value) == 0 {
			// The row was not written as a reading.
			continue
		}
		last++
		dir := 0
		if parts[2] == "down" {
			dir = 1
		}
		moved = append(moved, []any{last, parts[1], dir, parts[3], string(value)})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, row := range moved {
		if _, err := tx.ExecContext(ctx, `INSERT INTO readings (n, method, dir, path, type, changed_ns) VALUES (?, ?, ?, ?, ?, 0)`, row...); err != nil {
			return err
		}
	}
	return nil
}
