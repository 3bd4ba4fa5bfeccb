// Package upload moves finished segments of a recording to an object store.
//
//	u := upload.New(upload.Options{Store: store, Prefix: "segments", Check: audit})
//	u.Add("a.uwc") // a file that is complete
//	left, err := u.Close(ctx)
//
// A segment is a capture file. It is uploaded as PREFIX/SHA256.uwc, and then its Manifest as PREFIX/SHA256.json, so that
// a reader that lists manifests finds complete segments only. A name by content makes an upload that is repeated
// harmless. When both are there, the local file is removed; until then, the file itself is the queue: whatever is left
// after a crash is added again at the next start (Leftover).
//
// A segment is uploaded only if Options.Check has nothing to say against it. An attempt that fails is repeated with
// growing pauses until Close. `unwire capture --upload` uses this package.
//
// Source: captures/README.md#upload
package upload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"unwire/captures/objectstore"
	"unwire/captures/profile"
	"unwire/captures/store"
)

// ErrUnfit is wrapped by errors of a capture file that must never be uploaded, for example because it contains
// secrets.
var ErrUnfit = errors.New("the file is not suitable for upload")

// Options configure an Uploader. Store and Check are required.
type Options struct {
	// Store is the object store to which files are uploaded; it is required.
	Store objectstore.Store
	// Prefix is the beginning of the keys of uploaded objects; it may be "".
	Prefix string
	// Check returns an error if a capture file may not be uploaded. Errors that wrap ErrUnfit are final; others
	// are retried.
	Check func(ctx context.Context, segment *store.Store) error
	// Profile describes the recorded service; nil if nothing is known about it.
	Profile *profile.Profile
	// Version is the version of unwire, which is written into the manifest.
	Version string
	// Report, if set, is called for each file that was uploaded, and for each attempt that failed.
	Report func(Result)
	// MinPause is the pause after the first failed attempt, which grows with each failure; 0 means 1 s.
	MinPause time.Duration
	// MaxPause is the longest pause between two attempts; 0 means 5 min.
	MaxPause time.Duration
	// Timeout is the time limit of one upload attempt. Default: 30 min.
	Timeout time.Duration
}

// A Result is the outcome of one attempt to upload a capture file.
type Result struct {
	// File is the path of the local file.
	File string
	// URL is the URL of the uploaded file; "" if it was not uploaded.
	URL string
	// Manifest describes the uploaded file; nil if the file could not be described.
	Manifest *Manifest
	// Err is the reason of a failure; nil after success.
	Err error
	// Again is the pause until the next attempt; 0 if there is none.
	Again time.Duration
}

// An Uploader uploads complete capture files (segments) to an object store, one at a time, and deletes them
// locally afterwards.
type Uploader struct {
	// o are the options with which the Uploader was created.
	o Options
	// ctx is the context of all uploads; stop cancels it.
	ctx context.Context
	// stop cancels the running upload and all further attempts.
	stop context.CancelFunc

	// mu guards queue, closing and kept.
	mu sync.Mutex
	// queue are the paths of the files to upload, oldest first. The first one is being uploaded.
	queue []string
	// closing is set once no more files will be added.
	closing bool
	// changed signals a change of queue or closing. Its capacity is one signal.
	changed chan struct{}
	// kept are the paths of files that must not be uploaded, and therefore stay on disk.
	kept []string

	// done is closed when the uploading goroutine has ended.
	done chan struct{}
}

