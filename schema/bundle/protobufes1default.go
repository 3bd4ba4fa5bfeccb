package bundle

import (
	"math"
	"strconv"
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

// es1Default sets the default value of a field from its expression n. element is the field's full name.
func (x *scan) es1Default(element string, f *model.Field, n *jstree.Node) {
	s := x.Script
	if f.Ref != nil {
		if no, ok := s.Integer(n); ok {
			f.ValueRef = strconv.FormatInt(no, 10)
		} else if n.Kind == jstree.MemberNode {
			f.ValueRef = n.Str
		}
		return
	}
	if text, ok := x.literal(n, f.Scalar); ok {
		f.Value = &text
	} else {
		x.unresolved(element, n.At, "the default is not a constant")
	}
}

// literal returns a constant of the type t in the form of default_value in a descriptor. ok is false if it is
// not constant.
func (x *scan) literal(n *jstree.Node, t descriptorpb.FieldDescriptorProto_Type) (string, bool) {
	s := x.Script
	switch t {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING:
		return s.Str(n)
	case descriptorpb.FieldDescriptorProto_TYPE_BOOL:
		return strconv.FormatBool(s.Boolean(n)), true
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return x.bytes(n)
	case descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_FLOAT:
		return x.float(n)
	}
	v := s.Value(n)

	// These are calls such as protoInt64.parse("123") and BigInt("123").
	if v != nil && v.Kind == jstree.CallNode {
		for _, arg := range v.Kids[1:] {
			if text, ok := s.Str(arg); ok && lexer.Number(text) == math.Trunc(lexer.Number(text)) {
				return text, true
			}
			if no, ok := s.Integer(arg); ok {
				return strconv.FormatInt(no, 10), true
			}
		}
	}
	if v != nil && v.Kind == jstree.NumberNode && strings.HasSuffix(v.Str, "n") {
		return strings.TrimSuffix(v.Str, "n"), true
	}
	if text, ok := s.Str(n); ok {
		_, err := strconv.ParseFloat(text, 64)
		return text, err == nil
	}
	no, ok := s.Integer(n)
	return strconv.FormatInt(no, 10), ok
}

// float returns a floating-point constant in the form of default_value in a descriptor. ok is false if it is
// not constant.
func (x *scan) float(n *jstree.Node) (string, bool) {
	v := x.Value(n)
	if v == nil {
		return "", false
	}
	switch v.Kind {
	case jstree.NumberNode:
		if math.IsNaN(v.Num) {
			return "nan", true
		}
		return strconv.FormatFloat(v.Num, 'g', -1, 64), true
	case jstree.IdentNode, jstree.MemberNode:
		switch v.Str {
		case "Infinity", "POSITIVE_INFINITY":
			return "inf", true
		case "NEGATIVE_INFINITY":
			return "-inf", true
		case "NaN":
			return "nan", true
		}
	case jstree.UnaryNode:
		text, ok := x.float(v.Kids[0])
		return strings.TrimPrefix("-"+text, "--"), ok

	// Minifiers write Infinity as 1 / 0.
	case jstree.BinaryNode:
		a, ok1 := x.Integer(v.Kids[0])
		b, ok2 := x.Integer(v.Kids[1])
		if ok1 && ok2 && b == 0 {
			return map[bool]string{true: "inf", false: "-inf"}[a > 0], a != 0
		}
	}
	return "", false
}

// bytes returns the bytes in new Uint8Array([…]) in the form of default_value in a descriptor. ok is false for
// other expressions.
func (x *scan) bytes(n *jstree.Node) (string, bool) {
	v := x.Value(n)
	if v == nil || v.Kind != jstree.NewNode || len(v.Kids) < 2 {
		return "", v != nil && v.Kind == jstree.NewNode
	}
	list, ok := x.Elements(v.Kids[1])
	var data []rune
	for _, k := range list {
		c, isByte := x.Integer(k)
		if ok = ok && isByte && 0 <= c && c < 256; !ok {
			return "", false
		}
		data = append(data, rune(c))
	}
	return escapeBytes(data), ok
}

// escapeBytes returns bytes (one in each rune) with the escapes of default_value in a descriptor.
func escapeBytes(data []rune) string {
	var b strings.Builder
	for _, c := range data {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '"' || c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(c))
		case c < 0x20 || c >= 0x7f:
			b.WriteByte('\\')
			b.WriteString(strconv.FormatInt(0o1000+int64(c&0xff), 8)[1:])
		default:
			b.WriteByte(byte(c))
		}
	}
	return b.String()
}
