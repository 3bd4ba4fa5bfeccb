package diff

import (
	"math/bits"
	"strings"

	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
)

// numberID is a large integer that is renamed wherever it occurs.
const numberID ident.Class = "number id"

// fewIDBits is what an integer has to have to be a name that was drawn or
// counted up: a snowflake has 60, a 64-bit hash as many as there are.
const fewIDBits = 40

// isNumberID reports whether n may be a name: a large varint that is neither a
// time nor a small negative number. Fixed values may be doubles.
func (n *node) isNumberID() bool {
	return n.kind == integer && n.wire == wire.Varint && bits.Len64(n.number) >= fewIDBits && n.number>>32 != 1<<32-1 && !ident.IsTime(n.number)
}

// A token is a volatile part of a text.
type token struct {
	class ident.Class
	value string
}

// skeleton is s with each volatile part replaced by its class. The parts are
// appended to *tokens if that is not nil.
func skeleton(s string, tokens *[]token) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		end := ident.Next(s, i)
		if end == i {
			i++
			continue
		}
		if class, n := ident.Classify(s[i:end]); class != "" {
			b.WriteString(s[done:i])
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
