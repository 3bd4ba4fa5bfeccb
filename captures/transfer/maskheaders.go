package transfer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/profile"
)

// maskKeySize is the size of the key of placeholders, in bytes.
const maskKeySize = 32

// A maskedSource is a capture as it may leave the machine: every header field whose
// name is not known to be harmless has a placeholder for its value.
//
// Shape: a placeholder is "[redacted:3f2a9c1b]", as in a capture; its digits
// are a hash with a key that is made for this view and stored nowhere, so equal
// values have equal placeholders in one export, and no two exports can be
// matched.
type maskedSource struct {
	src Source
	key []byte
}

// Mask returns a view of src that may leave the machine.
//
// It masks no secrets: package decode/secret has removed those.
func Mask(src Source) Source {
	key := make([]byte, maskKeySize)
	_, _ = rand.Read(key) // never fails: it would end the program
	return &maskedSource{src, key}
}

// Profile is that of the capture.
func (m *maskedSource) Profile() *profile.Profile { return m.src.Profile() }

// Exchange returns one exchange, masked.
func (m *maskedSource) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := m.src.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return m.maskHeaders(ex), nil
}

// Exchanges yields all exchanges, masked.
func (m *maskedSource) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for ex, err := range m.src.Exchanges(ctx) {
			if err == nil {
				ex = m.maskHeaders(ex)
			}
			if !yield(ex, err) {
				return
			}
		}
	}
}

// Chunks yields the chunks of an exchange as they are.
func (m *maskedSource) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return m.src.Chunks(ctx, id, fromSeq)
}

// Relations are those of the capture.
func (m *maskedSource) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	return m.src.Relations(ctx, id)
}

// Notes are those of the capture.
func (m *maskedSource) Notes(ctx context.Context, id int64) ([]captures.Note, error) {
	return m.src.Notes(ctx, id)
}

func (m *maskedSource) maskHeaders(ex *captures.Exchange) *captures.Exchange {
	out := *ex
	for _, section := range []*captures.Headers{&out.RequestHeaders, &out.RequestTrailers, &out.ResponseHeaders, &out.ResponseTrailers} {
		*section = slices.Clone(*section)
		for i, h := range *section {
			(*section)[i].Value = m.maskHeader(h)
		}
	}
	return &out
}

// maskHeader is the value of a field as it may leave.
func (m *maskedSource) maskHeader(h captures.Header) string {
	if h.Value == "" || isHarmless(h.Name) || isPlaceholder(h.Value) {
		return h.Value
	}
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(h.Value))
	return "[redacted:" + hex.EncodeToString(mac.Sum(nil)[:4]) + "]"
}

// isPlaceholder reports whether a recorder has replaced the whole value.
func isPlaceholder(v string) bool {
	const open, digits = "[redacted:", 8
	return len(v) == len(open)+digits+1 && strings.HasPrefix(v, open) && v[len(v)-1] == ']' &&
		strings.Trim(v[len(open):len(v)-1], "0123456789abcdef") == ""
}

// isHarmless reports whether a header field's value says what kind of traffic it
// is and not whose: such values leave as they are. Fields in which a recorder
// replaces the secret part count as harmless too, as that is done by then.
func isHarmless(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "te", "trailer", "date", "user-agent", "host", "server", "connection", "keep-alive", "transfer-encoding", "upgrade",
		"content-type", "content-length", "content-encoding", "content-language", "content-range",
		"cache-control", "pragma", "age", "expires", "last-modified", "vary", "range", "expect", "allow", "retry-after", "alt-svc",
		"strict-transport-security", "x-content-type-options", "x-frame-options", "x-xss-protection", "referrer-policy",
		"sec-websocket-accept", "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-version", "origin", "referer", "location", "content-location", "dnt", "priority", "upgrade-insecure-requests", "timing-allow-origin":
		return true
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		// The redactor keeps schemes and names only.
		return true
	case ":method", ":scheme", ":authority", ":path", ":status", ":protocol":
		return true
	}
	for _, prefix := range []string{"accept", "connect-", "grpc-", "sec-fetch-", "sec-ch-ua", "access-control-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
