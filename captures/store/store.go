// Package store keeps captures in files (.uwc), which are SQLite databases. It records exchanges, reads them
// during and after the recording, follows a recording, and copies exchanges between files. FORMAT.md specifies
// the file.
//
//	s, err := store.Create("a.uwc", store.Options{})
//	rec, err := s.Begin(captures.Exchange{Method: "GET", URL: "https://example.com/"})
//	rec.Response(200, nil)
//	rec.Chunk(captures.Down, []byte("hello"))
//	rec.End(captures.Complete, "")
//	err = s.Close()
//
// Writing: Create locks a file, migrates its format and starts a writer. A recording redacts an exchange's
// chunks with package redact and queues them; the writer commits the queue in transactions. Package rows turns
// operations into rows: small chunks share one row (package segment), and repeated header sections and payloads
// are stored once. Package engine executes the statements, schema has the tables, and database opens files.
//
// Reading: Open checks a file before anything is read, because it may be forged. Limits bound the cost of
// reading, and errors name the damage. Follow yields events while they are recorded.
//
// The file also stores what is not traffic: summaries for listings, other derived values by name, notes, the
// field types that a user chose, and definitions. These can be added even while another process records to the
// file (packages additions and control). This package never decodes messages: derived values come from its
// callers.
//
// The commands that record or import use it through package captures; cmd/internal/query reads.
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
	"unwire/captures/atomicfile"
	"unwire/captures/budget"
	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/captures/store/internal/control"
	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/filelock"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// Options are the options of Create. The zero value suits a recorder.
type Options struct {
	// Redactor replaces secrets in recorded data; nil means the default rules plus those of Profile.
	Redactor *redact.Redactor

	// Profile describes the recorded service; nil means that there is none.
	Profile *profile.Profile
	// KeepSecrets turns redaction off. Default: secrets are replaced.
	KeepSecrets bool

	// QueueBytes is the size of the write queue, in bytes, above which recordings block; 0: 64 MiB. They also
	// block if the oldest queued operation is older than half a second.
	QueueBytes int64

	// MaxBody is the number of bytes of each body that are stored; 0: all. The rest is counted, and
	// Exchange.Error mentions it.
	MaxBody int64

	// NoAdditions disables the socket by which other processes can send notes, readings and definitions.
	NoAdditions bool

	// Failed, if set, is called once when recording must stop, because the disk is full or the file was deleted.
	// It must not call the store.
	Failed func(error)

	// Unsearched, if set, is called with the ranges of an exchange's bodies that could not be searched for
	// secrets: first with still empty ranges, when bytes follow a switch of the protocol, and then with all
	// ranges when the exchange ends. It must not call the store.
	Unsearched func(captures.Exchange, []redact.Unsearched)

	// Ended, if set, is called with the IDs of exchanges whose end was just committed. It must return at once,
	// and must not call the store.
	Ended func(s *Store, ids []int64)

	// Closing, if set, is called by Close after everything is committed, unless recording has failed. Callers
	// use it to store derived values.
	Closing func(*Store)
}

// ReadOptions are the options for opening a capture.
type ReadOptions struct {
	// Limits bounds how much data is read; the zero value means the defaults.
	Limits Limits

	// Profile describes the recorded service; nil if nothing is known about it.
	Profile *profile.Profile

	// Forwarded selects the directions that are shown as they were forwarded, with the changes of rules. The
	// others are shown as they were received.
	Forwarded [2]bool

	// Budget limits how much is read from all inputs of a command together; nil for no such limit.
	Budget *budget.Budget
}

// testOptions are options that only tests set.
type testOptions struct {
	// migrations replace the steps that convert older file formats; nil means the real ones.
	migrations []schema.Migration
	// maxPages simulates a full disk: PRAGMA max_page_count.
	maxPages int
	// beforeCommit is called before each commit, to simulate a slow disk.
	beforeCommit func()
	// holdFor is how long bytes that may be part of a secret are held back after the last byte; 0 means the
	// normal time.
	holdFor time.Duration
}

