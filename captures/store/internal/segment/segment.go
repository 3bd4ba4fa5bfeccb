// Package segment encodes consecutive chunks of an exchange as one row of a capture file, with the number, time,
// size and direction of each. Package store uses it; its FORMAT.md describes the encoding.
//
// A Builder combines chunks to a segment. A Row is a segment that was read; its entries are validated before any
// chunk is returned.
//
//	var b segment.Builder
//	b.Add(1, &captures.Chunk{Exchange: 1, Data: []byte("a")}, false)
//	err := b.Row.Each(b.Data, false, func(n int64, c captures.Chunk) bool { return true })
package segment

import (
	"encoding/binary"
	"time"

	"unwire/captures"
)

// Limits of a segment, i.e. a database row that contains several chunks of an exchange.
const (
	// MaxChunks limits the number of chunks.
	MaxChunks = 256

	// MaxSpan limits the difference between the numbers of the first and the last chunk. Numbers in between may
	// belong to other rows.
	MaxSpan = 4096
)

// A Row is a segment, i.e. a database row that contains several chunks of an exchange, without the chunks'
// data.
type Row struct {
	// First is the number of the segment's first chunk in the capture.
	First int64
	// Last is the number of the segment's last chunk in the capture.
	Last int64
	// Exchange is the ID of the exchange to which the chunks belong.
	Exchange int64
	// Seq is the sequence number of the segment's first chunk.
	Seq int64
	// Chunks is the number of chunks in the segment.
	Chunks int64
	// T is the time of the first chunk, since Exchange.Started.
	T time.Duration
	// SizeUp is the number of data bytes from client to server.
	SizeUp int64
	// SizeDown is the number of data bytes from server to client.
	SizeDown int64
	// Entries are the encoded descriptions of the chunks: number, time, size, direction and opcode.
	Entries []byte
}

// An entry describes a chunk without its data.
type entry struct {
	// number is the chunk's number in the capture; while an entry is being parsed, the difference from the
	// entry before.
	number int64
	// t is the time since the exchange began; while an entry is being parsed, the difference from the entry
	// before.
	t time.Duration
	// size is the length of the chunk's data in bytes.
	size int64
	// dir is the direction of the chunk.
	dir captures.Direction
	// opcode is the WebSocket opcode with its flags; it is valid if hasOpcode is set.
	opcode captures.Opcode
	// hasOpcode means that the chunk belongs to a WebSocket and has an opcode.
	hasOpcode bool
}

// A Builder combines chunks of one exchange into a segment. The zero value is empty.
type Builder struct {
	// The embedded Row describes the segment and the chunks added so far.
	Row
	// Data is the concatenated data of the chunks added so far.
	Data []byte

	// lastT is the time of the chunk added last.
	lastT time.Duration
}

// Fits reports whether a chunk, with n as its number, can be added without exceeding limit bytes of data or the
// limits of a segment.
func (b *Builder) Fits(n int64, c *captures.Chunk, limit int) bool {
	return c.Seq == b.Seq+b.Chunks && b.Chunks < MaxChunks && n-b.First < MaxSpan && len(b.Data)+len(c.Data) <= limit
}

// Add adds a chunk, with n as its number in the capture. hasOpcode is set for the chunks of a WebSocket.
func (b *Builder) Add(n int64, c *captures.Chunk, hasOpcode bool) {
	b.AddEntry(n, c, hasOpcode)
	b.Data = append(b.Data, c.Data...)
}

