// Package field defines the annotated field: one node of a message's tree, together with the type that unwire
// inferred or a schema declares. Every command that reads or writes message JSON uses this type, so its members
// are a stable contract (see cmd/unwire/JSON.md).
//
// Package decode makes annotated fields from a wire.Tree and a View, and package text makes them from printed
// messages. After an edit of the JSON, this package encodes them as bytes again:
//
//	data, err := json.Marshal(fields) // as `unwire show --json` prints them
//	err = json.Unmarshal(data, &fields)
//	message, err := field.AppendFields(nil, fields, nil)
//
// Unedited fields yield the original bytes, including overlong varints.
package field

import "encoding/json"

// A Field is one decoded field of a message, with its value, type and position, in the form of unwire's JSON
// output.
//
// Shape: a scalar made from bytes has Value: a number with all its digits, a string, a bool, []byte, or a list
// of numbers. "NaN", "Infinity" and "-Infinity" are strings. JSON readers that know only doubles lose digits
// from 2^53 on. A scalar read from JSON has Literal instead. A message or a group has Fields. Garbage has Wire
// "garbage" and its bytes as value.
type Field struct {
	// N is the field's number.
	N uint64 `json:"n"`

	// Name is the field's name in the schema; "" without a schema.
	Name string `json:"name"`

	// Wire is the wire type: varint, i64, len, group, i32, or garbage.
	Wire string `json:"wire"`

	// Off is the offset of the field, including its tag, in the frame's data. The unit is bytes.
	Off int `json:"off"`

	// Len is the size of the encoded field in bytes, including its tag.
	Len int `json:"len"`

	// Val is the offset of the value in the frame's data, in bytes.
	Val int `json:"val"`

	// Kind is the chosen or most probable kind of the value, one of the names of wire.Kind, such as "message" or
	// "packed".
	Kind string `json:"kind"`

	// Type is the protobuf type: "int32", "packed double", the name of a message. It is empty for a message
	// without schema.
	Type string `json:"type"`

	// Value is the decoded value. It is not used when a field is encoded from JSON.
	Value any `json:"-"`

	// Literal is the value of a field that was read from JSON.
	Literal json.RawMessage `json:"value"`

	// Symbol is the name of the enum value; "" if no schema declares it.
	Symbol string `json:"symbol"`

	// Form is the format that a string has: "uuid", "jwt" and others of kind.Remark. It is empty for plain text.
	Form string `json:"form"`

	// Shape is the name of the well-known type, such as google.protobuf.Timestamp, whose structure the message has;
	// or "".
	Shape string `json:"shape"`

	// ShapeP is the probability, from 0 to 1, that the message is of the type Shape.
	ShapeP float64 `json:"shape_p"`

	// Note is a remark in words on the field's format, resemblance to a well-known type, or timestamp.
	Note string `json:"note"`

	// Chosen means that a user chose the type, so that nothing was inferred.
	Chosen bool `json:"chosen"`

	// P is the probability of the type, from 0 to 1.
	P float64 `json:"p"`

	// Alternatives are other possible types of the field, most probable first.
	Alternatives []Alternative `json:"alternatives"`

	// LongTag is the number of bytes by which the varint of the tag is longer than necessary, normally 0.
	LongTag int `json:"long_tag"`

	// LongLen is the number of bytes by which the varint of the length is longer than necessary, normally 0.
	LongLen int `json:"long_len"`

	// LongValue is the number of bytes by which a varint value is longer than necessary, normally 0.
	LongValue int `json:"long_value"`

	// LongEnd is the number of bytes by which the varint of the end-group tag is longer than necessary, normally 0.
	LongEnd int `json:"long_end"`

	// Open means that the end tag of the group is missing.
	Open bool `json:"open"`

	// Fields are the fields of a message or a group. They are nil for other fields and empty for an empty
	// message.
	Fields []*Field `json:"fields"`

	// Cut is the field, as far as its bytes exist, if this Field is garbage that begins a truncated field;
	// otherwise nil.
	Cut *Field `json:"cut"`

	// Inner is set in edited JSON only: the content of the value after its layers (gzip, base64 and others) were
	// undone.
	Inner json.RawMessage `json:"inner"`

	// Error describes a defect of the field's encoding, or is empty.
	Error string `json:"error"`
}

// An Alternative is a possible type of a field other than the chosen one.
type Alternative struct {
	// Kind is the possible kind of the value, such as "string", "message" or "packed".
	Kind string `json:"kind"`

	// Type is the possible protobuf type, such as "int32", "packed double" or the name of a message; "" for a
	// message without schema.
	Type string `json:"type"`

	// P is the probability of the alternative, from 0 to 1.
	P float64 `json:"p"`
}
