package envelope

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzEnd holds the readers of how a call ended to survive anything, and to
// read again what they write.
func FuzzEnd(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"invalid_argument","message":"no","details":[{"type":"a.B","value":"CAE"}]},"metadata":{"a":["b"]}}`))
	f.Add([]byte(`{"code":3,"details":[{"type":"a.B","value":"!"}]}`))
	f.Add([]byte("grpc-status: 3\r\ngrpc-message: bad%20\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		end, err := ParseEnd(data)
		if end == nil {
			t.Fatal("no End")
		}
		if err == nil {
			again, err := ParseEnd(appendEnd(nil, end))
			if err != nil || (again.Error == nil) != (end.Error == nil) || len(again.Metadata) != len(end.Metadata) {
				t.Fatalf("%+v is written as %+v: %v", end, again, err)
			}
		}
		if e, err := ParseError(data); e != nil && e.Code == "" {
			t.Fatalf("an error without code: %+v, %v", e, err)
		}
		fields, _ := ParseTrailer(data)
		if again, err := ParseTrailer(appendTrailer(nil, fields)); err != nil || len(fields) != len(again) {
			t.Fatalf("%q, %v", cmp.Diff(fields, again), err)
		}
		for _, name := range []string{"0", "3", string(data)} {
			if _, err := ParseStatus(func(n string) string {
				if n == "grpc-status" {
					return name
				}
				return string(data)
			}); name == "0" && err != nil {
				t.Fatalf("status 0: %v", err)
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for _, encoding := range []string{"gzip", "br", "zstd", "deflate"} {
		b, err := Compress(encoding, []byte("hello hello hello"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, encoding)
	}
	f.Add(bomb(10<<20), "zstd")
	f.Fuzz(func(t *testing.T, data []byte, encoding string) {
		const limit = 1 << 12
		out, err := Decompress(encoding, data, limit)
		if normalEncoding(encoding) == "" {
			return
		}
		if len(out) > limit && !bytes.Equal(out, data) {
			t.Fatalf("%d bytes past the limit of %d", len(out), limit)
		}
		if errors.Is(err, ErrInflated) && len(out) != limit {
			t.Fatalf("stopped at %d of %d", len(out), limit)
		}
	})
}
