package replay

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxClockSkew is how far a number may be from the time of the capture to count
// as a time in a header that holds one.
const maxClockSkew = 24 * time.Hour

// A volatility is what kind of value a header has that must be fresh in every
// request.
type volatility uint8

const (
	notVolatile volatility = iota
	// ids: every UUID and long hex number in it, or all of it
	volatileID
	volatileTime
	volatileTimeout // of a client that no longer waits
)

// volatilityOf tells the headers that Plan refreshes. The names are those of
// tracing standards and of the clients that were looked at.
//
// Source: replay/README.md#what-changes-and-what-stays
func volatilityOf(header string) volatility {
	switch header = strings.ToLower(header); header {
	case "x-request-id", "x-original-request-id", "x-session-id", "x-correlation-id", "x-idempotency-key", "idempotency-key",
		"traceparent", "x-amzn-trace-id", "x-b3-traceid", "x-b3-spanid", "b3":
		return volatileID
	case "connect-timeout-ms", "grpc-timeout":
		return volatileTimeout
	case "date":
		return volatileTime
	}
	if strings.HasSuffix(header, "timestamp") || strings.HasSuffix(header, "-time-ms") {
		return volatileTime
	}
	return notVolatile
}

// A refresher makes fresh values, the same one for the same old value
// wherever it occurs in a request.
type refresher struct {
	now     time.Time
	then    time.Time     // when the request was captured
	timeout time.Duration // 0 leaves timeouts as they are
	random  io.Reader
	fresh   map[string]string // old id to new

	// by Options.Headers; false where that has none for the name
	make func(HeaderCall) (string, bool)
}

func newRefresher(now, then time.Time, timeout time.Duration) *refresher {
	return &refresher{now: now, then: then, timeout: timeout, random: rand.Reader, fresh: map[string]string{}, make: func(HeaderCall) (string, bool) { return "", false }}
}

// Shapes of ids. A trace id of AWS begins with the time in hex.
var (
	uuidShape = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	hexShape  = regexp.MustCompile(`(?i)\b1-[0-9a-f]{8}-[0-9a-f]{24}\b|\b[0-9a-f]{16,64}\b`)
)

// header returns the fresh value of a header; ok is false where it stays.
func (r *refresher) header(name, value string) (fresh string, ok bool) {
	switch volatilityOf(name) {
	case volatileID:
		fresh = r.ids(value)
	case volatileTime:
		fresh = r.time(value)
	case volatileTimeout:
		fresh = r.timeoutValue(name, value)
	default:
		return value, false
	}
	return fresh, fresh != value
}

// ids replaces the ids in a value; one of unknown shape becomes a UUID.
func (r *refresher) ids(value string) string {
	if value == "" {
		return value
	}
	found := false
	replace := func(old string) string {
		found = true
		return r.id(old)
	}
	out := hexShape.ReplaceAllStringFunc(uuidShape.ReplaceAllStringFunc(value, replace), replace)
	if !found {
		return r.id(value)
	}
	return out
}

// id returns the new id for an old one, of the same form.
func (r *refresher) id(old string) string {
	if fresh, ok := r.fresh[old]; ok {
		return fresh
	}
	fresh := r.makeID(old)
	r.fresh[old] = fresh
	return fresh
}

func (r *refresher) makeID(old string) string {
	switch {
	case hexShape.FindString(old) == old && strings.HasPrefix(old, "1-"):
		return fmt.Sprintf("1-%08x-%s", uint32(r.now.Unix()), r.hex(24))
	case hexShape.FindString(old) == old:
		return sameCase(r.hex(len(old)), old)
	}
	h := []byte(r.hex(32))
	h[12] = '4'
	h[16] = "89ab"[h[16]&3]
	return sameCase(fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:]), old)
}

// hex returns n random hexadecimal digits.
func (r *refresher) hex(n int) string {
	b := make([]byte, (n+1)/2)
	if _, err := io.ReadFull(r.random, b); err != nil {
		panic("replay: no random bytes: " + err.Error()) // crypto/rand never fails
	}
	return hex.EncodeToString(b)[:n]
}

func sameCase(fresh, old string) string {
	if strings.ToUpper(old) == old && strings.ToLower(old) != old {
		return strings.ToUpper(fresh)
	}
	return fresh
}

// time replaces an HTTP date, or a Unix time near that of the capture, in its unit.
func (r *refresher) time(value string) string {
	if _, err := time.Parse(time.RFC1123, value); err == nil {
		return r.now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	if _, err := time.Parse(time.RFC3339, value); err == nil {
		return r.now.UTC().Format(time.RFC3339)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return value
	}
	for _, unit := range [...]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		at := r.then.UnixNano() / int64(unit)
		if skew := int64(maxClockSkew / unit); n >= at-skew && n <= at+skew {
			return strconv.FormatInt(r.now.UnixNano()/int64(unit), 10)
		}
	}
	return value
}

func (r *refresher) timeoutValue(name, value string) string {
	if r.timeout <= 0 {
		return value
	}
	ms := strconv.FormatInt(max(r.timeout.Milliseconds(), 1), 10)
	if strings.EqualFold(name, "grpc-timeout") {
		return ms + "m"
	}
	return ms
}

// body replaces the ids that a header got a fresh value for where they stand in
// a message too. Ids keep their length, so every span stays where it is.
func (r *refresher) body(data []byte) (out []byte, changed bool) {
	s := string(data)
	for old, fresh := range r.fresh {
		if len(old) >= minBodyID && len(old) == len(fresh) {
			s = strings.ReplaceAll(s, old, fresh)
		}
	}
	return []byte(s), s != string(data)
}

// minBodyID is the shortest id that is looked for in bodies: a UUID's length
// without its hyphens.
const minBodyID = 32
