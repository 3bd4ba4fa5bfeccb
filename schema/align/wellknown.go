package align

import (
	"math/big"
	"strings"
	"time"

	"unwire/decode/wire"
	"unwire/schema/jsonname"
)

// fieldsOf groups the fields of the message at index at of t by field number. ok is false if that is not a
// message or is malformed.
func fieldsOf(t *wire.Tree, at int32) (fields map[uint64][]int32, ok bool) {
	if !t.IsMessage(at) {
		return nil, false
	}
	fields = map[uint64][]int32{}
	for c := range t.Children(at) {
		n := t.Node(c)
		if n.Type == wire.Garbage || n.Number == 0 {
			return nil, false
		}
		fields[n.Number] = append(fields[n.Number], c)
	}
	return fields, true
}

// onlyField returns the only field of the message at index at, if its number is number. If the message is empty, it
// returns wire.None and true; if it has other fields, ok is false.
func onlyField(t *wire.Tree, at int32, number uint64) (node int32, ok bool) {
	fields, ok := fieldsOf(t, at)
	if !ok || len(fields) == 0 {
		return wire.None, ok
	}
	if nodes := fields[number]; len(fields) == 1 && len(nodes) == 1 {
		return nodes[0], true
	}
	return wire.None, false
}

// wellKnownTypes returns the well-known types with a special JSON form (Timestamp, Struct, …) for which the
// length-delimited field at index at is equal to the JSON value v.
func wellKnownTypes(t *wire.Tree, at int32, v *value) (out types) {
	if !t.IsMessage(at) {
		return 0
	}
	switch v.kind {
	case text:
		out |= textWellKnown(t, at, v.text)
	case array:
		if isListValue(t, at, v, 0) {
			out |= tListValue
		}
	case object:
		if isStruct(t, at, v, 0) {
			out |= tStruct
		}
	}
	if isValue(t, at, v, 0) {
		out |= tValue
	}
	return out | wrapperTypes(t, at, v)
}

// textWellKnown returns the well-known types for which the message at index at has the JSON string s: Timestamp,
// Duration, FieldMask.
func textWellKnown(t *wire.Tree, at int32, s string) (out types) {
	seconds, nanos, ok := secondsAndNanos(t, at)
	if ok {
		if when, err := time.Parse(time.RFC3339Nano, s); err == nil && when.Unix() == seconds && int64(when.Nanosecond()) == nanos {
			out |= tTimestamp
		}
		if isDuration(seconds, nanos, s) {
			out |= tDuration
		}
	}
	if isFieldMask(t, at, s) {
		out |= tFieldMask
	}
	return out
}

// secondsAndNanos reads the fields 1 and 2 of a Timestamp or Duration. ok is false if the message has other
// fields.
func secondsAndNanos(t *wire.Tree, at int32) (seconds, nanos int64, ok bool) {
	fields, ok := fieldsOf(t, at)
	if !ok {
		return 0, 0, false
	}
	for number, nodes := range fields {
		// A Timestamp and a Duration have no other fields.
		if number > 2 || len(nodes) > 1 || t.Node(nodes[0]).Type != wire.Varint {
			return 0, 0, false
		}
		if number == 1 {
			seconds = int64(t.Uint(nodes[0]))
		} else {
			nanos = int64(t.Uint(nodes[0]))
		}
	}
	return seconds, nanos, true
}

// isDuration reports whether s, such as "1.5s", is the JSON form of a Duration.
func isDuration(seconds, nanos int64, s string) bool {
	digits, ok := strings.CutSuffix(s, "s")
	if !ok || len(digits) > 40 || strings.ContainsAny(digits, "eE/_xX") {
		return false
	}
	x, ok := new(big.Rat).SetString(digits)
	if !ok {
		return false
	}
	want := new(big.Rat).SetFrac64(nanos, 1e9)
	return want.Add(want, new(big.Rat).SetInt64(seconds)).Cmp(x) == 0
}

// isFieldMask reports whether s is the JSON form of the FieldMask at index at. Its paths are lower_snake_case in
// protobuf and lowerCamelCase in JSON.
func isFieldMask(t *wire.Tree, at int32, s string) bool {
	fields, ok := fieldsOf(t, at)
	if !ok || len(fields) > 1 || len(fields) == 1 && fields[1] == nil {
		return false
	}
	var paths []string
	for _, node := range fields[1] {
		if t.Node(node).Type != wire.Len {
			return false
		}
		paths = append(paths, jsonname.Of(string(t.Payload(node))))
	}
	return strings.Join(paths, ",") == s
}

