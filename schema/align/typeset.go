package align

import (
	"math/bits"
	"strings"
)

// types is a set of the field types that a pair of values allows.
type types uint64

// The order is the one in which a type is named where several are left.
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

	everyType = tBytesValue<<1 - 1
)

const wellKnown = "google.protobuf."

// typeNames are the names of the types, by the number of their bit.
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

// names are the types of a set.
func (t types) names() []string {
	all := typeNames()
	var out []string
	for t != 0 {
		out = append(out, all[bits.TrailingZeros64(uint64(t))])
		t &= t - 1
	}
	return out
}

func (t types) String() string { return strings.Join(t.names(), "|") }

// first is the type that is named where several are left.
//
// Shape: a text that stands on the wire as it stands in JSON is hardly a list of
// an enum whose value's name is that text.
func (t types) first() types {
	if t&-t == tEnum && t&tString != 0 {
		return tString
	}
	return t & -t
}
