package transport

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"unwire/captures"
	"unwire/decode/envelope"
)

// A download is the server's half of a stream: a response body that is read frame by frame.
type download struct {
	// body is the response body.
	body io.ReadCloser

	// trailer returns the HTTP trailers, once the body was read to its end.
	trailer func() http.Header

	// record records the exchange; nil if nothing is recorded.
	record captures.Recording

	// decoder divides the body into frames.
	decoder *envelope.Decoder

	// buf is the buffer for reading.
	buf []byte

	// frames are decoded but not yet delivered.
	frames []envelope.Frame
	// ended is the reason why the stream ended; nil until next has returned it.
	ended error
	// readErr is the error at the end of the body; frames before it may still be undelivered.
	readErr error
}

// readSize is the size of one read from the response, in bytes.
const readSize = 16 << 10

// newDownload returns the server's half of a stream whose response has status 200.
func newDownload(resp *http.Response, record captures.Recording) *download {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	o := envelope.Options{
		Framed: true, Events: err == nil && kind == "text/event-stream",
		Encoding: resp.Header.Get("Connect-Content-Encoding"), Whole: resp.Header.Get("Content-Encoding"),
		MaxFrame: maxMessage, MaxInflated: maxMessage, Reuse: true,
	}
	return &download{
		body: resp.Body, trailer: func() http.Header { return resp.Trailer }, record: record,
		decoder: envelope.NewDecoder(o), buf: make([]byte, readSize),
	}
}

// next returns the next message of the server; see Stream.Receive.
func (d *download) next() ([]byte, error) {
	if d.ended != nil {
		return nil, d.ended
	}
	message, err := d.message()
	d.ended = err
	return message, err
}

// end ends the recording, according to how the server's half ended. next must not be called afterwards.
func (d *download) end(record captures.Recording) {
	recordTrailers(record, d.trailer())
	switch {
	case errors.Is(d.ended, io.EOF), errors.As(d.ended, new(*EndError)):
		endRecord(record, captures.Complete, nil)
	case d.ended == nil, errors.Is(d.ended, ErrClosed):
		endRecord(record, captures.Canceled, ErrClosed)
	default:
		endRecord(record, captures.Reset, d.ended)
	}
}

// message implements next: it returns the next message, or the reason why the stream ended.
func (d *download) message() ([]byte, error) {
	for {
		for len(d.frames) > 0 {
			f := &d.frames[0]
			d.frames = d.frames[1:]
			message, err := messageOf(f)
			if err != nil || message != nil {
				return message, err
			}
		}
		if d.readErr != nil {
			return nil, d.readErr
		}
		d.read()
	}
}

// messageOf returns the message of a frame. Both results are nil if the frame has no message and must
// be skipped. The error is io.EOF for a regular end of the stream.
func messageOf(f *envelope.Frame) ([]byte, error) {
	switch {
	case f.Partial:
		return nil, fmt.Errorf("%w: the stream ends inside a frame", ErrNoEnd)
	case f.Err != nil:
		return nil, fmt.Errorf("a frame of the answer cannot be read: %w", f.Err)
	case !f.Framed && f.Event == "end":
		// some sources describe the fallback like this
		return nil, io.EOF
	case !f.Framed:
		return nil, nil
	case f.Flags&envelope.EndStream != 0:
		return nil, endOf(f.Data)
	}
	if f.Data == nil {
		return []byte{}, nil
	}
	return f.Data, nil
}

// endOf returns the error in an end-of-stream message: an *EndError from the server, or io.EOF for a
// regular end.
func endOf(data []byte) error {
	end, err := envelope.ParseEnd(data)
	switch {
	case end != nil && end.Error != nil:
		e := &EndError{Err: end.Error}
		if retry := end.Metadata["retry-after"]; len(retry) > 0 {
			e.RetryAfter = retry[0]
		}
		return e
	case err != nil:
		return fmt.Errorf("the end of the stream cannot be read: %w", err)
	}
	return io.EOF
}

// read reads once from the response body and decodes the frames that are complete. It sets frames and
// readErr.
func (d *download) read() {
	n, err := d.body.Read(d.buf)
	if d.record != nil && n > 0 {
		d.record.Chunk(captures.Down, d.buf[:n])
	}
	frames, feedErr := d.decoder.Feed(d.buf[:n])
	d.frames = frames
	switch {
	case feedErr != nil:
		d.readErr = fmt.Errorf("the answer cannot be read: %w", feedErr)
	case errors.Is(err, io.EOF):
		d.readErr = ErrNoEnd
		rest, closeErr := d.decoder.Close()
		d.frames = append(d.frames, rest...)
		if closeErr != nil {
			d.readErr = fmt.Errorf("%w: %w", ErrNoEnd, closeErr)
		}
	case err != nil:
		d.readErr = err
	}
}

// statusError reads the body of a response with a status other than 200 and closes it.
func statusError(resp *http.Response, record captures.Recording) *StatusError {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if record != nil {
		record.Chunk(captures.Down, body)
	}
	e := &StatusError{Status: resp.StatusCode, RetryAfter: resp.Header.Get("Retry-After")}
	if err == nil {
		if parsed, err := envelope.ParseError(body); err == nil {
			e.Err = parsed
		}
	}
	return e
}