// New returns a running Uploader; the caller must Close it.
func New(o Options) *Uploader {
	if o.MinPause == 0 {
		o.MinPause = time.Second
	}
	if o.MaxPause == 0 {
		o.MaxPause = 5 * time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Minute
	}
	if o.Report == nil {
		o.Report = func(Result) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	u := &Uploader{o: o, ctx: ctx, stop: stop, changed: make(chan struct{}, 1), done: make(chan struct{})}
	go u.run()
	return u
}

// Add adds a complete capture file to the queue.
func (u *Uploader) Add(file string) {
	u.mu.Lock()
	u.queue = append(u.queue, file)
	u.mu.Unlock()
	u.signal()
}

// signal wakes the uploading goroutine.
func (u *Uploader) signal() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// Close waits until all files are uploaded, or until ctx ends, and returns the paths of the files that were not
// uploaded.
func (u *Uploader) Close(ctx context.Context) (left []string) {
	u.mu.Lock()
	u.closing = true
	u.mu.Unlock()
	u.signal()
	select {
	case <-u.done:
	case <-ctx.Done():
	}
	u.stop()
	<-u.done
	return slices.Concat(u.kept, u.queue)
}

// run uploads queued files until Close is called.
func (u *Uploader) run() {
	defer close(u.done)
	pause := u.o.MinPause
	for {
		u.mu.Lock()
		file, closing := "", u.closing
		if len(u.queue) > 0 {
			file = u.queue[0]
		}
		u.mu.Unlock()
		if file == "" {
			if closing || !u.wait(0) {
				return
			}
			continue
		}

		r := u.attempt(file)
		// The ring of the recording may have removed it.
		gone := errors.Is(r.Err, fs.ErrNotExist) && missing(file)
		if r.Err == nil || gone || errors.Is(r.Err, ErrUnfit) {
			u.mu.Lock()
			u.queue = u.queue[1:]
			if errors.Is(r.Err, ErrUnfit) {
				u.kept = append(u.kept, file)
			}
			u.mu.Unlock()
			pause = u.o.MinPause
			u.o.Report(r)
			continue
		}
		if u.ctx.Err() != nil {
			return
		}

		// Another file may work: this one may be in use.
		u.mu.Lock()
		u.queue = append(u.queue[1:], file)
		u.mu.Unlock()

		// The pause grows, and varies, so that many recorders do not return at the same time.
		r.Again = pause/2 + rand.N(pause/2+1)
		u.o.Report(r)
		if !u.wait(r.Again) {
			return
		}
		pause = min(2*pause, u.o.MaxPause)
	}
}

// missing reports whether a file does not exist.
func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// wait blocks for a duration or, if d is 0, until the queue changes. It returns false when the Uploader is
// stopped.
func (u *Uploader) wait(d time.Duration) bool {
	if d == 0 {
		select {
		case <-u.changed:
			return true
		case <-u.ctx.Done():
			return false
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-u.ctx.Done():
		return false
	}
}

// attempt tries once to upload a file, and deletes the local file on success.
func (u *Uploader) attempt(file string) Result {
	ctx, cancel := context.WithTimeout(u.ctx, u.o.Timeout)
	defer cancel()
	r := Result{File: file}
	if r.Manifest, r.Err = u.describe(ctx, file); r.Err != nil {
		return r
	}
	var key string
	if key, r.Err = u.send(ctx, file, r.Manifest); r.Err != nil {
		return r
	}
	r.URL = u.o.Store.URL(key)
	r.Err = removeSegment(file)
	return r
}

// describe checks that a capture file may be uploaded, and returns its manifest.
func (u *Uploader) describe(ctx context.Context, file string) (*Manifest, error) {
	if err := mergeLog(file); err != nil {
		return nil, err
	}
	s, err := store.Open(file, store.ReadOptions{Profile: u.o.Profile})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := u.o.Check(ctx, s); err != nil {
		return nil, err
	}
	m, err := Describe(ctx, s, u.o.Profile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	m.Redacted, m.Unwire = true, u.o.Version
	return m, nil
}

// mergeLog merges SQLite's write-ahead log, which a killed recorder left behind, into the capture file, because
// only that file is uploaded.
//
// Errors: if another process is recording to the file.
func mergeLog(file string) error {
	if missing(file + "-wal") {
		return nil
	}
	s, err := store.Create(file, store.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// send uploads a capture file, unless the store already contains it, and then its manifest. It returns the
// object key of the capture.
func (u *Uploader) send(ctx context.Context, file string, m *Manifest) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if m.Size, err = io.Copy(h, f); err != nil {
		return "", err
	}
	m.SHA256 = hex.EncodeToString(h.Sum(nil))
	key := path.Join(u.o.Prefix, m.SHA256)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", err
	}
	text = append(text, '\n')

	// An object of this name has this content, unless it is not there completely.
	if o, err := u.o.Store.Stat(ctx, key+".uwc"); err != nil || o.Size != m.Size {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := u.o.Store.Put(ctx, key+".uwc", f, m.Size); err != nil {
			return "", err
		}
	}
	return key + ".uwc", u.o.Store.Put(ctx, key+".json", bytes.NewReader(text), int64(len(text)))
}

// removeSegment deletes a local capture file and the files that SQLite keeps next to it.
func removeSegment(file string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Leftover returns the paths of the capture files that an earlier recording to the same name left: NAME.uwc,
// NAME-2.uwc and so on, oldest first.
//
// Errors: the folder cannot be read.
func Leftover(name string) ([]string, error) {
	ext := filepath.Ext(name)
	base := strings.TrimSuffix(filepath.Base(name), ext)
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	var list []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ext), base)
		if !ok || !strings.HasSuffix(e.Name(), ext) || !e.Type().IsRegular() {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
		if rest != "" && (err != nil || rest != "-"+strconv.Itoa(n) || n < 2) {
			continue
		}
		file := filepath.Join(filepath.Dir(name), e.Name())
		list, numbers[file] = append(list, file), n
	}
	slices.SortFunc(list, func(a, b string) int { return numbers[a] - numbers[b] })
	return list, nil
}
