package envelope

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// An eventReader splits a text/event-stream body into events, as the HTML standard defines them.
//
// Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
//
// Source: RESEARCH.md#sse-fallback
type eventReader struct {
	// o has the limits and the compression of envelopes inside events.
	o Options

	// line is the incomplete last line of the event stream.
	line []byte

	// cr means that the last byte was a carriage return, which ended a line. A line feed after it belongs to the
	// same line end.
	cr bool

	// pos is the offset of the next byte in the body.
	pos int64

	// start is the offset at which the current event begins.
	start int64

	// name is the name of the current event, from its "event" line; "" without one.
	name string

	// data are the "data" lines of the current event, joined by line feeds.
	data []byte

	// lines is the number of "data" lines of the current event.
	lines int

	// fail is the error of the current event if it exceeds the size limit.
	fail error

	// readers are reusable decompressors for envelopes inside events.
	readers decompressors
}

// feed parses the next bytes, and returns the server-sent events that are now complete.
func (r *eventReader) feed(p []byte) (frames []Frame, err error) {
	for _, c := range p {
		// CR LF is one line end.
		if r.cr && c == '\n' {
			r.cr = false
			r.pos++
			if r.lines == 0 && r.name == "" && len(r.line) == 0 {
				r.start = r.pos
			}
			continue
		}

		// A line end is LF, CR or CR LF.
		r.cr = c == '\r'
		r.pos++
		if c != '\n' && c != '\r' {
			// Bytes beyond the limit are dropped, and the event gets an error.
			if int64(len(r.line)+len(r.data)) < r.o.MaxFrame {
				r.line = append(r.line, c)
			} else if r.fail == nil {
				r.fail = fmt.Errorf("the event at %#x is %w of %d bytes", r.start, ErrTooLarge, r.o.MaxFrame)
				err = r.fail
			}
			continue
		}
		// An empty line ends the event.
		if len(r.line) == 0 {
			frames = append(frames, r.dispatch()...)
			continue
		}
		r.field()
	}
	return frames, err
}

// close returns an event that lacks the empty line at its end, with an error.
func (r *eventReader) close() ([]Frame, error) {
	if len(r.line) > 0 {
		r.field()
	}
	frames := r.dispatch()
	for i := range frames {
		frames[i].Partial = true
		frames[i].Err = fmt.Errorf("event at %#x: the empty line at its end is missing: %w", frames[i].Offset, io.ErrUnexpectedEOF)
	}
	if len(frames) > 0 {
		return frames, frames[0].Err
	}
	return nil, nil
}

// field processes the complete line r.line: one field of an event.
func (r *eventReader) field() {
	name, value, _ := bytes.Cut(r.line, []byte(":"))
	if r.line[0] == '{' {
		// Some services send JSON without a field name under this content type.
		name, value = []byte("data"), r.line
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if r.lines > 0 {
			r.data = append(r.data, '\n')
		}
		r.lines++
		r.data = append(r.data, value...)
	case "event":
		r.name = string(value)
	}
	r.line = r.line[:0]
}

// dispatch ends the current event and returns its frames. Comments and "retry" lines alone make no event.
func (r *eventReader) dispatch() []Frame {
	start, name, data, lines, fail := r.start, r.name, r.data, r.lines, r.fail
	r.start, r.name, r.data, r.lines, r.fail = r.pos, "", nil, 0, nil
	if lines == 0 && name == "" {
		return nil
	}
	f := Frame{Offset: start, Len: int(r.pos - start), Event: name, Raw: data, Data: data, Err: fail}

	// The data of an event may be envelopes in base64, each of which becomes a frame.
	payload, ok := eventPayload(data)
	if !ok {
		return []Frame{f}
	}
	inner, ok := Split(payload)
	if !ok {
		f.Data = payload
		return []Frame{f}
	}
	for i := range inner {
		g := &inner[i]
		g.Offset, g.Len, g.Event, g.Err = f.Offset, f.Len, f.Event, f.Err
		g.inflate(r.o, &r.readers)
	}
	return inner
}

// eventPayload decodes the data of an event if that is base64, and reports whether it is. Short plain words are
// valid base64, too. So unless the decoded bytes are envelopes, the text must be padded to groups of four and have
// a character that is unusual in words.
func eventPayload(data []byte) ([]byte, bool) {
	s := strings.ReplaceAll(string(data), "\n", "")
	if s == "" {
		return nil, false
	}
	b, err := decodeBase64(s)
	if err != nil {
		return nil, false
	}
	if _, ok := Split(b); ok {
		return b, true
	}
	return b, len(s)%4 == 0 && (strings.HasSuffix(s, "=") || strings.ContainsAny(s, "0123456789+/"))
}
