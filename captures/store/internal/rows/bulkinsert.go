package rows

import (
	"database/sql"
	"strings"
)

// bulkRows is how many rows one statement inserts: each costs a fraction of
// what a statement of its own does.
const bulkRows = 32

// A bulkInsert gathers the rows that a transaction adds to a table.
type bulkInsert struct {
	columns   int
	one, many *sql.Stmt
	rows      []any
}

// prepareBulk takes an INSERT that ends with the placeholders of one row.
func prepareBulk(db *sql.DB, insert string, columns int) (b *bulkInsert, err error) {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	b = &bulkInsert{columns: columns}
	if b.one, err = db.Prepare(insert + row); err != nil {
		return nil, err
	}
	b.many, err = db.Prepare(insert + row + strings.Repeat(", "+row, bulkRows-1))
	return b, err
}

// addRow takes a row, and writes when there are enough of them.
func (b *bulkInsert) addRow(tx *sql.Tx, row ...any) error {
	b.rows = append(b.rows, row...)
	if len(b.rows) < bulkRows*b.columns {
		return nil
	}
	_, err := tx.Stmt(b.many).Exec(b.rows...)
	b.forget()
	return err
}

// flush writes what is left.
func (b *bulkInsert) flush(tx *sql.Tx) error {
	defer b.forget()
	if len(b.rows) == 0 {
		return nil
	}
	one := tx.Stmt(b.one)
	for rows := b.rows; len(rows) > 0; rows = rows[b.columns:] {
		if _, err := one.Exec(rows[:b.columns]...); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the rows, and what they hold.
func (b *bulkInsert) forget() {
	clear(b.rows)
	b.rows = b.rows[:0]
}
