package server

import (
	"io"
	"net/http"
	"time"

	"unwire/captures"
	"unwire/replay/gateway"
)

// recordSource is stored as the source of the recorded exchanges.
const recordSource = "serve"

// record passes a request to the handler page and, if Options.Recorder is set, records the request and
// the response.
func (s *Server) record(w http.ResponseWriter, r *http.Request, page http.Handler) {
	if s.o.Recorder == nil {
		page.ServeHTTP(w, r)
		return
	}
	headers := captures.SortedHeaders(r.Header)
	headers = append(captures.Headers{{Name: "host", Value: r.Host}}, headers...)
	rec, err := s.o.Recorder.Begin(captures.Exchange{
		Method: r.Method, URL: "http://" + r.Host + r.URL.RequestURI(), HTTP: version(r),
		RequestHeaders: headers, Started: time.Now(), Client: r.RemoteAddr, Source: recordSource,
	})
	if err != nil {
		// What cannot be recorded is still served; the recorder reports why.
		page.ServeHTTP(w, r)
		return
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }); ok {
		rec.Connection(captures.TLS{}, local.String())
	}

	ended := false
	ctx := gateway.WithObserver(r.Context(), &gateway.Observer{
		OnStream: func(stream int64) { rec.Relate(captures.FrontEndOf, stream) },
		OnEnd:    func() { ended = true },
	})
	r = r.WithContext(ctx)
	r.Body = &recordedBody{ReadCloser: r.Body, rec: rec}
	out := &recordedWriter{ResponseWriter: w, rec: rec}

	// A handler that panics ends the connection.
	outcome := captures.Reset
	defer func() { rec.End(outcome, "") }()
	page.ServeHTTP(out, r)
	switch {
	case r.Context().Err() != nil && !ended:
		outcome = captures.Canceled
	default:
		out.begin(http.StatusOK)
		outcome = captures.Complete
	}
}

// version returns the HTTP version of a request, "1.1" or "2".
func version(r *http.Request) string {
	if r.ProtoMajor >= 2 {
		return "2"
	}
	if r.ProtoMinor == 0 {
		return "1.0"
	}
	return "1.1"
}

// A recordedBody is a request body that records the bytes read from it.
type recordedBody struct {
	// ReadCloser is the body whose bytes are recorded.
	io.ReadCloser

	// rec is the recording of the exchange.
	rec captures.Recording
}

// Read reads from the body and records the bytes.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.rec.Chunk(captures.Up, p[:n])
	}
	return n, err
}

// A recordedWriter is a ResponseWriter that records the response.
type recordedWriter struct {
	// ResponseWriter writes the response that is recorded.
	http.ResponseWriter

	// rec is the recording of the exchange.
	rec captures.Recording

	// begun means that the response header was recorded.
	begun bool
}

// Unwrap returns the wrapped ResponseWriter, so that http.ResponseController can flush it and set
// deadlines.
func (w *recordedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begin records status and headers of the response, unless this was done before.
func (w *recordedWriter) begin(status int) {
	if !w.begun {
		w.begun = true
		w.rec.Response(status, captures.SortedHeaders(w.Header()))
	}
}

// WriteHeader records and writes the response header.
func (w *recordedWriter) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write records and writes bytes of the response body.
func (w *recordedWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	if n > 0 {
		w.rec.Chunk(captures.Down, p[:n])
	}
	return n, err
}