// AddEntry adds the description of a chunk without its data, which the caller stores elsewhere.
func (b *Builder) AddEntry(n int64, c *captures.Chunk, hasOpcode bool) {
	gap, dt := n-(b.Last+1), c.T-b.lastT
	if b.Chunks == 0 {
		gap, dt = 0, 0
		b.First, b.Exchange, b.Seq, b.T = n, c.Exchange, c.Seq, c.T
	}
	b.Entries = binary.AppendUvarint(b.Entries, uint64(gap))
	b.Entries = binary.AppendVarint(b.Entries, int64(dt))

	// The lowest bit is the direction, the next one means that an opcode follows.
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

// Each calls yield for each chunk of the segment with its number in the capture, until yield returns false.
// data is the segment's data, of which the chunks' Data are sub-slices. Only segments of a WebSocket may have
// opcodes.
//
// Errors: ErrDamaged, before anything is yielded.
func (r *Row) Each(data []byte, webSocket bool, yield func(n int64, c captures.Chunk) bool) error {
	if r.SizeUp+r.SizeDown != int64(len(data)) {
		return r.damaged("has %d bytes, but %d are declared", len(data), r.SizeUp+r.SizeDown)
	}
	var buf [MaxChunks]entry
	entries, err := r.parse(buf[:0], webSocket)
	if err != nil {
		return err
	}

	// Data is not copied: chunks are slices of it.
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

// LastOf returns the sequence number of the last chunk of each direction (-1 if there is none) and the latest
// time of a chunk.
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

// parse appends the decoded descriptions of the chunks to entries, and checks that they match the row.
func (r *Row) parse(entries []entry, webSocket bool) ([]entry, error) {
	// The row's own bounds come first, so that the loop below is short for a forged row.
	if r.Chunks < 1 || r.Chunks > MaxChunks || r.Last < r.First || r.Last-r.First >= MaxSpan {
		return nil, r.damaged("has %d chunks, which do not fit the numbers %d to %d", r.Chunks, r.First, r.Last)
	}

	// Numbers, times and sizes are sums, which must stay within limits.
	p := parser{rest: r.Entries}
	number, t := r.First-1, r.T
	var sizes [2]int64
	for i := range r.Chunks {
		e := p.entry()
		if p.malformed {
			return nil, r.damaged("has entries that cannot be read")
		}

		// The first entry is stored relative to the row, so its differences must be zero.
		if i == 0 && (e.number != 0 || e.t != 0) {
			return nil, r.damaged("begins with a number or time that differs from its row")
		}
		if e.hasOpcode && (!webSocket || e.opcode&0x30 != 0) {
			return nil, r.damaged("has the opcode %#x", byte(e.opcode))
		}
		if e.number >= MaxSpan {
			return nil, r.damaged("skips %d chunk numbers", e.number)
		}
		number += e.number + 1
		t += e.t
		if t < 0 {
			return nil, r.damaged("has a chunk with a time before the exchange")
		}
		sizes[e.dir] += e.size
		e.number, e.t = number, t
		entries = append(entries, e)
	}

	// The sums of the row let readers skip a segment without parsing it; they must be right.
	if len(p.rest) > 0 || number != r.Last || sizes != [2]int64{r.SizeUp, r.SizeDown} {
		return nil, r.damaged("has entries that do not fit its row")
	}
	return entries, nil
}

// damaged returns a formatted error that wraps ErrDamaged and names the segment.
func (r *Row) damaged(format string, args ...any) error {
	return captures.Damaged("exchange %d: the segment of chunk %d "+format, append([]any{r.Exchange, r.Seq}, args...)...)
}

// A parser decodes the descriptions of chunks in Row.Entries. malformed is set if one cannot be decoded.
type parser struct {
	// rest are the encoded entries that were not decoded yet.
	rest []byte
	// malformed means that an entry could not be decoded.
	malformed bool
}

// entry decodes the next entry. Its number and time are differences from the entry before.
func (p *parser) entry() (e entry) {
	e.number = int64(p.uvarint() & (1<<62 - 1))
	zigzag := p.uvarint()
	e.t = time.Duration(int64(zigzag>>1) ^ -int64(zigzag&1))
	head := p.uvarint()
	e.dir, e.hasOpcode, e.size = captures.Direction(head&1), head&2 != 0, int64(head>>2)
	if e.size > maxEntrySize {
		p.malformed = true
	}
	if e.hasOpcode {
		if len(p.rest) == 0 {
			p.malformed = true
			return e
		}
		e.opcode = captures.Opcode(p.rest[0])
		p.rest = p.rest[1:]
	}
	return e
}

// maxEntrySize limits the size of a chunk in an entry. It is larger than any valid size, but small enough that
// sums of sizes cannot overflow.
const maxEntrySize = 1 << 40

// uvarint decodes the next variable-length integer, and requires the shortest encoding.
func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || n > 1 && p.rest[n-1] == 0 {
		p.malformed = true
		return 0
	}
	p.rest = p.rest[n:]
	return v
}
