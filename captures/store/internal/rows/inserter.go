package rows

import (
	"strings"

	"unwire/captures/store/internal/engine"
)

// rowsPerStatement is the number of rows that one statement inserts. Starting and ending a statement takes as
// long as inserting a small row.
const rowsPerStatement = 16

// An inserter adds rows to a table in order, several with one statement. Rows are pending until there are
// enough for a statement, or flush is called.
type inserter[R any] struct {
	// one is the statement that inserts a single row.
	one *engine.Stmt
	// many is the statement that inserts rowsPerStatement rows at once.
	many *engine.Stmt
	// pending are the rows that were added but not inserted yet.
	pending []R

	// bind binds the columns of a row.
	bind func(*engine.Stmt, *R)
}

// prepare prepares the statements. into is the table with its columns; bind must bind one value for each column.
//
// OR FAIL avoids SQLite's statement journal, which would undo a statement that fails halfway. That is not
// needed, because a failure ends the recording.
func (i *inserter[R]) prepare(c *engine.Conn, into string, bind func(*engine.Stmt, *R)) (err error) {
	i.bind = bind
	row := "(?" + strings.Repeat(", ?", strings.Count(into, ",")) + ")"
	text := "INSERT OR FAIL INTO " + into + " VALUES " + row
	if i.one, err = c.Prepare(text); err != nil {
		return err
	}
	i.many, err = c.Prepare(text + strings.Repeat(", "+row, rowsPerStatement-1))
	return err
}

// add adds a row. The row must not change until it is written.
func (i *inserter[R]) add(row R) error {
	if i.pending = append(i.pending, row); len(i.pending) < rowsPerStatement {
		return nil
	}
	return i.flush()
}

// flush inserts the pending rows.
func (i *inserter[R]) flush() error {
	rest := i.pending
	for len(rest) > 0 {
		s, n := i.one, 1
		if len(rest) >= rowsPerStatement {
			s, n = i.many, rowsPerStatement
		}
		for k := range rest[:n] {
			i.bind(s, &rest[k])
		}
		if err := s.Run(); err != nil {
			return err
		}
		rest = rest[n:]
	}
	clear(i.pending)
	i.pending = i.pending[:0]
	return nil
}
