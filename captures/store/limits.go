package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/budget"
	"unwire/captures/store/internal/payload"
)

// Limits bounds how much data is read from one capture, so that a small forged file cannot occupy a
// reader for long or fill its memory. The zero value means the defaults.
//
// Captures that are not forged expand too, because payloads are compressed and equal ones are stored once: to
// less than 20 times the size of the file in practice, and to about 400 times if bodies are zeros or repeat
// each other. A client that asks a thousand times for 100 kB makes a file of 400 kB, which minBodyLimit allows.
type Limits struct {
	// Bytes limits the decompressed bodies of all exchanges together, in bytes; one exchange may have half of
	// that. 0 means 128 MiB, or 64 times the size of the file (including its log) if that is more; and for one
	// exchange 72 MiB, or 32 times the size of the file if that is more.
	Bytes int64
}

const (
	// minBodyLimit is the default of Limits.Bytes for small files.
	minBodyLimit = 128 << 20
	// minExchangeLimit is the default limit for the bodies of one exchange in bytes, which commands have in
	// memory. It allows one message of the maximum size.
	minExchangeLimit = payload.MaxSize + 8<<20
	// bodiesPerFileByte is the default of Limits.Bytes for large files, per byte of the file.
	bodiesPerFileByte = 64

	// minHeadLimit is the limit for heads, i.e. URLs, headers and errors, in small files, in bytes. Equal
	// header sections are stored once, so the heads of many equal requests are larger than the file.
	minHeadLimit = 256 << 20
	// headsPerFileByte is added for each byte of the file.
	headsPerFileByte = 256

	// pageTime limits one query, which reads a few megabytes.
	pageTime = 30 * time.Second

	// minTimeLimit limits the time spent in queries, without what the caller does with the results.
	minTimeLimit = 5 * time.Minute

	// minReadSpeed is how many bytes of the file allow one more second. They contain some hundred small
	// exchanges.
	minReadSpeed = 128 << 10

	// Exchanges below freeBytes and freeTime are not counted, because a capture can have millions of them. Their
	// rows are at least a twentieth as large in the file.
	freeBytes = 1 << 10
	freeTime  = 10 * time.Millisecond

	// openTime limits the check of the header and the schema.
	openTime = 10 * time.Second

	// appendTime limits what Create does to an existing file before recording.
	appendTime = 5 * time.Minute
)

// A LimitError reports that a capture exceeds its Limits. Everything yielded before it is valid. Its Is method
// matches ErrDamaged, because callers treat both alike: they use what could be read.
type LimitError struct {
	// Exchange is the ID of the exchange that exceeds the limit; 0 means the capture as a whole.
	Exchange int64
	// What describes the exceeded limit as a predicate, such as "contains more than …".
	What string
}

// Error returns a sentence about the exchange or the capture.
func (e *LimitError) Error() string {
	if e.Exchange != 0 {
		return fmt.Sprintf("exchange %d %s", e.Exchange, e.What)
	}
	return "the capture " + e.What
}

// Is makes errors.Is(err, captures.ErrDamaged) report true for this error.
func (e *LimitError) Is(target error) bool { return target == captures.ErrDamaged }

// A usage is the amount of data read from one exchange, or from a whole capture.
type usage struct {
	// heads is the size of the URLs, headers and error texts that were read, in bytes.
	heads int64
	// bodies is the size of the bodies that were read, in bytes.
	bodies int64

	// time is the time spent in queries.
	time time.Duration
}

// plus returns the sum of two usages.
func (u usage) plus(v usage) usage {
	return usage{u.heads + v.heads, u.bodies + v.bodies, u.time + v.time}
}

// A meter enforces Limits for one capture: it adds up how much was read of each exchange.
//
// Each exchange counts only once, with the maximum over all reads, so commands may read a capture repeatedly.
type meter struct {
	// path is the path of the capture file.
	path string
	// limits are the largest amounts that may be read.
	limits Limits
	// pageTime is the time limit of one query, 30 seconds except in tests.
	pageTime time.Duration

	// mu guards the fields below.
	mu sync.Mutex

	// fileSize is the size of the capture file when it was last checked, in bytes.
	fileSize int64

	// seen is the largest amount read of each exchange in one loop, by exchange ID.
	seen map[int64]usage
	// total is the sum of the amounts of all exchanges.
	total usage

	// shared is the budget of the whole command, to which the file contributes; nil for no budget.
	shared *budget.Budget
	// sharedSize is the size in bytes that this file has added to the budget of the command.
	sharedSize int64
}

// allExchanges is a key of meter.seen, for the time of loops over all exchanges. No exchange has this ID.
const allExchanges = math.MinInt64

// newMeter returns a meter that limits reading of the file at path.
func newMeter(path string, l Limits) *meter {
	return &meter{path: path, limits: l, pageTime: pageTime, seen: make(map[int64]usage)}
}

// share makes the meter also count what is read in the budget of a command.
func (m *meter) share(b *budget.Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared = b
	b.Allow(budget.Decompressed, m.limits.Bytes)
	m.updateFileSize()
}

// updateFileSize determines the size of the file with its log. The caller has locked mu.
func (m *meter) updateFileSize() {
	m.fileSize = fileSize(m.path) + fileSize(m.path+"-wal")
	if m.fileSize > m.sharedSize {
		m.shared.Input(m.fileSize - m.sharedSize)
		m.sharedSize = m.fileSize
	}
}

