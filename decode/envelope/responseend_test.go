package envelope

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestResponseEndInPieces: how the body is cut into pieces changes nothing, and
// a stream is whole with the last byte of its last frame, neither before nor
// with a byte more.
func TestResponseEndInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.SampledFrom([]byte{0x02, 0x80}).Draw(t, "flag")
		media := map[byte]string{0x02: "application/connect+json", 0x80: "application/grpc-web"}[flag]
		var body []byte
		frame := func(flags byte) {
			p := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
			body = append(append(body, flags, 0, 0, byte(len(p)>>8), byte(len(p))), p...)
		}
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			frame(rapid.SampledFrom([]byte{0, 1}).Draw(t, "compressed"))
		}
		frame(flag | rapid.SampledFrom([]byte{0, 1}).Draw(t, "compressed"))
		body = append(body, 0)

		header := http.Header{"Content-Type": {media + "; charset=utf-8"}}
		e := NewResponseEnd("POST", 200, header.Get)
		sent := 0
		for sent < len(body) {
			if whole := sent == len(body)-1; e.Complete() != whole {
				t.Fatalf("whole: %v after %d of %d bytes", !whole, sent, len(body)-1)
			}
			end := len(body) - 1
			if sent == end {
				end++
			}
			n := rapid.IntRange(1, end-sent).Draw(t, "piece")
			e.AddBody(body[sent : sent+n])
			sent += n
		}
		if e.Complete() {
			t.Fatal("whole with a byte too many")
		}
	})
}

// FuzzResponseEnd decides the same about a body, in whichever pieces it arrives.
func FuzzResponseEnd(f *testing.F) {
	hello := Append(nil, 0, []byte("hello"))
	for _, contentType := range []string{"application/connect+proto", "application/grpc-web+proto", "application/grpc-web-text", "text/event-stream", "application/json"} {
		f.Add(contentType, "", "", append(hello, Append(nil, EndStream, []byte("{}"))...))
		f.Add(contentType, "7", "gzip", hello)
	}
	f.Fuzz(func(t *testing.T, contentType, length, encoding string, body []byte) {
		decide := func(piece int) (complete bool) {
			e := NewResponseEnd("POST", 200, func(name string) string {
				switch strings.ToLower(name) {
				case "content-type":
					return contentType
				case "content-length":
					return length
				case "connect-content-encoding", "grpc-encoding":
					return encoding
				}
				return ""
			})
			for at := 0; at < len(body); at += piece {
				e.AddBody(body[at:min(at+piece, len(body))])
			}
			return e.Complete()
		}
		if whole, bytewise := decide(len(body)+1), decide(1); whole != bytewise {
			t.Errorf("%s of %q: complete %v, byte by byte %v", contentType, body, whole, bytewise)
		}
	})
}
