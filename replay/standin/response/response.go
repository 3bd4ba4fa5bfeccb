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

// A writer is between connect-go and net/http. It can discard the end of a stream, and
// write a stream as server-sent events.
type writer struct {
	http.ResponseWriter
	sse     string // "", raw or base64
	dropped bool
	partial []byte // of an envelope, for base64
}

type writerKey struct{}

// DropEnd discards the rest of the response. It is called when only the end-of-stream
// message is left to write.
func DropEnd(ctx context.Context) {
	if w, ok := ctx.Value(writerKey{}).(*writer); ok {
		w.dropped = true
	}
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (w *writer) WriteHeader(status int) {
	if w.sse != "" && status == http.StatusOK {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.ResponseWriter.WriteHeader(status)
}

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

// event writes an envelope as a server-sent event, in the format of seed 000.
func (w *writer) event(frame []byte) error {
	line := append([]byte("data: "), base64.StdEncoding.EncodeToString(frame)...)
	line = append(line, "\n\n"...)
	if envelope.ParsePrefix(frame).Flags&envelope.EndStream != 0 {
		line = append(line, "event: end\ndata:\n\n"...)
	}
	_, err := w.ResponseWriter.Write(line)
	return err
}

// Wrap makes a handler of the API write through a writer. bidi means that the handler
// needs HTTP/2.
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
