package diff

import (
	"math/bits"
	"strings"

	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
)

// numberID is the class of large integers that are identifiers.
const numberID ident.Class = "number id"

// fewIDBits is the minimum size in bits of an integer that may be an identifier. Snowflake ids have about 60
// bits, and 64-bit hashes all of them.
const fewIDBits = 40

// isNumberID reports whether n may be an identifier: a large varint that is neither a time nor a small negative
// number. Fixed values may be doubles, so they do not count.
func (n *node) isNumberID() bool {
	return n.kind == integer && n.wire == wire.Varint && bits.Len64(n.number) >= fewIDBits && n.number>>32 != 1<<32-1 && !ident.IsTime(n.number)
}

// isTimestamp reports whether n is a message like google.protobuf.Timestamp: a time in seconds, and perhaps
// nanoseconds. Smaller numbers than leastNanos may be counts of something.
func (n *node) isTimestamp() bool {
	const (
		leastNanos = 100_000
		mostNanos  = 999_999_999
	)
	if n.kind != object || len(n.children) == 0 || len(n.children) > 2 {
		return false
	}
	seconds := n.children[0]
	if seconds.key != "1" || seconds.kind != integer || seconds.wire != wire.Varint || !ident.IsTime(seconds.number) {
		return false
	}
	nanos := n.nanos()
	return len(n.children) == 1 || nanos != nil && nanos.number >= leastNanos && nanos.number <= mostNanos
}

// nanos returns the nanoseconds of a message like google.protobuf.Timestamp; nil if it has none.
func (n *node) nanos() *node {
	if len(n.children) < 2 || n.children[1].key != "2" || n.children[1].kind != integer || n.children[1].wire != wire.Varint {
		return nil
	}
	return n.children[1]
}

// compareNanos compares the nanoseconds of two timestamps, which are at p. They are volatile, as the seconds are.
func (c *comparison) compareNanos(p pathPair, a, b *node) {
	volatile := []pair{{class: ident.Time}}
	x, y := a.nanos(), b.nanos()
	switch {
	case x == nil && y == nil, x != nil && y != nil && x.number == y.number:
	case x == nil:
		c.addFinding(finding{Change: Change{Path: p.b, Op: Add, New: y.value(), NewBytes: y.raw()}, pairs: volatile})
	case y == nil:
		c.addFinding(finding{Change: Change{Path: p.a, Op: Remove, Old: x.value(), OldBytes: x.raw()}, pairs: volatile})
	default:
		c.addChange(p, x, y, volatile)
	}
}

// A token is a volatile part of a text, such as an id or a time, with its class.
type token struct {
	// class is the kind of the part, such as "uuid".
	class ident.Class

	// value is the text of the part.
	value string
}

// skeleton returns s with each volatile part replaced by its class. If tokens is not nil, the parts are appended
// to it.
func skeleton(s string, tokens *[]token) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		end := ident.Next(s, i)
		if end == i {
			i++
			continue
		}

		// A word may be an id, perhaps followed by punctuation.
		if class, n := ident.Classify(s[i:end]); class != "" {
			b.WriteString(s[done:i])
			// NUL characters separate the class from the rest of the text.
			b.WriteString("\x00" + string(class) + "\x00")
			end = i + n
			if tokens != nil {
				*tokens = append(*tokens, token{class, s[i:end]})
			}
			done = end
		}
		i = end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}
