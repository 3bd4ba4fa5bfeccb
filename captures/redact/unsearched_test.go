package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/decode/envelope"
)

// payloads are the payloads of a stream of envelopes, inflated where their flags
// say that they are compressed and where they are nevertheless.
func payloads(t fataler, p []byte) (out [][]byte) {
	for len(p) > 0 {
		if len(p) < 5 || len(p)-5 < int(binary.BigEndian.Uint32(p[1:])) {
			t.Fatal(fmt.Sprintf("no envelopes: %q", p))
		}
		n := int(binary.BigEndian.Uint32(p[1:]))
		payload := p[5 : 5+n]
		p = p[5+n:]
		if bytes.HasPrefix(payload, []byte{0x1f, 0x8b}) {
			var inflated []byte
			f := newInflater(new(codecs), "gzip", func(p []byte) bool { inflated = append(inflated, p...); return true })
			f.feed(payload)
			if f.close() == nil {
				payload = inflated
			}
		}
		out = append(out, payload)
	}
	return out
}

// Whatever the flags of envelopes are and however they come in, a secret is
// found in each of them, and the stream stays a run of envelopes.
func TestAnyFlags(t *testing.T) {
	headers := []captures.Headers{
		{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}},
		{{Name: "content-type", Value: "application/connect+json"}},
		{{Name: "content-type", Value: "application/grpc"}, {Name: "grpc-encoding", Value: "gzip"}},
		{{Name: "content-type", Value: "text/event-stream"}, {Name: "connect-content-encoding", Value: "gzip"}},
	}
	rapid.Check(t, func(t *rapid.T) {
		var p []byte
		n := rapid.IntRange(1, 6).Draw(t, "frames")
		where := rapid.IntRange(0, n-1).Draw(t, "where")
		var want [][]byte
		r := New(Options{})
		mask := sameLength(r.tag(madeUpJWT), len(madeUpJWT))
		for i := range n {
			message := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "message")
			clean := message
			if i == where {
				clean = slices.Concat(message, []byte(" "+mask+" "))
				message = slices.Concat(message, []byte(" "+madeUpJWT+" "))
			}
			flags := rapid.Byte().Draw(t, "flags")
			if i == 0 && headers[3].Get("content-type") != "" {
				flags &= 0x1f // an event stream's first byte is no text then
				if flags == '\r' || flags == '\n' || flags == '\t' {
					flags = 4
				}
			}
			packed := message
			if len(message) > 0 && (flags&1 != 0 || rapid.Bool().Draw(t, "compressed") && flags&^0x83 != 0) {
				var err error
				if packed, err = envelope.Compress("gzip", message); err != nil {
					t.Fatal(err)
				}
			}
			p = append(p, enveloped(flags, packed)...)
			want = append(want, clean)
		}
		h := rapid.SampledFrom(headers).Draw(t, "headers")
		var cuts []int
		if rapid.Bool().Draw(t, "bytewise") {
			cuts = bytewise(p)
		} else if cuts = rapid.SliceOfN(rapid.IntRange(1, len(p)), 0, 10).Draw(t, "cuts"); true {
			slices.Sort(cuts)
		}
		got := payloads(t, join(redactBody(r, h, p, cuts...)))
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%q\nwant %q", got, want)
		}
	})
}

// missedOf passes p through a body in pieces, and returns what comes out and
// what was not searched.
func missedOf(r *Redactor, h captures.Headers, p []byte, size int) ([]byte, []Unsearched) {
	b := NewBodyFilter(r, h, "")
	var out []*captures.Chunk
	for part := range slices.Chunk(p, size) {
		b.Write(&captures.Chunk{Data: bytes.Clone(part)})
		out = append(out, b.Ready()...)
	}
	b.Close(false)
	return join(append(out, b.Ready()...)), b.Unsearched(&captures.Exchange{Outcome: captures.Complete}, captures.Up)
}

