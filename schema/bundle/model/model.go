// Package model holds what is read from the output of code generators, and converts it to descriptors.
//
// A reader of package bundle collects messages, enums, services and extensions in a Found, with the references
// between them. Definitions are what several scripts declare together. Build converts them to descriptors: it
// merges duplicates, resolves references, through the exports of other scripts too, restores the spelling of
// names, and lists what it could not resolve.
//
//	var d model.Definitions
//	d.Messages = append(d.Messages, &model.Message{Def: model.Def{Full: "acme.v1.Item", Form: model.FormES1}})
//	built := d.Build(ctx) // built.Files are descriptors
//
// The package knows nothing of JavaScript.
package model

import (
	"fmt"
	"slices"

	"unwire/schema/bundle/protoname"

	"google.golang.org/protobuf/types/descriptorpb"
)

// A Message is a message type, as far as the generated code shows it.
type Message struct {
	// Def has the name, the place in the script and other properties that messages, enums and services have in
	// common.
	Def
	// Fields are the fields in the order of the generated code.
	Fields []*Field
}

// RestoreSnakeCase converts the names of a message's fields from fooBar, as code generators write them, to
// foo_bar. If a name cannot result from snake case, the author used camel case, and all names of the message
// are kept.
func (m *Message) RestoreSnakeCase() {
	kept := slices.ContainsFunc(m.Fields, func(f *Field) bool { return protoname.KeepsCase(f.Name) })
	for _, f := range m.Fields {
		f.Oneof = protoname.Snake(f.Oneof)
		if !kept {
			f.Name = protoname.Snake(f.Name)
		}
	}
}

// An Enum is an enum type, as far as the generated code shows it.
type Enum struct {
	// Def has the name, the place in the script and other properties that messages, enums and services have in
	// common.
	Def
	// Values are the enum's values in the order of the generated code.
	Values []EnumValue

	// From refers to the object with the values, if it is in another script.
	From *Ref

	// Prefix is the common prefix of the values' names that the code generator removes.
	Prefix string
}

// An EnumValue is the name and number of an enum value.
type EnumValue struct {
	// Name is the name in the .proto file, as far as it can be reconstructed.
	Name string
	// Number is the number of the enum value.
	Number int32
}

// A Service is an RPC service, as far as the generated code shows it.
type Service struct {
	// Def has the name, the place in the script and other properties that messages, enums and services have in
	// common.
	Def
	// Methods are the RPC methods of the service.
	Methods []*Method
}

// A Method is an RPC method of a service.
type Method struct {
	// Name is the name of the RPC method.
	Name string
	// In refers to the message type of the request.
	In *Ref
	// Out refers to the message type of the response.
	Out *Ref
	// Client is set if the client streams its messages.
	Client bool
	// Server is set if the server streams its messages.
	Server bool
	// Unknown is set if the generated code does not show whether the method streams.
	Unknown bool
	// Idempotency is the option idempotency_level; 0 if it is not set.
	Idempotency descriptorpb.MethodOptions_IdempotencyLevel
}

// A Def has the properties that messages, enums and services have in common.
type Def struct {
	// Full is the full protobuf name of the definition.
	Full string
	// Syntax is "proto2" or "proto3"; "" if the generated code does not show it.
	Syntax string
	// Form is the name of the code generator that wrote the definition.
	Form string
	// Place is the position of the definition in its script.
	Place Place
	// IDs are the indices of the tokens in the script that refer to the definition.
	IDs []int32
	// Local is the definition's name in the script, if it may differ from the protobuf name.
	Local string
	// Whole is set if underscores in the name do not separate nested types.
	Whole bool
}

// A Field is a field or extension, as far as the generated code shows it.
type Field struct {
	// Name is the name in the .proto file, as far as it can be reconstructed.
	Name string

	// JSONName is the JSON name, if it differs from the default one.
	JSONName string
	// Number is the field number.
	Number int64
	// Repeated is set if the field is repeated.
	Repeated bool
	// Required is set if the field is a required field of proto2.
	Required bool

	// Presence is set if the field has explicit presence, as with optional in proto3.
	Presence bool

	// Implicit is set if the generated code shows that the field has no explicit presence. In proto2, it is
	// then required.
	Implicit bool
	// Group is set if the field is a proto2 group.
	Group bool

	// Entry is set if the field's message type is a map entry. The field is converted to a map later.
	Entry bool
	// Packed is the value of the option packed; nil if the generated code does not show it.
	Packed *bool
	// Oneof is the name of the oneof that contains the field, or "".
	Oneof string

	// Scalar is the scalar type; 0 if Ref is set.
	Scalar descriptorpb.FieldDescriptorProto_Type
	// Ref refers to the field's message or enum type; nil for scalars.
	Ref *Ref

	// MapKey is the type of a map's keys; 0 if the field is not a map.
	MapKey descriptorpb.FieldDescriptorProto_Type

	// Value is the explicit default value, as in default_value of a descriptor; nil if there is none.
	Value *string

	// ValueRef is the default value of an enum field as the script has it: the number or name of an enum value.
	ValueRef string
	// JSType is the option jstype; 0 if it is not set.
	JSType descriptorpb.FieldOptions_JSType
	// Deprecated is the value of the option deprecated.
	Deprecated bool
	// Place is the position of the field in its script.
	Place Place
	// Extendee refers to the message that an extension extends; nil for ordinary fields.
	Extendee *Ref

	// Full is the full name of an extension; "" for ordinary fields.
	Full string
}

// A Ref is a reference to a type from a field or method. It is resolved by the definition that the script's
// expression leads to, by the full name, or by the name in the script.
type Ref struct {
	// Full is the full name of the type, if the script contains it; otherwise "".
	Full string
	// IDs are the indices of the tokens that the script's expression leads to: declarations and values.
	IDs []int32
	// Local is the name by which the script refers to the type, such as Outer_Inner.
	Local string
	// Module is the path of the JavaScript module from which the type is imported, or "".
	Module string
	// Loaded is the key of the webpack module, in another script, that defines the type, or "".
	Loaded string
	// Chain has the names of a member expression without the first: "pkg.Foo" for $root.pkg.Foo.
	Chain string
	// Enum is set if the referenced type is an enum.
	Enum bool
	// To is the referenced definition; nil until it is found.
	To *Def
	// Place is the position of the reference in its script.
	Place Place
}

// A Place is a position in a script.
type Place struct {
	// File is the path of the script.
	File string
	// Line and Column count from 1. Both are 0 if they are unknown.
	Line, Column int
	// Offset is the byte offset in the file.
	Offset int
}

// String formats the position as file:line:column.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Unresolved is an element of the definitions, such as a field, that was found but is incomplete.
type Unresolved struct {
	// Element is the full name of the incomplete element, as far as known.
	Element string
	// Place is the position of the element in its script.
	Place Place
	// Reason explains which information is missing.
	Reason string
}
