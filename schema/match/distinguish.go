package match

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxDistinguishing is the maximum number of fields that are named for each tied type.
const maxDistinguishing = 3

// distinguishingFields describes, for each of a few types that fit equally well, which fields, if they occurred,
// would show that it is the type: those that the other types lack or declare differently.
func distinguishingFields(tied []*messageType) []string {
	var out []string
	told := false
	for _, ty := range tied {
		var words []string
		more := 0
		for _, n := range slices.Sorted(maps.Keys(ty.fields)) {
			f := ty.fields[n]

			// A field distinguishes a type only if each other type lacks it or declares it
			// differently.
			if slices.ContainsFunc(tied, func(o *messageType) bool { return o != ty && o.get(n) != nil && !distinguishable(f, o.get(n)) }) {
				continue
			}
			// The others are only counted.
			if len(words) == maxDistinguishing {
				more++
				continue
			}
			words = append(words, fmt.Sprintf("%d (%s %s)", n, f.typeName(), f.name))
		}

		switch {
		case len(words) == 0:
			out = append(out, "no single field can show that the type is "+ty.name+": each field of this type also occurs in another of these types")
			continue
		case more > 0:
			words = append(words, fmt.Sprintf("%d more", more))
		}
		told = true
		out = append(out, fmt.Sprintf("a message with field %s would show that the type is %s", strings.Join(words, " or "), ty.name))
	}

	// Types with equal fields cannot be distinguished by any message.
	if !told {
		return []string{"no message can decide between these types, because they have the same fields"}
	}
	return out
}

// distinguishable reports whether a message could show that a field is declared as a and not as b.
func distinguishable(a, b *field) bool {
	return a.wire != b.wire || a.list != b.list || (a.child == nil) != (b.child == nil)
}

// typeName returns the type of the field as in a .proto file.
func (f *field) typeName() string {
	name := f.kind.String()
	if f.child != nil {
		name = string(protoreflect.FullName(f.child.name).Name())
	}
	if f.list {
		return "repeated " + name
	}
	return name
}
