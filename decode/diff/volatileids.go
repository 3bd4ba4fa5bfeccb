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
