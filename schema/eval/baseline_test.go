package eval

import (
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"
)

// A rule decides what a field is from its payloads, in their order, as a public
// tool does by its documented order of attempts. None of them knows packed fields.
type rule struct {
	name string
	read func(payloads [][]byte) []wire.Kind // of each payload
}

var rules = []rule{
	{"protoc --decode_raw", each(func(p []byte) wire.Kind { // a message if it parses, else a string with escapes
		switch {
		case len(p) > 0 && parses(p):
			return wire.KindMessage
		case utf8.Valid(p):
			return wire.KindString
		}
		return wire.KindBytes
	})},
	{"blackboxprotobuf", func(ps [][]byte) []wire.Kind { // the first value's reading is kept while it works
		order := []wire.Kind{wire.KindMessage, wire.KindString, wire.KindBytes}
		at := 0
		out := make([]wire.Kind, len(ps))
		for i, p := range ps {
			for at < 2 && (at == 0 && !parses(p) || at == 1 && !utf8.Valid(p)) {
				at++
			}
			out[i] = order[at]
		}
		return out
	}},
	{"protobuf-inspector", each(func(p []byte) wire.Kind { // text if it looks like it, else a message, else bytes
		switch {
		case len(p) > 0 && printable(p) >= 0.9:
			return wire.KindString
		case parses(p):
			return wire.KindMessage
		}
		return wire.KindBytes
	})},
	{"Protoscope", each(func(p []byte) wire.Kind { // a message if it parses, a string if mostly printable ASCII, else hex
		switch {
		case len(p) > 0 && parses(p):
			return wire.KindMessage
		case utf8.Valid(p) && printable(p) >= 0.7 && !wide(p):
			return wire.KindString
		}
		return wire.KindBytes
	})},
	{"UTF-8 first", each(func(p []byte) wire.Kind {
		switch {
		case utf8.Valid(p) && printable(p) == 1:
			return wire.KindString
		case parses(p):
			return wire.KindMessage
		}
		return wire.KindBytes
	})},
}

func each(f func([]byte) wire.Kind) func([][]byte) []wire.Kind {
	return func(ps [][]byte) []wire.Kind {
		out := make([]wire.Kind, len(ps))
		for i, p := range ps {
			out[i] = f(p)
		}
		return out
	}
}

// parses reports whether p is fields to its end.
func parses(p []byte) bool {
	for len(p) > 0 {
		n, typ, size := protowire.ConsumeField(p)
		if size < 0 || n < 1 || typ > protowire.Fixed32Type {
			return false
		}
		p = p[size:]
	}
	return true
}

// printable is the share of runes that print; white space does.
func printable(p []byte) float64 {
	if !utf8.Valid(p) {
		return 0
	}
	n, all := 0, 0
	for _, r := range string(p) {
		all++
		if unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\r' || r == 0xfeff || r == 0x200d {
			n++
		}
	}
	return float64(n) / float64(max(all, 1))
}

// wide reports text outside ASCII, in more than a few places.
func wide(p []byte) bool {
	n := 0
	for _, c := range p {
		if c >= 0x80 {
			n++
		}
	}
	return 10*n > 3*len(p)
}
