package compare

import (
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// matchFields says which field of after each field of before is.
//
// A field with its name and its number is itself. A name with another number is
// the field renumbered, a number with another name the field renamed; where the
// two contradict each other, the types decide, and then the name.
func (d *differ) matchFields(before, after protoreflect.MessageDescriptor) map[protoreflect.FieldDescriptor]protoreflect.FieldDescriptor {
	mates := map[protoreflect.FieldDescriptor]protoreflect.FieldDescriptor{}
	taken := map[protoreflect.FieldDescriptor]bool{}
	pair := func(f, g protoreflect.FieldDescriptor) { mates[f], taken[g] = g, true }
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
		// The number is somebody else's now, or the name is. If both can be, the
		// name stays with the field unless the type stayed with the number.
		h := after.Fields().ByNumber(f.Number())
		if h != nil && !taken[h] && !d.sameType(f, g) && d.sameType(f, h) {
			if k := before.Fields().ByName(h.Name()); k == nil || !d.sameType(k, h) {
				continue
			}
		}
		pair(f, g)
	}

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

func (d *differ) sameType(f, g protoreflect.FieldDescriptor) bool {
	_, _, same := d.compat.field(f, g)
	return same && labelWord(f) == labelWord(g)
}

// mayBeRenamed reports whether fields of one number and different names may be
// one: values of the one can be read as the other, or the names are alike.
func (d *differ) mayBeRenamed(f, g protoreflect.FieldDescriptor) bool {
	worst, _, _ := d.compat.field(f, g)
	if f.Message() != nil && g.Message() != nil && !f.IsMap() && !g.IsMap() {
		return true
	}
	if worst != BreaksWire {
		return true
	}
	return nameLikeness(string(f.Name()), string(g.Name())) >= fieldThreshold
}

// nameLikeness is the share of words that two names have in common.
func nameLikeness(a, b string) float64 {
	as, bs := subwords(a), subwords(b)
	if len(as)+len(bs) == 0 {
		return 0
	}
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

// subwords splits a name into its words, in lower case: fooBar_baz9 is foo, bar
// and baz9, HTTPServer is http and server.
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
