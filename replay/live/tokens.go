package live

import (
	"slices"
	"strings"

	"unwire/replay/edit"
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

	// also are further encodings of the identifier with the same result.
	also []values.Spelling

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

// contains reports whether the identifier o is a part of b that the server issued with it.
func (b *innerBinding) contains(o *innerBinding) bool {
	return b.down == o.down && b.path == o.path && strings.Contains(b.token, o.token)
}

// indexTokens adds the identifiers in server message j, in all encodings, to Links.tokens.
func (l *Links) indexTokens(j int) {
	for k := range l.down[j].leaves {
		v := &l.down[j].leaves[k]
		for _, p := range v.Parts() {
			for _, how := range values.Spellings {
				if len(l.tokens) < maxTokens && how.Applies(&p) {
					l.addToken(trace{down: j, path: v.Path, part: p.At, how: how, id: p.ID || how != values.AsIs, number: p.Number && how == values.AsIs}, &p)
				}
			}
		}
	}
}

// addToken adds the part p of a server's value in the encoding of t, unless the encoded text is known.
func (l *Links) addToken(t trace, p *values.Part) {
	if t.how != values.AsIs && !t.how.IsDigest() && len(p.Value) > maxTokenLen {
		return
	}
	out, ok := t.how.Of(p.Value)
	if !ok || len(out) < values.ShortText && !values.IsDigits(p.Value) || len(out) > maxTokenLen || l.own[out] {
		return
	}
	first, known := l.tokens[out]
	switch {
	case !known, first.how.IsDerived() && !t.how.IsDerived():
		l.tokens[out] = t
	case first.down == t.down && first.path == t.path && first.part == t.part:
		first.also = append(first.also, t.how)
		l.tokens[out] = first
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
	bound := noPlace
	// the longest word that is an issued text but does not look like an identifier, until a part of it does
	longer := innerBinding{}
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
		case ok && t.isInside(w, s, whole):
			n := innerBinding{k, w, t}
			if longer.contains(&n) {
				n = longer
			}
			if !whole && isPartOf(&n, out) {
				continue
			}
			out = append(out, n)
			if whole && w == s {
				return out
			}
			bound = placeOfWhole(&c)
		case ok && !whole:
			if n := (innerBinding{k, w, t}); !longer.contains(&n) {
				longer = n
			}
		}
	}
	return out
}

// noPlace is a place that no candidate has.
const noPlace = "\x00"

// placeOfWhole returns the place of a candidate that is a whole value in a document, or noPlace.
func placeOfWhole(c *values.Candidate) string {
	if !c.Whole || c.At == "" {
		return noPlace
	}
	return c.At
}

// isPartOf reports whether one of the bindings in list is for the same value, and contains n.
func isPartOf(n *innerBinding, list []innerBinding) bool {
	return slices.ContainsFunc(list, func(o innerBinding) bool { return o.leaf == n.leaf && o.contains(n) })
}

// isInside reports whether the identifier w is a part of the client's value s, or all of it in another
// form. whole means that it is a whole part of the value.
func (t *trace) isInside(w, s string, whole bool) bool {
	return whole && (t.how != values.AsIs || t.part != "" || t.number || w != s) || t.id && w != s
}

// within reports whether the part at position at of a value is inside the part at position holder.
func within(at, holder string) bool {
	rest, ok := strings.CutPrefix(at, holder)
	return ok && rest != "" && strings.ContainsRune(" .[", rune(rest[0]))
}

// agreeOnSpellings chooses, for bindings of the same paths, an encoding that fits all of them: base64
// without special characters does not show by itself whether it is base64url.
func (l *Links) agreeOnSpellings(turns []Turn) {
	groups := map[pair][]*Binding{}
	for i := range turns {
		for k := range turns[i].Live {
			b := &turns[i].Live[k]
			at := pair{edit.WithoutIndexes(b.Path), edit.WithoutIndexes(b.FromPath)}
			groups[at] = append(groups[at], b)
		}
	}
	for _, group := range groups {
		if how, part, ok := l.commonSpelling(group); ok {
			for _, b := range group {
				b.How, b.Part = string(how), part
				b.token, _ = l.issuedBy(b)
			}
		}
	}
}

// commonSpelling returns an encoding of a part of the server's values that gives the client's value in
// all bindings; ok is false if there is none.
func (l *Links) commonSpelling(group []*Binding) (how values.Spelling, part string, ok bool) {
	type candidate struct {
		how  values.Spelling
		part string
	}
	tried := map[candidate]bool{}
	for _, b := range group {
		if b.token == "" || b.How == "" {
			continue
		}
		for _, how := range append([]values.Spelling{values.Spelling(b.How)}, b.also...) {
			c := candidate{how, b.Part}
			if tried[c] {
				continue
			}
			tried[c] = true
			if !slices.ContainsFunc(group, func(o *Binding) bool { return !l.maySpell(o, how, b.Part) }) {
				return how, b.Part, true
			}
		}
	}
	return "", "", false
}

// issuedBy returns the captured value of a binding as the client sends it; ok is false if the server's message does not
// have it.
func (l *Links) issuedBy(b *Binding) (value string, ok bool) {
	_, down := l.index()
	for _, p := range down.In(b.FromPath, b.source.down) {
		if part := b.partOf(&l.down[p.Message].leaves[p.Leaf]); part != nil {
			return values.Spelling(b.How).Of(part.Value)
		}
	}
	return "", false
}

// maySpell reports whether the client may have sent a part of the server's value in the encoding how.
func (l *Links) maySpell(b *Binding, how values.Spelling, part string) bool {
	other := *b
	other.How, other.Part = string(how), part
	out, ok := l.issuedBy(&other)
	return ok && (out == b.token || "t"+out == b.value)
}
