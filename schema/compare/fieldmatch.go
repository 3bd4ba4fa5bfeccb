package compare

import (
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// matchFields maps each field of before to its counterpart in after, if it has one.
//
// A field with the same name and number is the counterpart. Otherwise, a field with the same name was
// renumbered, and a field with the same number was renamed. If both exist, the one with the same type
// is chosen, or else the one with the same name.
func (d *differ) matchFields(before, after protoreflect.MessageDescriptor) map[protoreflect.FieldDescriptor]protoreflect.FieldDescriptor {
	mates := map[protoreflect.FieldDescriptor]protoreflect.FieldDescriptor{}
	taken := map[protoreflect.FieldDescriptor]bool{}

	// pair records a match.
	pair := func(f, g protoreflect.FieldDescriptor) { mates[f], taken[g] = g, true }

	// Fields with the same name and number come first, so that no other field takes their counterpart.
	var left []protoreflect.FieldDescriptor
	for i := range before.Fields().Len() {
		f := before.Fields().Get(i)
		if g := after.Fields().ByNumber(f.Number()); g != nil && g.Name() == f.Name() {
			pair(f, g)
		} else {
			left = append(left, f)
		}
	}

	for _, f := range left {
		g := after.Fields().ByName(f.Name())
		if g == nil || taken[g] {
			continue
		}
		// Name and number point to different fields. The name wins, unless the type points to the field with the
		// number.
		h := after.Fields().ByNumber(f.Number())
		if h != nil && !taken[h] && !d.sameType(f, g) && d.sameType(f, h) {
			if k := before.Fields().ByName(h.Name()); k == nil || !d.sameType(k, h) {
				continue
			}
		}
		pair(f, g)
	}

	// Names are exhausted, so the number decides.

	for _, f := range left {
		if mates[f] != nil {
			continue
		}
		if h := after.Fields().ByNumber(f.Number()); h != nil && !taken[h] && d.mayBeRenamed(f, h) {
			pair(f, h)
		}
	}
	return mates
}

// sameType reports whether two versions of a field have the same type and label, apart from renamed types.
func (d *differ) sameType(f, g protoreflect.FieldDescriptor) bool {
	_, _, same := d.compat.field(f, g)
	return same && labelWord(f) == labelWord(g)
}

// mayBeRenamed reports whether g, in the new version, may be the field f with another name. Both have the same
// number, and either their values are compatible or their names similar.
func (d *differ) mayBeRenamed(f, g protoreflect.FieldDescriptor) bool {
	worst, _, _ := d.compat.field(f, g)
	if f.Message() != nil && g.Message() != nil && !f.IsMap() && !g.IsMap() {
		return true
	}
	if worst != BreaksWire {
		return true
	}
	return nameLikeness(string(f.Name()), string(g.Name())) >= minFieldLikeness
}

// nameLikeness returns the share, from 0 to 1, of words that two names have in common (Dice coefficient).
func nameLikeness(a, b string) float64 {
	as, bs := subwords(a), subwords(b)
	if len(as)+len(bs) == 0 {
		return 0
	}
	// Words count once, even if the other name repeats them.
	shared := 0
	for _, w := range as {
		for _, v := range bs {
			if w == v {
				shared++
				break
			}
		}
	}
	return 2 * float64(shared) / float64(len(as)+len(bs))
}

// subwords splits a name into words in lower case: fooBar_baz9 becomes foo, bar and baz9, and HTTPServer becomes
// http and server.
func subwords(name string) []string {
	var words []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			words = append(words, strings.ToLower(b.String()))
			b.Reset()
		}
	}

	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r):
			// In HTTPServer, the S begins a word because it precedes a lower-case letter.
			afterLower := i > 0 && !unicode.IsUpper(runes[i-1])
			beforeLower := i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				flush()
			}
		}
		b.WriteRune(r)
	}

	flush()
	return words
}
