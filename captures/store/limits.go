package store

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"unwire/captures"
)

// Limits bounds what is read of one capture, so that a small forged file cannot
// keep a reader busy or fill its memory. The zero value has the defaults.
//
// Payloads are stored once and compressed, so an honest capture expands, too: a
// body of zeros, or the same body again and again, to about 400 times the rows of
// its chunks, and what clients send in practice to less than 20 times the file.
type Limits struct {
	// Bytes bounds the bodies of all exchanges together, decompressed; those of one
	// exchange may have half of it. The default is 1 GiB, or 256 times the size of
	// the file with its log if that is more.
	Bytes int64
}

const (
	leastExpansion = 1 << 30 // bytes of bodies that any file may have
	maxExpansion   = 256     // bytes of bodies for each byte of the file

	// Heads are URLs, headers and errors. Sections of headers are stored once, so those of
	// many equal requests have more bytes than the file.
	leastHeads = 256 << 20
	maxHeads   = 256 // bytes for each byte of the file

	pageTime = 30 * time.Second // for one query, which reads a few megabytes

	// leastReadTime is spent in queries, not in what is done with the results.
	leastReadTime = 5 * time.Minute

	// leastSpeed is the bytes of the file for each further second: some hundred small
	// exchanges.
	leastSpeed = 128 << 10

	// What an exchange has below these is not counted: its row takes a twentieth of
	// that in the file at least, and a capture can have millions of exchanges.
	leastCounted     = 1 << 10 // bytes
	leastCountedTime = 10 * time.Millisecond

	openTime = 10 * time.Second // for the header and the schema

	// appendTime is for what a recorder does with an existing file first.
	appendTime = 5 * time.Minute
)

// A LimitError says that a capture holds more than its Limits allow. What was
// handed out before it is as it was recorded. It is an ErrDamaged, too: both are
// treated alike by who uses what can be read.
type LimitError struct {
	Exchange int64  // 0: the capture as a whole
	What     string // what there is too much of, with the limit, in words
}

func (e *LimitError) Error() string {
	if e.Exchange != 0 {
		return fmt.Sprintf("exchange %d %s", e.Exchange, e.What)
	}
	return "the capture " + e.What
}

// Is makes a LimitError an ErrDamaged.
func (e *LimitError) Is(target error) bool { return target == captures.ErrDamaged }

// A usage is what was read of an exchange, or of all.
type usage struct {
	heads, bodies int64 // bytes
	time          time.Duration
}

func (u usage) plus(v usage) usage {
	return usage{u.heads + v.heads, u.bodies + v.bodies, u.time + v.time}
}

// A meter adds up what the exchanges of a capture hold, as far as they were read.
//
// An exchange counts once, with the most that one loop over it has returned, so
// commands may read a capture as often as they have to.
type meter struct {
	path     string
	limits   Limits
	pageTime time.Duration

	mu       sync.Mutex
	fileSize int64
	seen     map[int64]usage
	total    usage
}

// allExchanges is the key of the time that loops over the exchanges take; no
// exchange has it as its number.
const allExchanges = math.MinInt64

func newMeter(path string, l Limits) *meter {
	return &meter{path: path, limits: l, pageTime: pageTime, seen: make(map[int64]usage)}
}

// allowed are the limits of the capture as a whole. It is called with mu held.
func (m *meter) allowed() usage {
	extra := m.fileSize
	bodies := max(leastExpansion, times(m.fileSize, maxExpansion))
	if m.limits.Bytes > 0 {
		bodies = m.limits.Bytes
		extra += bodies
	}
	return usage{
		heads:  leastHeads + times(m.fileSize, maxHeads),
		bodies: bodies,
		time:   leastReadTime + time.Duration(min(extra/leastSpeed, math.MaxInt32))*time.Second,
	}
}

// times multiplies without overflow.
func times(n, by int64) int64 {
	if n > math.MaxInt64/4/by {
		return math.MaxInt64 / 4
	}
	return n * by
}

// charge notes that one loop was given u of an exchange, or reports that this is
// more than there may be. What is refused does not count, so that exchanges which
// were read once can be read again.
func (m *meter) charge(id int64, u usage) error {
	if u.heads+u.bodies < leastCounted && u.time < leastCountedTime {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.seen[id]
	now := usage{max(before.heads, u.heads), max(before.bodies, u.bodies), max(before.time, u.time)}
	if now == before {
		return nil
	}
	total := m.total.plus(usage{now.heads - before.heads, now.bodies - before.bodies, now.time - before.time})
	err := m.checkNow(id, now, total)
	if err == nil {
		m.seen[id], m.total = now, total
	}
	return err
}

// checkNow is check. Before it fails, it looks how far the file has grown. mu is held.
func (m *meter) checkNow(id int64, one, total usage) error {
	if m.check(id, one, total) == nil {
		return nil
	}
	m.fileSize = fileSize(m.path) + fileSize(m.path+"-wal")
	return m.check(id, one, total)
}

// check compares what an exchange and all together have with the limits. It is
// called with mu held.
func (m *meter) check(id int64, one, total usage) error {
	limit := m.allowed()
	if id != allExchanges {
		if what := exceeds(one, usage{limit.heads, limit.bodies / 2, limit.time / 2}); what != "" {
			return &LimitError{Exchange: id, What: what}
		}
	}
	if what := exceeds(total, limit); what != "" {
		return &LimitError{What: what}
	}
	return nil
}

// eventsOfExchange is how many events an exchange has at most as it is recorded,
// each of which comes with its head.
const eventsOfExchange = 8

// follow adds an event to what one loop was given.
func (m *meter) follow(used *usage, e *captures.Event) error {
	switch {
	case e.Exchange != nil:
		used.heads += int64(headSize(e.Exchange)) / eventsOfExchange
	case e.Addition.Note != nil:
		used.heads += int64(len(e.Addition.Note.Value))
	default:
		used.bodies += int64(len(e.Chunk.Data))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checkNow(allExchanges, usage{}, *used)
}

// exceeds says which limit is exceeded; "" for none.
func exceeds(have, limit usage) string {
	switch {
	case have.bodies > limit.bodies:
		return fmt.Sprintf("expands to more than the limit of %s of bodies", byteCount(limit.bodies))
	case have.heads > limit.heads:
		return fmt.Sprintf("expands to more than the limit of %s of URLs and headers", byteCount(limit.heads))
	case have.time > limit.time:
		return fmt.Sprintf("takes more than the limit of %v to read", limit.time)
	}
	return ""
}

// byteCount is a size for people.
func byteCount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// bounded returns a context for one query. Its error is what explainTime makes of
// the query's.
func (m *meter) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return timeLimited(ctx, m.pageTime)
}

func timeLimited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, &LimitError{What: fmt.Sprintf("has a part that takes more than %v to read", d)})
}

// fileSize is 0 for a file that is not there.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// headSize is about how many bytes the exchange takes in memory without its bodies.
func headSize(e *captures.Exchange) int {
	size := len(e.URL) + len(e.Error)
	for _, hs := range []captures.Headers{e.RequestHeaders, e.RequestTrailers, e.ResponseHeaders, e.ResponseTrailers} {
		size += sectionSize(hs)
	}
	return size
}

// sectionSize is headSize for a section of headers.
func sectionSize(s captures.Headers) (size int) {
	for _, h := range s {
		size += len(h.Name) + len(h.Value) + 32
	}
	return size
}
