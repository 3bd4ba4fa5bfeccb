package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// Bounds of what is read.
const (
	// maxMember limits one member or chunk in bytes: 64 MiB in base64, and some more.
	maxMember = 96 << 20

	// maxBuffered limits the bytes of chunks that are kept in memory because the rest
	// of the line follows them.
	maxBuffered = 64 << 20

	// maxMembers limits the members of a line, maxRelations its relations, and maxNotes its
	// notes.
	maxMembers   = 64
	maxRelations = 10_000
	maxNotes     = 100_000
)

// Import reads JSON Lines as Export writes them into a capture.
//
// Shape: members may come in any order and unknown ones are passed over. A line
// whose chunks come last, as Export has them, is read without being held;
// otherwise up to 64 MiB of its chunks are. Exchanges get new IDs, and the
// capture counts their bytes anew.
// Errors: the first thing that is not as it should be, with its place; the
// lines before it are recorded, and what there was of its own is Incomplete.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	relater := transfer.NewRelater(store)
	rep, err := read(ctx, r, store, relater, func(ex captures.Exchange) (recording, error) {
		rec, err := store.Begin(ex)
		if err != nil {
			return nil, err
		}
		return rec, store.Err()
	})
	relater.Finish(&rep)
	if err == nil {
		err = store.Flush(ctx)
	}
	return rep, err
}

// A recording takes the chunks of an exchange: a captures.Recording.
type recording interface {
	ID() int64
	MessageAt(dir captures.Direction, t time.Duration, op captures.Opcode, p []byte)
	ChunkAt(dir captures.Direction, t time.Duration, p []byte)
	EndAt(d time.Duration, o captures.Outcome, errText string)
}

// read reads lines and has begin record each exchange.
func read(ctx context.Context, r io.Reader, store captures.Target, relater *transfer.Relater, begin func(captures.Exchange) (recording, error)) (transfer.Report, error) {
	var rep transfer.Report
	v := transfer.NewValues(r)
	for line := 1; ; line++ {
		if err := ctx.Err(); err != nil {
			return rep, err
		}
		v.Allow(maxMember)
		if !v.More() {
			_, err := v.Token()
			if errors.Is(err, io.EOF) {
				return rep, nil
			}
			return rep, fmt.Errorf("jsonl: line %d: %w", line, v.AtByte(err))
		}
		l := lineReader{v: v, record: begin, seen: make(map[string]bool)}
		err := l.read()
		if l.rec != nil {
			rep.Exchanges++
			relater.Add(&rep, fmt.Sprintf("line %d", line), l.head.ID, l.rec.ID(), l.head.Relations)
			l.end(err)
			if err == nil {
				err = transfer.PutNotes(ctx, store, &rep, fmt.Sprintf("line %d", line), l.rec.ID(), l.head.Notes)
			}
		}
		if err != nil {
			return rep, fmt.Errorf("jsonl: line %d: %w", line, v.AtByte(err))
		}
	}
}

// A lineReader reads one line.
type lineReader struct {
	v      *transfer.Values
	record func(captures.Exchange) (recording, error)
	head   head
	seen   map[string]bool
	held   []heldChunk
	bytes  int
	rec    recording
}

// A heldChunk is a chunk whose direction was read.
type heldChunk struct {
	dir captures.Direction
	*chunk
}

func (l *lineReader) read() error {
	if err := l.v.Delim('{'); err != nil {
		return err
	}
	targets := l.head.members()
	chunks := false
	for n := 0; ; n++ {
		l.v.Allow(maxMember)
		if !l.v.More() {
			break
		}
		if n == maxMembers {
			return fmt.Errorf("more than %d members", maxMembers)
		}
		name, err := l.v.Name()
		if err != nil {
			return err
		}
		if name == "chunks" {
			if chunks {
				return errors.New("chunks: twice")
			}
			chunks = true
			if err := l.readChunks(len(l.missing(targets)) == 0); err != nil {
				return err
			}
			continue
		}
		into, known := targets[name]
		if !known {
			into = new(json.RawMessage)
		}
		if known && l.rec != nil {
			return fmt.Errorf("%s: again, after the chunks", name)
		}
		if err := l.v.Next(maxMember, into); err != nil {
			return fmt.Errorf("%s: %w", transfer.Clip(name), err)
		}
		l.seen[name] = true
	}
	if err := l.v.Delim('}'); err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	for i := range l.held {
		if err := l.recordChunk(i, l.held[i]); err != nil {
			return err
		}
	}
	return nil
}

