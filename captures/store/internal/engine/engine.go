// Package engine writes rows through SQLite's own interface, by the library that is below
// the driver of database/sql: that driver takes as long for a small row as SQLite does, and
// allocates memory for each value. Package rows writes what is recorded with it; all else is
// done with database/sql.
//
//	c, err := engine.Open(path)
//	insert, err := c.Prepare("INSERT INTO t VALUES (?, ?)")
//	insert.Int(1)
//	insert.Text("one")
//	err = insert.Run()
//
// Values are bound in the order of the parameters, all of them each time. A Conn and its
// statements are for one goroutine at a time.
//
// Source: https://www.sqlite.org/c3ref/intro.html
package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

var errMemory = errors.New("out of memory")

// A Conn is a connection to a database.
type Conn struct {
	tls *libc.TLS
	db  uintptr

	// pointer is where SQLite stores pointers that it returns.
	pointer uintptr
	stmts   []*Stmt
}

// A block is memory that SQLite can read.
type block struct {
	at   uintptr
	data []byte
}

// minBlock is how many bytes the first block of a statement has.
const minBlock = 4 << 10

// maxBlock is how many bytes a block has that is kept.
const maxBlock = 1 << 20

// Open opens a file that exists for writing, with the defences that package database has.
func Open(path string) (*Conn, error) {
	c := &Conn{tls: libc.NewTLS()}
	if c.pointer = libc.Xmalloc(c.tls, types.Size_t(bits.UintSize/8)); c.pointer == 0 {
		c.tls.Close()
		return nil, errMemory
	}
	name, err := libc.CString(path)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	defer libc.Xfree(c.tls, name)
	code := sqlite3.Xsqlite3_open_v2(c.tls, name, c.pointer, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = c.returned()
	if err := c.errorOf(code); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	for option, on := range map[int32]int32{
		sqlite3.SQLITE_DBCONFIG_DEFENSIVE: 1, sqlite3.SQLITE_DBCONFIG_DQS_DDL: 0, sqlite3.SQLITE_DBCONFIG_DQS_DML: 0,
	} {
		args := libc.NewVaList(on, uintptr(0))
		err := c.errorOf(sqlite3.Xsqlite3_db_config(c.tls, c.db, option, args))
		libc.Xfree(c.tls, args)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.Exec(`PRAGMA busy_timeout=5000; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY`); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// returned is the pointer that SQLite has just returned.
func (c *Conn) returned() uintptr {
	p := libc.GoBytes(c.pointer, bits.UintSize/8)
	if bits.UintSize == 32 {
		return uintptr(binary.NativeEndian.Uint32(p))
	}
	return uintptr(binary.NativeEndian.Uint64(p))
}

// errorOf is the error of a result code.
func (c *Conn) errorOf(code int32) error {
	switch code {
	case sqlite3.SQLITE_OK, sqlite3.SQLITE_ROW, sqlite3.SQLITE_DONE:
		return nil
	}
	text := libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, code))
	if c.db != 0 && sqlite3.Xsqlite3_extended_errcode(c.tls, c.db) == code {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db)); more != text {
			text += ": " + more
		}
	}
	return fmt.Errorf("%s (%d)", text, code)
}

// Exec runs statements without parameters.
func (c *Conn) Exec(text string) error {
	p, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, p)
	return c.errorOf(sqlite3.Xsqlite3_exec(c.tls, c.db, p, 0, 0, 0))
}

// LastInsertID is the number of the row that was inserted last.
func (c *Conn) LastInsertID() int64 { return sqlite3.Xsqlite3_last_insert_rowid(c.tls, c.db) }

// Close closes the connection and its statements.
func (c *Conn) Close() error {
	for _, s := range c.stmts {
		sqlite3.Xsqlite3_finalize(c.tls, s.p)
		for _, b := range s.blocks {
			libc.Xfree(c.tls, b.at)
		}
	}
	code := sqlite3.Xsqlite3_close(c.tls, c.db) // no database is none to close
	libc.Xfree(c.tls, c.pointer)
	c.db = 0
	err := c.errorOf(code)
	c.tls.Close()
	return err
}

// A Stmt is a statement with parameters.
type Stmt struct {
	c     *Conn
	p     uintptr
	bound int32 // parameters that have a value
	code  int32 // of the first value that could not be bound

	// The texts and blobs that are bound are in blocks, of the last of which used bytes are
	// taken. It is the largest.
	blocks []block
	used   int
}

