package update

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/compare"
)

// short is a field's declaration in words.
func short(f protoreflect.FieldDescriptor) string {
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

func methodText(md protoreflect.MethodDescriptor) string {
	side := func(stream bool, d protoreflect.MessageDescriptor) string {
		if stream {
			return "(stream " + string(d.FullName()) + ")"
		}
		return "(" + string(d.FullName()) + ")"
	}
	return fmt.Sprintf("%s returns %s", side(md.IsStreamingClient(), md.Input()), side(md.IsStreamingServer(), md.Output()))
}

func counted(d protoreflect.Descriptor) string {
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
