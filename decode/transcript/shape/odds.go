package shape

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/decode/transcript/ident"
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
			length := 4.2 * float64(n.Val-n.Tag)
			if n.End == t.Nodes[n.Parent].End {
				length = lastLength // all that is left: only whether it is the last is open
			}
			odds += textLog(t.Data[n.Tag:n.Val], false) + length
			odds -= seams(t.Data, n)
			if n.First == wire.None && ident.Of(string(t.Data[n.Val:n.End])) != "" {
				// Text seldom has what would be a length just before an identifier.
				odds -= 4
			}
		case wire.Varint:
			odds += textLog(t.Data[n.Val:n.End], false) + 4.9*float64(n.End-n.Val)
		case wire.I64, wire.I32:
			odds += textLog(t.Data[n.Val:n.End], false) + 5.5*float64(n.End-n.Val)
		}
	}
	return odds
}

// lastLength is minus the log likelihood of the length of the last field of a
// message, which the message's own length tells.
const lastLength = 1.5

// seams is how little the bytes at both ends of a field's payload go together
// with their neighbours as one text would: case or script changes within a word.
func seams(data []byte, n *wire.Node) float64 {
	if n.Val == n.End {
		return 0
	}
	first, _ := utf8.DecodeRune(data[n.Val:n.End])
	sum := seam(rune(data[n.Val-1]), first)
	if n.End < len(data) {
		last, _ := utf8.DecodeLastRune(data[n.Val:n.End])
		sum += seam(last, rune(data[n.End]))
	}
	return sum
}

func seam(a, b rune) float64 {
	la, lb := unicode.IsLetter(a), unicode.IsLetter(b)
	switch {
	case la && lb && (a < utf8.RuneSelf) != (b < utf8.RuneSelf), la && lb && unicode.IsLower(a) && unicode.IsUpper(b):
		return 3
	case la && unicode.IsDigit(b), unicode.IsDigit(a) && lb:
		return 1
	case lb && !la && !unicode.IsSpace(a) && !strings.ContainsRune("\"'`([{<-_/.#*@", a):
		return 1
	}
	return 0
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

// sameTagLog is the log likelihood that a message begins with the tag that
// another of its type began with.
const sameTagLog = -0.3

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
