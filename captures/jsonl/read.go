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

// Limits for reading a JSON Lines file.
const (
	// maxMember limits one member or one chunk, in bytes: 64 MiB in base64, and some overhead.
	maxMember = 96 << 20

	// maxBuffered limits the bytes of chunks that are buffered in memory, because other members follow them.
	maxBuffered = 64 << 20

	// maxMembers, maxRelations and maxNotes limit the numbers of members, relations and notes per line.
	maxMembers   = 64
	maxRelations = 10_000
	maxNotes     = 100_000
)

// Import adds the exchanges of JSON Lines, as written by Export, to a capture.
//
// Shape: members may come in any order; unknown ones are ignored. If the chunks are the last member, as Export
// writes them, they are recorded while they are read; otherwise up to 64 MiB of them are buffered. Exchanges get
// new IDs, and bytes_up and bytes_down are recounted. Errors: the first error, with its place. The lines before
// it are recorded; the exchange of the line with the error is recorded as Incomplete, if its chunks had begun.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	relater := transfer.NewRelater(store)
	rep, err := readLines(ctx, r, store, relater, func(ex captures.Exchange) (exchangeRecorder, error) {
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

// An exchangeRecorder is the part of captures.Recording that an import needs.
type exchangeRecorder interface {
	ID() int64
	MessageAt(dir captures.Direction, t time.Duration, op captures.Opcode, p []byte)
	ChunkAt(dir captures.Direction, t time.Duration, p []byte)
	EndAt(d time.Duration, o captures.Outcome, errText string)
}

// readLines reads and records all lines of a JSON Lines file. begin starts the recording of each exchange, and
// relater records the relations between them.
func readLines(ctx context.Context, r io.Reader, store captures.Target, relater *transfer.Relater, begin func(captures.Exchange) (exchangeRecorder, error)) (transfer.Report, error) {
	var rep transfer.Report
	v := transfer.NewJSONValues(r)
	for line := 1; ; line++ {
		if err := ctx.Err(); err != nil {
			return rep, err
		}

		// More and Token distinguish the end of the input from an error.
		v.Allow(maxMember)
		if !v.More() {
			_, err := v.Token()
			if errors.Is(err, io.EOF) {
				return rep, nil
			}
			return rep, fmt.Errorf("jsonl: line %d: %w", line, v.AddOffset(err))
		}
		l := lineReader{v: v, record: begin, seen: make(map[string]bool)}
		err := l.readLine()

		// l.rec is also set if the line has an error after its chunks.
		if l.rec != nil {
			rep.Exchanges++
			relater.Add(&rep, fmt.Sprintf("line %d", line), l.head.ID, l.rec.ID(), l.head.Relations)
			l.end(err)
			if err == nil {
				err = transfer.PutNotes(ctx, store, &rep, fmt.Sprintf("line %d", line), l.rec.ID(), l.head.Notes)
			}
		}
		if err != nil {
			return rep, fmt.Errorf("jsonl: line %d: %w", line, v.AddOffset(err))
		}
	}
}

// A lineReader parses one line of JSON Lines and records its exchange.
type lineReader struct {
	// v reads the JSON values of the file.
	v *transfer.JSONValues

	// record starts the recording of an exchange.
	record func(captures.Exchange) (exchangeRecorder, error)
	// head holds the members of the line that were read so far, except the chunks.
	head head
	// seen is the set of the names of the members that were read so far, to reject duplicates.
	seen map[string]bool
	// buffered are chunks that preceded other members of the line, so that they cannot be recorded yet.
	buffered []bufferedChunk
	// bufferedBytes is the approximate size in memory of the buffered chunks.
	bufferedBytes int
	// rec records the exchange; nil until the recording was started.
	rec exchangeRecorder
}

// A bufferedChunk is a chunk in memory, whose direction was parsed.
type bufferedChunk struct {
	// dir is the parsed direction of the chunk: up (from the client) or down (from the server).
	dir captures.Direction
	// The embedded chunk is the chunk as decoded from JSON.
	*chunk
}

// readLine parses the members of one line, and records the exchange.
func (l *lineReader) readLine() error {
	if err := l.v.ExpectDelim('{'); err != nil {
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
			return fmt.Errorf("the line has more than %d members", maxMembers)
		}
		name, err := l.v.MemberName()
		if err != nil {
			return err
		}

		// If all other members are known, chunks can be recorded while they are read.
		if name == "chunks" {
			if chunks {
				return errors.New("the member chunks occurs twice")
			}
			chunks = true
			if err := l.readChunks(len(l.missing(targets)) == 0); err != nil {
				return err
			}
			continue
		}

		// Skip the values of unknown members, within the same limit.
		into, known := targets[name]
		if !known {
			into = new(json.RawMessage)
		}
		if known && l.rec != nil {
			return fmt.Errorf("the member %s occurs again after the chunks", name)
		}
		if err := l.v.Next(maxMember, into); err != nil {
			return fmt.Errorf("%s: %w", transfer.Clip(name), err)
		}
		l.seen[name] = true
	}
	if err := l.v.ExpectDelim('}'); err != nil {
		return err
	}

	// The exchange has not begun if there were no chunks, or they did not come last.
	if err := l.begin(); err != nil {
		return err
	}
	for i := range l.buffered {
		if err := l.recordChunk(i, l.buffered[i]); err != nil {
			return err
		}
	}
	return nil
}

// isOptional reports whether Export omits the member if its value is empty, so an import must not require it.
func isOptional(member string) bool {
	return member == "transport" || member == "process" || member == "relations" || member == "notes"
}

// members maps the name of each member of a line to a pointer to the field of h that receives its value.
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

// missing returns the names of required members that the line lacks. targets are all members, as members
// returns them.
func (l *lineReader) missing(targets map[string]any) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(targets)), func(name string) bool { return l.seen[name] || isOptional(name) })
}