// A Store is a capture file, open for recording or for reading. It implements captures.Target and
// captures.Capture.
//
// All methods may be called from any goroutine. Reads see only what is committed: to read its own writes, a
// recorder calls Flush first.
//
// Limits: chunks of more than 64 MiB are split.
type Store struct {
	// Path is the path of the capture file as passed to Create or Open.
	Path string

	// Redactor replaces secrets and remembers those seen so far; nil if secrets are kept, or if the
	// capture is open for reading.
	Redactor *redact.Redactor

	// profile describes the recorded service.
	profile *profile.Profile
	// format is the version number of the file's format.
	format int
	// forwarded is true for each direction that is shown as it was forwarded, with the changes of rules,
	// instead of as it was received.
	forwarded [2]bool

	// readDB is the database handle for reading.
	readDB *sql.DB
	// readers is the pool of connections for queries.
	readers *database.Readers
	// unpacker decompresses stored payloads.
	unpacker *payload.Unpacker

	// oldChunks makes sure that noOldChunks is determined only once.
	oldChunks sync.Once
	// noOldChunks means that the file has no rows in the table chunks of older formats.
	noOldChunks bool

	// meter enforces the limits on how much may be read from the file.
	meter *meter
	// damage describes the damage of a file of which only a part could be opened; nil for an intact
	// file.
	damage error
	// writer commits recorded data; nil if the capture is open for reading.
	writer *writer

	// lock prevents other processes from recording to the file; nil if the capture is open for reading.
	lock *filelock.Lock
	// control receives the additions of other processes; nil if there is no socket.
	control *control.Server

	// holdFor is how long bytes that may be part of a secret are held back after the last byte: 250 ms,
	// except in tests.
	holdFor time.Duration
	// maxBody is the number of bytes of each body that are stored; 0 means all.
	maxBody int64

	// closing, if set, is called before the capture is closed, after everything is committed.
	closing func(*Store)

	// unsearched, if set, is called with the ranges of an exchange's bodies that could not be searched for
	// secrets.
	unsearched func(captures.Exchange, []redact.Unsearched)

	// authorities is the set of hashes of the CA certificates that were already stored; mu guards it.
	authorities map[string]bool

	// copied are the IDs of exchanges that were copied into this capture from another one, in ascending
	// order.
	copied []int64

	// mu guards the fields below, and authorities.
	mu sync.Mutex

	// nextID is the ID for the next exchange.
	nextID int64

	// open maps the IDs of running exchanges to their recordings.
	open map[int64]*recording
	// closed means that Close was called, so no exchange may begin.
	closed bool

	// onDrained, if set, is called once no exchange is running; no exchange may begin any more.
	onDrained func()
}

// Create creates a capture that only its owner can read, or opens an existing one to append to it. Exchanges
// that were in flight when an earlier recorder was killed are marked Incomplete. An older format is migrated.
//
// During recording, there are further files next to the capture: SQLite's write-ahead log (path-wal, path-shm),
// a lock file (path-lock), and the address of the socket for additions (path-control). Close merges the log into
// the capture, unless another process is reading it.
//
// Errors: ErrInUse if another recorder has the file; ErrNotCapture, ErrNewerFormat or ErrDamaged if an existing
// file cannot be appended to.
func Create(path string, o Options) (*Store, error) {
	s, err := create(path, o, testOptions{})
	if err == nil && !o.NoAdditions {
		// If there can be no socket, additions are possible only after the recording.
		s.control, _ = control.Listen(path, additionTarget{s})
	}
	return s, err
}

