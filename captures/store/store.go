// Package store keeps captures in files (.uwc), which are SQLite databases: it
// records exchanges, reads them while they are recorded and afterwards, follows a
// recording, and copies exchanges from file to file. FORMAT.md describes the file.
//
// Create locks a file, migrates its format, and starts a writer, which commits in
// transactions; a recording hands it an exchange's chunks and passes them through the
// redaction of package redact. Package rows makes rows of them: small chunks share one
// (package segment), sections of headers and payloads that repeat are stored once. Package
// engine writes the rows, schema has the tables, database opens files.
//
// Open checks a file before anything is read, since it may be forged: limits bound
// what reading it may cost, and errors name the damage. Follow yields what is recorded as
// it comes.
//
// Derived values are stored with the capture: summaries of exchanges for a listing,
// and values of any kind under a name. So are notes, the readings of fields that a user
// chose, and definitions, also while another process records it (packages additions and
// control).
// Nothing here decodes messages; those who derive a value hand it over. The commands
// that record or import write with this package, and package query reads.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/captures/store/internal/control"
	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/filelock"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// Options says how a capture is written. The zero value is what a recorder wants.
type Options struct {
	// Redactor has the rules for secrets; nil has the default ones, and those of Profile.
	Redactor *redact.Redactor

	Profile     *profile.Profile // the recorded service's; may be nil
	KeepSecrets bool             // record everything as it passed, secrets too

	// QueueBytes may wait for the disk before streams are slowed down; 0: 64 MiB. Half a
	// second of waiting slows them too.
	QueueBytes int64

	// MaxBody is how many bytes of a body are stored for each direction; 0: all. The rest
	// is counted, and Exchange.Error says so.
	MaxBody int64

	// NoAdditions leaves out the socket by which others can add notes, readings and
	// definitions while the file is written.
	NoAdditions bool

	// Failed, if set, is called once when recording has to stop: the disk is
	// full, or the file is gone. It must not call the store.
	Failed func(error)

	// Unsearched, if set, is called with what the search for secrets could not
	// look into: when an exchange changes its protocol (to a WebSocket, say),
	// with runs that are still empty, and when an exchange ends, with all of it.
	// It must not call the store.
	Unsearched func(captures.Exchange, []redact.Unsearched)

	// Ended, if set, is called with the numbers of exchanges whose end was committed just now.
	// It must return at once, and must not call the store.
	Ended func(s *Store, ids []int64)

	// Closing, if set, is called by Close when all has ended and is committed,
	// unless recording had to stop: to derive what a reader will want.
	Closing func(*Store)
}

// ReadOptions says how a capture is read.
type ReadOptions struct {
	// Limits bound what is read.
	Limits Limits

	// Profile is what is known of the service whose traffic the capture holds; nil
	// is nothing.
	Profile *profile.Profile
}

// tuning is what only tests set.
type tuning struct {
	migrations   []schema.Migration
	maxPages     int           // PRAGMA max_page_count, for a disk that is full
	beforeCommit func()        // a slow disk
	holdFor      time.Duration // how long a possible secret is held back at most
}

// A Store is a capture file, open for recording or for reading.
//
// All methods may be called from any goroutine. Reads see what has been
// committed: a recorder that wants to read its own writes calls Flush first.
//
// Limits: a chunk of more than 64 MiB is stored as several.
type Store struct {
	// Path is the file's, as it was given.
	Path string

	// Redactor has the rules of this store with the secrets it has learned; nil if it
	// keeps secrets or is open for reading only.
	Redactor *redact.Redactor

	profile *profile.Profile
	format  int
	read    *sql.DB
	unpack  *payload.Unpacker

	// oldChunks guards noOldChunks: all chunks are in segments.
	oldChunks   sync.Once
	noOldChunks bool

	meter   *meter
	damage  error   // what is wrong with a file of which only a part is there
	writer  *writer // nil when opened for reading
	lock    *filelock.Lock
	control *control.Server // of what others add meanwhile; nil for none
	holdFor time.Duration
	maxBody int64 // 0: no limit
	closing func(*Store)

	// unsearched, if set, is called from recordings.
	unsearched func(captures.Exchange, []redact.Unsearched)

	// copied are the exchanges that CopyExchange has copied, in ascending order.
	copied []int64

	mu     sync.Mutex
	nextID int64
	open   map[int64]*recording
	closed bool

	// drained is set when nothing more begins here: it is called once nothing is open.
	drained func()
}

// Create makes a new capture at path, readable by its owner only, or opens an
// existing one to append to it. Exchanges that were still going on when an
// earlier recorder died are marked Incomplete; an older format is migrated.
//
// While it records, SQLite's write-ahead log (path-wal, path-shm) and a lock
// file (path-lock) stand beside the capture, and a file that says where others may send
// notes, readings and definitions (path-control). Close folds them into one file,
// unless another process is reading it at that moment.
//
// Errors: ErrInUse if another recorder has it; ErrNotCapture, ErrNewerFormat
// or ErrDamaged if what is there cannot be appended to.
func Create(path string, o Options) (*Store, error) {
	s, err := create(path, o, tuning{})
	if err == nil && !o.NoAdditions {
		// Where there is no socket to be had, others can add notes afterwards only.
		s.control, _ = control.Listen(path, controlled{s})
	}
	return s, err
}

