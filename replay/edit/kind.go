package edit

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// A valueKind is how the text of an edit's value is encoded: the name of a protobuf type, `varint` for
// any number of that wire type, `message`, or `json` for a JSON body. The prefix [] means a packed
// list: []int32.
type valueKind string

// Some of the kinds.
const (
	kindString  valueKind = "string"
	kindBytes   valueKind = "bytes"
	kindMessage valueKind = "message"
	kindEnum    valueKind = "enum"
	kindBool    valueKind = "bool"
	kindJSON    valueKind = "json"

	// packedPrefix precedes the kind of the elements of a packed list.
	packedPrefix = "[]"
)

// kinds are all kinds that an edit can name, each with the wire type of its values.
var kinds = []struct {
	kind valueKind
	wire wire.Type
}{
	{kindString, wire.Len},
	{kindBytes, wire.Len},
	{kindMessage, wire.Len},
	{"varint", wire.Varint},
	{"int32", wire.Varint},
	{"int64", wire.Varint},
	{"uint32", wire.Varint},
	{"uint64", wire.Varint},
	{"sint32", wire.Varint},
	{"sint64", wire.Varint},
	{kindBool, wire.Varint},
	{kindEnum, wire.Varint},
	{"float", wire.I32},
	{"fixed32", wire.I32},
	{"sfixed32", wire.I32},
	{"double", wire.I64},
	{"fixed64", wire.I64},
	{"sfixed64", wire.I64},
	{kindJSON, wire.Len},
}

// parseKind parses the name of a kind.
//
// Errors: an unknown name; the error lists the kinds.
func parseKind(s string) (valueKind, error) {
	element, packed := strings.CutPrefix(s, packedPrefix)
	i := slices.IndexFunc(kinds, func(k struct {
		kind valueKind
		wire wire.Type
	},
	) bool {
		return k.kind == valueKind(element)
	})
	if i < 0 || packed && kinds[i].wire == wire.Len {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k.kind)
		}
		return "", fmt.Errorf("the type %q must be one of %s; [] before a number type means a packed list", excerpt(s), strings.Join(names, ", "))
	}
	return valueKind(s), nil
}

// wireType returns the wire type of a kind's values.
func (k valueKind) wireType() wire.Type {
	for _, row := range kinds {
		if row.kind == k {
			return row.wire
		}
	}
	// a packed list
	return wire.Len
}

// kindOf returns the kind of a field according to its definition; packed means that its value is a
// packed list.
func kindOf(fd protoreflect.FieldDescriptor, packed bool) valueKind {
	k := valueKind(fd.Kind().String())
	if fd.Kind() == protoreflect.GroupKind {
		k = kindMessage
	}
	if packed {
		return packedPrefix + k
	}
	return k
}
