package standintest

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"unwire/captures"
	"unwire/captures/store"
)

// A Tap is an http.RoundTripper for tests that records requests and responses as unwire's proxy does.
type Tap struct {
	// Next sends the requests.
	Next http.RoundTripper

	// Store is the capture in which requests and responses are recorded.
	Store *store.Store

	// HTTP is the version of HTTP that is recorded; "" for 2.
	HTTP string

	// Last is the number of the exchange that began last.
	Last atomic.Int64

	// Done receives a value for each exchange that has ended.
	Done chan struct{}
}

// RoundTrip sends a request and records it with its response.
func (t *Tap) RoundTrip(r *http.Request) (*http.Response, error) {
	rec, err := t.Store.Begin(captures.Exchange{Method: r.Method, URL: r.URL.String(), HTTP: cmp.Or(t.HTTP, "2"), RequestHeaders: headers(r.Header), Source: "proxy"})
	if err != nil {
		return nil, err
	}
	t.Last.Store(rec.ID())

	// The bodies are recorded while they pass.
	out := r.Clone(r.Context())
	if r.Body != nil {
		out.Body = &tapped{ReadCloser: r.Body, rec: rec, dir: captures.Up}
	}
	resp, err := t.Next.RoundTrip(out)
	if err != nil {
		rec.End(captures.Failed, err.Error())
		t.Done <- struct{}{}
		return nil, err
	}
	rec.Response(resp.StatusCode, headers(resp.Header))
	resp.Body = &tapped{ReadCloser: resp.Body, rec: rec, dir: captures.Down, end: func(err error) {
		rec.Trailers(captures.Down, headers(resp.Trailer))
		if err == io.EOF {
			rec.End(captures.Complete, "")
		} else {
			rec.End(captures.Reset, err.Error())
		}
		t.Done <- struct{}{}
	}}
	return resp, nil
}

// A tapped is a request or response body that records the bytes read from it in direction dir.
type tapped struct {
	// ReadCloser is the body whose bytes are recorded.
	io.ReadCloser

	// rec is the recording of the exchange.
	rec captures.Recording

	// dir is the direction of the body.
	dir captures.Direction

	// end is called with the error at the end of the body; it may be nil.
	end func(error)
}

// Read reads from the body and records the bytes.
func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.rec.Chunk(t.dir, p[:n])
	if err != nil && t.end != nil {
		t.end(err)
		t.end = nil
	}
	return n, err
}

// headers converts HTTP headers to a list sorted by name.
func headers(h http.Header) captures.Headers {
	var out captures.Headers
	for name, values := range h {
		for _, v := range values {
			out = append(out, captures.Header{Name: strings.ToLower(name), Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b captures.Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}
