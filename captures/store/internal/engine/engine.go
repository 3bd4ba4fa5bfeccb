// Package engine writes rows through SQLite's C interface, as translated by the library on which the
// database/sql driver is based. For small rows, the driver itself takes as long as SQLite, and it allocates
// memory for each value. Package rows uses this package for recorded traffic; everything else uses database/sql.
//
//	c, err := engine.Open(path)
//	insert, err := c.Prepare("INSERT INTO t VALUES (?, ?)")
//	insert.Int(1)
//	insert.Text("one")
//	err = insert.Run()
//
// Values are bound in the order of the parameters; all of them must be bound for each run. A Conn and its
// statements may be used by one goroutine at a time.
//
// Source: https://www.sqlite.org/c3ref/intro.html
package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"syscall"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// errMemory is the error for a failed allocation outside of Go's heap.
var errMemory = errors.New("SQLite ran out of memory")

// A Conn is a connection to an SQLite database that calls SQLite's C functions directly, without database/sql.
type Conn struct {
	// tls is the thread state that the translated C code needs.
	tls *libc.TLS

	// db is SQLite's handle of the connection.
	db uintptr

	// pointer is the address of memory in which SQLite stores the pointers that it returns.
	pointer uintptr

	// stmts are the prepared statements.
	stmts []*Stmt
}

// A block is memory outside of Go's heap, which SQLite can read: its address, and the same memory as a slice.
type block struct {
	// at is the address of the memory, which is outside of Go's heap.
	at uintptr
	// data is the same memory as a slice.
	data []byte
}

// minBlock is the size of the first block for a statement's parameters, in bytes.
const minBlock = 4 << 10

// maxBlock is the size of the largest block that is kept for reuse, in bytes.
const maxBlock = 1 << 20

// Open opens an existing database file for writing, with the same protection against forged files as package
// database.
func Open(path string) (*Conn, error) {
	c := &Conn{tls: libc.NewTLS()}
	if c.pointer = libc.Xmalloc(c.tls, types.Size_t(bits.UintSize/8)); c.pointer == 0 {
		c.tls.Close()
		return nil, errMemory
	}

	// SQLite needs the path as a C string.
	name, err := libc.CString(path)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	defer libc.Xfree(c.tls, name)
	code := sqlite3.Xsqlite3_open_v2(c.tls, name, c.pointer, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = c.returnedPointer()
	if err := c.errorOf(code); err != nil {
		return nil, errors.Join(err, c.Close())
	}

	// Set the options that have no pragma.
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

// returnedPointer returns the pointer that SQLite has just returned.
func (c *Conn) returnedPointer() uintptr {
	p := libc.GoBytes(c.pointer, bits.UintSize/8)
	if bits.UintSize == 32 {
		return uintptr(binary.NativeEndian.Uint32(p))
	}
	return uintptr(binary.NativeEndian.Uint64(p))
}

// errorOf converts an SQLite result code to an error; nil for success.
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
	if code&0xff == sqlite3.SQLITE_FULL {
		return syscall.ENOSPC
	}
	return fmt.Errorf("%s (%d)", text, code)
}

// Exec runs SQL statements without parameters.
func (c *Conn) Exec(text string) error {
	p, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, p)
	return c.errorOf(sqlite3.Xsqlite3_exec(c.tls, c.db, p, 0, 0, 0))
}

// LastInsertID returns the row id of the last inserted row.
func (c *Conn) LastInsertID() int64 { return sqlite3.Xsqlite3_last_insert_rowid(c.tls, c.db) }

// Close closes the connection and its prepared statements.
func (c *Conn) Close() error {
	for _, s := range c.stmts {
		sqlite3.Xsqlite3_finalize(c.tls, s.p)
		for _, b := range s.blocks {
			libc.Xfree(c.tls, b.at)
		}
	}
	// Closing a null database has no effect.
	code := sqlite3.Xsqlite3_close(c.tls, c.db)
	libc.Xfree(c.tls, c.pointer)
	c.db = 0
	err := c.errorOf(code)
	c.tls.Close()
	return err
}

