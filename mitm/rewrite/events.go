package rewrite

import (
	"bufio"
	"bytes"
	"context"
	"io"
)

// runEvents forwards a stream of server-sent events. The data of each event is a frame.
//
// Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
func (b *Body) runEvents(ctx context.Context, r io.Reader) error {
	// The compression spans all events, so events of a compressed stream cannot be changed one by one.
	if e := b.framing.Encoding; e != "" && e != "identity" {
		b.Exchange.Passed(b.Dir, "the event stream is compressed")
		if err := b.begin(Unchanged); err != nil {
			return err
		}
		return b.copy(ctx, r)
	}

	// A declared length must be corrected before the body is forwarded, so a body within the limit is gathered first.
	if b.gathers = b.Declared >= 0 && b.Declared <= MaxFrame; !b.gathers {
		if err := b.begin(Unknown); err != nil {
			return err
		}
	}

	// An empty line ends an event. A line may be longer than the buffer, and then comes in several slices.
	lines := bufio.NewReaderSize(r, 64<<10)
	var event []byte
	for {
		line, err := lines.ReadSlice('\n')
		event = append(event, line...)
		ends := err == nil && len(bytes.TrimRight(line, "\r\n")) == 0 && endsLine(event[:len(event)-len(line)])
		switch {
		case ends:
			if err := b.event(ctx, event); err != nil {
				return err
			}
			event = event[:0]
		case len(event) > MaxFrame:
			b.Exchange.Passed(b.Dir, "an event is larger than the limit for changes")
			if err := b.pass(ctx, event); err != nil {
				return err
			}
			return b.copy(ctx, lines)
		}
		switch {
		case err == nil, err == bufio.ErrBufferFull:
		case err == io.EOF:
			return b.pass(ctx, event)
		default:
			if werr := b.pass(ctx, event); werr != nil {
				return werr
			}
			return err
		}
	}
}

// endsLine reports whether p is empty or ends with a line break.
func endsLine(p []byte) bool { return len(p) == 0 || p[len(p)-1] == '\n' }

// event applies rules to one server-sent event, including the empty line at its end.
func (b *Body) event(ctx context.Context, event []byte) error {
	var data [][]byte
	for line := range bytes.Lines(event) {
		if value, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(value, []byte(" ")))
		}
	}
	if data == nil {
		return b.pass(ctx, event)
	}
	p := bytes.Join(data, []byte("\n"))
	return b.frame(ctx, &Frame{Received: event, Raw: p, Data: p})
}

// withData returns a server-sent event with its data lines replaced by data. Its other lines stay.
func withData(event, data []byte) []byte {
	var out []byte
	written := false
	for line := range bytes.Lines(event) {
		content := bytes.TrimRight(line, "\r\n")
		switch {
		case bytes.HasPrefix(content, []byte("data:")) || len(content) == 0 && !written:
			if !written {
				written = true
				for part := range bytes.SplitSeq(data, []byte("\n")) {
					out = append(append(append(out, "data: "...), part...), line[len(content):]...)
				}
			}
			if len(content) == 0 {
				out = append(out, line...)
			}
		default:
			out = append(out, line...)
		}
	}
	return out
}
