package text

import (
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A delimitedPiece is a delimited message (one preceded by its length as a varint), or the rest of the data if no
// length fits.
type delimitedPiece struct {
	// whole is false for the rest of the data.
	whole bool

	// long is the number of bytes by which the length's varint is longer than necessary.
	long int

	// data is the message without its length prefix.
	data []byte
}

// delimited calls f for each message in data that is preceded by its length, in order, and for the rest.
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
	// delimitedSample is the maximum number of messages that isDelimited parses.
	delimitedSample = 16

	// leastDelimited is the minimum size in bytes of a single delimited message.
	leastDelimited = 8
)

// isDelimited reports whether data consists of delimited messages (each preceded by its length) and is less likely
// a single message. scratch is reused memory for parsing.
func isDelimited(data []byte, o Options, scratch *wire.Tree) bool {
	// All lengths must fit. That is checked first, because it excludes nearly all other data at little cost.
	count, filled := 0, 0
	for rest := data; len(rest) > 0; count++ {
		v, n := wire.ConsumeVarint(rest)
		if n <= 0 || n > wire.SizeVarint(v) || v > uint64(len(rest)-n) {
			return false
		}
		rest = rest[n+int(v):]
		if v > 0 {
			filled++
		}
	}

	// A sample of the messages suffices.
	for i, rest := 0, data; i < min(count, delimitedSample); i++ {
		v, n := wire.ConsumeVarint(rest)
		m := rest[n : n+int(v)]
		rest = rest[n+int(v):]
		if len(m) > o.segmentLen {
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

	// Any few bytes may begin with their own length by accident.
	if filled == 0 || count == 1 && len(data) <= leastDelimited {
		return false
	}

	// The data may be a single message as well. Decide by its likeliest reading.
	sample := segment(data, o.segmentLen)
	if scratch.Reset(sample, o.Wire); scratch.Err() != nil {
		return true
	}
	is, _, _ := kind.NewReader(scratch, nil).Best(0)
	return is != wire.KindMessage && is != wire.KindString
}

// delimitedPiece prints a delimited message in braces.
func (p *printer) delimitedPiece(m delimitedPiece, o Options) {
	if !m.whole {
		p.w.WriteString("# the remaining bytes are not a delimited message\n")
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
