package har

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"unwire/captures"
	"unwire/captures/transfer"
)

// Limits for reading a HAR file, in bytes: of one entry, and of each member that is ignored, such as pages or
// comments.
const (
	maxEntry   = 512 << 20
	maxIgnored = 64 << 20
)

// Import adds the exchanges of a HAR file to a capture. Files written by Export are restored exactly, those of
// other tools as far as possible.
//
// Shape: missing members count as empty, numbers may be null or strings, dates may have any or no time zone, and
// HTTP/2's pseudo-header fields replace a missing URL. Other tools write bodies decompressed, so
// content-encoding and content-length are removed from such responses, and each body is one chunk. The messages
// of a WebSocket become an exchange of their own, which is related to its handshake. Limits: 512 MiB per entry;
// one entry at a time is in memory. Entries that are not HTTP (such as data: URLs) are skipped. Errors: that of
// invalid JSON, with its place; the entries before it are recorded. Entries with invalid values are skipped and
// reported.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	relater := transfer.NewRelater(store)
	rep, err := read(ctx, r, func(c *conversion) error { return c.record(store, relater) })
	relater.Finish(&rep)
	if err == nil {
		err = store.Flush(ctx)
	}
	return rep, err
}

// read reads a HAR file, and calls record for each entry.
func read(ctx context.Context, r io.Reader, record func(*conversion) error) (transfer.Report, error) {
	in := &importer{ctx: ctx, record: record}
	buffered := bufio.NewReaderSize(r, 1<<16)

	// Windows tools begin files with a byte order mark.
	if mark, _ := buffered.Peek(3); string(mark) == "\xef\xbb\xbf" {
		// This is a byte order mark.
		_, _ = buffered.Discard(len(mark))
	}
	in.v = transfer.NewJSONValues(buffered)
	in.v.Allow(maxIgnored)
	err := in.readObject("", func(name string) error {
		if name != "log" {
			return in.skip()
		}
		return in.readObject("log", in.readLog)
	})
	switch {
	case err != nil:
		return in.rep, fmt.Errorf("har: %w", in.v.AddOffset(err))
	case !in.foundEntries:
		return in.rep, errors.New("the file has no log.entries, so it is not an HTTP Archive (HAR)")
	}
	return in.rep, nil
}

// An importer reads a HAR file entry by entry.
type importer struct {
	// ctx is the context of the import; its end cancels the import.
	ctx context.Context

	// v reads the JSON values of the HAR file.
	v *transfer.JSONValues
	// record is called with each converted entry, and stores it in the capture.
	record func(*conversion) error
	// rep is the report of the import: counts, and the problems found.
	rep transfer.Report
	// foundEntries means that the member log.entries was found.
	foundEntries bool
}

// readLog reads the value of one member of the object "log"; only "entries" is not skipped.
func (in *importer) readLog(name string) error {
	if name != "entries" {
		return in.skip()
	}
	in.foundEntries = true
	in.v.Allow(maxIgnored)
	if err := in.v.ExpectDelim('['); err != nil {
		return fmt.Errorf("log.entries: %w", err)
	}
	for i := 0; ; i++ {
		if err := in.ctx.Err(); err != nil {
			return err
		}
		in.v.Allow(maxEntry)
		if !in.v.More() {
			break
		}
		if err := in.readEntry(i); err != nil {
			return err
		}
	}
	return in.v.ExpectDelim(']')
}

// readEntry reads, converts and records the entry with index i. An invalid entry is only reported; an invalid
// file is an error.
func (in *importer) readEntry(i int) error {
	place := fmt.Sprintf("entries[%d]", i)
	var raw json.RawMessage
	if err := in.v.Next(maxEntry, &raw); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}

	// Decoding the entry apart from the stream keeps the stream intact if the entry is invalid.
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) && typ.Field != "" {
			in.rep.Problem(place+"."+typ.Field, "skipped: found %s instead of %s", typ.Value, typ.Type.Kind())
		} else {
			in.rep.Problem(place, "skipped: %v", err)
		}
		in.rep.Skipped++
		return nil
	}
	c := conversion{e: &e, place: place, rep: &in.rep}
	if !c.convert() {
		in.rep.Skipped++
		return nil
	}
	return in.record(&c)
}

// record stores the converted exchanges of one HAR entry.
func (c *conversion) record(store captures.Target, relater *transfer.Relater) error {
	var handshake int64
	if !c.onlyWebSocket {
		var err error
		if handshake, err = c.recordOne(store, relater, &c.exchangeDraft, 0); err != nil {
			return err
		}
	}
	if c.webSocket == nil {
		return nil
	}
	_, err := c.recordOne(store, relater, c.webSocket, handshake)
	return err
}

// recordOne records one exchange and returns its ID. openedBy is the ID of the handshake that opened it, if it
// is a WebSocket, or 0. relater later records its relations.
func (c *conversion) recordOne(store captures.Target, relater *transfer.Relater, x *exchangeDraft, openedBy int64) (id int64, err error) {
	rec, err := store.Begin(x.ex)
	if err != nil {
		return 0, err
	}
	c.rep.Exchanges++
	if openedBy != 0 {
		rec.Relate(captures.HandshakeOf, openedBy)
	}
	relater.Add(c.rep, c.place, x.number, rec.ID(), x.relations)
	for _, chunk := range x.chunks {
		if x.ex.Transport == captures.WebSocket {
			rec.MessageAt(chunk.Dir, chunk.T, chunk.Opcode, chunk.Data)
		} else {
			rec.ChunkAt(chunk.Dir, chunk.T, chunk.Data)
		}
	}
	rec.EndAt(x.duration, x.outcome, x.ex.Error)
	return rec.ID(), store.Err()
}

// readObject reads a JSON object and calls do with the name of each member; do must read the value. place is
// the object's name for errors.
func (in *importer) readObject(place string, do func(name string) error) error {
	// Errors name the place in the file.
	at := func(err error) error {
		if place == "" {
			return err
		}
		return fmt.Errorf("%s: %w", place, err)
	}
	if err := in.v.ExpectDelim('{'); err != nil {
		return at(err)
	}
	for {
		in.v.Allow(maxIgnored)
		if !in.v.More() {
			break
		}
		name, err := in.v.MemberName()
		if err != nil {
			return at(err)
		}
		if err := do(name); err != nil {
			return err
		}
	}
	if err := in.v.ExpectDelim('}'); err != nil {
		return at(err)
	}
	return nil
}

// skip reads and ignores a JSON value.
func (in *importer) skip() error {
	var ignored json.RawMessage
	return in.v.Next(maxIgnored, &ignored)
}

// Sniff reports whether a file that begins with head looks like a HAR: an object whose first member is "log".
func Sniff(head []byte) bool {
	rest := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	for _, word := range []string{"{", `"log"`, ":"} {
		after, ok := bytes.CutPrefix(rest, []byte(word))
		if !ok {
			return false
		}
		rest = bytes.TrimSpace(after)
	}
	return true
}