// Where the search cannot look into bytes, it says so, and searches the bytes as
// they are.
func TestUnsearched(t *testing.T) {
	gz := require.Value(envelope.Compress("gzip", []byte(strings.Repeat("some text ", 50)+madeUpKey)))(t)
	plainKey := []byte("text " + madeUpKey + " text")
	connect := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}}
	encoded := func(e string) captures.Headers { return captures.Headers{{Name: "content-encoding", Value: e}} }
	ok := enveloped(0, []byte("hello"))
	for name, c := range map[string]struct {
		h      captures.Headers
		in     []byte
		reason string // "": all is searched
		from   int
	}{
		"nothing":                      {nil, plainKey, "", 0},
		"unknown flags":                {connect, slices.Concat(enveloped(0x40, plainKey), enveloped(0x04, plainKey)), "", 0},
		"unknown encoding":             {encoded("snappy"), plainKey, "snappy", 0},
		"unknown encoding around":      {encoded("gzip, snappy"), plainKey, "snappy", 0},
		"known encodings":              {encoded("br, gzip"), require.Value(envelope.Compress("gzip", require.Value(envelope.Compress("br", plainKey))(t)))(t), "", 0},
		"identity":                     {encoded("identity"), plainKey, "", 0},
		"too many encodings":           {encoded("gzip, gzip, gzip, gzip"), plainKey, "…", 0},
		"truncated gzip":               {encoded("gzip"), gz[:len(gz)-9], "unexpected EOF", 0},
		"bytes behind gzip":            {encoded("gzip"), slices.Concat(gz, plainKey), "gzip", 0},
		"bytes behind zlib":            {encoded("deflate"), slices.Concat(require.Value(envelope.Compress("deflate", []byte("x")))(t), plainKey), "bytes follow", 0},
		"no gzip":                      {encoded("gzip"), plainKey, "gzip", 0},
		"unknown encoding of messages": {captures.Headers{{Name: "content-type", Value: "application/grpc"}, {Name: "grpc-encoding", Value: "snappy"}}, slices.Concat(ok, enveloped(1, plainKey), ok), "snappy", 15},
		"broken message":               {connect, slices.Concat(ok, enveloped(1, plainKey), ok), "gzip", 15},
		"truncated message":            {connect, slices.Concat(ok, enveloped(1, gz[:len(gz)-9]), ok), "unexpected EOF", 15},
		"text":                         {connect, slices.Concat(ok, plainKey), "not envelopes", 10},
		"text from the beginning":      {connect, []byte(madeUpKey), "not envelopes", 0},
		"an impossible length":         {connect, slices.Concat(ok, []byte{0, 0xff, 0xff, 0xff, 0xff}, plainKey), endsInEnvelope, 10},
		"a length too large":           {connect, slices.Concat(ok, []byte{0, 0, 0, 1, 0}, plainKey), endsInEnvelope, 10},
		"a secret in the length":       {connect, slices.Concat([]byte{0}, []byte(madeUpKey)), endsInEnvelope, 0},
		"an envelope inside gzip":      {append(encoded("gzip"), connect...), require.Value(envelope.Compress("gzip", slices.Concat(ok, enveloped(1, gz))))(t), "", 0},
		"a broken one inside gzip":     {append(encoded("gzip"), connect...), require.Value(envelope.Compress("gzip", slices.Concat(ok, enveloped(1, plainKey))))(t), "gzip", 0},
		"gRPC-Web text":                {captures.Headers{{Name: "content-type", Value: "application/grpc-web-text+proto"}, {Name: "grpc-encoding", Value: "gzip"}}, []byte(base64.StdEncoding.EncodeToString(ok) + base64.StdEncoding.EncodeToString(enveloped(1, gz))), "", 0},
		"an enveloped message":         {captures.Headers{{Name: "content-type", Value: "application/proto"}}, enveloped(1, gz), "", 0},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			out, missed := missedOf(New(Options{}), c.h, c.in, size)
			if found := revealedBody(out); strings.Contains(found, madeUpKey) {
				t.Errorf("%s, by %d: the key is in %q", name, size, found)
			}
			switch {
			case c.reason == "" && len(missed) > 0, c.reason != "" && len(missed) != 1:
				t.Errorf("%s, by %d: %v", name, size, missed)
			case c.reason != "" && (!strings.Contains(missed[0].Reason, c.reason) || int(missed[0].Start) != c.from || missed[0].End > int64(len(c.in))):
				t.Errorf("%s, by %d: %v, want %s at %d", name, size, missed, c.reason, c.from)
			}
		}
	}
}

// revealedBody is p with what compression and base64 hide in it.
func revealedBody(p []byte) string {
	all := string(p)
	for depth, layer := 0, [][]byte{p}; depth < 3; depth++ {
		var next [][]byte
		for _, b := range layer {
			for _, e := range []string{"gzip", "br", base64Text} {
				for _, off := range []int{0, 15} {
					var out []byte
					f := newInflater(new(codecs), e, func(p []byte) bool { out = append(out, p...); return true })
					f.feed(b[min(off, len(b)):])
					_ = f.close()
					next = append(next, out)
					all += "\n" + string(out)
				}
			}
		}
		layer = next
	}
	return all
}
