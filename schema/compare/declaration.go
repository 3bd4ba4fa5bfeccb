package compare

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/infer"
)

// TypeOf returns the type of a field as in its declaration, without the label, such as int32, pkg.Message or
// map<string, pkg.Message>.
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

// declaration returns the label, type and number of a field, such as "repeated string = 4".
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

// labelWord returns the label of a field: "required", or what infer.LabelOfField returns.
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
		// This is explicit presence in editions, which have no such keyword.
		return infer.Optional
	}
	return infer.Singular
}

// isPackable reports whether a field is repeated and its elements may be packed.
func isPackable(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return f.IsList()
}

// signature returns the types of a method, such as "stream pkg.Req -> pkg.Res".
func signature(m protoreflect.MethodDescriptor) string {
	return streamed(m.IsStreamingClient(), name(m.Input())) + " -> " + streamed(m.IsStreamingServer(), name(m.Output()))
}

// streamed returns s with the prefix "stream " if yes is set.
func streamed(yes bool, s string) string {
	if yes {
		return "stream " + s
	}
	return s
}

// streaming returns "unary", "client stream", "server stream" or "bidi stream".
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
