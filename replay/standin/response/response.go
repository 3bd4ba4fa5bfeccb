// Package response has a writer between connect-go and net/http. It can omit the end of a
// stream, which connect-go cannot, and write a stream as server-sent events.
package response

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"

	"unwire/decode/envelope"
)

// statusBidiNeedsHTTP2 is the status that the live agent endpoint's load balancer is
// reported to return for a stream over HTTP/1.1; connect-go itself returns 505.
//
// Source: RESEARCH.md#transports
const statusBidiNeedsHTTP2 = 464

// A writer is the ResponseWriter between connect-go and net/http. It can discard the end of a response,
// and write the envelopes of a stream as server-sent events.
type writer struct {
	// ResponseWriter writes the response.
	http.ResponseWriter

	// sse is the form of server-sent events: "raw", "base64", or "" for none.
	sse string

	// dropped means that the rest of the response is discarded.
	dropped bool

	// partial is the beginning of an envelope that is not complete yet.
	partial []byte
}

// A writerKey is the context key for the writer of a call.
type writerKey struct{}

// DropEnd discards the rest of the response. It is called when only the end-of-stream message has not
// been written. ctx is the context of the call.
func DropEnd(ctx context.Context) {
	if w, ok := ctx.Value(writerKey{}).(*writer); ok {
		w.dropped = true
	}
}

// Unwrap returns the wrapped ResponseWriter for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush flushes the response.
func (w *writer) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// WriteHeader writes the response header; for server-sent events, it sets their content type.
func (w *writer) WriteHeader(status int) {
	if w.sse != "" && status == http.StatusOK {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes bytes of the response, as server-sent events if asked for, unless the rest is discarded.
func (w *writer) Write(p []byte) (int, error) {
	if w.sse != "" && w.Header().Get("Content-Type") != "text/event-stream" {
		w.WriteHeader(http.StatusOK)
	}
	if w.dropped {
		return len(p), nil
	}
	if w.sse != "base64" {
		return w.ResponseWriter.Write(p)
	}
	w.partial = append(w.partial, p...)
	for len(w.partial) >= envelope.PrefixLen {
		n := envelope.PrefixLen + int(envelope.ParsePrefix(w.partial).Length)
		if len(w.partial) < n {
			break
		}
		if err := w.event(w.partial[:n]); err != nil {
			return 0, err
		}
		w.partial = slices.Delete(w.partial, 0, n)
	}
	return len(p), nil
}

// event writes one envelope as a server-sent event.
func (w *writer) event(frame []byte) error {
	line := append([]byte("data: "), base64.StdEncoding.EncodeToString(frame)...)
	line = append(line, "\n\n"...)
	if envelope.ParsePrefix(frame).Flags&envelope.EndStream != 0 {
		line = append(line, "event: end\ndata:\n\n"...)
	}
	_, err := w.ResponseWriter.Write(line)
	return err
}

// Wrap returns a handler that calls next, a handler of the API, with a writer. bidi means that next
// needs HTTP/2; sse is the form of server-sent events, see writer.sse.
func Wrap(next http.Handler, bidi bool, sse string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if bidi && r.ProtoMajor < 2 {
			rw.WriteHeader(statusBidiNeedsHTTP2)
			return
		}
		w := &writer{ResponseWriter: rw, sse: sse}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), writerKey{}, w)))
	})
}