// wrapperTypes returns the wrapper types, such as Int64Value, for which the message at index at has the JSON form v.
func wrapperTypes(t *wire.Tree, at int32, v *value) (out types) {
	node, ok := onlyField(t, at, 1)
	if !ok || v.kind == null || v.kind == array || v.kind == object {
		return 0
	}
	var inner types

	// A default value is not written.
	if node == wire.None {
		if !v.isDefault() {
			return 0
		}

		// An omitted value can have any scalar type whose default it is.
		inner = varintTypes(0, v) | fixed32Types(0, v) | fixed64Types(0, v)
		if v.kind == text {
			inner |= textTypes(nil, v.text)
		}
	} else {
		inner = scalarTypes(t, node, v)
	}

	for _, w := range [...]struct{ scalar, wrapper types }{
		{tDouble, tDoubleValue},
		{tFloat, tFloatValue},
		{tInt64, tInt64Value},
		{tUint64, tUint64Value},
		{tInt32, tInt32Value},
		{tUint32, tUint32Value},
		{tBool, tBoolValue},
		{tString, tStringValue},
		{tBytes, tBytesValue},
	} {
		if inner&w.scalar != 0 {
			out |= w.wrapper
		}
	}
	return out
}

// scalarTypes returns the scalar types for which the field value at node has the JSON form v.
func scalarTypes(t *wire.Tree, node int32, v *value) types {
	n := t.Node(node)
	switch n.Type {
	case wire.Varint:
		return varintTypes(t.Uint(node), v)
	case wire.I32:
		return fixed32Types(uint32(t.Uint(node)), v)
	case wire.I64:
		return fixed64Types(t.Uint(node), v)
	case wire.Len:
		if v.kind == text {
			return textTypes(t.Payload(node), v.text)
		}
	}
	return 0
}

// isListValue reports whether the message at index at is a google.protobuf.ListValue with the JSON form v. depth is the
// nesting so far.
func isListValue(t *wire.Tree, at int32, v *value, depth int) bool {
	fields, ok := fieldsOf(t, at)
	if !ok || v.kind != array || len(fields) > 1 || len(fields[1]) != len(v.elems) || len(fields) != min(1, len(v.elems)) {
		return false
	}
	for i, node := range fields[1] {
		if t.Node(node).Type != wire.Len || !isValue(t, node, v.elems[i], depth+1) {
			return false
		}
	}
	return true
}

// isStruct reports whether the message at index at is a google.protobuf.Struct with the JSON form v. depth is the
// nesting so far.
func isStruct(t *wire.Tree, at int32, v *value, depth int) bool {
	fields, ok := fieldsOf(t, at)
	if !ok || v.kind != object || len(fields) > 1 || len(fields[1]) != len(v.elems) || len(fields) != min(1, len(v.elems)) {
		return false
	}
	for _, node := range fields[1] {
		// Each entry has a key and a Value; an empty key is not written.
		entry, ok := fieldsOf(t, node)
		if !ok || len(entry[1]) > 1 || len(entry[2]) != 1 || len(entry) != len(entry[1])+1 {
			return false
		}
		key := ""
		if len(entry[1]) == 1 {
			if t.Node(entry[1][0]).Type != wire.Len {
				return false
			}
			key = string(t.Payload(entry[1][0]))
		}
		m := v.member(key)
		if m == nil || t.Node(entry[2][0]).Type != wire.Len || !isValue(t, entry[2][0], m, depth+1) {
			return false
		}
	}
	return true
}

// isValue reports whether the message at index at is a google.protobuf.Value with the JSON form v. depth is the nesting
// so far.
func isValue(t *wire.Tree, at int32, v *value, depth int) bool {
	fields, ok := fieldsOf(t, at)
	if !ok || len(fields) != 1 || depth > maxDepth {
		return false
	}
	for number, nodes := range fields {
		node := nodes[0]
		if len(nodes) != 1 {
			return false
		}
		// A Value sets exactly one field, whose number is the kind of the JSON value.
		types := scalarTypes(t, node, v)
		switch number {
		case 1:
			return v.kind == null && t.Node(node).Type == wire.Varint
		case 2:
			return types&tDouble != 0
		case 3:
			return types&tString != 0
		case 4:
			return types&tBool != 0
		case 5:
			return t.Node(node).Type == wire.Len && isStruct(t, node, v, depth+1)
		case 6:
			return t.Node(node).Type == wire.Len && isListValue(t, node, v, depth+1)
		}
	}

	return false
}