func create(path string, o Options, t tuning) (*Store, error) {
	if t.migrations == nil {
		t.migrations = schema.Steps()
	}
	if t.holdFor == 0 {
		t.holdFor = maxHold
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 64 << 20
	}
	if fresh, err := database.CheckPath(path); err != nil && !fresh && !errors.Is(err, os.ErrNotExist) {
		return nil, pathError(path, err)
	}
	lock, err := filelock.Take(path + "-lock")
	if err != nil {
		return nil, pathError(path, lockError(path, err))
	}
	s := &Store{
		Path: path, profile: o.Profile, format: len(t.migrations), lock: lock, meter: newMeter(path, Limits{}), open: make(map[int64]*recording),
		closing: o.Closing, holdFor: t.holdFor, maxBody: o.MaxBody, unsearched: o.Unsearched,
	}
	if err := s.openForWriting(o, t); err != nil {
		return nil, pathError(path, errors.Join(database.Explain(err), s.release()))
	}
	return s, nil
}

// lockError is why path cannot be locked, without the name of the lock's file:
// nobody asked for that.
func lockError(path string, err error) error {
	pe, ok := errors.AsType[*os.PathError](err)
	if !ok {
		return err
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s", captures.ErrNoFolder, filepath.Dir(path))
	}
	return pe.Err
}

// openForWriting fills s from the file, which is locked by now.
func (s *Store) openForWriting(o Options, t tuning) error {
	ctx, cancel := timeLimited(context.Background(), appendTime)
	defer cancel()
	// SQLite would make the file readable for everybody the umask allows.
	f, err := os.OpenFile(s.Path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		if err := f.Close(); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrExist):
		return err
	}
	fresh, err := database.CheckPath(s.Path)
	have := 0
	if !fresh {
		if err != nil {
			return err
		}
		var checked *sql.DB
		if checked, have, err = database.OpenChecked(ctx, s.Path, t.migrations); err != nil {
			return err
		}
		if err := checked.Close(); err != nil {
			return err
		}
	}
	db, err := database.Open(s.Path, "rw")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := prepareForWriting(ctx, db, have, t); err != nil {
		return errors.Join(err, db.Close())
	}
	if !o.KeepSecrets {
		if s.Redactor, err = storedRedactor(ctx, db, o); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	if s.unpack, err = payload.NewUnpacker(); err != nil {
		return errors.Join(err, db.Close())
	}
	if s.read, err = database.Open(s.Path, "ro"); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := s.endOrphans(ctx, db); err != nil {
		return errors.Join(err, db.Close())
	}
	if s.writer, err = newWriter(s.Path, db, o, t); err != nil {
		return errors.Join(err, db.Close())
	}
	if o.Ended != nil {
		s.writer.ended = func(ids []int64) { o.Ended(s, ids) }
	}
	go s.writer.loop()
	s.nextID = s.writer.lastID + 1
	return nil
}

// prepareForWriting migrates the file, ends what a dead recorder left open and
// turns the write-ahead log on.
func prepareForWriting(ctx context.Context, db *sql.DB, have int, t tuning) error {
	if t.maxPages > 0 {
		if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count=%d", t.maxPages)); err != nil {
			return err
		}
	}
	if have == 0 {
		// Twice the default: 64 KiB of a download are then stored in a third
		// less time, and a commit of one frame still writes little.
		if _, err := db.ExecContext(ctx, "PRAGMA page_size=8192"); err != nil {
			return err
		}
	}
	if err := schema.Migrate(ctx, db, have, t.migrations); err != nil {
		return err
	}
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system has no support for a write-ahead log (journal mode %s)", mode)
	}
	_, err := db.ExecContext(ctx, "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=67108864")
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails: it would end the program
	_, err = db.ExecContext(ctx, "INSERT OR IGNORE INTO meta (name, value) VALUES ('capture id', ?)", id)
	return err
}

