package mitm

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"unwire/captures"
)

// brokenRecorder takes nothing in, as a capture on a full disk does.
type brokenRecorder struct{}

func (brokenRecorder) Begin(captures.Exchange) (captures.Recording, error) {
	return nil, errors.New("disk full")
}

// What cannot be recorded passes all the same, in both directions and with its
// trailers; a server that cuts off is a cut-off still.
func TestUnrecorded(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Trailer", "X-Sum")
		_, _ = w.Write([]byte(strings.ToUpper(string(body))))
		w.Header().Set("X-Sum", "42")
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Store = brokenRecorder{} })
	for _, h2 := range []bool{false, true} {
		c := b.client(h2)
		res, err := c.Post(origin.URL+"/x", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || string(body) != "HELLO" || res.Trailer.Get("X-Sum") != "42" {
			t.Errorf("HTTP/2 %v: %d %q, trailers %v, %v", h2, res.StatusCode, body, res.Trailer, err)
		}
		if res, err := c.Post(origin.URL+"/cut", "text/plain", strings.NewReader("hello")); err == nil {
			_ = res.Body.Close()
			t.Errorf("HTTP/2 %v: a server that cut off is answered for with %d", h2, res.StatusCode)
		}
	}
	b.recorded(0)
}
