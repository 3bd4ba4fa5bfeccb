package probe

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
	"unwire/schema/compare"
)

// maxReflected limits the number of fields that are taken from server reflection.
const maxReflected = 20_000

// FromReflection returns the fields of a method's request as server reflection describes them: those of
// the message at Options.Path with Options.Numbers, and those of the messages below it. r describes the
// reflection for the result, and gets the definitions.
//
// Errors: a Path that does not lead to a message.
func FromReflection(o *Options, m protoreflect.MethodDescriptor, r *Reflection) (*Result, error) {
	var err error
	if r.Definitions, err = schema.FromFiles(m.ParentFile()).DescriptorSet(); err != nil {
		return nil, fmt.Errorf("probe: the definitions that the server's reflection returned cannot be encoded: %w", err)
	}
	res := o.newResult()
	res.Reflection, res.RequestType, res.Kind = r, string(m.Input().FullName()), "unary"
	switch {
	case m.IsStreamingClient():
		res.Kind = "bidi"
	case m.IsStreamingServer():
		res.Kind = "stream"
	}
	md := m.Input()
	for i, n := range o.Path {
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(n))
		if fd == nil || fd.Message() == nil {
			return nil, Stop("the server's reflection does not describe a message at the path %s", PathText(o.Path[:i+1]))
		}
		md = fd.Message()
	}
	res.addReflected(o, md, o.Path, map[protoreflect.FullName]bool{})
	res.sortFields()
	return res, nil
}

// addReflected adds the fields of the message type md at path, and of nested messages. above are the
// types of the enclosing messages, at which recursion stops.
func (r *Result) addReflected(o *Options, md protoreflect.MessageDescriptor, path []int32, above map[protoreflect.FullName]bool) {
	above[md.FullName()] = true
	defer delete(above, md.FullName())
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		top := len(path) == len(o.Path)
		if len(r.Fields) >= maxReflected || top && !o.Numbers.contain(int32(fd.Number())) {
			continue
		}
		r.Fields = append(r.Fields, reflectedField(fd, PathText(path), "server reflection ("+r.Reflection.Version+")"))
		if sub := fd.Message(); sub != nil && !fd.IsMap() && len(path)-len(o.Path) < o.Depth && !above[sub.FullName()] {
			r.addReflected(o, sub, append(slices.Clone(path), int32(fd.Number())), above)
		}
	}
}

// reflectedField returns the result for a declared field of the message at path.
func reflectedField(fd protoreflect.FieldDescriptor, path, evidence string) Field {
	f := Field{
		Path: path, Number: int32(fd.Number()), Class: classOf(fd.Kind()), Kind: fd.Kind().String(), Label: "singular",
		Name: string(fd.Name()), Type: compare.TypeOf(fd), Evidence: []string{evidence},
	}
	switch {
	case fd.IsMap():
		f.Label = "map"
	case fd.IsList():
		f.Label = "repeated"
	}
	if enum := fd.Enum(); enum != nil {
		for i := range enum.Values().Len() {
			f.Values = append(f.Values, string(enum.Values().Get(i).Name()))
		}
	}
	return f
}
