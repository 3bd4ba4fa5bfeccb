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

// maxClockSkew is the largest distance from the time of the capture at which a number in a time
// header is taken for a time.
const maxClockSkew = 24 * time.Hour

// A volatility is the kind of a header's value that must be fresh in every request.
type volatility uint8

const (
	notVolatile volatility = iota
	// volatileID: every UUID and long hexadecimal number in it, or the whole value
	volatileID
	volatileTime
	// volatileTimeout: the timeout of a client that no longer waits
	volatileTimeout
)

// volatilityOf identifies the headers that Plan refreshes: those of tracing standards, and of
// clients that were examined.
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

// A refresher creates fresh values. The same old value gets the same new value everywhere in a
// request.
type refresher struct {
	now time.Time
	// then is the time at which the request was captured.
	then time.Time
	// timeout replaces the timeouts in headers; 0 leaves them unchanged.
	timeout time.Duration
	random  io.Reader
	// fresh maps captured ids to newly generated ones.
	fresh map[string]string

	// make computes the value of a header; it returns false if the header is not computed.
	make func(HeaderCall) (string, bool)
}

func newRefresher(now, then time.Time, timeout time.Duration) *refresher {
	return &refresher{now: now, then: then, timeout: timeout, random: rand.Reader, fresh: map[string]string{}, make: func(HeaderCall) (string, bool) { return "", false }}
}

// The formats of ids. A trace id of AWS starts with the time in hexadecimal.
var (
	uuidShape = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	hexShape  = regexp.MustCompile(`(?i)\b1-[0-9a-f]{8}-[0-9a-f]{24}\b|\b[0-9a-f]{16,64}\b`)
)

// header returns the fresh value of a header; ok is false if it stays as captured.
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

// ids replaces the ids in a value. A value of unknown format becomes a UUID.
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

// id returns a newly generated id in the same format as old. Equal ids get equal replacements.
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

// time replaces an HTTP date, or a Unix time near the time of the capture, in the same unit.
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

// body replaces in a message the ids for which a header got a fresh value. Ids keep their length,
// so no other bytes move.
func (r *refresher) body(data []byte) (out []byte, changed bool) {
	s := string(data)
	for old, fresh := range r.fresh {
		if len(old) >= minBodyID && len(old) == len(fresh) {
			s = strings.ReplaceAll(s, old, fresh)
		}
	}
	return []byte(s), s != string(data)
}

// minBodyID is the length of the shortest id that is replaced in bodies: a UUID without hyphens.
const minBodyID = 32