// begin starts the recording of the exchange, unless readChunks has already done so.
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

// readChunks reads the line's chunks. complete means that all other members have been read, so the chunks can
// be recorded at once; otherwise they are buffered.
func (l *lineReader) readChunks(complete bool) error {
	if complete {
		if err := l.begin(); err != nil {
			return err
		}
	}
	l.v.Allow(maxMember)
	if err := l.v.ExpectDelim('['); err != nil {
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

		// Validate the chunk before recording it.
		dir, err := direction(raw.Dir)
		if err == nil && raw.TNS < 0 {
			err = fmt.Errorf("t_ns: %d is out of range", raw.TNS)
		}
		if err != nil {
			return fmt.Errorf("chunks[%d].%w", i, err)
		}
		held := bufferedChunk{dir, &raw}
		if complete {
			if err := l.recordChunk(i, held); err != nil {
				return err
			}
			continue
		}

		// Count an estimate of each chunk's overhead, so that many empty chunks are limited too.
		l.bufferedBytes += len(raw.Data) + 64
		if l.bufferedBytes > maxBuffered {
			return fmt.Errorf("%w of %d bytes for the member chunks: it can be larger only as the last member of the line", transfer.ErrTooLarge, maxBuffered)
		}
		l.buffered = append(l.buffered, held)
	}
	return l.v.ExpectDelim(']')
}

// recordChunk records a chunk; for a WebSocket, with its opcode. i is the index of the chunk in its line, for
// errors.
func (l *lineReader) recordChunk(i int, c bufferedChunk) error {
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

// end ends the exchange with the outcome in its line, or as Incomplete if reading the line failed with err.
func (l *lineReader) end(err error) {
	outcome, text := l.head.Outcome, l.head.Error
	if err != nil {
		outcome = captures.Incomplete
	}
	l.rec.EndAt(max(time.Duration(l.head.DurationNS), 0), outcome, text)
}

// Sniff reports whether a file that begins with head may be JSON Lines, i.e. begins with a JSON object.
func Sniff(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{"))
}
