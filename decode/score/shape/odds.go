package shape

import (
	"math"

	"unwire/decode/score/ident"
	"unwire/decode/wire"
)

// textOdds is the log odds that the payload of node i, which is clean text and
// parses as a message, was written as text.
//
// Only the bytes that frame the fields tell the readings apart: what a string
// field holds is text under both. So the odds compare, over tags, lengths,
// varints and fixed values, how likely each byte is in prose and in a message.
// The figures are rounded from English prose, source code and the descriptors
// of public APIs; sums over values make their exact size unimportant.
func textOdds(t *wire.Tree, i int32) float64 {
	end := t.Nodes[i].End
	start := t.Nodes[i].Val
	odds := 0.0
	for j := int(i) + 1; j < len(t.Nodes) && t.Nodes[j].Off < end; j++ {
		n := &t.Nodes[j]
		odds += textLog(t.Data[n.Off:n.Tag], n.Off == start) - tagLog(n)
		switch n.Type {
		case wire.Len:
			odds += textLog(t.Data[n.Tag:n.Val], false) + 4.2*float64(n.Val-n.Tag)
			if n.First == wire.None && ident.Of(string(t.Data[n.Val:n.End])) != "" {
				odds -= 4 // text seldom has what would be a length just before an identifier
			}
		case wire.Varint:
			odds += textLog(t.Data[n.Val:n.End], false) + 4.9*float64(n.End-n.Val)
		case wire.I64, wire.I32:
			odds += textLog(t.Data[n.Val:n.End], false) + 5.5*float64(n.End-n.Val)
		}
	}
	return odds
}

// textLog is the log likelihood of bytes in text.
func textLog(b []byte, first bool) float64 {
	sum := 0.0
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z':
			sum -= 3.4
		case c == ' ':
			sum -= 2.2
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z':
			sum -= 4.6
		case c == '\n' && !first:
			sum -= 4.4
		case c == '\n', c == '\t', c == '\r', c == 0x1b:
			sum -= 7.6 // few texts begin with white space
		default:
			sum -= 5.0
		}
	}
	return sum
}

// tagLog is the log likelihood of a tag in a message: low numbers and the two
// common wire types are the rule.
func tagLog(n *wire.Node) float64 {
	sum := -1.3 - 1.2*math.Log(float64(max(n.Number, 1)))
	switch n.Type {
	case wire.Varint:
		return sum - 0.9
	case wire.Len:
		return sum - 0.7
	case wire.I64, wire.I32:
		return sum - 3.2
	}
	return sum - 7.5 // groups
}