// totalLimit returns the limits for the capture as a whole. The caller has locked mu.
func (m *meter) totalLimit() usage {
	extra := m.fileSize
	bodies := max(minBodyLimit, mulSaturated(m.fileSize, bodiesPerFileByte))
	if m.limits.Bytes > 0 {
		bodies = m.limits.Bytes
		extra += bodies
	}
	return usage{
		heads:  minHeadLimit + mulSaturated(m.fileSize, headsPerFileByte),
		bodies: bodies,
		time:   minTimeLimit + time.Duration(min(extra/minReadSpeed, math.MaxInt32))*time.Second,
	}
}

// exchangeLimit returns the limit for the bodies of one exchange. The caller has locked mu.
func (m *meter) exchangeLimit() int64 {
	if m.limits.Bytes > 0 {
		return m.limits.Bytes / 2
	}
	return max(minExchangeLimit, mulSaturated(m.fileSize, bodiesPerFileByte)/2)
}

// mulSaturated returns n * by, or a very large number instead of overflowing.
func mulSaturated(n, by int64) int64 {
	if n > math.MaxInt64/4/by {
		return math.MaxInt64 / 4
	}
	return n * by
}

// charge records that one loop has read the amount u of an exchange so far, or returns a LimitError. A refused
// read does not count, so that exchanges that were read before can be read again.
func (m *meter) charge(id int64, u usage) error {
	if u.heads+u.bodies < freeBytes && u.time < freeTime {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	// Only an increase over earlier reads of the exchange counts.
	before := m.seen[id]
	now := usage{max(before.heads, u.heads), max(before.bodies, u.bodies), max(before.time, u.time)}
	if now == before {
		return nil
	}
	more := usage{now.heads - before.heads, now.bodies - before.bodies, now.time - before.time}
	total := m.total.plus(more)
	if err := m.checkFileGrowth(id, now, total); err != nil {
		return err
	}
	m.seen[id], m.total = now, total
	return m.spend(more)
}

// spend counts u in the budget of the command.
func (m *meter) spend(u usage) error {
	err := errors.Join(m.shared.Spend(budget.Decompressed, u.heads+u.bodies), m.shared.Spend(budget.Time, int64(u.time)))
	if err == nil {
		return nil
	}
	return &LimitError{What: "is one of several: " + err.Error()}
}

// checkFileGrowth returns an error if the amounts read exceed the limits. Before it fails, it updates the size
// of the file, which may have grown and thus raised the limits. The caller has locked mu.
func (m *meter) checkFileGrowth(id int64, one, total usage) error {
	if m.check(id, one, total) == nil {
		return nil
	}
	m.updateFileSize()
	return m.check(id, one, total)
}

// check returns an error if one, the amount read of exchange id, or total, that of the whole capture, exceeds
// the limits. The caller must have locked mu.
func (m *meter) check(id int64, one, total usage) error {
	limit := m.totalLimit()
	if id != allExchanges {
		if what := exceeds(one, usage{limit.heads, m.exchangeLimit(), limit.time / 2}); what != "" {
			return &LimitError{Exchange: id, What: what}
		}
	}
	if what := exceeds(total, limit); what != "" {
		return &LimitError{What: what}
	}
	return nil
}

// maxEventsPerExchange is the usual maximum number of events of an exchange. Each event includes the exchange's
// head, so chargeEvent counts only this fraction of it.
const maxEventsPerExchange = 8

// chargeEvent adds an event to used, the amount that a Follow loop has read, and checks the limits.
func (m *meter) chargeEvent(used *usage, e *captures.Event) error {
	switch {
	case e.Exchange != nil:
		used.heads += int64(headSize(e.Exchange)) / maxEventsPerExchange
	case e.Addition.Note != nil:
		used.heads += int64(len(e.Addition.Note.Value))
	default:
		used.bodies += int64(len(e.Chunk.Data))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checkFileGrowth(allExchanges, usage{}, *used)
}

// exceeds describes which limit is exceeded; "" if none is.
func exceeds(have, limit usage) string {
	switch {
	case have.bodies > limit.bodies:
		return fmt.Sprintf("contains more than %s of bodies after decompression, which is the limit", byteCount(limit.bodies))
	case have.heads > limit.heads:
		return fmt.Sprintf("contains more than %s of URLs and headers, which is the limit", byteCount(limit.heads))
	case have.time > limit.time:
		return fmt.Sprintf("takes longer to read than the limit of %v", limit.time)
	}
	return ""
}

// byteCount formats a number of bytes for an error message.
func byteCount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// withTimeLimit returns a context with the time limit for one query. database.ExplainTime turns its error into
// a LimitError.
func (m *meter) withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return withTimeLimit(ctx, m.pageTime)
}

// withTimeLimit returns a context that is cancelled after d, with a LimitError as its cause.
func withTimeLimit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, &LimitError{What: fmt.Sprintf("has a part that takes longer to read than the limit of %v", d)})
}

// fileSize returns the size of a file in bytes, or 0 if it does not exist.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// headSize estimates the memory for an exchange without its bodies, in bytes.
func headSize(e *captures.Exchange) int {
	size := len(e.URL) + len(e.Error)
	for _, hs := range []captures.Headers{e.RequestHeaders, e.RequestTrailers, e.ResponseHeaders, e.ResponseTrailers} {
		size += sectionSize(hs)
	}
	return size
}

// sectionSize estimates the memory that a header section takes, in bytes.
func sectionSize(s captures.Headers) (size int) {
	for _, h := range s {
		size += len(h.Name) + len(h.Value) + 32
	}
	return size
}
