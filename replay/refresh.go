package replay

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxClockSkew limits which numbers in a time header are recognised as Unix times: those at most this
// far from the time of the capture.
const maxClockSkew = 24 * time.Hour

// A volatility says which kind of value in a header becomes outdated and is replaced in every request.
type volatility uint8

// The kinds of volatile values.
const (
	// notVolatile: the header is sent as captured.
	notVolatile volatility = iota
	// volatileID: UUIDs and long hexadecimal numbers in the value are replaced, or all of it if it has
	// none.
	volatileID

	// volatileTime: the value is a date or a Unix time, and is replaced by the current time.
	volatileTime
	// volatileTimeout: the value is the client's timeout, and follows the timeout of the replay.
	volatileTimeout
)

// volatilityOf returns the volatility of a header by its name. It knows the headers of tracing
// standards, and those of clients that were examined.
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

// A refresher replaces outdated values of one request by new ones: ids, times and timeouts. All
// occurrences of an old value get the same new value.
type refresher struct {
	// now is the time at which the request is built.
	now time.Time
	// then is the time at which the request was captured.
	then time.Time
	// timeout replaces the timeouts in headers; 0 leaves them unchanged.
	timeout time.Duration

	// random is the source of random bytes for new ids.
	random io.Reader
	// fresh maps captured ids to newly generated ones.
	fresh map[string]string

	// make computes the value of a header by its HeaderMaker; it returns false if the header has none.
	make func(HeaderCall) (string, bool)
}

// newRefresher returns a refresher for a request captured at then and built at now; for timeout see the
// field.
func newRefresher(now, then time.Time, timeout time.Duration) *refresher {
	return &refresher{now: now, then: then, timeout: timeout, random: rand.Reader, fresh: map[string]string{}, make: func(HeaderCall) (string, bool) { return "", false }}
}

// The formats of ids. A trace id of AWS starts with the time in hexadecimal.
var (
	uuidShape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	})
	hexShape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b1-[0-9a-f]{8}-[0-9a-f]{24}\b|\b[0-9a-f]{16,64}\b`)
	})
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

// ids returns a header value with all ids in it replaced. A value without a recognised id is replaced
// as a whole, by a UUID.
func (r *refresher) ids(value string) string {
	if value == "" {
		return value
	}
	found := false
	replace := func(old string) string {
		found = true
		return r.id(old)
	}
	out := hexShape().ReplaceAllStringFunc(uuidShape().ReplaceAllStringFunc(value, replace), replace)
	if !found {
		return r.id(value)
	}
	return out
}

// id returns the new id that replaces old: newly generated in the same format at the first call with
// old, and the same again afterwards.
func (r *refresher) id(old string) string {
	if fresh, ok := r.fresh[old]; ok {
		return fresh
	}
	fresh := r.makeID(old)
	r.fresh[old] = fresh
	return fresh
}

// makeID generates an id in the format of old: an AWS trace id, hexadecimal digits, or otherwise a
// UUID.
func (r *refresher) makeID(old string) string {
	switch {
	case hexShape().FindString(old) == old && strings.HasPrefix(old, "1-"):
		return fmt.Sprintf("1-%08x-%s", uint32(r.now.Unix()), r.hex(24))
	case hexShape().FindString(old) == old:
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

// sameCase returns fresh in upper case if old is in upper case.
func sameCase(fresh, old string) string {
	if strings.ToUpper(old) == old && strings.ToLower(old) != old {
		return strings.ToUpper(fresh)
	}
	return fresh
}

// time returns the current time in the format of value: an HTTP date, RFC 3339, or a Unix time in the
// same unit, provided it is near the time of the capture. Any other value is returned unchanged.
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

// timeoutValue returns the value of timeout header name: r.timeout in milliseconds, or value if
// r.timeout is 0.
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

// body returns a message in which ids that occur in headers are replaced by the new ids of these
// headers. New ids have the length of the old ones, so the encoding of the message stays valid.
func (r *refresher) body(data []byte) (out []byte, changed bool) {
	s := string(data)
	for old, fresh := range r.fresh {
		if len(old) >= minBodyID && len(old) == len(fresh) {
			s = strings.ReplaceAll(s, old, fresh)
		}
	}
	return []byte(s), s != string(data)
}

// minBodyID is the shortest id, in bytes, that is replaced in bodies: the length of a UUID without
// hyphens.
const minBodyID = 32
