package live

import (
	"strings"

	"unwire/replay/live/values"
)

// The limits of the identifiers that are tracked.
const (
	// maxTokens limits the number of identifiers, counting each encoding.
	maxTokens = 200_000

	// maxTokenLen limits the length of one in bytes.
	maxTokenLen = 4096
)

// A trace is the position in the server's messages at which an identifier occurred first.
type trace struct {
	// down is the index of the server message in Links.down.
	down int
	// path is the path of the value in the message.
	path string
	// part is the position of the identifier inside the value; "" for the whole value.
	part string

	// how is the encoding in which the client sends the identifier.
	how values.Spelling

	// id means that the value has the format of an identifier.
	id bool

	// number means that the value is a number and not a text.
	number bool
}

// An innerBinding is an issued identifier that is a part of a value in a client's message.
type innerBinding struct {
	// leaf is the index of the value among the message's leaves.
	leaf int
	// token is the identifier as it occurs in the client's message.
	token string

	// trace is the position at which the server issued the identifier.
	trace
}

// indexTokens adds the identifiers in server message j, in all encodings, to Links.tokens.
func (l *Links) indexTokens(j int) {
	for k := range l.down[j].leaves {
		v := &l.down[j].leaves[k]
		for _, p := range v.Parts() {
			for _, how := range values.Spellings {
				if len(l.tokens) >= maxTokens || how != values.AsIs && !how.IsDigest() && (!p.ID || len(p.Value) > maxTokenLen) {
					continue
				}
				out, ok := how.Of(p.Value)
				if _, known := l.tokens[out]; known || !ok || len(out) < values.ShortText && !values.IsDigits(p.Value) || how != values.AsIs && values.IsDigits(p.Value) || len(out) > maxTokenLen || l.own[out] {
					continue
				}
				l.tokens[out] = trace{j, v.Path, p.At, how, p.ID || how != values.AsIs, p.Number}
			}
		}
	}
}

// search finds the issued identifiers inside the values of a client's message, and records the words
// that the client sent before the server did.
func (l *Links) search(h *parsedMessage) (out []innerBinding) {
	for k := 0; k < len(h.leaves); k++ {
		v := &h.leaves[k]
		if v.Number {
			// Whole numbers are compared elsewhere; here only texts of digits.
			if t, ok := l.tokens[v.Text()]; ok && !v.Small && (t.part != "" || !t.number) {
				out = append(out, innerBinding{k, v.Text(), t})
			}
			continue
		}
		if len(v.Data) < values.ShortText || len(v.Data) > values.MaxTraced || v.IsMessage() {
			continue
		}
		before := len(out)
		out = l.appendInnerBindings(out, k, v)
		if len(out) > before {
			k += v.Inner
		}
	}
	return out
}

// appendInnerBindings appends the issued identifiers inside the value v, which is leaf k of a client's
// message.
func (l *Links) appendInnerBindings(out []innerBinding, k int, v *values.Leaf) []innerBinding {
	s, seen := string(v.Data), map[string]bool{}
	// the place of the last one found, which is not searched further
	bound := "\x00"
	for c := range v.Candidates() {
		w, whole := c.Value, c.Whole
		if within(c.At, bound) || len(w) < values.ShortText && !(whole && values.IsDigits(w)) || seen[w] {
			continue
		}
		seen[w] = true
		t, ok := l.tokens[w]
		switch {
		case !ok && len(l.own) < maxTokens:
			l.own[w] = true
		case ok && (whole && (t.how != values.AsIs || t.part != "" || t.number || w != s) || t.id && w != s):
			out = append(out, innerBinding{k, w, t})
			if bound = c.At; !whole || c.At == "" {
				bound = "\x00"
			}
		}
	}
	return out
}

// within reports whether the part at position at of a value is inside the part at position holder.
func within(at, holder string) bool {
	rest, ok := strings.CutPrefix(at, holder)
	return ok && rest != "" && strings.ContainsRune(" .[", rune(rest[0]))
}
