package live

import (
	"strings"

	"unwire/replay/live/values"
)

// The limits of the values that are tracked.
const (
	maxTokens   = 200_000 // spellings of issued values
	maxTokenLen = 4096    // bytes of one
)

// A trace is the first place at which a spelling of an issued value occurred.
type trace struct {
	// down is the index of the server frame in Links.down.
	down int
	// path is the path of the value in the frame.
	path string
	// part is the position of the spelling inside the value.
	part string
	how  values.Spelling
	id   bool

	// number means that the value at that place is a number, not a text.
	number bool
}

// An innerBinding is a part of a leaf of a client's frame that is a spelling of an issued value.
type innerBinding struct {
	leaf int
	// token is the captured text of the identifier.
	token string
	trace
}

// indexTokens adds the values that server frame j issues to the tokens.
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

// search finds the issued values inside the leaves of a client's frame, and records the values that
// the client sent first.
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

// appendInnerBindings appends the issued values inside leaf k, which is v.
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

// within reports whether one part of a value is inside another part.
func within(at, holder string) bool {
	rest, ok := strings.CutPrefix(at, holder)
	return ok && rest != "" && strings.ContainsRune(" .[", rune(rest[0]))
}
