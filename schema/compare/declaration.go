package compare

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/infer"
)

// TypeOf is a field's type as a declaration has it: int32, pkg.Message,
// map<string, pkg.Message>. Labels are left out.
func TypeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map<" + TypeOf(f.MapKey()) + ", " + TypeOf(f.MapValue()) + ">"
	case f.Message() != nil && f.Kind() == protoreflect.GroupKind:
		return "group " + name(f.Message())
	case f.Message() != nil:
		return name(f.Message())
	case f.Enum() != nil:
		return name(f.Enum())
	}
	return f.Kind().String()
}

// declaration is a field in short: repeated string = 4.
func declaration(f protoreflect.FieldDescriptor) string {
	s := TypeOf(f) + " = " + digits(f.Number())
	if l := labelWord(f); l != infer.Singular && l != infer.Map {
		s = l + " " + s
	}
	if o := realOneof(f); o != nil {
		s += " in oneof " + string(o.Name())
	}
	return s
}

// labelWord is the label as the contract has it, and "required".
func labelWord(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return infer.Map
	case f.IsList():
		return infer.Repeated
	case f.Cardinality() == protoreflect.Required:
		return "required"
	case f.HasOptionalKeyword() && realOneof(f) == nil:
		return infer.Optional
	case f.HasPresence() && f.Message() == nil && realOneof(f) == nil:
		return infer.Optional // of editions
	}
	return infer.Singular
}

func isPackable(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return f.IsList()
}

// signature is a method's types: stream pkg.Req -> pkg.Res.
func signature(m protoreflect.MethodDescriptor) string {
	return streamed(m.IsStreamingClient(), name(m.Input())) + " -> " + streamed(m.IsStreamingServer(), name(m.Output()))
}

func streamed(yes bool, s string) string {
	if yes {
		return "stream " + s
	}
	return s
}

// streaming is the kind of a method.
func streaming(m protoreflect.MethodDescriptor) string {
	var parts []string
	if m.IsStreamingClient() {
		parts = append(parts, "client")
	}
	if m.IsStreamingServer() {
		parts = append(parts, "server")
	}
	switch len(parts) {
	case 0:
		return "unary"
	case 2:
		return "bidi stream"
	}
	return strings.Join(parts, "") + " stream"
}
