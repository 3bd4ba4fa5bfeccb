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

// Bounds of what is read.
const (
	maxEntry = 512 << 20
	maxOther = 64 << 20 // what is passed over: pages, comments
)

// Import reads a HAR into a capture: what Export wrote as it was, and what
// browsers and other tools write as far as it goes.
//
// Shape: members that are missing are taken as empty, numbers may be null or in
// quotes, dates may have any offset or none, HTTP/2's pseudo fields are no
// headers and stand in for a URL that is missing. As other tools keep bodies
// without their content-encoding, content-encoding and content-length are
// dropped from such a response; the body is one chunk. The messages of a WebSocket become
// an exchange of their own, which is related to that of its handshake.
// Limits: 512 MiB an entry, one held at a time. What is no exchange of HTTP
// (data: URLs) is left out.
// Errors: where the JSON is broken, with its place; the entries before it are
// recorded. An entry that says something impossible is skipped and reported.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	relater := transfer.NewRelater(store)
	rep, err := read(ctx, r, func(c *conversion) error { return c.record(store, relater) })
	relater.Finish(&rep)
	if err == nil {
		err = store.Flush(ctx)
	}
	return rep, err
}

// read reads a HAR and has record record each exchange of it.
func read(ctx context.Context, r io.Reader, record func(*conversion) error) (transfer.Report, error) {
	in := &importer{ctx: ctx, record: record}
	buffered := bufio.NewReaderSize(r, 1<<16)
	if mark, _ := buffered.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = buffered.Discard(len(mark)) // a byte order mark
	}
	in.v = transfer.NewValues(buffered)
	in.v.Allow(maxOther)
	err := in.readObject("", func(name string) error {
		if name != "log" {
			return in.skip()
		}
		return in.readObject("log", in.readLog)
	})
	switch {
	case err != nil:
		return in.rep, fmt.Errorf("har: %w", in.v.AtByte(err))
	case !in.entries:
		return in.rep, errors.New("har: no log.entries: this is no HTTP Archive")
	}
	return in.rep, nil
}

type importer struct {
	ctx     context.Context
	v       *transfer.Values
	record  func(*conversion) error
	rep     transfer.Report
	entries bool // they were there
}

// readLog reads a member of the log.
func (in *importer) readLog(name string) error {
	if name != "entries" {
		return in.skip()
	}
	in.entries = true
	in.v.Allow(maxOther)
	if err := in.v.Delim('['); err != nil {
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
	return in.v.Delim(']')
}

// readEntry reads and records an entry. What is wrong with the entry alone is
// reported; what is wrong with the file is an error.
func (in *importer) readEntry(i int) error {
	place := fmt.Sprintf("entries[%d]", i)
	var raw json.RawMessage
	if err := in.v.Next(maxEntry, &raw); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) && typ.Field != "" {
			in.rep.Problem(place+"."+typ.Field, "skipped: %s where %s was expected", typ.Value, typ.Type.Kind())
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

// record records the exchanges of an entry.
func (c *conversion) record(store captures.Target, relater *transfer.Relater) error {
	var handshake int64
	if !c.alone {
		var err error
		if handshake, err = c.recordOne(store, relater, &c.converted, 0); err != nil {
			return err
		}
	}
	if c.socket == nil {
		return nil
	}
	_, err := c.recordOne(store, relater, c.socket, handshake)
	return err
}

// recordOne records an exchange that another one opened, or that none did: 0.
func (c *conversion) recordOne(store captures.Target, relater *transfer.Relater, x *converted, openedBy int64) (id int64, err error) {
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

// readObject reads an object and has do read the value of each member.
func (in *importer) readObject(place string, do func(name string) error) error {
	at := func(err error) error {
		if place == "" {
			return err
		}
		return fmt.Errorf("%s: %w", place, err)
	}
	if err := in.v.Delim('{'); err != nil {
		return at(err)
	}
	for {
		in.v.Allow(maxOther)
		if !in.v.More() {
			break
		}
		name, err := in.v.Name()
		if err != nil {
			return at(err)
		}
		if err := do(name); err != nil {
			return err
		}
	}
	if err := in.v.Delim('}'); err != nil {
		return at(err)
	}
	return nil
}

func (in *importer) skip() error {
	var ignored json.RawMessage
	return in.v.Next(maxOther, &ignored)
}

// Sniff reports whether a file that begins with head looks like a HAR: an
// object whose first member is the log.
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
