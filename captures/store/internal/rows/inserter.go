package rows

import (
	"strings"

	"unwire/captures/store/internal/engine"
)

// rowsAtOnce is how many rows one statement inserts: to begin and end a statement takes as
// long as to insert a small row.
const rowsAtOnce = 16

// An inserter adds rows to a table, several with one statement, in their order. Rows wait
// until there are enough of them; flush writes those that do.
type inserter[R any] struct {
	one, many *engine.Stmt
	waiting   []R
	bind      func(*engine.Stmt, *R)
}

// prepare prepares the statements. into names the table and its columns, of which there are
// as many as a row has values.
//
// A row that cannot be inserted ends the recording, so the rows before it need not be taken
// back: with OR FAIL SQLite keeps no journal of the statement for that.
func (i *inserter[R]) prepare(c *engine.Conn, into string, bind func(*engine.Stmt, *R)) (err error) {
	i.bind = bind
	row := "(?" + strings.Repeat(", ?", strings.Count(into, ",")) + ")"
	text := "INSERT OR FAIL INTO " + into + " VALUES " + row
	if i.one, err = c.Prepare(text); err != nil {
		return err
	}
	i.many, err = c.Prepare(text + strings.Repeat(", "+row, rowsAtOnce-1))
	return err
}

// add adds a row, which must not change before it is written.
func (i *inserter[R]) add(row R) error {
	if i.waiting = append(i.waiting, row); len(i.waiting) < rowsAtOnce {
		return nil
	}
	return i.flush()
}

// flush writes the rows that wait.
func (i *inserter[R]) flush() error {
	rest := i.waiting
	for len(rest) > 0 {
		s, n := i.one, 1
		if len(rest) >= rowsAtOnce {
			s, n = i.many, rowsAtOnce
		}
		for k := range rest[:n] {
			i.bind(s, &rest[k])
		}
		if err := s.Run(); err != nil {
			return err
		}
		rest = rest[n:]
	}
	clear(i.waiting)
	i.waiting = i.waiting[:0]
	return nil
}
