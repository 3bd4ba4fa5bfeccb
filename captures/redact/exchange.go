package redact

import "unwire/captures"

// maxAhead is how many bytes of one direction may wait for what a secret may
// begin in of the other.
const maxAhead = 16 << 20

// opcodeKind are the bits of an opcode without flags: none is set where a message goes on.
const opcodeKind captures.Opcode = 0x0f

// An ExchangeFilter takes the secrets out of the chunks of an exchange that was
// recorded before, and returns them in their order.
type ExchangeFilter struct {
	bodies [2]*BodyFilter // nil: nothing is taken out
	edits  [2][]Edit
	at     [2]int64 // position in each direction of the next chunk that goes in
	seq    int64    // of the next chunk that goes in
	next   int64    // of the next that comes out
	ahead  map[int64]*captures.Chunk
	bytes  int64 // of ahead

	// messages says that the chunks are messages, which may be empty.
	messages bool
}

// NewExchangeFilter returns the filter for an exchange, which makes the edits in its
// directions first; with a nil Redactor it changes nothing else.
func NewExchangeFilter(r *Redactor, ex *captures.Exchange, edits [2][]Edit) *ExchangeFilter {
	p := &ExchangeFilter{edits: edits, ahead: make(map[int64]*captures.Chunk), messages: ex.Transport == captures.WebSocket}
	switch {
	case r == nil:
	case p.messages:
		p.bodies = [2]*BodyFilter{NewMessageFilter(r), NewMessageFilter(r)}
	default:
		p.bodies = [2]*BodyFilter{NewBodyFilter(r, ex.RequestHeaders), NewBodyFilter(r, ex.ResponseHeaders)}
		if to := ex.ChangedProtocol(); to != "" {
			p.bodies[captures.Up].ChangeProtocol(captures.Up, to)
			p.bodies[captures.Down].ChangeProtocol(captures.Down, to)
		}
	}
	return p
}

// Write takes the next chunk, which may be the last of its direction, and returns
// what is decided by then. Chunks of more than maxChunk bytes are cut.
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
	if p.bytes > maxAhead {
		for _, b := range p.bodies {
			b.FlushHeld()
			p.addAhead(b.Ready()...)
		}
	}
	var out []*captures.Chunk
	for k := p.ahead[p.next]; k != nil; k = p.ahead[p.next] {
		out = append(out, k)
		delete(p.ahead, p.next)
		p.bytes -= int64(len(k.Data))
		p.next++
	}
	return out
}

func (p *ExchangeFilter) addAhead(chunks ...*captures.Chunk) {
	for _, c := range chunks {
		p.ahead[c.Seq] = c
		p.bytes += int64(len(c.Data))
	}
}

// editChunk returns the data of the chunk that begins at start with its part of
// the edits made.
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
