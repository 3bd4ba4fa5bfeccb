package replay

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// retype gives a field the same value in another kind: 150 as a string is
// "150", the text 7 as int32 is 7.
//
// Shape: without a schema a number on the wire is an integer; what has 32 or 64
// bits is one too, unless the new kind is float or double. A negative varint is
// one that has 64 bits. Bytes that are UTF-8 are text.
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
		return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Replace, Data: appendField(nil, at.number, wire.Len, value)}})
	}
	value, err := encodeValue(e.Kind, text, nil)
	if err != nil {
		return nil, fmt.Errorf("its value as %s: %s", e.Kind, cut(err.Error(), 120))
	}
	return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Replace, Data: appendField(nil, at.number, e.Kind.wireType(), value)}})
}

// fitsKind reports whether bytes can be of a kind.
func fitsKind(value []byte, k Kind) error {
	switch {
	case k == kindString && !utf8.Valid(value):
		return errors.New("it is no UTF-8, as a string is")
	case k == kindMessage && wire.Parse(value, wire.Options{}).Err() != nil:
		return errors.New("its bytes are no message")
	}
	return nil
}

// textOfNode writes a field's value as text that encodeValue reads.
func textOfNode(t *wire.Tree, node int32, fd protoreflect.FieldDescriptor, to Kind) (string, error) {
	n := t.Node(node)
	v := uint64(0)
	if isNumber(n.Type) {
		v = t.Uint(node)
	}
	from := Kind("")
	if fd != nil {
		from = kindOf(fd, false)
	}
	floating := to == "float" || to == "double"
	switch {
	case n.Type == wire.Len:
		return string(t.Payload(node)), nil
	case n.Type == wire.StartGroup:
		return string(t.Payload(node)), nil
	case n.Type == wire.I32 && (from == "float" || from == "" && floating):
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 32), nil
	case n.Type == wire.I64 && (from == "double" || from == "" && floating):
		return strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64), nil
	case n.Type == wire.I32 && from == "sfixed32":
		return strconv.FormatInt(int64(int32(v)), 10), nil
	case from == "sint32" || from == "sint64":
		return strconv.FormatInt(int64(v>>1)^-int64(v&1), 10), nil
	case from == kindBool && to == kindBool:
		return strconv.FormatBool(v != 0), nil
	case from == "uint64" || from == "fixed64" || n.Type == wire.I32:
		return strconv.FormatUint(v, 10), nil
	case to == kindBool && v > 1:
		return "", fmt.Errorf("%d is no bool", v)
	case to == "uint64" || to == "fixed64" || to == "varint":
		return strconv.FormatUint(v, 10), nil
	}
	return strconv.FormatInt(int64(v), 10), nil
}

// retypeJSON gives a JSON value another type: 150 as a string is "150".
func (e *Edit) retypeJSON(old []byte) ([]byte, error) {
	text := string(old)
	var s string
	if old[0] == '"' {
		s = valueOfJSON(old)[1:]
		text = s
	}
	switch {
	case e.Kind == kindString && old[0] == '"':
		return old, nil
	case e.Kind == kindString:
		return quoteJSON(text), nil
	case e.Kind == kindJSON, e.Kind == kindMessage:
		return encodeJSON(kindJSON, text, nil, nil)
	}
	if e.Kind == kindBool && (text == "1" || text == "0") {
		return strconv.AppendBool(nil, text == "1"), nil
	}
	return encodeJSON(e.Kind, text, nil, nil)
}
