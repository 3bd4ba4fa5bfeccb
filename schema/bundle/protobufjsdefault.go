package bundle

import (
	"strconv"
	"unicode/utf8"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// staticPrototypes returns the tokens of the default values in static protobufjs code, Foo.prototype.count =
// 42, by the full names of fields. It is called before fields are read.
func (x *scan) staticPrototypes() map[string]int32 {
	s := x.Script
	values := map[string]int32{}
	for i := range s.Toks {
		at := int32(i)
		if s.Typ(int32(i)) == js.EqToken && js.IsIdentifierName(s.Typ(at-1)) && s.Typ(at-2) == js.DotToken && s.Is(at-3, "prototype") && s.Typ(at-4) == js.DotToken {
			values[s.PathOf(at)+"."+s.Text(at-1)] = at + 1
		}
	}
	return values
}

// staticDefault sets the default value of a field from the value at the token with index at, which is assigned
// in the prototype. All fields have such a value; the zero of the type, or the first value of the enum, is not
// an explicit default. enums are the enums by full name.
func (x *scan) staticDefault(f *model.Field, at int32, enums map[string]*model.Enum) {
	n := x.Expr(at)
	if v := x.Value(n); f.Repeated || f.MapKey != 0 || f.Oneof != "" || f.Presence || v == nil || v.Kind == jstree.NullNode {
		return
	}
	if f.Ref != nil {
		e := enums[f.Ref.Full]
		if no, ok := x.Integer(n); ok && e != nil && len(e.Values) > 0 && no != int64(e.Values[0].Number) {
			f.ValueRef = strconv.FormatInt(no, 10)
		}
		return
	}

	text, ok := "", false
	switch f.Scalar {
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		text, ok = x.staticBytes(n)
	case descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_SINT64, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
		descriptorpb.FieldDescriptorProto_TYPE_UINT64, descriptorpb.FieldDescriptorProto_TYPE_FIXED64:
		if text, ok = x.staticLong(n); !ok {
			text, ok = x.literal(n, f.Scalar)
		}
	default:
		text, ok = x.literal(n, f.Scalar)
	}
	if ok && text != "" && text != "0" && text != "false" {
		f.Value = &text
	}
}

// staticLong returns the value of util.Long ? util.Long.fromBits(low, high, unsigned) : number as a decimal
// number. ok is false for other expressions.
func (x *scan) staticLong(n *jstree.Node) (string, bool) {
	if n.Kind == jstree.CondNode {
		n = n.Kids[1]
	}
	if n.Kind != jstree.CallNode || n.Kids[0].Kind != jstree.MemberNode || n.Kids[0].Str != "fromBits" || len(n.Kids) != 4 {
		return "", false
	}
	low, ok1 := x.Integer(n.Kids[1])
	high, ok2 := x.Integer(n.Kids[2])
	bits := uint64(uint32(high))<<32 | uint64(uint32(low))
	if x.Boolean(n.Kids[3]) {
		return strconv.FormatUint(bits, 10), ok1 && ok2
	}
	return strconv.FormatInt(int64(bits), 10), ok1 && ok2
}

// staticBytes returns the bytes in util.newBuffer([…]) in the form of default_value in a descriptor. The code
// generator wrote each byte as the UTF-8 encoding of the character with its number. ok is false for other
// expressions.
func (x *scan) staticBytes(n *jstree.Node) (string, bool) {
	if n.Kind != jstree.CallNode || len(n.Kids) != 2 {
		return "", false
	}
	list, ok := x.Elements(n.Kids[1])
	var data []byte
	for _, k := range list {
		c, isByte := x.Integer(k)
		if !ok || !isByte || c < 0 || c > 255 {
			return "", false
		}
		data = append(data, byte(c))
	}

	// Undo the encoding. Bytes that are not UTF-8 are kept.
	var chars []rune
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if c > 255 {
			c, size = rune(data[i]), 1
		}
		chars, i = append(chars, c), i+size
	}
	return escapeBytes(chars), ok
}
