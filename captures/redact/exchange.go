package redact

import "unwire/captures"

// maxAhead limits the bytes that wait because an earlier chunk of the other direction is still held back.
const maxAhead = 16 << 20

// opcodeKind is the mask for the part of captures.Opcode without flags.
const opcodeKind captures.Opcode = 0x0f

// An ExchangeFilter replaces the secrets in the chunks of an exchange, both directions, and returns them in
// their original order.
type ExchangeFilter struct {
	// bodies are the filters of the two directions; nil means that secrets are kept.
	bodies [2]*BodyFilter

	// edits are replacements to be made in each direction before the search.
	edits [2][]Edit
	// at is the offset of the next chunk in the body, for each direction.
	at [2]int64
	// seq is the sequence number of the next chunk that is added.
	seq int64
	// next is the sequence number of the next chunk that is returned.
	next int64

	// ahead are searched chunks by sequence number, which wait for chunks with smaller numbers.
	ahead map[int64]*captures.Chunk
	// bytes is the total size of the chunks that wait for others.
	bytes int64

	// messages means that chunks are WebSocket messages, which may be empty.
	messages bool
}

// NewExchangeFilter returns the filter for an exchange. It first makes the edits in each direction, and then
// replaces secrets. If r is nil, it replaces no secrets.
func NewExchangeFilter(r *Redactor, ex *captures.Exchange, edits [2][]Edit) *ExchangeFilter {
	p := &ExchangeFilter{edits: edits, ahead: make(map[int64]*captures.Chunk), messages: ex.Transport == captures.WebSocket}
	switch {
	case r == nil:
	case p.messages:
		p.bodies = [2]*BodyFilter{NewMessageFilter(r), NewMessageFilter(r)}
	default:
		p.bodies = [2]*BodyFilter{NewBodyFilter(r, ex.RequestHeaders, ex.URL), NewBodyFilter(r, ex.ResponseHeaders, ex.URL)}
		if to := ex.ChangedProtocol(); to != "" {
			p.bodies[captures.Up].ChangeProtocol(captures.Up, to)
			p.bodies[captures.Down].ChangeProtocol(captures.Down, to)
		}
	}
	return p
}

// Write adds the next chunk, and returns the chunks that are finished. last means that c is the last one of its
// direction. Chunks of more than maxChunk bytes are divided.
func (p *ExchangeFilter) Write(c captures.Chunk, maxChunk int, last bool) []*captures.Chunk {
	b := p.bodies[c.Dir]
	data := editChunk(p.edits[c.Dir], p.at[c.Dir], c.Data)
	p.at[c.Dir] += int64(len(c.Data))
	op := c.Opcode
	for more := len(data) > 0 || p.messages; more; {
		n := min(len(data), maxChunk)
		part := &captures.Chunk{Exchange: c.Exchange, Dir: c.Dir, Seq: p.seq, T: c.T, Data: data[:n], Opcode: op}
		p.seq++
		data = data[n:]
		if more = len(data) > 0; more {
			part.Opcode, op = op&^captures.OpFinal, op&^opcodeKind
		}
		if b == nil {
			p.addAhead(part)
			continue
		}
		b.Write(part)
		p.addAhead(b.Ready()...)
	}
	if b != nil && last {
		b.Close(false)
		p.addAhead(b.Ready()...)
	}

	// One direction holds up too much of the other one: decide it now.
	if p.bytes > maxAhead {
		for _, b := range p.bodies {
			b.FlushHeld()
			p.addAhead(b.Ready()...)
		}
	}

	// Return the chunks in their original order, up to the first undecided one.
	var out []*captures.Chunk
	for k := p.ahead[p.next]; k != nil; k = p.ahead[p.next] {
		out = append(out, k)
		delete(p.ahead, p.next)
		p.bytes -= int64(len(k.Data))
		p.next++
	}
	return out
}

// addAhead stores finished chunks until all earlier ones were returned.
func (p *ExchangeFilter) addAhead(chunks ...*captures.Chunk) {
	for _, c := range chunks {
		p.ahead[c.Seq] = c
		p.bytes += int64(len(c.Data))
	}
}

// editChunk returns the data of a chunk after the edits. start is the position of the chunk in its direction.
func editChunk(edits []Edit, start int64, data []byte) []byte {
	p := pendingChunk{chunk: &captures.Chunk{Data: data}, start: start, end: start + int64(len(data))}
	for _, e := range edits {
		from, to := max(e.Start, p.start), min(e.End, p.end)
		if from >= to {
			continue
		}
		lo, hi := min(len(e.Data), int(from-e.Start)), min(len(e.Data), int(to-e.Start))
		if to == e.End {
			hi = len(e.Data)
		}
		p.edits = append(p.edits, Edit{from, to, e.Data[lo:hi]})
	}
	return p.apply().Data
}
