package kind

import (
	"bytes"
	"math"

	"unwire/decode/wire"
)

// Shapes that much else has are told by all that was seen of a field, and are never
// certain: any message of one field may be a wrapper, and a Status without details is
// a number and a text.

// The log-odds of a message that has never had but field 1 being a wrapper: without
// more, for its emptiness, as of a wrapper of zero, for each sibling that is one as
// well, and for having been seen often. They are chosen by hand.
const (
	oddsWrapper     = -1.7
	oddsEmpty       = 1.3
	oddsSibling     = 0.7
	oddsOften       = 0.4
	mostWrapper     = 0.8
	leastGuess      = 0.25 // below it nothing is said
	leastSamples    = 3
	mostSiblings    = 3
	oneStatusP      = 0.35
	leastStatusRate = 0.9
)

// pooledShape is for the shapes that one message does not tell.
func (r *Reader) pooledShape(i int32) Remark {
	f := r.Field(i)
	if f == nil || f.Child == nil || f.Len == nil || f.Len.N < leastSamples {
		return Remark{}
	}
	if name := wrapped(f); name != "" {
		if p := r.wrapperP(i, f); p >= leastGuess {
			return Remark{Shape: name, P: p}
		}
		return Remark{}
	}
	return r.bareStatus(i, f)
}

// wrapped is the wrapper that a field's payloads could all be, or "".
func wrapped(f *Field) string {
	if f == nil || f.Len == nil || f.Child == nil {
		return ""
	}
	numbers := f.Child.Numbers()
	if len(numbers) != 1 || numbers[0] != 1 {
		return ""
	}
	g := f.Child.Field(1)
	if g.Most > 1 || !g.pure() {
		return ""
	}
	switch {
	case g.Varint != nil && g.Varint.Zero == 0:
		return "google.protobuf." + varintWrapper(g)
	case g.Fixed64 != nil && g.Fixed64.Zero == 0 && g.readings()[0].Type == "double":
		return "google.protobuf.DoubleValue"
	case g.Fixed32 != nil && g.Fixed32.Zero == 0 && g.readings()[0].Type == "float":
		return "google.protobuf.FloatValue"
	case g.Len != nil && g.Len.Empty == 0:
		switch g.readings()[0].Kind {
		case wire.KindString:
			return "google.protobuf.StringValue"
		case wire.KindBytes:
			return "google.protobuf.BytesValue"
		}
	}
	return "" // zeros, which a wrapper leaves out, or a message
}

// varintWrapper is the wrapper whose values' range is the one that was seen.
func varintWrapper(g *Field) string {
	switch {
	case g.Varint.Negative == 0 && g.Varint.Max == 1:
		return "BoolValue"
	case g.Varint.Negative == 0 && g.Varint.Max <= math.MaxInt32:
		return "Int32Value"
	}
	return "Int64Value"
}

func (r *Reader) wrapperP(i int32, f *Field) float64 {
	odds := oddsWrapper
	if f.Len.Empty > 0 {
		odds += oddsEmpty
	}
	if f.Len.N >= 10 {
		odds += oddsOften
	}
	if f.Most > 1 {
		odds -= oddsEmpty // lists are of messages that have more to say
	}
	siblings, seen := 0, 0
	for c := range r.t.Children(r.t.Node(i).Parent) {
		if seen++; seen > mostShapeFields || siblings == mostSiblings {
			break
		}
		if n := r.t.Node(c); n.Number != r.t.Node(i).Number && n.Type != wire.Garbage && wrapped(r.Field(c)) != "" {
			siblings++
		}
	}
	odds += oddsSibling * float64(siblings)
	return math.Min(math.Round(100/(1+math.Exp(-odds)))/100, mostWrapper)
}

// bareStatus is for a code of RPC and words, and nothing else.
func (r *Reader) bareStatus(i int32, f *Field) Remark {
	numbers := f.Child.Numbers()
	if len(numbers) != 2 || numbers[0] != 1 || numbers[1] != 2 {
		return Remark{}
	}
	code, text := f.Child.Field(1), f.Child.Field(2)
	if code.Varint == nil || !code.pure() || code.Most > 1 || code.Varint.Negative > 0 || code.Varint.Max > 16 || code.Varint.Max < 3 || code.Varint.Zero > 0 ||
		len(code.Varint.Values.Items) < 2 || text.Most > 1 || !text.pure() || text.Len == nil || float64(text.Seen) < leastStatusRate*float64(f.Len.N) || text.readings()[0].Kind != wire.KindString {
		return Remark{}
	}
	for c := range r.t.Children(i) {
		if n := r.t.Node(c); n.Number == 2 && bytes.IndexByte(bytes.TrimSpace(r.t.Payload(c)), ' ') < 0 {
			return Remark{} // a name, not words
		}
	}
	for c := range r.t.Children(i) {
		if r.t.Node(c).Number == 1 {
			return Remark{Shape: "google.rpc.Status", Note: r.statusWord(c), P: oneStatusP}
		}
	}
	return Remark{}
}

// fieldMask is how likely a message is to be a FieldMask: names of fields as protobuf
// writes them, of which some have several parts.
func (r *Reader) fieldMask(i int32) float64 {
	paths, words, steps := 0, false, false
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		if n.Number != 1 || n.Type != wire.Len && n.Type != wire.Message || !isFieldPath(r.t.Payload(c)) {
			return 0
		}
		paths++
		words = words || bytes.IndexByte(r.t.Payload(c), '_') >= 0
		steps = steps || bytes.IndexByte(r.t.Payload(c), '.') >= 0
	}
	switch {
	case paths > 1 && words && steps:
		return 0.8
	case paths > 1 && words, paths > 1 && steps:
		return 0.5
	case paths == 1 && words && steps:
		return 0.45
	}
	return 0
}

// isFieldPath is for names of lower case with dots between them.
func isFieldPath(p []byte) bool {
	if len(p) > 200 {
		return false
	}
	start := true
	for _, c := range p {
		switch {
		case c >= 'a' && c <= 'z':
			start = false
		case start:
			return false
		case c == '.':
			start = true
		case c != '_' && !isDigit(c):
			return false
		}
	}
	return !start
}