// create implements Create, without the socket for additions.
func create(path string, o Options, t testOptions) (*Store, error) {
	if t.migrations == nil {
		t.migrations = schema.Steps()
	}
	if t.holdFor == 0 {
		t.holdFor = maxHold
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 64 << 20
	}

	// Do not create a lock file next to a file that is not a capture.
	if fresh, err := database.CheckPath(path); err != nil && !fresh && !errors.Is(err, os.ErrNotExist) {
		return nil, pathError(path, err)
	}
	lock, err := filelock.Acquire(path + "-lock")
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

// lockError returns an error that explains why path cannot be locked, without the name of the lock file, which
// users do not know.
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

// openForWriting opens the file, which is locked, and starts the writer.
func (s *Store) openForWriting(o Options, t testOptions) error {
	// Checking a large existing file takes time.
	ctx, cancel := withTimeLimit(context.Background(), appendTime)
	defer cancel()
	if _, err := os.Lstat(s.Path); errors.Is(err, os.ErrNotExist) {
		if err := createEmpty(ctx, s.Path, t); err != nil {
			return err
		}
	}

	// An existing file may be forged: check it before SQLite writes to it.
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

	// Additions use this connection; recorded traffic has another one, see writer.open.
	db, err := database.Open(s.Path, "rw")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := prepareForWriting(ctx, db, have, t); err != nil {
		return errors.Join(err, db.Close())
	}
	if !o.KeepSecrets {
		if s.Redactor, err = redactorWithStoredKey(ctx, db, o); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	if s.unpacker, err = payload.NewUnpacker(); err != nil {
		return errors.Join(err, db.Close())
	}
	if s.readDB, err = database.Open(s.Path, "ro"); err != nil {
		return errors.Join(err, db.Close())
	}
	s.readers = database.NewReaders(s.readDB)

	// Reading works from here on; the writer must find no exchange in flight.
	if err := s.endOrphans(ctx, db); err != nil {
		return errors.Join(err, db.Close())
	}
	if s.writer, err = newWriter(s.Path, db, o, t); err != nil {
		return errors.Join(err, db.Close())
	}
	if o.Ended != nil {
		s.writer.onEnded = func(ids []int64) { o.Ended(s, ids) }
	}
	go s.writer.loop()
	s.nextID = s.writer.lastID + 1
	return nil
}

// createEmpty creates a capture without exchanges. The file gets its name when it is complete: a recorder that is
// killed at this moment leaves no file that is not a capture. SQLite would also create the file with the permissions
// of the umask.
func createEmpty(ctx context.Context, path string, t testOptions) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	db, err := database.Open(f.Name(), "rw")
	if err == nil {
		err = errors.Join(prepareForWriting(ctx, db, 0, t), db.Close())
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

// prepareForWriting converts the file from the format have to the newest one, switches to a write-ahead log,
// and sets the capture's id.
func prepareForWriting(ctx context.Context, db *sql.DB, have int, t testOptions) error {
	if t.maxPages > 0 {
		if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count=%d", t.maxPages)); err != nil {
			return err
		}
	}
	if have == 0 {
		// Twice the default: this makes storing 64 KiB of a download a third faster, and a commit of one frame
		// is still small.
		if _, err := db.ExecContext(ctx, "PRAGMA page_size=8192"); err != nil {
			return err
		}
	}

	// Migrate before the log is switched on, in one transaction.
	if err := schema.Migrate(ctx, db, have, t.migrations); err != nil {
		return err
	}
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not support SQLite's write-ahead log (journal mode %s)", mode)
	}
	_, err := db.ExecContext(ctx, "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=67108864")
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	// rand.Read never fails: it would end the program.
	_, _ = rand.Read(id)
	_, err = db.ExecContext(ctx, "INSERT OR IGNORE INTO meta (name, value) VALUES ('capture id', ?)", id)
	return err
}

// endOrphans marks exchanges in flight, whose recorder was killed, as Incomplete. It fails if reading them
// takes longer than ctx allows.
func (s *Store) endOrphans(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit, this does nothing.
	defer func() { _ = tx.Rollback() }()
	var last int64
	if err := tx.QueryRowContext(ctx, columnsFor(s.format).lastNumber).Scan(&last); err != nil {
		return err
	}

	// Page through them one by one, in case there are many.
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

		// An Ended event and the final byte counts make the exchange complete.
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

// redactorWithStoredKey returns the redactor with the key for placeholders that is stored in this file. All
// sessions that record to the file use the same key, so a secret has the same placeholder everywhere in it.
func redactorWithStoredKey(ctx context.Context, db *sql.DB, o Options) (*redact.Redactor, error) {
	r := o.Redactor
	if r == nil {
		r = redact.New(redact.Options{Profile: o.Profile})
	}
	var key []byte
	err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'redaction key'").Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		key = make([]byte, redact.KeySize)
		// rand.Read never fails: it would end the program.
		_, _ = rand.Read(key)
		_, err = db.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('redaction key', ?)", key)
	}
	if err != nil {
		return nil, err
	}
	return r.WithKey(key), nil
}

// Open opens a capture for reading. This also works while another process records to it, and after a recorder
// was killed. The file is not trusted: the header and the schema are checked before anything is read, and no
// code in the file (triggers, views, functions) runs. Only PutNote, PutSummaries and similar methods write to
// it.
//
// Limits: in a folder without write permission, a capture that was not closed needs both its -wal and its -shm
// file. Without a -wal file, it is opened as immutable, so additions by a later recorder are not seen. Opening
// takes at most 10 seconds and a query 30 seconds, or they fail with a LimitError.
//
// If the file is truncated, the rest is readable: Exchanges and Listing yield what they found, and then
// ErrDamaged.
//
// Errors: ErrNotCapture, ErrNewerFormat, ErrOlderFormat, ErrDamaged.
func Open(path string, o ReadOptions) (*Store, error) {
	s, err := open(path, schema.Steps(), oldestReadable)
	if err != nil {
		return nil, err
	}
	s.meter.limits, s.profile, s.forwarded = o.Limits, o.Profile, o.Forwarded
	s.meter.share(o.Budget)
	return s, nil
}

// oldestReadable is the oldest format that can be read without migration.
const oldestReadable = 1

// open opens a capture file whose format version is at least oldest.
func open(path string, steps []schema.Migration, oldest int) (*Store, error) {
	if _, err := database.CheckPath(path); err != nil {
		return nil, pathError(path, err)
	}
	ctx, cancel := withTimeLimit(context.Background(), openTime)
	defer cancel()
	db, version, err := database.OpenChecked(ctx, path, steps)

	// If the file is damaged, open its readable part, and keep the damage for later errors.
	var damage error
	if errors.Is(err, captures.ErrDamaged) {
		if part, v, perr := database.OpenDamaged(ctx, path, steps); perr == nil {
			db, version, damage, err = part, v, err, nil
		}
	}
	if err != nil {
		return nil, pathError(path, err)
	}
	if version < oldest {
		_ = db.Close()
		return nil, pathError(path, fmt.Errorf("%w, in format %d; this version of unwire reads format %d: record to the capture once to convert the file", captures.ErrOlderFormat, version, len(steps)))
	}
	u, err := payload.NewUnpacker()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}

	// In a damaged file, pages may be mixed up: check payloads against their hashes.
	u.Verify = damage != nil
	return &Store{Path: path, format: version, readDB: db, readers: database.NewReaders(db), unpacker: u, meter: newMeter(path, Limits{}), damage: damage}, nil
}

// Profile returns the profile of the recorded service; nil if there is none.
func (s *Store) Profile() *profile.Profile { return s.profile }

// Err returns the error that stopped the recording, such as a full disk, or nil. Data that was committed before
// it is readable.
func (s *Store) Err() error {
	if s.writer == nil {
		return nil
	}
	return pathError(s.Path, s.writer.lastError())
}

// Flush waits until everything that was recorded so far is committed. It waits less than a second for bytes that
// are held back as possible secrets. It does not wait for compressed messages or bodies that have not ended.
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

// Close ends the exchanges in flight as Incomplete, commits the queue, merges the write-ahead log into the file,
// and closes it. It returns the error that stopped the recording, if any. A second call does nothing.
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

// release closes all resources and then unlocks the capture.
func (s *Store) release() error {
	var errs []error
	if s.control != nil {
		// The writer must still be open: additions that were sent can be written.
		errs = append(errs, s.control.Close())
	}
	if s.readDB != nil {
		errs = append(errs, s.readers.Close(), s.readDB.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}
