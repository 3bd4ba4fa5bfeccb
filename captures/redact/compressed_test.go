package redact

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/decode/envelope"
)

// inflateAll is the reference: everything at once.
func inflateAll(t testing.TB, encoding string, p []byte) []byte {
	t.Helper()
	var out []byte
	f := newInflater(new(codecs), encoding, func(p []byte) bool { out = append(out, p...); return true })
	f.feed(p)
	require.NoError(t, f.close())
	return out
}

func enveloped(flags byte, p []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(p))), p...)
}

// bytewise cuts p after each byte.
func bytewise(p []byte) (cuts []int) {
	for i := range p {
		cuts = append(cuts, i+1)
	}
	return cuts
}

func TestCompressedBody(t *testing.T) {
	secret := `{"accessToken":"` + madeUpJWT + `","n":"` + strings.Repeat("text ", 9000) + `"}`
	clean := strings.ReplaceAll(secret, madeUpJWT, "nothing")
	clean = strings.ReplaceAll(clean, "accessToken", "answer")
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd"} {
		for _, cuts := range [][]int{nil, {1, 30, 50}, bytewise(make([]byte, 300))} {
			t.Run(fmt.Sprintf("%s, %d cuts", encoding, len(cuts)), func(t *testing.T) {
				h := captures.Headers{{Name: "content-type", Value: "application/json"}, {Name: "content-encoding", Value: encoding}}
				r := New(Options{})
				in := require.Value(envelope.Compress(encoding, []byte(secret)))(t)
				out := inflateAll(t, encoding, join(redactBody(r, h, in, cuts...)))
				if want := strings.Replace(secret, madeUpJWT, sameLength(r.tag(madeUpJWT), len(madeUpJWT)), 1); string(out) != want {
					t.Errorf("%.200s", out)
				}
				in = require.Value(envelope.Compress(encoding, []byte(clean)))(t)
				if out := join(redactBody(r, h, in, cuts...)); !bytes.Equal(in, out) {
					t.Error("a body without secrets was changed")
				}
			})
		}
	}
	h := captures.Headers{{Name: "content-encoding", Value: "gzip"}}
	if out := string(join(redactBody(New(Options{}), h, []byte(secret)))); strings.Contains(out, madeUpJWT) {
		t.Error("what is said to be compressed and is not, is not searched")
	}
	in := require.Value(envelope.Compress("gzip", []byte(secret)))(t)
	in = in[:len(in)-9] // no longer whole: it cannot be rewritten
	if out := join(redactBody(New(Options{}), h, in, 10)); len(out) != len(in) || strings.Trim(string(out), "x") != "" {
		t.Errorf("a body that was cut off: %q", out)
	}
}

// TestCompressionFoundInPieces has a file without a content encoding arrive byte by byte.
func TestCompressionFoundInPieces(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		in := require.Value(envelope.Compress(encoding, []byte(strings.Repeat("some text ", 50)+madeUpKey)))(t)
		h := captures.Headers{{Name: "content-type", Value: "application/octet-stream"}}
		for _, cuts := range [][]int{{1}, {3}, bytewise(in)} {
			out := join(redactBody(New(Options{}), h, in, cuts...))
			plain, err := envelope.Decompress(encoding, out, 1<<20)
			require.NoError(t, err)
			if strings.Contains(string(plain), madeUpKey) {
				t.Errorf("%s, %d cuts: the secret is not found", encoding, len(cuts))
			}
		}
		if out := join(redactBody(New(Options{}), h, in[:3])); !bytes.Equal(out, in[:3]) {
			t.Errorf("%s: the first bytes alone become %q", encoding, out)
		}
	}
}

func TestCompressedFrames(t *testing.T) {
	message := []byte(strings.Repeat("some text ", 50) + madeUpKey)
	for name, h := range map[string]captures.Headers{
		"gzip": {{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}},
		"zstd": {{Name: "content-type", Value: "application/grpc"}, {Name: "grpc-encoding", Value: "zstd"}},
		"br":   {{Name: "content-type", Value: "application/grpc-web+proto"}, {Name: "grpc-encoding", Value: "br"}},
		"":     {{Name: "content-type", Value: "text/event-stream"}},
	} {
		encoding := name
		if encoding == "" {
			encoding = "gzip"
		}
		small, err := envelope.Compress(encoding, []byte("nothing here"))
		require.NoError(t, err)
		big, err := envelope.Compress(encoding, message)
		require.NoError(t, err)
		var in []byte
		for _, f := range [][]byte{
			enveloped(0, []byte("first "+madeUpKey)), enveloped(1, small), enveloped(1, big), enveloped(0, nil), enveloped(1, nil), enveloped(1, small), enveloped(2, []byte("{}")),
		} {
			in = append(in, f...)
		}
		for _, cuts := range [][]int{nil, bytewise(in), {5, 41, 46, 60, 100, 120}} {
			t.Run(fmt.Sprintf("%s, %d cuts", name, len(cuts)), func(t *testing.T) {
				r := New(Options{})
				out := join(redactBody(r, h, in, cuts...))
				stand := sameLength(r.tag(madeUpKey), len(madeUpKey))
				var want []byte
				rewritten, err := envelope.Compress(encoding, bytes.Replace(message, []byte(madeUpKey), []byte(stand), 1))
				require.NoError(t, err)
				for _, f := range [][]byte{
					enveloped(0, []byte("first "+stand)), enveloped(1, small), enveloped(1, rewritten), enveloped(0, nil), enveloped(1, nil), enveloped(1, small), enveloped(2, []byte("{}")),
				} {
					want = append(want, f...)
				}
				if !bytes.Equal(out, want) {
					t.Errorf("got  %q\nwant %q", out, want)
				}
			})
		}
	}
}

