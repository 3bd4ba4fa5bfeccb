package envelope

import (
	"net/http"
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