// A Stmt is a prepared SQL statement with parameters, which are bound in order before each run.
type Stmt struct {
	// c is the connection on which the statement was prepared.
	c *Conn

	// p is SQLite's handle of the statement.
	p uintptr
	// bound is the number of the statement's parameters that have a value.
	bound int32
	// code is the SQLite result code of the first value that could not be bound; 0 if there is none.
	code int32

	// blocks contain the bound texts and blobs, outside of Go's heap; the last one is the largest.
	blocks []block
	// used is the number of used bytes in the last block.
	used int
}

// Prepare compiles an SQL statement. It is closed together with the connection.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	p, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, p)
	if err := c.errorOf(sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, p, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, c.pointer, 0)); err != nil {
		return nil, err
	}
	s := &Stmt{c: c, p: c.returnedPointer()}
	c.stmts = append(c.stmts, s)
	return s, nil
}

// nextParameter returns the index of the next parameter to be bound. At the first one, it frees the memory of
// the last run.
func (s *Stmt) nextParameter() int32 {
	if s.bound == 0 {
		s.reuseMemory()
	}
	s.bound++
	return s.bound
}

// recordCode stores the first error of binding a value; Run returns it.
func (s *Stmt) recordCode(code int32) {
	if s.code == sqlite3.SQLITE_OK {
		s.code = code
	}
}

// Int binds an integer to the next parameter of the statement.
func (s *Stmt) Int(v int64) {
	s.recordCode(sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, s.nextParameter(), v))
}

// Null binds NULL to the next parameter of the statement.
func (s *Stmt) Null() { s.recordCode(sqlite3.Xsqlite3_bind_null(s.c.tls, s.p, s.nextParameter())) }

// Text binds a string to the next parameter of the statement.
func (s *Stmt) Text(v string) {
	i := s.nextParameter()
	at, mem := s.allocate(len(v))
	if at == 0 {
		s.recordCode(sqlite3.SQLITE_NOMEM)
		return
	}
	copy(mem, v)
	s.recordCode(sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, i, at, int32(len(v)), 0))
}

// Blob binds bytes to the next parameter of the statement.
func (s *Stmt) Blob(v []byte) {
	i := s.nextParameter()
	at, mem := s.allocate(len(v))
	if at == 0 {
		s.recordCode(sqlite3.SQLITE_NOMEM)
		return
	}
	copy(mem, v)
	s.recordCode(sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, i, at, int32(len(v)), 0))
}

// allocate returns n bytes of memory that SQLite can read until the statement has run, with their address; at
// is 0 if the allocation failed.
func (s *Stmt) allocate(n int) (at uintptr, mem []byte) {
	// Blocks double in size, so their number stays small.
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

// reuseMemory makes the memory of the last run available again. It keeps only one block, and frees large ones.
func (s *Stmt) reuseMemory() {
	s.used = 0
	for n := len(s.blocks); n > 1 || n == 1 && len(s.blocks[0].data) > maxBlock; n-- {
		libc.Xfree(s.c.tls, s.blocks[0].at)
		s.blocks = s.blocks[1:]
	}
}

// Run executes the statement with the bound parameters, and ignores rows that it returns.
func (s *Stmt) Run() error {
	_, err := s.step(nil)
	return err
}

// Row executes the statement with the bound parameters, and calls read with the first row of the result. found
// is false if there is none.
func (s *Stmt) Row(read func(Columns)) (found bool, err error) { return s.step(read) }

// step executes the statement once, and resets it for the next run. read, unless nil, is called with the first
// row.
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
	// The result is ignored: it repeats the error.
	sqlite3.Xsqlite3_reset(s.c.tls, s.p)
	return found, err
}

// Columns gives access to the values of the current row of a statement. Columns are numbered from 0.
type Columns struct {
	// s is the statement whose current row is read.
	s *Stmt
}

// Int returns the integer in a column.
func (r Columns) Int(column int) int64 {
	return sqlite3.Xsqlite3_column_int64(r.s.c.tls, r.s.p, int32(column))
}

// Blob returns a copy of the bytes in a column.
func (r Columns) Blob(column int) []byte {
	p := sqlite3.Xsqlite3_column_blob(r.s.c.tls, r.s.p, int32(column))
	n := int(sqlite3.Xsqlite3_column_bytes(r.s.c.tls, r.s.p, int32(column)))
	if p == 0 || n == 0 {
		return nil
	}
	return append([]byte(nil), libc.GoBytes(p, n)...)
}
