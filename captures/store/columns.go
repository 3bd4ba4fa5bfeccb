package store

import "unwire/captures/store/internal/schema"

// columnsOf contains the parts of SQL queries that differ between versions of the file format.
type columnsOf struct {
	// exchange are the SQL columns from which an exchange is read, with their FROM clause, in which e is the
	// table exchanges. The byte counts of an exchange in flight are computed from its chunks, because they
	// are stored only at its end.
	exchange string

	// listed are the SQL columns of an exchange that a listing shows.
	listed string
	// hashed are further SQL columns that a stored summary depends on; its hash of the exchange covers them
	// and the listed ones.
	hashed string
	// listedFrom is the FROM clause for the listed and hashed columns.
	listedFrom string

	// lastNumber is a query for the largest row number in the capture.
	lastNumber string
}

// columnsFor returns the parts of SQL queries for a version of the file format.
func columnsFor(format int) *columnsOf {
	if format >= schema.WithSegments {
		return &currentColumns
	}
	return &oldColumns
}

const (

	// bytesUp and bytesDown are expressions for the byte counts of an exchange in formats 1 and 2, in which all
	// chunks are in the table chunks.
	bytesUp   = `CASE e.outcome WHEN '' THEN ` + chunksUp + ` ELSE e.bytes_up END`
	bytesDown = `CASE e.outcome WHEN '' THEN ` + chunksDown + ` ELSE e.bytes_down END`

	// segmentsUp and chunksUp are the sizes of an exchange's request body in the two tables, and the others
	// those of the response body.
	segmentsUp   = `coalesce((SELECT sum(size_up) FROM segments WHERE exchange = e.id), 0)`
	segmentsDown = `coalesce((SELECT sum(size_down) FROM segments WHERE exchange = e.id), 0)`
	chunksUp     = `coalesce((SELECT sum(size) FROM chunks WHERE exchange = e.id AND dir = 0), 0)`
	chunksDown   = `coalesce((SELECT sum(size) FROM chunks WHERE exchange = e.id AND dir = 1), 0)`

	// bytesUpNow and bytesDownNow are the same for format 3, which has chunks in segments, except those that
	// were recorded in an older format.
	bytesUpNow   = `CASE e.outcome WHEN '' THEN ` + segmentsUp + ` + ` + chunksUp + ` ELSE e.bytes_up END`
	bytesDownNow = `CASE e.outcome WHEN '' THEN ` + segmentsDown + ` + ` + chunksDown + ` ELSE e.bytes_down END`

	// tlsFlags is an expression for two facts about TLS that a listing shows: bit 0 is TLS.Unverified, and bit
	// 1 means that the server requested a client certificate which the client did not have.
	tlsFlags = `(instr(e.tls, '"unverified":true') > 0) + 2 * (instr(e.tls, '"client_certificate":"requested"') > 0)`
)

// currentColumns are the columns of format 3.
var currentColumns = columnsOf{
	exchange: `e.id, e.protocol, e.method, e.url, e.http, e.status,
		` + section("request_headers", "q") + `, ` + section("request_trailers", "qt") + `,
		` + section("response_headers", "a") + `, ` + section("response_trailers", "at") + `,
		e.started_ns, e.duration_ns, e.client, e.server, e.process, p.pid, p.name, p.client, p.client_version,
		e.tls, e.outcome, e.error, ` + bytesUpNow + `, ` + bytesDownNow + `, e.source
		FROM exchanges e LEFT JOIN processes p ON p.id = e.process` +
		sectionTables("request_headers", "q") + sectionTables("request_trailers", "qt") +
		sectionTables("response_headers", "a") + sectionTables("response_trailers", "at"),
	listed: `e.id, e.protocol, e.method, e.url, e.http, e.status, e.started_ns, e.duration_ns,
		e.process, p.pid, p.name, p.client, p.client_version, e.outcome, e.error, ` + bytesUpNow + `, ` + bytesDownNow + `, ` + tlsFlags,
	hashed: `e.request_headers, e.request_trailers, e.response_headers, e.response_trailers,
		coalesce((SELECT seq + chunks FROM segments WHERE exchange = e.id ORDER BY seq DESC LIMIT 1), 0) +
			coalesce((SELECT max(seq) + 1 FROM chunks WHERE exchange = e.id), 0)`,
	listedFrom: `exchanges e LEFT JOIN processes p ON p.id = e.process`,
	lastNumber: `SELECT max(
		coalesce((SELECT max(n) FROM events), 0), coalesce((SELECT max(n) FROM chunks), 0),
		coalesce((SELECT max(last) FROM segments WHERE n > (SELECT max(n) FROM segments) - 4096), 0),
		coalesce((SELECT max(n) FROM edits), 0), coalesce((SELECT max(n) FROM forwarded_heads), 0),
		coalesce((SELECT max(n) FROM relations), 0), coalesce((SELECT max(n) FROM notes), 0),
		coalesce((SELECT max(n) FROM readings), 0), coalesce((SELECT max(n) FROM definitions), 0))`,
}

// section returns the columns that rowValues.headers reads for one header section: its text (NULL if the row is
// missing) and the payload to which the text may refer. column is the column of exchanges with the section's
// id, and name the alias given to sectionTables.
func section(column, name string) string {
	return `CASE e.` + column + ` WHEN 0 THEN '[]' ELSE ` + name + `.fields END, ` +
		name + `_b.codec, ` + name + `_b.size, ` + name + `_b.data, ` + name + `_b.sha256`
}

// sectionTables returns the JOIN clauses for the row of a header section, under the alias name, and its
// payload.
func sectionTables(column, name string) string {
	return ` LEFT JOIN headers ` + name + ` ON ` + name + `.id = e.` + column + `
		LEFT JOIN blobs ` + name + `_b ON ` + name + `_b.id = CASE WHEN substr(` + name + `.fields, 1, 1) <> '[' THEN CAST(` + name + `.fields AS INTEGER) END`
}

// noPayload fills the payload columns of a header section with NULL, in formats that lack these columns.
const noPayload = `, NULL, NULL, NULL, NULL`

// oldColumns are the columns of formats 1 and 2.
var oldColumns = columnsOf{
	exchange: `e.id, 'http', e.method, e.url, e.http, e.status, e.request_headers` + noPayload + `, e.request_trailers` + noPayload + `,
		e.response_headers` + noPayload + `, e.response_trailers` + noPayload + `, e.started_ns, e.duration_ns, e.client, e.server, 0, NULL, NULL, NULL, NULL,
		e.tls, e.outcome, e.error, ` + bytesUp + `, ` + bytesDown + `, e.source FROM exchanges e`,
	listed: `e.id, 'http', e.method, e.url, e.http, e.status, e.started_ns, e.duration_ns,
		0, NULL, NULL, NULL, NULL, e.outcome, e.error, ` + bytesUp + `, ` + bytesDown + `, ` + tlsFlags,
	hashed: `e.request_headers, e.request_trailers, e.response_headers, e.response_trailers,
		(SELECT max(seq) FROM chunks WHERE exchange = e.id)`,
	listedFrom: `exchanges e`,
	lastNumber: `SELECT max(coalesce((SELECT max(n) FROM events), 0), coalesce((SELECT max(n) FROM chunks), 0))`,
}
