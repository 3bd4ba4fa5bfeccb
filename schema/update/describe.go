package update

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/compare"
)

// describeField returns the label and the type of a field, as in a declaration.
func describeField(f protoreflect.FieldDescriptor) string {
	label := ""
	switch {
	case f.IsMap():
	case f.IsList():
		label = "repeated "
	case f.HasOptionalKeyword():
		label = "optional "
	}
	return label + compare.TypeOf(f)
}

// methodText returns the types of a method, as in a declaration.
func methodText(md protoreflect.MethodDescriptor) string {
	side := func(stream bool, d protoreflect.MessageDescriptor) string {
		if stream {
			return "(stream " + string(d.FullName()) + ")"
		}
		return "(" + string(d.FullName()) + ")"
	}
	return fmt.Sprintf("%s returns %s", side(md.IsStreamingClient(), md.Input()), side(md.IsStreamingServer(), md.Output()))
}

// sizeText returns the size of a message, enum or service in words, such as "2 fields".
func sizeText(d protoreflect.Descriptor) string {
	n, what := 0, ""
	switch d := d.(type) {
	case protoreflect.EnumDescriptor:
		n, what = d.Values().Len(), "value"
	case protoreflect.MessageDescriptor:
		n, what = d.Fields().Len(), "field"
	case protoreflect.ServiceDescriptor:
		n, what = d.Methods().Len(), "method"
	}
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
