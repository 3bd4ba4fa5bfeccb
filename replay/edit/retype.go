package edit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// retype encodes a field's current value as another kind: the number 150 as a string is "150", the text
// "7" as int32 is 7.
//
// Shape: without a definition, a number is an integer, also one of 32 or 64 bits, unless the new kind
// is float or double. A varint of 64 bits may be negative. Bytes that are valid UTF-8 are text.
func (e *Edit) retype(t *wire.Tree, at protoPlace) ([]byte, error) {
	n := t.Node(at.nodes[0])
	text, err := textOfNode(t, at.nodes[0], at.fd, e.Kind)
	if err != nil {
		return nil, err
	}
	if e.Kind == kindMessage || e.Kind == kindBytes || e.Kind == kindString && n.Type == wire.Len {
		text = "hex:" + hex.EncodeToString([]byte(text))
		if n.Type == wire.Len {
			text = "hex:" + hex.EncodeToString(t.Payload(at.nodes[0]))
		}
		value, err := parseBytes(text)
		if err != nil {
			return nil, err
		}
		if err := fitsKind(value, e.Kind); err != nil {
			return nil, err
		}
		return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Replace, Data: AppendField(nil, at.number, wire.Len, value)}})
	}
	value, err := encodeValue(e.Kind, text, nil)
	if err != nil {
		return nil, fmt.Errorf("the value cannot be converted to %s: %s", e.Kind, shorten(err.Error()))
	}
	return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Replace, Data: AppendField(nil, at.number, e.Kind.wireType(), value)}})
}

// fitsKind returns an error if bytes are not a valid value of a length-delimited kind, such as UTF-8
// for string.
func fitsKind(value []byte, k valueKind) error {
	switch {
	case k == kindString && !utf8.Valid(value):
		return errors.New("the bytes are not UTF-8, which a string must be")
	case k == kindMessage && wire.Parse(value, wire.Options{}).Err() != nil:
		return errors.New("the bytes are not a protobuf message")
	}
	return nil
}

// shorten truncates the text of an error, which may quote a whole value, to about 120 bytes.
func shorten(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// textOfNode returns a field's value as text that encodeValue accepts. fd is the field's definition, or
// nil; to is the kind to which it is converted, or "".
func textOfNode(t *wire.Tree, node int32, fd protoreflect.FieldDescriptor, to valueKind) (string, error) {
	n := t.Node(node)
	from := valueKind("")
	if fd != nil {
		from = kindOf(fd, false)
	}

	v := uint64(0)
	switch n.Type {
	case wire.Len, wire.StartGroup:
		return string(t.Payload(node)), nil
	case wire.Varint, wire.I32, wire.I64:
		v = t.Uint(node)
	}
	if isFloating(n.Type, from, to) {
		return floatText(v, n.Type), nil
	}
	return integerText(v, n.Type, from, to)
}

// isFloating reports whether a number of wire type t is a float or double: according to from, its
// defined kind, or else to, the requested kind.
func isFloating(t wire.Type, from, to valueKind) bool {
	asked := from == "" && (to == "float" || to == "double")
	return t == wire.I32 && (from == "float" || asked) || t == wire.I64 && (from == "double" || asked)
}

// floatText formats the bits of a float or double as a decimal number.
func floatText(v uint64, t wire.Type) string {
	if t == wire.I32 {
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 32)
	}
	return strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64)
}

// integerText formats the bits of a number as an integer, or as a bool if its kind is bool. from is its
// defined kind, to the requested one.
func integerText(v uint64, t wire.Type, from, to valueKind) (string, error) {
	switch {
	case t == wire.I32 && from == "sfixed32":
		return strconv.FormatInt(int64(int32(v)), 10), nil
	case from == "sint32" || from == "sint64":
		return strconv.FormatInt(int64(v>>1)^-int64(v&1), 10), nil
	case from == kindBool && to == kindBool:
		return strconv.FormatBool(v != 0), nil
	case from == "uint64" || from == "fixed64" || t == wire.I32:
		return strconv.FormatUint(v, 10), nil
	case to == kindBool && v > 1:
		return "", fmt.Errorf("the number %d is not a bool: use 0 or 1", v)
	case to == "uint64" || to == "fixed64" || to == "varint":
		return strconv.FormatUint(v, 10), nil
	}
	return strconv.FormatInt(int64(v), 10), nil
}

// retypeJSON converts a JSON value to the edit's kind: the number 150 as a string is "150".
func (e *Edit) retypeJSON(old jsontree.Value) ([]byte, error) {
	text := old.Text()
	switch {
	case e.Kind == kindString && old.Kind() == jsontree.String:
		return old.Raw(), nil
	case e.Kind == kindString:
		return jsontree.Quote(text), nil
	case e.Kind == kindJSON, e.Kind == kindMessage:
		return encodeJSON(kindJSON, text, jsontree.Value{}, nil)
	}
	if e.Kind == kindBool && (text == "1" || text == "0") {
		return strconv.AppendBool(nil, text == "1"), nil
	}
	return encodeJSON(e.Kind, text, jsontree.Value{}, nil)
}
