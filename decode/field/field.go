// Package field holds the annotated field: one node of the tree of a message, with how it
// was read. It is the T of the JSON contract, for every command that writes or reads one.
//
// Package decode makes annotated fields from a wire.Tree and a View; package text writes
// them as it parses. From edited JSON this package appends the same bytes again:
//
//	data, err := json.Marshal(fields) // as `unwire show --json` writes them
//	err = json.Unmarshal(data, &fields)
//	message, err := field.AppendFields(nil, fields, nil)
//
// A value is what JSON has of a scalar; a string is escaped as little as JSON allows.
package field

import "encoding/json"

// A Field is one node of the tree of a message.
//
// Shape: Value is set in a field that was made from bytes: a number with all its
// digits (a reader that has only doubles loses some from 2^53 on), a string, a bool,
// []byte, or a list of numbers; "NaN", "Infinity" and "-Infinity" are strings. JSON
// that is read sets Literal instead. A message or a group has Fields and neither of
// them. Garbage is bytes of wire "garbage".
type Field struct {
	N uint64 `json:"n"`

	// Name is the field's name in the schema; empty without one.
	Name string `json:"name"`

	// Wire is the wire type: varint, i64, len, group, i32, or garbage.
	Wire string `json:"wire"`

	// Off is the offset of the node in the frame's data, and Len its length, both
	// with the tag. Val is the offset of the value.
	Off int `json:"off"`
	Len int `json:"len"`
	Val int `json:"val"`

	Kind string `json:"kind"`
	Type string `json:"type"`

	// Value is the value as Go has it.
	Value any `json:"-"`

	// Literal is the value as JSON that was read has it.
	Literal json.RawMessage `json:"value"`

	// Symbol is the name of an enum value in the schema.
	Symbol string `json:"symbol"`

	// Form is the format of a string's text: "uuid", "jwt" and others of kind.Remark.
	Form string `json:"form"`

	// Shape is the well-known type that a message looks like, and ShapeP the
	// probability that it is of that type.
	Shape  string  `json:"shape"`
	ShapeP float64 `json:"shape_p"`

	// Note explains the form, the shape or a time's number in words.
	Note string `json:"note"`

	// Chosen reports that somebody chose the reading.
	Chosen bool `json:"chosen"`

	// P is the probability of the reading, and Alternatives are the others.
	P            float64       `json:"p"`
	Alternatives []Alternative `json:"alternatives"`

	// LongTag, LongLen, LongValue and LongEnd are the bytes by which the varint of
	// the tag, of the length, of the value and of a group's end tag is longer than
	// it need be.
	LongTag   int `json:"long_tag"`
	LongLen   int `json:"long_len"`
	LongValue int `json:"long_value"`
	LongEnd   int `json:"long_end"`

	// Open reports a group without its end tag.
	Open bool `json:"open"`

	// Fields are those of a message or a group: nil for a leaf, empty for an empty
	// message.
	Fields []*Field `json:"fields"`

	// Cut is, for garbage that is the beginning of a field, as much of that field as
	// there is.
	Cut *Field `json:"cut"`

	// Inner is, in JSON that was read, what the value holds in another encoding.
	Inner json.RawMessage `json:"inner"`

	// Error is what is wrong with the field.
	Error string `json:"error"`
}

// An Alternative is another reading of a field.
type Alternative struct {
	Kind string  `json:"kind"`
	Type string  `json:"type"`
	P    float64 `json:"p"`
}
