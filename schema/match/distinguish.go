package match

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxDistinguishing is how many fields of each tied type are named.
const maxDistinguishing = 3

// distinguishingFields names, for each of a few types that samples do not tell apart,
// the fields that would: what no other of them has, or has with another type.
func distinguishingFields(tied []*typ) []string {
	var out []string
	told := false
	for _, ty := range tied {
		var words []string
		more := 0
		for _, n := range slices.Sorted(maps.Keys(ty.fields)) {
			f := ty.fields[n]
			if slices.ContainsFunc(tied, func(o *typ) bool { return o != ty && o.get(n) != nil && !distinguishable(f, o.get(n)) }) {
				continue
			}
			if len(words) == maxDistinguishing {
				more++
				continue
			}
			words = append(words, fmt.Sprintf("%d (%s %s)", n, f.typeName(), f.name))
		}
		switch {
		case len(words) == 0:
			out = append(out, ty.name+": no field that another of them has not")
			continue
		case more > 0:
			words = append(words, fmt.Sprintf("%d more", more))
		}
		told = true
		out = append(out, ty.name+": a field "+strings.Join(words, ", "))
	}
	if !told {
		return []string{"nothing on the wire: they have the same fields"}
	}
	return out
}

// distinguishable reports whether a value of one field may be none of the other.
func distinguishable(a, b *field) bool {
	return a.wire != b.wire || a.list != b.list || (a.below == nil) != (b.below == nil)
}

// typeName is the field's type in a .proto.
func (f *field) typeName() string {
	name := f.kind.String()
	if f.below != nil {
		name = string(protoreflect.FullName(f.below.name).Name())
	}
	if f.list {
		return "repeated " + name
	}
	return name
}
