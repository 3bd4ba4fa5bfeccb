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

// maskKeySize is the size of the HMAC key for placeholders, in bytes.
const maskKeySize = 32

// A maskedSource is a view of a capture that is safe to share: the value of each header field is replaced by a
// placeholder, unless the field is known to be harmless.
//
// Shape: a placeholder looks like "[redacted:3f2a9c1b]", as in a capture. Its digits are an HMAC of the value
// with a random key of this view. Within one export, equal values therefore have equal placeholders; across
// exports, they cannot be correlated.
type maskedSource struct {
	// src is the capture whose header values are masked.
	src Source
	// key is the random HMAC key from which the placeholders of this view are computed.
	key []byte
}

// Mask returns a view of src whose header values are masked, for exports.
//
// It does not search for secrets: package decode/secret must have removed those.
func Mask(src Source) Source {
	key := make([]byte, maskKeySize)
	// rand.Read never fails: it would end the program.
	_, _ = rand.Read(key)
	return &maskedSource{src, key}
}

// Profile returns the profile of the capture.
func (m *maskedSource) Profile() *profile.Profile { return m.src.Profile() }

// Exchange returns an exchange with masked headers.
func (m *maskedSource) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := m.src.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return m.maskHeaders(ex), nil
}

// Exchanges yields all exchanges with masked headers.
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

// Chunks yields the chunks of an exchange unchanged.
func (m *maskedSource) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return m.src.Chunks(ctx, id, fromSeq)
}

// Relations returns the relations of an exchange from the capture.
func (m *maskedSource) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	return m.src.Relations(ctx, id)
}

// Notes returns the notes about an exchange from the capture.
func (m *maskedSource) Notes(ctx context.Context, id int64) ([]captures.Note, error) {
	return m.src.Notes(ctx, id)
}

// Rewritten returns which rules changed an exchange, from the capture.
func (m *maskedSource) Rewritten(ctx context.Context, id int64) (*captures.Rewritten, error) {
	return m.src.Rewritten(ctx, id)
}

// maskHeaders returns a copy of an exchange with masked headers and trailers.
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

// maskHeader returns the value of a header field if it is harmless, otherwise a placeholder.
func (m *maskedSource) maskHeader(h captures.Header) string {
	if h.Value == "" || isHarmless(h.Name) || isPlaceholder(h.Value) {
		return h.Value
	}

	// A keyed hash cannot be reversed by trying likely values.
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(h.Value))
	return "[redacted:" + hex.EncodeToString(mac.Sum(nil)[:4]) + "]"
}

// isPlaceholder reports whether v is a placeholder that the recorder has written.
func isPlaceholder(v string) bool {
	const open, digits = "[redacted:", 8
	return len(v) == len(open)+digits+1 && strings.HasPrefix(v, open) && v[len(v)-1] == ']' &&
		strings.Trim(v[len(open):len(v)-1], "0123456789abcdef") == ""
}

// isHarmless reports whether values of a header field with this name describe only the kind of traffic, and not
// its user. Fields whose secret part was redacted while recording count as harmless too.
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
		// The redactor keeps only the schemes and names of these.
		return true
	case ":method", ":scheme", ":authority", ":path", ":status", ":protocol":
		return true
	}

	// Families of standard headers.
	for _, prefix := range []string{"accept", "connect-", "grpc-", "sec-fetch-", "sec-ch-ua", "access-control-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
