package shape

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
)

// textOdds returns the log odds (natural logarithm) that the payload of node i, which is clean text and also parses
// as a message, was written as text; positive values favour text.
//
// Only the bytes that frame the fields distinguish the two readings: the content of a
// string field is text in both. So the odds compare, over tags, lengths, varints and
// fixed values, how likely each byte is in prose and in a message (a log-likelihood
// ratio, https://en.wikipedia.org/wiki/Likelihood-ratio_test). The figures are rounded
// from English prose, source code and the descriptors of public APIs. Their exact size is
// unimportant because they are summed over many values.
func textOdds(t *wire.Tree, i int32) float64 {
	end := t.Nodes[i].End
	start := t.Nodes[i].Val
	odds := 0.0

	for j := int(i) + 1; j < len(t.Nodes) && t.Nodes[j].Off < end; j++ {
		n := &t.Nodes[j]
		odds += textLog(t.Data[n.Off:n.TagEnd], n.Off == start) - tagLog(n)
		switch n.Type {
		case wire.Len:
			length := 4.2 * float64(n.Val-n.TagEnd)
			if n.End == t.Nodes[n.Parent].End {
				// The field ends the message, so its length is known once it is the last
				// field.
				length = lastLength
			}
			odds += textLog(t.Data[n.TagEnd:n.Val], false) + length
			odds -= seams(t.Data, n)
			if n.First == wire.None && ident.Of(string(t.Data[n.Val:n.End])) != "" {
				// Text seldom has the byte of the right length before an identifier.
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

// lastLength is the negative log likelihood of the length of a message's last field, which follows from the
// message's own length.
const lastLength = 1.5

// seams returns the evidence, in log odds, that a field's payload and the bytes around it are not one text, because
// case or script changes inside a word. 0 means no evidence.
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

// seam returns the evidence, in log odds, that b does not follow a in one text.
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

// textLog returns the log likelihood of bytes in text. first means that they begin the text.
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
			// Few texts begin with white space.
			sum -= 7.6
		default:
			sum -= 5.0
		}
	}
	return sum
}

// sameTagLog is the log likelihood that a message begins with the same tag as another message of its type.
const sameTagLog = -0.3

// tagLog returns the log likelihood of a tag in a message. Low field numbers and the wire
// types varint and length-delimited are the most frequent.
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
	// Groups are rare.
	return sum - 7.5
}
