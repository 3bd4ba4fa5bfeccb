package text

import (
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A delimitedPiece is a message behind its length, or what is left when no length fits.
type delimitedPiece struct {
	whole bool
	long  int // bytes by which the length is longer than need be
	data  []byte
}

// delimited calls f for every delimited message in data, in order.
func delimited(data []byte, f func(delimitedPiece) error) error {
	for len(data) > 0 {
		v, n := wire.ConsumeVarint(data)
		if n <= 0 || v > uint64(len(data)-n) {
			return f(delimitedPiece{data: data})
		}
		m := delimitedPiece{whole: true, long: n - wire.SizeVarint(v), data: data[n : n+int(v) : n+int(v)]}
		if err := f(m); err != nil {
			return err
		}
		data = data[n+int(v):]
	}
	return nil
}

const (
	delimitedSample = 16 // messages that are weighed
	leastDelimited  = 8  // bytes of a message that stands alone behind its length
)

// isDelimited reports whether data divides into delimited messages without a
// rest, and is less likely to be one message. It parses into scratch.
func isDelimited(data []byte, o Options, scratch *wire.Tree) bool {
	count, filled := 0, 0
	for rest := data; len(rest) > 0; count++ {
		v, n := wire.ConsumeVarint(rest)
		if n <= 0 || n > wire.SizeVarint(v) || v > uint64(len(rest)-n) {
			return false
		}
		m := rest[n : n+int(v)]
		rest = rest[n+int(v):]
		if len(m) > 0 {
			filled++
		}
		if count >= delimitedSample || len(m) > o.segmentLen {
			continue
		}
		if scratch.Reset(m, o.Wire); scratch.Err() != nil {
			return false
		}
		if len(m) > 0 {
			if is, _, _ := kind.NewReader(scratch, nil).Best(0); is != wire.KindMessage {
				return false
			}
		}
	}
	if filled == 0 || count == 1 && len(data) <= leastDelimited {
		return false
	}
	sample := segment(data, o.segmentLen)
	if scratch.Reset(sample, o.Wire); scratch.Err() != nil {
		return true
	}
	is, _, _ := kind.NewReader(scratch, nil).Best(0)
	return is != wire.KindMessage && is != wire.KindString
}

// delimitedPiece writes a delimited message in braces of its own.
func (p *printer) delimitedPiece(m delimitedPiece, o Options) {
	if !m.whole {
		p.w.WriteString("# the rest is no delimited message\n")
		p.hex(m.data, 0)
		return
	}
	p.long(m.long)
	if len(m.data) == 0 {
		p.w.WriteString("{}\n")
		return
	}
	p.w.WriteString("{\n")
	p.message(m.data, o, 1)
	p.w.WriteString("}\n")
}