// isOptional reports whether a member is written only if it says something.
func isOptional(member string) bool {
	return member == "transport" || member == "process" || member == "relations" || member == "notes"
}

// members are where the members of a line go.
func (h *head) members() map[string]any {
	return map[string]any{
		"v": &h.V, "id": &h.ID, "method": &h.Method, "url": &h.URL, "http": &h.HTTP, "status": &h.Status,
		"started": &h.Started, "duration_ns": &h.DurationNS, "outcome": &h.Outcome, "error": &h.Error,
		"client": &h.Client, "server": &h.Server, "tls": &h.TLS, "source": &h.Source,
		"transport": &h.Transport, "process": &h.Process, "relations": &h.Relations, "notes": &h.Notes,
		"bytes_up": &h.BytesUp, "bytes_down": &h.BytesDown,
		"request_headers": &h.RequestHeaders, "request_trailers": &h.RequestTrailers,
		"response_headers": &h.ResponseHeaders, "response_trailers": &h.ResponseTrailers,
	}
}

func (l *lineReader) missing(targets map[string]any) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(targets)), func(name string) bool { return l.seen[name] || isOptional(name) })
}

// begin starts the exchange, unless its chunks have.
func (l *lineReader) begin() error {
	if l.rec != nil {
		return nil
	}
	if err := l.head.check(); err != nil {
		return err
	}
	var err error
	l.rec, err = l.record(l.head.exchange())
	return err
}

// readChunks reads the chunks; complete says that everything else is known.
func (l *lineReader) readChunks(complete bool) error {
	if complete {
		if err := l.begin(); err != nil {
			return err
		}
	}
	l.v.Allow(maxMember)
	if err := l.v.Delim('['); err != nil {
		return fmt.Errorf("chunks: %w", err)
	}
	for i := 0; ; i++ {
		l.v.Allow(maxMember)
		if !l.v.More() {
			break
		}
		var raw chunk
		if err := l.v.Next(maxMember, &raw); err != nil {
			return fmt.Errorf("chunks[%d]: %w", i, err)
		}
		dir, err := direction(raw.Dir)
		if err == nil && raw.TNS < 0 {
			err = fmt.Errorf("t_ns: %d", raw.TNS)
		}
		if err != nil {
			return fmt.Errorf("chunks[%d].%w", i, err)
		}
		held := heldChunk{dir, &raw}
		if complete {
			if err := l.recordChunk(i, held); err != nil {
				return err
			}
			continue
		}
		l.bytes += len(raw.Data) + 64
		if l.bytes > maxBuffered {
			return fmt.Errorf("chunks: %w of %d bytes while they do not come last", transfer.ErrTooLarge, maxBuffered)
		}
		l.held = append(l.held, held)
	}
	return l.v.Delim(']')
}

// recordChunk records a chunk, the i-th, as what the exchange's transport makes of it.
func (l *lineReader) recordChunk(i int, c heldChunk) error {
	dir, at := c.dir, time.Duration(c.TNS)
	op, err := c.opcode(l.head.Transport)
	switch {
	case err != nil:
		return fmt.Errorf("chunks[%d].%w", i, err)
	case l.head.Transport == captures.WebSocket:
		l.rec.MessageAt(dir, at, op, c.Data)
	default:
		l.rec.ChunkAt(dir, at, c.Data)
	}
	return nil
}

// end ends the exchange as its line says, or as incomplete where the line
// could not be read to its end.
func (l *lineReader) end(err error) {
	outcome, text := l.head.Outcome, l.head.Error
	if err != nil {
		outcome = captures.Incomplete
	}
	l.rec.EndAt(max(time.Duration(l.head.DurationNS), 0), outcome, text)
}

// Sniff reports whether a file that begins with head may be JSON Lines: it
// begins with an object.
func Sniff(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{"))
}
