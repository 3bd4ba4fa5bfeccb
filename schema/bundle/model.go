package bundle

import (
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"
)

// A message is a message type as a codegen's output tells of it.
type message struct {
	def
	fields []*field
}

// An enum is an enum type as a codegen's output tells of it.
type enum struct {
	def
	values []enumValue

	// what its values are of, where they were not found in its script
	from *ref

	// of those
	prefix string
}

type enumValue struct {
	name string
	no   int32
}

// A service is a service as a codegen's output tells of it.
type service struct {
	def
	methods []*method
}

type method struct {
	name           string
	in, out        *ref
	client, server bool
	unknown        bool // whether it streams
	idempotency    descriptorpb.MethodOptions_IdempotencyLevel
}

// A def is what all definitions have.
type def struct {
	full   string // name with package
	syntax string // proto2, proto3 or "" where the output does not tell
	form   string // codegen
	place  Place
	script *script
	ids    []int32 // tokens that stand for it in its script
	local  string  // its name in the script where that may be another
	whole  bool    // an _ in its name is one
}

type field struct {
	name string

	// where it is not what the name makes it
	json     string
	no       int64
	repeated bool
	required bool

	// explicit: proto3's optional
	presence bool

	// not explicit, where the output tells so: in proto2 it is required
	implicit bool
	group    bool

	// of a map, until it is made one
	entry  bool
	packed *bool
	oneof  string

	// 0 with ref
	scalar descriptorpb.FieldDescriptorProto_Type
	ref    *ref

	// 0 for no map
	mapKey descriptorpb.FieldDescriptorProto_Type

	// default
	value *string

	// default of an enum as the script names it
	valueRef   string
	jsType     descriptorpb.FieldOptions_JSType
	deprecated bool
	place      Place
	extendee   *ref

	// of an extension
	full string
}

// A ref names a type: by its full name, by what the script's expression leads
// to, or by the script's word for it.
type ref struct {
	full   string
	ids    []int32
	local  string
	module string // that it is imported from
	loaded string // key of webpack's module that it is of, in another script
	chain  string // names of a member expression, without the first
	enum   bool
	to     *def
	place  Place
}

// A Place is where something stands in a source.
type Place struct {
	File         string
	Line, Column int
	Offset       int
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Unresolved is something that was seen and could not be told in full.
type Unresolved struct {
	Element string // full name of what is concerned, as far as it is known
	Place   Place
	Reason  string
}