// What precedes a compressed message in its chunk does not wait for its end.
func TestFrameBeforeCompressedOne(t *testing.T) {
	b := NewBodyFilter(New(Options{}), captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}, "")
	first := enveloped(0, []byte("hello"))
	b.Write(&captures.Chunk{Data: append(first, 1, 0, 0, 1, 0, 'x')})
	second := b.Split()
	ready := b.Ready()
	if second == nil || len(ready) != 1 || !bytes.Equal(ready[0].Data, first) || len(second.Data) != 6 {
		t.Errorf("%v, then %v", ready, second)
	}
}

func TestLongSection(t *testing.T) {
	rnd := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, maxSection+3*sectionLag)
	_, _ = rnd.Read(noise)
	h := captures.Headers{{Name: "content-encoding", Value: "gzip"}}
	in := require.Value(envelope.Compress("gzip", append(noise, (" "+madeUpKey+" ")...)))(t)
	var cuts []int
	for i := 0; i < len(in); i += 64 << 10 {
		cuts = append(cuts, i)
	}
	b := NewBodyFilter(New(Options{}), h, "")
	released := 0
	at := 0
	var out []byte
	for _, cut := range append(cuts, len(in)) {
		b.Write(&captures.Chunk{Data: bytes.Clone(in[at:cut])})
		at = cut
		for _, c := range b.Ready() {
			released += len(c.Data)
			out = append(out, c.Data...)
		}
	}
	if released < maxSection || released == len(in) {
		t.Errorf("%d of %d bytes were let go", released, len(in))
	}
	b.Close(false)
	for _, c := range b.Ready() {
		out = append(out, c.Data...)
	}
	if len(out) != len(in) || !bytes.Equal(out[:maxSection], in[:maxSection]) || !bytes.HasSuffix(out, bytes.Repeat([]byte("x"), 1000)) {
		t.Error("the rest must be overwritten, and nothing else")
	}
}

func TestInflationBomb(t *testing.T) {
	in := require.Value(envelope.Compress("gzip", make([]byte, maxInflated+16<<20)))(t)
	b := NewBodyFilter(New(Options{}), captures.Headers{{Name: "content-encoding", Value: "gzip"}}, "")
	b.Write(&captures.Chunk{Data: bytes.Clone(in)})
	if b.section.inflated > maxInflated+1<<20 {
		t.Errorf("%d bytes were inflated", b.section.inflated)
	}
	b.Close(false)
	if out := join(b.Ready()); !bytes.Equal(in, out) {
		t.Error("it was changed")
	}
}

// A body that is not what its headers say is passed on as it is.
func FuzzRedact(f *testing.F) {
	gz, err := envelope.Compress("gzip", []byte("hello "+madeUpKey))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(enveloped(1, gz), uint8(0), 7)
	f.Add([]byte(`{"accessToken":"`+madeUpJWT+`"}`), uint8(3), 20)
	f.Add(gz, uint8(4), 5)
	f.Add([]byte("\n\x25"+madeUpKey+"B\x05hello made/up+token of=mine"), uint8(3), 50)
	f.Add([]byte("\n\x01eyJB\x1c"+madeUpJWT), uint8(3), 4)
	f.Add([]byte("a=1&refresh_token=x&b=https://u:p@h/?sig=1 bWFkZS91cCt0b2tlbiBvZj1taW5l"), uint8(2), 9)
	f.Add([]byte("see https://hooks.example.com/ and https://fcm.googleapis.com/fcm/send/"), uint8(0), 9)
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY----- {\\\"apiKey\\\": \\\"v\\\"}"), uint8(1), 30)
	f.Fuzz(func(t *testing.T, p []byte, kind uint8, cut int) {
		headers := []captures.Headers{
			{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}},
			{{Name: "content-type", Value: "text/event-stream"}},
			{{Name: "content-type", Value: "application/x-www-form-urlencoded"}},
			nil,
			{{Name: "content-encoding", Value: "gzip"}},
			{{Name: "content-encoding", Value: "br"}},
			{{Name: "content-encoding", Value: "zstd"}},
		}
		h := headers[int(kind)%len(headers)]
		if cut < 0 || cut > len(p) {
			cut = len(p) / 2
		}
		r := New(Options{})
		r.Learn("made/up+token of=mine")
		out := join(redactBody(r, h, p, cut))
		if h.Get("content-encoding") == "" && h.Get("content-type") == "" && len(out) != len(p) {
			t.Fatalf("%d bytes became %d", len(p), len(out))
		}
		if bytes.Contains(out, []byte(" "+madeUpKey+" ")) {
			t.Fatalf("%q has a secret", out)
		}
		other := New(Options{})
		other.key, other.shortKey = r.key, r.shortKey
		other.Learn("made/up+token of=mine")
		if whole := join(redactBody(other, h, p)); !bytes.Equal(whole, out) {
			t.Fatalf("cut at %d:\n%q\nwhole:\n%q", cut, out, whole)
		}
		_ = r.redactURL(string(p))
		_ = r.Headers(captures.Headers{{Name: "cookie", Value: string(p)}, {Name: "authorization", Value: string(p)}, {Name: "x", Value: string(p)}})
		_ = r.String(string(p))
	})
}