// endOrphans ends the exchanges whose recorder died. A file that is larger than what can
// be read of it in that time is not appended to.
func (s *Store) endOrphans(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var last int64
	if err := tx.QueryRowContext(ctx, columnsFor(s.format).lastNumber).Scan(&last); err != nil {
		return err
	}
	for id := int64(math.MinInt64); ; {
		var orphan int64
		found := false
		if err := scan(ctx, tx, func(c *rowValues) bool {
			orphan, found = c.int(), true
			return false
		}, `SELECT id FROM exchanges WHERE outcome = '' AND id > ? ORDER BY id LIMIT 1`, id); err != nil {
			return err
		}
		if !found {
			return tx.Commit()
		}
		id = orphan
		_, duration, err := s.chunkEnds(ctx, id)
		if err != nil {
			return err
		}
		last++
		if _, err := tx.ExecContext(ctx, `INSERT INTO events (n, exchange, kind) VALUES (?, ?, ?)`, last, id, int64(captures.Ended)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE exchanges AS e SET outcome = ?2, duration_ns = ?3,
			bytes_up = `+segmentsUp+` + `+chunksUp+`, bytes_down = `+segmentsDown+` + `+chunksDown+` WHERE id = ?1`,
			id, string(captures.Incomplete), int64(duration)); err != nil {
			return err
		}
	}
}

// storedRedactor gives r the key of this file, so that a secret has one
// placeholder in all of it, whichever session recorded it.
func storedRedactor(ctx context.Context, db *sql.DB, o Options) (*redact.Redactor, error) {
	r := o.Redactor
	if r == nil {
		r = redact.New(redact.Options{Profile: o.Profile})
	}
	var key []byte
	err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'redaction key'").Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		key = make([]byte, redact.KeySize)
		_, _ = rand.Read(key) // never fails: it would end the program
		_, err = db.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('redaction key', ?)", key)
	}
	if err != nil {
		return nil, err
	}
	return r.WithKey(key), nil
}

// Open opens a capture for reading, also while another process records to it
// and when its recorder was killed. The file is not trusted: nothing but
// PutSummaries writes to it, its header and its schema are checked before anything is read,
// and no code in it (triggers, views, functions) runs.
//
// Limits: in a folder that cannot be written to, a capture that was not closed
// needs both its -wal and its -shm beside it; without a -wal it is opened as
// immutable, so what a later recorder adds is not seen.
//
// Of a file that is cut short, what is there can be read: Exchanges and Listing
// end with ErrDamaged, whatever they found.
//
// What is read of it is bounded by Limits. Opening ends after 10
// seconds, and so does a query after 30, with a LimitError.
//
// Errors: ErrNotCapture, ErrNewerFormat, ErrOlderFormat, ErrDamaged.
func Open(path string, o ReadOptions) (*Store, error) {
	s, err := open(path, schema.Steps(), oldestReadable)
	if err != nil {
		return nil, err
	}
	s.meter.limits, s.profile = o.Limits, o.Profile
	return s, nil
}

// oldestReadable is the oldest format that is read as it is.
const oldestReadable = 1

// open opens a file of any format from oldest on.
func open(path string, steps []schema.Migration, oldest int) (*Store, error) {
	if _, err := database.CheckPath(path); err != nil {
		return nil, pathError(path, err)
	}
	ctx, cancel := timeLimited(context.Background(), openTime)
	defer cancel()
	db, version, err := database.OpenChecked(ctx, path, steps)
	var damage error
	if errors.Is(err, captures.ErrDamaged) {
		if part, v, perr := database.OpenPart(ctx, path, steps); perr == nil {
			db, version, damage, err = part, v, err, nil
		}
	}
	if err != nil {
		return nil, pathError(path, err)
	}
	if version < oldest {
		_ = db.Close()
		return nil, pathError(path, fmt.Errorf("%w, format %d; this one reads format %d: record to it once to convert it", captures.ErrOlderFormat, version, len(steps)))
	}
	u, err := payload.NewUnpacker()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	u.Verify = damage != nil
	return &Store{Path: path, format: version, read: db, unpack: u, meter: newMeter(path, Limits{}), damage: damage}, nil
}

// Profile is what is known of the service whose traffic the capture holds.
func (s *Store) Profile() *profile.Profile { return s.profile }

// Err returns the error that stopped the recording (a full disk, for one), or
// nil. What was committed before it stays readable.
func (s *Store) Err() error {
	if s.writer == nil {
		return nil
	}
	return pathError(s.Path, s.writer.failure())
}

// Flush returns when everything recorded so far is committed. It waits for
// bytes that are held back because a secret may be passing, for less than a
// second; of a compressed message or body that has not ended, it does not wait.
func (s *Store) Flush(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	asked := time.Now()
	for _, r := range open {
		for r.heldBefore(asked) {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return pathError(s.Path, ctx.Err())
			}
		}
	}
	return pathError(s.Path, s.writer.flush(ctx))
}

// Close ends the exchanges that are still open as Incomplete, commits what is
// queued, folds the write-ahead log into the file and closes it. It returns
// the error that stopped the recording, if one did. A second call does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, r := range open {
		r.End(captures.Incomplete, "")
	}
	if s.closing != nil && s.writer.flush(context.Background()) == nil {
		s.closing(s)
	}
	return pathError(s.Path, s.release())
}

// release closes whatever of the store is open, the lock last.
func (s *Store) release() error {
	var errs []error
	if s.control != nil {
		// What was asked for can still be written.
		errs = append(errs, s.control.Close())
	}
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}
