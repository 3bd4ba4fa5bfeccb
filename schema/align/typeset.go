package align

import (
	"math/bits"
	"strings"
)

// types is a set of possible field types, with one bit for each type.
type types uint64

// The types of fields, in the order in which they are preferred if several fit.
const (
	tBool types = 1 << iota
	tInt32
	tUint32
	tSint32
	tInt64
	tUint64
	tSint64
	tEnum
	tFixed32
	tSfixed32
	tFloat
	tFixed64
	tSfixed64
	tDouble
	tString
	tBytes
	tMessage
	tGroup
	tMap
	tAny
	tTimestamp
	tDuration
	tFieldMask
	tStruct
	tValue
	tListValue
	tDoubleValue
	tFloatValue
	tInt64Value
	tUint64Value
	tInt32Value
	tUint32Value
	tBoolValue
	tStringValue
	tBytesValue

	// everyType is the set of all types.
	everyType = tBytesValue<<1 - 1
)

// wellKnown is the package of the well-known types.
const wellKnown = "google.protobuf."

// typeNames returns the names of all types as in a .proto file, ordered by their bit.
func typeNames() []string {
	return []string{
		"bool", "int32", "uint32", "sint32", "int64", "uint64", "sint64", "enum", "fixed32", "sfixed32", "float",
		"fixed64", "sfixed64", "double", "string", "bytes", "message", "group", "map", wellKnown + "Any",
		wellKnown + "Timestamp", wellKnown + "Duration", wellKnown + "FieldMask", wellKnown + "Struct",
		wellKnown + "Value", wellKnown + "ListValue", wellKnown + "DoubleValue", wellKnown + "FloatValue",
		wellKnown + "Int64Value", wellKnown + "UInt64Value", wellKnown + "Int32Value", wellKnown + "UInt32Value",
		wellKnown + "BoolValue", wellKnown + "StringValue", wellKnown + "BytesValue",
	}
}

// names returns the names of the types in a set.
func (t types) names() []string {
	all := typeNames()
	var out []string
	for t != 0 {
		out = append(out, all[bits.TrailingZeros64(uint64(t))])
		t &= t - 1
	}
	return out
}

// String lists the names of the types in the set.
func (t types) String() string { return strings.Join(t.names(), "|") }

// first returns the preferred type of a set.
//
// Shape: if both an enum and a string fit, it is a string. A text that is the same in both encodings is hardly a
// packed list of enum values with that text as a name.
func (t types) first() types {
	if t&-t == tEnum && t&tString != 0 {
		return tString
	}
	return t & -t
}
