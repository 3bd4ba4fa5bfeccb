package kind

import (
	"strings"

	"unwire/decode/wire"
)

// ResolvingEvidence describes, in words, values that would decide between the two most probable types of a field.
// list are its possible types, most probable first. It returns "" if there is no ambiguity.
func ResolvingEvidence(f *Field, list []Reading) string {
	if f == nil || len(list) < 2 {
		return ""
	}
	a, b := list[0], list[1]
	if strings.HasPrefix(a.Type, "timestamp-") || strings.HasPrefix(b.Type, "timestamp-") {
		return "a value that is not a time between 2001 and 2065 rules out the time"
	}
	if isNumber(a.Kind) && isNumber(b.Kind) {
		return NumberType(f, Judgement{Kind: a.Kind}, Use{}).ResolvedBy
	}

	// Kinds of payloads are refuted by their bytes.
	refute := []string{}
	for _, r := range [...]Reading{a, b} {
		switch r.Kind {
		case wire.KindString:
			refute = append(refute, "a value that is not UTF-8 rules out string")
		case wire.KindMessage:
			refute = append(refute, "a value whose bytes are no fields refutes message")
		case wire.KindPacked:
			refute = append(refute, "a value that does not parse as such numbers rules out "+r.Type)
		}
	}
	switch {
	case len(refute) == 0:
		return ""
	case f.Occurs < 10:
		refute = append(refute, "more samples")
	}
	return strings.Join(refute, "; ")
}

// isNumber reports whether k is a kind of number.
func isNumber(k wire.Kind) bool {
	return k == wire.KindVarint || k == wire.KindFixed32 || k == wire.KindFixed64
}
