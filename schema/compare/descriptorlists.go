package compare

import "google.golang.org/protobuf/reflect/protoreflect"

// A list is a list of descriptors. The descriptors of compiled .proto files search their lists from the beginning, so
// that a lookup for each of 50,000 values would take seconds.
type list[D any] interface {
	Len() int
	Get(i int) D
}

// byName returns the descriptors of a list by name.
func byName[D protoreflect.Descriptor](l list[D]) map[protoreflect.Name]D {
	m := make(map[protoreflect.Name]D, l.Len())
	for i := range l.Len() {
		d := l.Get(i)
		m[d.Name()] = d
	}
	return m
}

// byNumber returns the values of an enum by number, in the order of the enum.
func byNumber(values protoreflect.EnumValueDescriptors) map[protoreflect.EnumNumber][]protoreflect.EnumValueDescriptor {
	m := make(map[protoreflect.EnumNumber][]protoreflect.EnumValueDescriptor, values.Len())
	for i := range values.Len() {
		v := values.Get(i)
		m[v.Number()] = append(m[v.Number()], v)
	}
	return m
}
