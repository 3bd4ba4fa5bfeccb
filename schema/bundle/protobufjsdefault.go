package bundle

import (
	"strconv"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// staticPrototypes finds what the messages of protobufjs give their fields before anything
// is read: Foo.prototype.count = 42, by the message's and the field's name.
func (x *scan) staticPrototypes() map[string]int32 {
	s := x.script
	values := map[string]int32{}
	for i := range s.toks {
		at := int32(i)
		if s.typ(int32(i)) == js.EqToken && js.IsIdentifierName(s.typ(at-1)) && s.typ(at-2) == js.DotToken && s.is(at-3, "prototype") && s.typ(at-4) == js.DotToken {
			values[s.pathOf(at)+"."+s.text(at-1)] = at + 1
		}
	}
	return values
}

// staticDefault sets a field's default from the value of its prototype. Every
// field has one: what is no more than the type's zero, or the first value of an
// enum, is none. enums are by their names.
func (x *scan) staticDefault(f *field, at int32, enums map[string]*enum) {
	n := x.expr(at)
	if v := x.value(n); f.repeated || f.mapKey != 0 || f.oneof != "" || f.presence || v == nil || v.kind == nNull {
		return
	}
	if f.ref != nil {
		e := enums[f.ref.full]
		if no, ok := x.integer(n); ok && e != nil && len(e.values) > 0 && no != int64(e.values[0].no) {
			f.valueRef = strconv.FormatInt(no, 10)
		}
		return
	}
	text, ok := "", false
	switch f.scalar {
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		text, ok = x.staticBytes(n)
	case descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_SINT64, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
		descriptorpb.FieldDescriptorProto_TYPE_UINT64, descriptorpb.FieldDescriptorProto_TYPE_FIXED64:
		if text, ok = x.staticLong(n); !ok {
			text, ok = x.literal(n, f.scalar)
		}
	default:
		text, ok = x.literal(n, f.scalar)
	}
	if ok && text != "" && text != "0" && text != "false" {
		f.value = &text
	}
}

// staticLong returns the value of util.Long ? util.Long.fromBits(low, high,
// unsigned) : number.
func (x *scan) staticLong(n *node) (string, bool) {
	if n.kind == nCond {
		n = n.kids[1]
	}
	if n.kind != nCall || n.kids[0].kind != nMember || n.kids[0].str != "fromBits" || len(n.kids) != 4 {
		return "", false
	}
	low, ok1 := x.integer(n.kids[1])
	high, ok2 := x.integer(n.kids[2])
	bits := uint64(uint32(high))<<32 | uint64(uint32(low))
	if x.boolean(n.kids[3]) {
		return strconv.FormatUint(bits, 10), ok1 && ok2
	}
	return strconv.FormatInt(int64(bits), 10), ok1 && ok2
}

// staticBytes returns util.newBuffer([…]) as the escapes of default_value. The
// codegen wrote each byte as the character of that code, in UTF-8.
func (x *scan) staticBytes(n *node) (string, bool) {
	if n.kind != nCall || len(n.kids) != 2 {
		return "", false
	}
	list, ok := x.elements(n.kids[1])
	var data []byte
	for _, k := range list {
		c, isByte := x.integer(k)
		if !ok || !isByte || c < 0 || c > 255 {
			return "", false
		}
		data = append(data, byte(c))
	}
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