// Prepare prepares a statement, which is closed with the connection.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	p, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, p)
	if err := c.errorOf(sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, p, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, c.pointer, 0)); err != nil {
		return nil, err
	}
	s := &Stmt{c: c, p: c.returned()}
	c.stmts = append(c.stmts, s)
	return s, nil
}

// next begins to bind the next parameter, and returns its index.
func (s *Stmt) next() int32 {
	if s.bound == 0 {
		s.release()
	}
	s.bound++
	return s.bound
}

// note keeps the result of binding a value for Run.
func (s *Stmt) note(code int32) {
	if s.code == sqlite3.SQLITE_OK {
		s.code = code
	}
}

// Int binds an integer to the next parameter.
func (s *Stmt) Int(v int64) { s.note(sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, s.next(), v)) }

// Null binds NULL to the next parameter.
func (s *Stmt) Null() { s.note(sqlite3.Xsqlite3_bind_null(s.c.tls, s.p, s.next())) }

// Text binds a text to the next parameter.
func (s *Stmt) Text(v string) {
	i := s.next()
	at, mem := s.take(len(v))
	if at == 0 {
		s.note(sqlite3.SQLITE_NOMEM)
		return
	}
	copy(mem, v)
	s.note(sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, i, at, int32(len(v)), 0))
}

// Blob binds bytes to the next parameter.
func (s *Stmt) Blob(v []byte) {
	i := s.next()
	at, mem := s.take(len(v))
	if at == 0 {
		s.note(sqlite3.SQLITE_NOMEM)
		return
	}
	copy(mem, v)
	s.note(sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, i, at, int32(len(v)), 0))
}

// take returns n bytes of memory that SQLite can read until the statement has run; 0 if
// there are none.
func (s *Stmt) take(n int) (at uintptr, mem []byte) {
	last := len(s.blocks) - 1
	if last < 0 || len(s.blocks[last].data)-s.used < n {
		size := max(minBlock, n)
		if last >= 0 {
			size = max(size, 2*len(s.blocks[last].data))
		}
		p := libc.Xmalloc(s.c.tls, types.Size_t(size))
		if p == 0 {
			return 0, nil
		}
		s.blocks = append(s.blocks, block{p, libc.GoBytes(p, size)})
		s.used = 0
		last++
	}
	b := s.blocks[last]
	at, mem = b.at+uintptr(s.used), b.data[s.used:s.used+n]
	s.used += n
	return at, mem
}

// release lets the memory be taken anew. One block is enough, and a large one is not kept.
func (s *Stmt) release() {
	s.used = 0
	for n := len(s.blocks); n > 1 || n == 1 && len(s.blocks[0].data) > maxBlock; n-- {
		libc.Xfree(s.c.tls, s.blocks[0].at)
		s.blocks = s.blocks[1:]
	}
}

// Run runs the statement to its end, whatever it returns.
func (s *Stmt) Run() error {
	_, err := s.step(nil)
	return err
}

// Row runs the statement and has read look at its first row, if it has one.
func (s *Stmt) Row(read func(Columns)) (found bool, err error) { return s.step(read) }

func (s *Stmt) step(read func(Columns)) (found bool, err error) {
	code := s.code
	s.bound, s.code = 0, sqlite3.SQLITE_OK
	if code != sqlite3.SQLITE_OK {
		return false, s.c.errorOf(code)
	}
	code = sqlite3.Xsqlite3_step(s.c.tls, s.p)
	if found = code == sqlite3.SQLITE_ROW; found && read != nil {
		read(Columns{s})
	}
	err = s.c.errorOf(code)
	sqlite3.Xsqlite3_reset(s.c.tls, s.p) // repeats the error
	return found, err
}

// Columns are the values of a row.
type Columns struct{ s *Stmt }

// Int returns an integer.
func (r Columns) Int(column int) int64 {
	return sqlite3.Xsqlite3_column_int64(r.s.c.tls, r.s.p, int32(column))
}

// Blob returns a copy of bytes.
func (r Columns) Blob(column int) []byte {
	p := sqlite3.Xsqlite3_column_blob(r.s.c.tls, r.s.p, int32(column))
	n := int(sqlite3.Xsqlite3_column_bytes(r.s.c.tls, r.s.p, int32(column)))
	if p == 0 || n == 0 {
		return nil
	}
	return append([]byte(nil), libc.GoBytes(p, n)...)
}
