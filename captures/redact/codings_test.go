package redact

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/decode/envelope"
)

// Codings of a body, by what its headers say of it.
var codings = map[string]struct {
	encoding string
	encode   func(t *testing.T, p []byte) []byte
}{
	"none":        {"", func(_ *testing.T, p []byte) []byte { return p }},
	"raw deflate": {"deflate", deflateRaw},
	"gzip, gzip":  {"gzip, gzip", func(t *testing.T, p []byte) []byte { return gzipMember(t, gzipMember(t, p)) }},
	"members":     {"gzip", func(t *testing.T, p []byte) []byte { return append(gzipMember(t, p[:9]), gzipMember(t, p[9:])...) }},
	"x-gzip":      {"x-gzip", gzipMember},
	"br, zstd": {"br, zstd", func(t *testing.T, p []byte) []byte {
		return require.Value(envelope.Compress("zstd", require.Value(envelope.Compress("br", p))(t)))(t)
	}},
	"a gzip file":          {"", gzipMember},
	"a zstd file":          {"", func(t *testing.T, p []byte) []byte { return require.Value(envelope.Compress("zstd", p))(t) }},
	"gzip, but identity":   {"identity", gzipMember},
	"a gzip file in gzip":  {"gzip", func(t *testing.T, p []byte) []byte { return gzipMember(t, gzipMember(t, p)) }},
	"70 MiB behind zeroes": {"gzip", func(t *testing.T, p []byte) []byte { return gzipMember(t, append(make([]byte, 70<<20), p...)) }},
}

// gzipMember has all that the head of a member of gzip may have.
func gzipMember(t *testing.T, p []byte) []byte {
	var out bytes.Buffer
	w := require.Value(gzip.NewWriterLevel(&out, gzip.BestSpeed))(t)
	w.Comment, w.Name, w.Extra = "a comment", "name.json", []byte("ab\x02\x00xy")
	_ = require.Value(w.Write(p))(t)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func deflateRaw(t *testing.T, p []byte) []byte {
	var out bytes.Buffer
	w := require.Value(flate.NewWriter(&out, 5))(t)
	_ = require.Value(w.Write(p))(t)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// A known secret, and one that a name gives away, are taken out of a body in any coding, and the
// rest of it can still be read.
func TestCodings(t *testing.T) {
	const secret = "kx9-made-up-Q7f3bMadeUp9d41xKw2"
	text := `{"a":"before","x":"` + secret + `","password":"correct-horse","z":"after"}`
	for name, c := range codings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := captures.Headers{{Name: "content-type", Value: "application/octet-stream"}}
			if c.encoding != "" {
				h = append(h, captures.Header{Name: "content-encoding", Value: c.encoding})
			}
			in := c.encode(t, []byte(text))
			out := join(redactBody(New(Options{Secrets: []string{secret}}), h, in, len(in)/2))
			for range 3 { // as often as it may be coded
				for _, encoding := range []string{"gzip", "zstd", "br", "deflate"} {
					if p, err := envelope.Decompress(encoding, out, 100<<20); err == nil && len(p) > 0 {
						out = p
					}
				}
			}
			got := strings.TrimLeft(string(out), "\x00")
			if isLeft(got, secret) || isLeft(got, "correct-horse") || !strings.Contains(got, "before") || !strings.Contains(got, "after") {
				t.Errorf("%.200q", got)
			}
		})
	}
}
