package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"unwire/replay/agent/turn"
)

// Time limits of streamed responses.
const (
	// PingInterval is how long a stream may be silent before something is sent to the client to keep
	// the connection alive.
	PingInterval = 10 * time.Second

	// writeTimeout limits the duration of one write; a stream whose client does not read is then
	// closed.
	writeTimeout = 30 * time.Second
)

// An Events writes a response that is a stream of server-sent events. Each event is flushed.
type Events struct {
	// w is the response.
	w http.ResponseWriter

	// control flushes w and sets its deadlines.
	control *http.ResponseController

	// buf is the buffer for encoding one event.
	buf bytes.Buffer

	// started means that the response header was written.
	started bool
}

// NewEvents returns a writer of events. It writes the response header together with the first event, so
// that an earlier error can still have its own HTTP status.
func NewEvents(w http.ResponseWriter) *Events {
	return &Events{w: w, control: http.NewResponseController(w)}
}

// Started reports whether the response header was written.
func (e *Events) Started() bool { return e.started }

// Send writes an event. name is the event's type, "" for none; v is encoded as JSON
// without HTML escapes.
func (e *Events) Send(name string, v any) error {
	e.buf.Reset()
	if name != "" {
		e.buf.WriteString("event: " + name + "\n")
	}
	e.buf.WriteString("data: ")
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	e.buf.WriteString("\n")
	return e.flush()
}

// SendText writes a server-sent event with a single line of text as its data, such as "[DONE]".
func (e *Events) SendText(data string) error {
	e.buf.Reset()
	e.buf.WriteString("data: " + data + "\n\n")
	return e.flush()
}

// Comment writes a comment line, which clients ignore, to keep the connection alive.
func (e *Events) Comment(text string) error {
	e.buf.Reset()
	e.buf.WriteString(": " + text + "\n\n")
	return e.flush()
}

// flush writes the buffer to the client. It first writes the response header if that was not done yet.
func (e *Events) flush() error {
	if !e.started {
		e.started = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
	}
	// A server without deadlines cannot be protected from a slow client; the write
	// itself decides then.
	if err := e.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(e.buf.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}

// Each calls onEvent for each event of a turn until the turn has ended. It calls onIdle, which may be
// nil, whenever PingInterval passes without an event.
//
// Errors: the error of ctx, of a callback, or the *turn.Error that ended the turn.
func Each(ctx context.Context, t Turn, onEvent func(turn.Event) error, onIdle func() error) error {
	for {
		wait, stop := context.WithTimeout(ctx, PingInterval)
		event, err := t.Next(wait)
		idle := wait.Err() != nil && ctx.Err() == nil
		stop()
		switch {
		case err == nil:
			err = onEvent(event)
		case errors.Is(err, io.EOF):
			return nil
		case idle && errors.Is(err, context.DeadlineExceeded):
			err = nil
			if onIdle != nil {
				err = onIdle()
			}
		}
		if err != nil {
			return err
		}
	}
}

// WriteJSON writes v as the whole response with the given HTTP status.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
