package compare

import "google.golang.org/protobuf/reflect/protoreflect"

// A list is a list of protobuf descriptors. Their own lookup methods search from the beginning, which takes
// seconds for 50,000 elements; byName and byNumber build an index instead.
type list[D any] interface {
	// Len returns the number of descriptors.
	Len() int
	// Get returns the descriptor with index i.
	Get(i int) D
}

// byName returns the descriptors of a list, indexed by name.
func byName[D protoreflect.Descriptor](l list[D]) map[protoreflect.Name]D {
	m := make(map[protoreflect.Name]D, l.Len())
	for i := range l.Len() {
		d := l.Get(i)
		m[d.Name()] = d
	}
	return m
}

// byNumber returns the values of an enum, indexed by number and in the order of the enum.
func byNumber(values protoreflect.EnumValueDescriptors) map[protoreflect.EnumNumber][]protoreflect.EnumValueDescriptor {
	m := make(map[protoreflect.EnumNumber][]protoreflect.EnumValueDescriptor, values.Len())
	for i := range values.Len() {
		v := values.Get(i)
		m[v.Number()] = append(m[v.Number()], v)
	}
	return m
}
