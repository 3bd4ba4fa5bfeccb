package diff

import (
	"strings"

	"unwire/decode/score/ident"
)

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
