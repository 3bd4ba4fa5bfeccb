// Package segment is how a capture keeps consecutive chunks of an exchange in one row,
// with the number, time, size and direction of each. FORMAT.md of package store, which
// uses it, describes the encoding.
//
// A Builder puts chunks together; a Row is a segment as it is read, whose entries are
// checked before a chunk of it is used.
package segment

import (
	"encoding/binary"
	"time"

	"unwire/captures"
)

// The limits of a segment.
const (
	MaxChunks = 256

	// MaxSpan is how many numbers its chunks and what was recorded between them have.
	MaxSpan = 4096
)

// A Row is a segment without its data.
type Row struct {
	First, Last      int64 // numbers of the first and of the last chunk
	Exchange         int64
	Seq              int64 // of the first chunk
	Chunks           int64
	T                time.Duration // of the first chunk
	SizeUp, SizeDown int64
	Entries          []byte
}

// An entry is a chunk without its data.
type entry struct {
	number    int64
	t         time.Duration
	size      int64
	dir       captures.Direction
	opcode    captures.Opcode
	hasOpcode bool
}

// A Builder puts the chunks of an exchange together. The zero value has none.
type Builder struct {
	Row
	Data []byte

	lastT time.Duration
}

// Fits reports whether a chunk with a number can be added to others, so that the data
// has at most limit bytes.
func (b *Builder) Fits(n int64, c *captures.Chunk, limit int) bool {
	return c.Seq == b.Seq+b.Chunks && b.Chunks < MaxChunks && n-b.First < MaxSpan && len(b.Data)+len(c.Data) <= limit
}

// Add adds a chunk with its number.
func (b *Builder) Add(n int64, c *captures.Chunk, hasOpcode bool) {
	b.AddEntry(n, c, hasOpcode)
	b.Data = append(b.Data, c.Data...)
}

// AddEntry is Add for a chunk whose data is kept elsewhere.
func (b *Builder) AddEntry(n int64, c *captures.Chunk, hasOpcode bool) {
	gap, dt := n-(b.Last+1), c.T-b.lastT
	if b.Chunks == 0 {
		gap, dt = 0, 0
		b.First, b.Exchange, b.Seq, b.T = n, c.Exchange, c.Seq, c.T
	}
	b.Entries = binary.AppendUvarint(b.Entries, uint64(gap))
	b.Entries = binary.AppendVarint(b.Entries, int64(dt))
	head := uint64(len(c.Data))<<2 | uint64(c.Dir)
	if hasOpcode {
		b.Entries = append(binary.AppendUvarint(b.Entries, head|2), byte(c.Opcode))
	} else {
		b.Entries = binary.AppendUvarint(b.Entries, head)
	}
	b.Last, b.lastT = n, c.T
	b.Chunks++
	if c.Dir == captures.Up {
		b.SizeUp += int64(len(c.Data))
	} else {
		b.SizeDown += int64(len(c.Data))
	}
}

// Each yields the chunks, whose data are parts of data, with their numbers, until it
// returns false. A segment of something else than a WebSocket has no opcodes.
//
// Errors: ErrDamaged, before anything is yielded.
func (r *Row) Each(data []byte, webSocket bool, yield func(n int64, c captures.Chunk) bool) error {
	if r.SizeUp+r.SizeDown != int64(len(data)) {
		return r.damaged("has %d bytes where %d are declared", len(data), r.SizeUp+r.SizeDown)
	}
	var buf [MaxChunks]entry
	entries, err := r.parse(buf[:0], webSocket)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		c := captures.Chunk{Exchange: r.Exchange, Dir: e.dir, Seq: r.Seq + int64(i), T: e.t, Opcode: e.opcode, Data: data[:e.size:e.size]}
		data = data[e.size:]
		if !yield(e.number, c) {
			return nil
		}
	}
	return nil
}

// LastOf returns the sequence number of the last chunk of each direction, -1 for none,
// and the greatest time of a chunk.
//
// Errors: ErrDamaged.
func (r *Row) LastOf(webSocket bool) (last [2]int64, t time.Duration, err error) {
	var buf [MaxChunks]entry
	entries, err := r.parse(buf[:0], webSocket)
	last = [2]int64{-1, -1}
	for i := range entries {
		last[entries[i].dir] = r.Seq + int64(i)
		t = max(t, entries[i].t)
	}
	return last, t, err
}

// parse reads the entries and compares them with the row.
func (r *Row) parse(entries []entry, webSocket bool) ([]entry, error) {
	if r.Chunks < 1 || r.Chunks > MaxChunks || r.Last < r.First || r.Last-r.First >= MaxSpan {
		return nil, r.damaged("has %d chunks, numbers %d to %d", r.Chunks, r.First, r.Last)
	}
	p := parser{rest: r.Entries}
	number, t := r.First-1, r.T
	var sizes [2]int64
	for i := range r.Chunks {
		e := p.entry()
		if p.bad {
			return nil, r.damaged("has entries that cannot be read")
		}
		if i == 0 && (e.number != 0 || e.t != 0) {
			return nil, r.damaged("begins with another number or time than its row")
		}
		if e.hasOpcode && (!webSocket || e.opcode&0x30 != 0) {
			return nil, r.damaged("has the opcode %#x", byte(e.opcode))
		}
		if e.number >= MaxSpan {
			return nil, r.damaged("skips %d numbers", e.number)
		}
		number += e.number + 1
		t += e.t
		if t < 0 {
			return nil, r.damaged("has a chunk before the exchange")
		}
		sizes[e.dir] += e.size
		e.number, e.t = number, t
		entries = append(entries, e)
	}
	if len(p.rest) > 0 || number != r.Last || sizes != [2]int64{r.SizeUp, r.SizeDown} {
		return nil, r.damaged("has entries that do not fit its row")
	}
	return entries, nil
}

func (r *Row) damaged(format string, args ...any) error {
	return captures.Damaged("exchange %d: the segment of chunk %d "+format, append([]any{r.Exchange, r.Seq}, args...)...)
}

// A parser reads entries. Bad is set by the first that cannot be read.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) entry() (e entry) {
	e.number = int64(p.uvarint() & (1<<62 - 1))
	zigzag := p.uvarint()
	e.t = time.Duration(int64(zigzag>>1) ^ -int64(zigzag&1))
	head := p.uvarint()
	e.dir, e.hasOpcode, e.size = captures.Direction(head&1), head&2 != 0, int64(head>>2)
	if e.size > maxData {
		p.bad = true
	}
	if e.hasOpcode {
		if len(p.rest) == 0 {
			p.bad = true
			return e
		}
		e.opcode = captures.Opcode(p.rest[0])
		p.rest = p.rest[1:]
	}
	return e
}

// maxData is more than a segment can have; sizes up to it can be added up.
const maxData = 1 << 40

// uvarint reads a number in its shortest encoding.
func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || n > 1 && p.rest[n-1] == 0 {
		p.bad = true
		return 0
	}
	p.rest = p.rest[n:]
	return v
}
