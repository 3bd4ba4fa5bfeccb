package database

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

const (
	// maxReaders is the largest number of concurrent queries. Open allows more connections, for transactions.
	maxReaders = 4
	// maxStatements is the largest number of prepared statements that a connection keeps.
	maxStatements = 64
)

// Readers is a pool of database connections that keep their prepared statements, because compiling a statement
// takes SQLite longer than reading an exchange with it. All methods are safe for concurrent use.
type Readers struct {
	// db is the database to which the connections belong.
	db *sql.DB
	// slots has an element for each connection in use.
	slots chan struct{}

	// mu guards idle and closed.
	mu sync.Mutex

	// idle are the connections that are not in use.
	idle []*Reader
	// closed means that the pool was closed, so connections are no longer kept.
	closed bool
}

// NewReaders returns the readers of a database. Close does not close the database.
func NewReaders(db *sql.DB) *Readers { return &Readers{db: db, slots: make(chan struct{}, maxReaders)} }

// A Reader is a database connection with its prepared statements. One goroutine at a time may use it.
type Reader struct {
	// conn is the connection to the database.
	conn *sql.Conn

	// limit is the size in bytes above which the connection refuses to read a value.
	limit int
	// statements maps SQL texts to the statements prepared on the connection.
	statements map[string]*sql.Stmt
}

// Get returns a connection that refuses to read values of more than limit bytes. The caller must return it with
// Put. If all are in use, Get waits for one, or until ctx ends.
func (p *Readers) Get(ctx context.Context, limit int) (*Reader, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, err := p.limited(ctx, limit)
	if err != nil {
		<-p.slots
	}
	return r, err
}

// limited returns an idle connection, or else a new one, with the limit for values set.
func (p *Readers) limited(ctx context.Context, limit int) (*Reader, error) {
	r := p.take()
	if r == nil {
		conn, err := p.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		r = &Reader{conn: conn, statements: map[string]*sql.Stmt{}}
	}
	if r.limit == limit {
		return r, nil
	}
	if err := LimitValues(r.conn, limit); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.limit = limit
	return r, nil
}

// take removes an idle connection from the pool and returns it; nil if there is none.
func (p *Readers) take() *Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	r := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return r
}

// Put returns a connection to the pool. All rows that were read from it must be closed.
func (p *Readers) Put(r *Reader) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, r)
	}
	p.mu.Unlock()
	if closed {
		_ = r.close()
	}
	<-p.slots
}

// Close closes all connections: those in use when they are returned.
func (p *Readers) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var errs []error
	for r := p.take(); r != nil; r = p.take() {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// close releases the statements and the connection. SQLite cannot close a database that has statements.
func (r *Reader) close() error {
	var errs []error
	for _, stmt := range r.statements {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, r.conn.Close())...)
}

// QueryContext runs a query. The text of each query is compiled only once per connection, so it should be
// constant.
func (r *Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt := r.statements[query]
	if stmt == nil {
		if len(r.statements) == maxStatements {
			return r.conn.QueryContext(ctx, query, args...)
		}
		var err error
		if stmt, err = r.conn.PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		r.statements[query] = stmt
	}
	return stmt.QueryContext(ctx, args...)
}
