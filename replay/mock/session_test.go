package mock

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

// FuzzRequest sends bodies that no client would send, in each protocol: each gets an answer, and no more memory is
// used than came.
func FuzzRequest(f *testing.F) {
	s, err := store.Create(filepath.Join(f.TempDir(), "a.uwc"), store.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	types := []string{"application/proto", "application/json", "application/connect+proto", "application/grpc", "application/grpc-web", "application/grpc-web-text", "text/plain"}
	message := []byte{0x0a, 3, 'a', 'b', 'c'}
	for _, media := range types {
		rec, err := s.Begin(captures.Exchange{
			Method: "POST", URL: "http://127.0.0.1/a.v1.B/C", HTTP: "1.1", Started: time.Now(),
			RequestHeaders: captures.Headers{{Name: "content-type", Value: media}},
		})
		if err != nil {
			f.Fatal(err)
		}
		rec.Chunk(captures.Up, envelope.Append(nil, 0, message))
		rec.Response(200, captures.Headers{{Name: "content-type", Value: media}})
		rec.Chunk(captures.Down, envelope.Append(nil, 0, message))
		rec.End(captures.Complete, "")
	}
	if err := s.Flush(f.Context()); err != nil {
		f.Fatal(err)
	}
	server, err := New(f.Context(), s, Options{MinSimilarity: -1, Wait: time.Second, Quiet: time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(0), message)
	f.Add(uint8(2), envelope.Append(nil, 0, message))
	f.Add(uint8(3), []byte{1, 0xff, 0xff, 0xff, 0xff, 0})
	f.Add(uint8(5), []byte("AAAAAAUKA2FiYw=="))
	f.Fuzz(func(t *testing.T, media uint8, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/a.v1.B/C", io.NopCloser(bytes.NewReader(body)))
		r.Header.Set("Content-Type", types[int(media)%len(types)])
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusNotImplemented {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
