package envelope

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// An eventReader splits a text/event-stream body into events.
//
// Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
// Source: RESEARCH.md#sse-fallback
type eventReader struct {
	o       Options
	line    []byte // an incomplete line
	cr      bool   // the last byte was a carriage return, which ended a line
	pos     int64  // offset of the next byte
	start   int64  // of the event
	name    string
	data    []byte
	lines   int // data lines of the event
	fail    error
	readers decompressors
}

func (r *eventReader) feed(p []byte) (frames []Frame, err error) {
	for _, c := range p {
		if r.cr && c == '\n' {
			r.cr = false
			r.pos++
			if r.lines == 0 && r.name == "" && len(r.line) == 0 {
				r.start = r.pos
			}
			continue
		}
		r.cr = c == '\r'
		r.pos++
		if c != '\n' && c != '\r' {
			if int64(len(r.line)+len(r.data)) < r.o.MaxFrame {
				r.line = append(r.line, c)
			} else if r.fail == nil {
				r.fail = fmt.Errorf("envelope: event at %#x: %w of %d bytes", r.start, ErrTooLarge, r.o.MaxFrame)
				err = r.fail
			}
			continue
		}
		if len(r.line) == 0 {
			frames = append(frames, r.dispatch()...)
			continue
		}
		r.field()
	}
	return frames, err
}

func (r *eventReader) close() ([]Frame, error) {
	if len(r.line) > 0 {
		r.field()
	}
	frames := r.dispatch()
	for i := range frames {
		frames[i].Partial = true
		frames[i].Err = fmt.Errorf("envelope: event at %#x: no empty line ends it: %w", frames[i].Offset, io.ErrUnexpectedEOF)
	}
	if len(frames) > 0 {
		return frames, frames[0].Err
	}
	return nil, nil
}

// field takes a line of an event.
func (r *eventReader) field() {
	name, value, _ := bytes.Cut(r.line, []byte(":"))
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

// dispatch ends an event. A comment or a retry line alone is none.
func (r *eventReader) dispatch() []Frame {
	start, name, data, lines, fail := r.start, r.name, r.data, r.lines, r.fail
	r.start, r.name, r.data, r.lines, r.fail = r.pos, "", nil, 0, nil
	if lines == 0 && name == "" {
		return nil
	}
	f := Frame{Offset: start, Len: int(r.pos - start), Event: name, Raw: data, Data: data, Err: fail}
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

// eventPayload decodes an event's data if it is base64. A short plain word can
// be read as base64 too, so one that holds no envelope must look the part.
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
