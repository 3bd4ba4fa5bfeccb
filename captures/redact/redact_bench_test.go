package redact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/decode/envelope"
)

// textFrame returns an enveloped message of n bytes of text, as a token delta is.
func textFrame(n int) []byte {
	return enveloped(0, bytes.Repeat([]byte("the answer, "), n/12+1)[:n])
}

// BenchmarkRedact searches bodies for secrets, a hundred being known.
func BenchmarkRedact(b *testing.B) {
	noise := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	r := New(Options{})
	for i := range 100 {
		r.Learn(fmt.Sprintf("%x-made-up-secret-%d", i*7919, i))
	}
	for name, p := range map[string][]byte{
		"random": noise, "text": textFrame(64 << 10),
		"json": bytes.Repeat([]byte(`{"id":"a1b2","text":"some words","n":[1,2,3],"ok":true},`), 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			body := NewBodyFilter(r, nil, "")
			for range b.N {
				body.Write(&captures.Chunk{Data: p})
				body.Ready()
			}
		})
	}
}

// BenchmarkRedactCompressed searches small messages that are compressed one by one.
func BenchmarkRedactCompressed(b *testing.B) {
	for _, encoding := range []string{"gzip", "zstd", "br"} {
		b.Run(encoding, func(b *testing.B) {
			p := enveloped(1, require.Value(envelope.Compress(encoding, textFrame(200)))(b))
			h := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: encoding}}
			body := NewBodyFilter(New(Options{}), h, "")
			b.ReportAllocs()
			for range b.N {
				body.Write(&captures.Chunk{Data: p})
				body.Ready()
			}
		})
	}
}

// BenchmarkLearn meets secrets that are new, as in traffic in which each call has another token.
func BenchmarkLearn(b *testing.B) {
	noise := rand.NewChaCha8([32]byte{})
	secret := make([]byte, 24)
	r := New(Options{})
	b.ReportAllocs()
	for range b.N {
		_, _ = noise.Read(secret)
		r.Learn(fmt.Sprintf("%x", secret))
	}
}

// BenchmarkHeaders redacts the header section of a call whose values were seen before.
func BenchmarkHeaders(b *testing.B) {
	r := New(Options{})
	h := captures.Headers{
		{Name: "content-type", Value: "application/connect+proto"},
		{Name: "authorization", Value: "Bearer " + madeUpJWT},
		{Name: "user-agent", Value: "connect-es/1.6.1"},
		{Name: "x-request-id", Value: "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"},
		{Name: "cookie", Value: "a=1; session=abcdefghijklmnop"},
		{Name: "accept-encoding", Value: "gzip,br"},
	}
	b.ReportAllocs()
	for range b.N {
		r.Headers(h)
	}
}
