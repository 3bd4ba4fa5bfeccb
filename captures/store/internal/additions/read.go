package additions

import (
	"errors"
	"math"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
)

// A Query is an SQL query on one table, with a function that interprets the rows.
type Query struct {
	// Text is the SQL text of the query.
	Text string
	// Args are the values of the parameters in the SQL text, in order.
	Args []any

	// Row is called with the values of each row. It returns an error if the table has more rows than allowed:
	// the file is then damaged or forged.
	Row func(values []any) error
}

// noteColumns are the columns that row.note reads, with their FROM clause.
const noteColumns = `t.n, t.exchange, t.dir, t.frame, t.path, t.kind, t.value, t.changed_ns, e.id
	FROM notes t LEFT JOIN exchanges e ON e.id = t.exchange`

// Notes returns the query for the notes of an exchange, or of all exchanges if the ID is 0. It calls give with
// each note that was not removed.
func Notes(exchange int64, give func(captures.Note)) Query {
	rows := 0
	return Query{
		Text: `SELECT ` + noteColumns + ` WHERE (t.exchange = ?1 OR ?1 = 0) ORDER BY t.exchange, t.dir, t.frame, t.path, t.kind LIMIT ?2`,
		Args: []any{exchange, maxNotes + 1},
		Row: func(values []any) error {
			if rows++; rows > maxNotes {
				return captures.Damaged("the capture has more than %d notes", maxNotes)
			}

			// Removed notes stay as rows, for followers.
			r := row{values: values}
			_, note := r.note()
			if r.err == nil && note.Value != "" {
				give(note)
			}
			return r.err
		},
	}
}

// Readings returns the query for the readings of a method, or of all methods if method is "". It calls give
// with each reading that was not removed.
func Readings(method string, give func(captures.Reading)) Query {
	rows := 0
	return Query{
		Text: `SELECT n, method, dir, path, type FROM readings WHERE (method = ?1 OR ?1 = '') ORDER BY method, dir, path LIMIT ?2`,
		Args: []any{method, maxReadings + 1},
		Row: func(values []any) error {
			if rows++; rows > maxReadings {
				return captures.Damaged("the capture has more than %d chosen field types", maxReadings)
			}
			r := row{values: values}
			_, reading := r.reading()
			if r.err == nil && reading.Type != "" {
				give(reading)
			}
			return r.err
		},
	}
}

// ReadingsInMeta returns the query for the types that users chose for a method's fields, for formats 1 and 2.
// These store them in the table meta, under a name of four parts separated by the byte 0x1f.
func ReadingsInMeta(method string, give func(captures.Reading)) Query {
	return Query{
		Text: `SELECT name, value FROM meta WHERE name >= 'reading' || char(31) AND name < 'reading ' ORDER BY name LIMIT ?`,
		Args: []any{maxReadings},
		Row: func(values []any) error {
			r := row{values: values}
			parts, value := strings.Split(r.text(), "\x1f"), r.bytes()
			if r.err != nil || len(parts) != 4 || parts[2] != captures.Up.String() && parts[2] != captures.Down.String() || len(value) == 0 {
				// The row was not written as a reading.
				return r.err
			}
			reading := captures.Reading{Method: parts[1], Path: parts[3], Type: string(value)}
			if parts[2] == captures.Down.String() {
				reading.Dir = captures.Down
			}
			if method == "" || reading.Method == method {
				give(reading)
			}
			return nil
		},
	}
}

// Definitions returns the query for all definitions in a capture. It calls give with each; an inactive one has
// no Data.
func Definitions(u *payload.Unpacker, give func(captures.Definition)) Query {
	rows, total := 0, int64(0)
	return Query{
		Text: `SELECT d.n, d.kind, d.name, d.active, d.changed_ns, b.codec, b.size, CASE d.active WHEN 0 THEN NULL ELSE b.data END
			FROM definitions d LEFT JOIN blobs b ON b.id = d.blob ORDER BY d.kind, d.name LIMIT ?`,
		Args: []any{maxDefinitions + 1},
		Row: func(values []any) error {
			if rows++; rows > maxDefinitions {
				return captures.Damaged("the capture has more than %d definitions", maxDefinitions)
			}
			r := row{values: values}
			_, d := r.definition()
			codec, size, data := r.int(0, math.MaxInt64), r.int(0, payload.MaxSize), r.bytes()
			if r.err != nil {
				return r.err
			}
			if !d.Active {
				give(d)
				return nil
			}

			// Check the total before decompressing.
			if total += size; total > maxDefinitionBytes {
				return captures.Damaged("the definitions have more than %d bytes", maxDefinitionBytes)
			}
			var err error
			if d.Data, err = u.Unpack(codec, size, data); err == nil {
				give(d)
			}
			return err
		},
	}
}

