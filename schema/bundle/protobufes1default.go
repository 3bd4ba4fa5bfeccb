package bundle

import (
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

// es1Default sets a field's default, as a descriptor writes it.
func (x *scan) es1Default(element string, f *field, n *node) {
	s := x.script
	if f.ref != nil {
		if no, ok := s.integer(n); ok {
			f.valueRef = strconv.FormatInt(no, 10)
		} else if n.kind == nMember {
			f.valueRef = n.str
		}
		return
	}
	if text, ok := x.literal(n, f.scalar); ok {
		f.value = &text
	} else {
		x.unresolved(element, n.at, "its default is no constant")
	}
}

// literal returns a constant as default_value writes it.
func (x *scan) literal(n *node, t descriptorpb.FieldDescriptorProto_Type) (string, bool) {
	s := x.script
	switch t {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING:
		return s.str(n)
	case descriptorpb.FieldDescriptorProto_TYPE_BOOL:
		return strconv.FormatBool(s.boolean(n)), true
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return x.bytes(n)
	case descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_FLOAT:
		return x.float(n)
	}
	v := s.value(n)
	if v != nil && v.kind == nCall { // protoInt64.parse("123"), BigInt("123")
		for _, arg := range v.kids[1:] {
			if text, ok := s.str(arg); ok && lexer.Number(text) == math.Trunc(lexer.Number(text)) {
				return text, true
			}
			if no, ok := s.integer(arg); ok {
				return strconv.FormatInt(no, 10), true
			}
		}
	}
	if v != nil && v.kind == nNumber && strings.HasSuffix(v.str, "n") {
		return strings.TrimSuffix(v.str, "n"), true
	}
	if text, ok := s.str(n); ok {
		_, err := strconv.ParseFloat(text, 64)
		return text, err == nil
	}
	no, ok := s.integer(n)
	return strconv.FormatInt(no, 10), ok
}

func (x *scan) float(n *node) (string, bool) {
	v := x.value(n)
	if v == nil {
		return "", false
	}
	switch v.kind {
	case nNumber:
		if math.IsNaN(v.num) {
			return "nan", true
		}
		return strconv.FormatFloat(v.num, 'g', -1, 64), true
	case nIdent, nMember:
		switch v.str {
		case "Infinity", "POSITIVE_INFINITY":
			return "inf", true
		case "NEGATIVE_INFINITY":
			return "-inf", true
		case "NaN":
			return "nan", true
		}
	case nUnary:
		text, ok := x.float(v.kids[0])
		return strings.TrimPrefix("-"+text, "--"), ok
	case nBinary: // 1 / 0 as minifiers write it
		a, ok1 := x.integer(v.kids[0])
		b, ok2 := x.integer(v.kids[1])
		if ok1 && ok2 && b == 0 {
			return map[bool]string{true: "inf", false: "-inf"}[a > 0], a != 0
		}
	}
	return "", false
}

// bytes returns new Uint8Array([…]) as the escapes of default_value.
func (x *scan) bytes(n *node) (string, bool) {
	v := x.value(n)
	if v == nil || v.kind != nNew || len(v.kids) < 2 {
		return "", v != nil && v.kind == nNew
	}
	list, ok := x.elements(v.kids[1])
	var data []rune
	for _, k := range list {
		c, isByte := x.integer(k)
		if ok = ok && isByte && 0 <= c && c < 256; !ok {
			return "", false
		}
		data = append(data, rune(c))
	}
	return escapeBytes(data), ok
}

// escapeBytes writes bytes with the escapes of default_value.
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
