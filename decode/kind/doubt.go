package kind

import (
	"strings"

	"unwire/decode/wire"
)

// Settle says what would decide between the two likeliest readings of a field; ""
// where nothing more is needed.
func Settle(f *Field, list []Reading) string {
	if f == nil || len(list) < 2 {
		return ""
	}
	a, b := list[0], list[1]
	if strings.HasPrefix(a.Type, "timestamp-") || strings.HasPrefix(b.Type, "timestamp-") {
		return "a value that is no time between 2001 and 2065 refutes the time"
	}
	if isNumber(a.Kind) && isNumber(b.Kind) {
		return NumberType(f, Judgement{Kind: a.Kind}, Use{}).Settle
	}
	refute := []string{}
	for _, r := range [...]Reading{a, b} {
		switch r.Kind {
		case wire.KindString:
			refute = append(refute, "a value that is not UTF-8 refutes string")
		case wire.KindMessage:
			refute = append(refute, "a value whose bytes are no fields refutes message")
		case wire.KindPacked:
			refute = append(refute, "a value whose bytes are no run of such numbers refutes "+r.Type)
		}
	}
	switch {
	case len(refute) == 0:
		return ""
	case f.Occurs < 10:
		refute = append(refute, "more samples: there are few")
	}
	return strings.Join(refute, "; ")
}

func isNumber(k wire.Kind) bool {
	return k == wire.KindVarint || k == wire.KindFixed32 || k == wire.KindFixed64
}