// After returns one query for each table of additions. Each query calls give with up to count additions with
// row numbers above number, in order.
func After(number int64, count int, give func(n int64, a captures.Addition)) []Query {
	last := [3]int64{number, number, number}

	// Numbers must increase, or a forged file could make the reader loop.
	of := func(table int, text string, read func(r *row) (int64, captures.Addition)) Query {
		return Query{Text: text, Args: []any{number, count}, Row: func(values []any) error {
			r := row{values: values}
			n, a := read(&r)
			if r.err == nil && n <= last[table] {
				r.err = captures.Damaged("addition %d comes after addition %d", n, last[table])
			}
			if r.err == nil {
				last[table] = n
				give(n, a)
			}
			return r.err
		}}
	}
	return []Query{
		of(0, `SELECT `+noteColumns+` WHERE t.n > ? ORDER BY t.n LIMIT ?`, func(r *row) (int64, captures.Addition) {
			n, note := r.note()
			return n, captures.Addition{Note: &note}
		}),
		of(1, `SELECT n, method, dir, path, type FROM readings WHERE n > ? ORDER BY n LIMIT ?`, func(r *row) (int64, captures.Addition) {
			n, reading := r.reading()
			return n, captures.Addition{Reading: &reading}
		}),
		of(2, `SELECT n, kind, name, active, changed_ns FROM definitions WHERE n > ? ORDER BY n LIMIT ?`, func(r *row) (int64, captures.Addition) {
			n, d := r.definition()
			return n, captures.Addition{Definition: &d}
		}),
	}
}

// A row reads the values of one row in order, and keeps the first error. The file is not trusted, so values may
// have any type.
type row struct {
	// values are the values of the row's columns, in order.
	values []any
	// next is the index in values of the next value to be read.
	next int
	// err is the first error, such as a value with an unexpected type; nil if there was none.
	err error
}

// errType is the error for a value that does not have the expected SQLite type.
var errType = errors.New("the value does not have the expected SQLite type")

// nextAs returns the next value of the row, which must be a T.
func nextAs[T any](r *row) (v T) {
	v, ok := r.values[r.next].(T)
	if r.next++; !ok && r.err == nil {
		r.err = captures.Damaged("column %d of an addition cannot be read: %v", r.next, errType)
	}
	return v
}

// text reads a string from the row.
func (r *row) text() string { return nextAs[string](r) }

// bytes reads a blob from the row. SQLite returns an empty blob as nil.
func (r *row) bytes() []byte {
	if r.values[r.next] == nil {
		r.next++
		return nil
	}
	return nextAs[[]byte](r)
}

// int reads an integer between least and most from the row.
func (r *row) int(least, most int64) int64 {
	v := nextAs[int64](r)
	if r.err == nil && (v < least || v > most) {
		r.err = captures.Damaged("column %d of an addition contains the invalid number %d", r.next, v)
	}
	return v
}

// time reads a time, stored in nanoseconds since 1970, from the row; 0 is the zero time.
func (r *row) time() time.Time {
	if ns := r.int(math.MinInt64, math.MaxInt64); ns != 0 {
		return time.Unix(0, ns).UTC()
	}
	return time.Time{}
}

// note reads the values of noteColumns and returns the note with its row number. It is an error if the exchange
// does not exist.
func (r *row) note() (n int64, t captures.Note) {
	n = r.int(1, math.MaxInt64)
	t.Exchange = r.int(math.MinInt64, math.MaxInt64)
	dir, frame := r.int(-1, 1), r.int(-1, math.MaxInt32)
	t.Frame, t.Path, t.Kind, t.Value, t.Changed = int(frame), r.text(), captures.NoteKind(r.text()), r.text(), r.time()
	if dir >= 0 {
		t.Dir = captures.Direction(dir)
	}
	if r.err != nil {
		return n, t
	}
	switch {
	case r.values[r.next] == nil:
		r.err = captures.Damaged("note %d is about exchange %d, which does not exist", n, t.Exchange)
	case (dir < 0) != (frame < 0) || frame < 0 && t.Path != "" || len(t.Path) > maxPathBytes || len(t.Kind) > maxNoteKindBytes:
		r.err = captures.Damaged("note %d has an invalid address", n)
	default:
		if err := checkNoteSize(&t); err != nil {
			r.err = captures.Damaged("note %d: %v", n, err)
		}
	}
	return n, t
}

// reading reads a row of the table readings, and returns the reading with its row number.
func (r *row) reading() (n int64, reading captures.Reading) {
	n, reading = r.int(1, math.MaxInt64), captures.Reading{Method: r.text(), Dir: captures.Direction(r.int(0, 1)), Path: r.text(), Type: r.text()}
	if r.err == nil && len(reading.Method)+len(reading.Path)+len(reading.Type) > maxReadingBytes {
		r.err = captures.Damaged("chosen field type %d has more than %d bytes", n, maxReadingBytes)
	}
	return n, reading
}

// definition reads a row of the table definitions, and returns the definition, without its data, with its row
// number.
func (r *row) definition() (n int64, d captures.Definition) {
	n, d.Kind, d.Name = r.int(1, math.MaxInt64), captures.DefinitionKind(r.text()), r.text()
	d.Active, d.Changed = r.int(0, 1) == 1, r.time()
	if r.err == nil && len(d.Name) > maxNameBytes {
		r.err = captures.Damaged("definition %d has a name of more than %d bytes", n, maxNameBytes)
	}
	return n, d
}
