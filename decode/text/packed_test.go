package text

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// lists is a message whose fields are packed lists, each of another type.
func lists() protoreflect.MessageDescriptor {
	m := &descriptorpb.DescriptorProto{Name: proto.String("Lists")}
	for n := int32(1); n <= int32(descriptorpb.FieldDescriptorProto_TYPE_SINT64); n++ {
		typ := descriptorpb.FieldDescriptorProto_Type(n)
		switch typ {
		case descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_GROUP, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE,
			descriptorpb.FieldDescriptorProto_TYPE_BYTES, descriptorpb.FieldDescriptorProto_TYPE_ENUM:
			continue
		}
		name := strings.ToLower(strings.TrimPrefix(typ.String(), "TYPE_"))
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(n), Type: typ.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()})
	}
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("lists.proto"), Package: proto.String("t"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{m}}
	return must(protodesc.NewFile(file, nil)).Messages().Get(0)
}

// strange32 and strange64 are the bits of floats that a careless printer changes:
// NaN with several payloads, quiet and signalling, infinities, -0, denormals.
var (
	strange32 = []uint32{0x7fc00000, 0x7fc00001, 0xffc00000, 0x7f800001, 0xffffffff, 0x7f800000, 0xff800000, 0x80000000, 0, 1, 0x80000001, 0x7fffff, 0x7f7fffff, 0x3e4ccccd}
	strange64 = []uint64{
		0x7ff8000000000000, 0x7ff8000000000001, 0xfff8000000000000, 0x7ff0000000000001, math.MaxUint64, 0x7ff0000000000000, 0xfff0000000000000,
		1 << 63, 0, 1, 1<<63 | 1, 0xfffffffffffff, 0x7fefffffffffffff, 0x3fc999999999999a,
	}
)

func packed32(list ...uint32) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func packed64(list ...uint64) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func packedField(number protowire.Number, payload []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), payload)
}

// printed is data as text and as JSON.
func printed(t *testing.T, data []byte, o Options) (asText, asJSON string) {
	t.Helper()
	o.In, o.As = "raw", "message"
	d, err := Decode(data, o)
	if err != nil {
		t.Fatal(err)
	}
	var text, js bytes.Buffer
	if err := d.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := d.JSON(&js); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(js.Bytes()) {
		t.Fatalf("no JSON: %s", js.String())
	}
	if back, err := Parse(text.Bytes()); err != nil || !bytes.Equal(back, data) {
		t.Errorf("text of %x comes back as %x, %v:\n%s", data, back, err, text.String())
	}
	if back, err := ParseJSON(js.Bytes()); err != nil || !bytes.Equal(back, data) {
		t.Errorf("JSON of %x comes back as %x, %v:\n%s", data, back, err, js.String())
	}
	return text.String(), js.String()
}

// A packed list reads as the numbers that it is inferred, declared or chosen to hold.
func TestPackedNumbers(t *testing.T) {
	floats := packed32(0x3e4ccccd, 0x3fc00000, 0xc0e80000, 0x3b4ccccd, 0x3f400000)
	doubles := packed64(0x3fb999999999999a, 0x4004000000000000, 0xc22176592e000000, 0x3fd5555555555555)
	const minus1 = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	for _, c := range []struct {
		name     string
		data     []byte
		typ      protoreflect.MessageDescriptor
		choice   string
		text, js string
	}{
		{"inferred floats", packedField(1, floats), nil, "", "1: {0.2i32 1.5i32 -7.25i32 0.003125i32 0.75i32}  # probably packed float (0.91), or bytes (0.09)", `"type":"packed float","p":0.9142,"alternatives":[{"kind":"bytes","type":"bytes","p":0.0858}],"value":[0.2,1.5,-7.25,0.003125,0.75]`},
		{"inferred doubles", packedField(1, doubles), nil, "", "1: {0.1 2.5 -3.75e10 0.3333333333333333}  # probably packed double (0.91), or bytes (0.09)", `"value":[0.1,2.5,-37500000000,0.3333333333333333]`},
		{"inferred integers", packedField(1, packed32(1, 2, 3, 4, 5, 6)), nil, "", "1: {1i32 2i32 3i32 4i32 5i32 6i32}  # probably packed fixed32 (0.91), or bytes (0.09)", `"type":"packed fixed32"`},
		{"declared floats", packedField(2, floats), lists(), "", "2: {0.2i32 1.5i32", `"type":"packed float","value":[0.2,1.5,-7.25`},
		{"declared doubles", packedField(1, doubles), lists(), "", "1: {0.1 2.5", `"type":"packed double","value":[0.1,2.5`},
		{"declared sint32", packedField(17, []byte{1, 2}), lists(), "", "17: {-1z 1z}  # sint32: repeated sint32", `"type":"packed sint32","value":[-1,1]`},
		{"declared bool", packedField(8, []byte{1, 0}), lists(), "", "8: {true false}", `"type":"packed bool","value":[true,false]`},
		{"declared bool that is none", packedField(8, []byte{1, 2}), lists(), "", "8: {1 2}", `"value":[1,2]`},
		{"declared int32", packedField(5, []byte(minus1)), lists(), "", "5: {-1}", `"type":"packed int32","value":[-1]`},
		{"declared uint64", packedField(4, []byte(minus1)), lists(), "", "4: {18446744073709551615}", `"type":"packed uint64","value":[18446744073709551615]`},
		{"chosen float", packedField(1, floats), nil, "1:float", "1: {0.2i32 1.5i32 -7.25i32 0.003125i32 0.75i32}  # read as packed float, chosen with --as", `"type":"packed float","chosen":true`},
		{"chosen packed-float", packedField(1, packed32(1, 0x3e4ccccd)), nil, "1:packed-float", "1: {1.0e-45i32 0.2i32}  # read as packed float, chosen with --as", `"value":[1e-45,0.2]`},
		{"chosen fixed32", packedField(1, floats), nil, "1:fixed32", "1: {1045220557i32 1069547520i32 3236429824i32", `"value":[1045220557,1069547520,3236429824`},
		{"chosen sfixed32", packedField(1, packed32(math.MaxUint32)), nil, "1:packed-sfixed32", "1: {-1i32}", `"value":[-1]`},
		{"chosen against the declaration", packedField(2, floats), lists(), "2:fixed32", "2: {1045220557i32", `"type":"packed fixed32","chosen":true`},
		{
			"strange floats", packedField(1, packed32(strange32...)), nil, "1:packed-float", "1: {0x7fc00000i32 0x7fc00001i32 0xffc00000i32 0x7f800001i32 0xffffffffi32 inf32 -inf32 -0.0i32 0.0i32 1.0e-45i32 -1.0e-45i32 ",
			`"value":["NaN","0x7fc00001","0xffc00000","0x7f800001","0xffffffff","Infinity","-Infinity",-0,0,1e-45,-1e-45,`,
		},
		{"strange doubles", packedField(1, packed64(strange64...)), nil, "1:packed-double", "1: {0x7ff8000000000000i64 0x7ff8000000000001i64", `"value":["NaN","0x7ff8000000000001","0xfff8000000000000","0x7ff0000000000001","0xffffffffffffffff","Infinity","-Infinity",-0,0,5e-324,`},
		{"7 bytes", packedField(1, []byte("1234567")), nil, "1:float", `1: {"1234567"}  # ! cannot read as float: the field is length-delimited, 7 bytes are not a multiple of 4`, `"error":"cannot read as float: the field is length-delimited, 7 bytes are not a multiple of 4"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Type: c.typ}
			if c.choice != "" {
				o.Choices = []kind.Choice{must(kind.ParseChoice(c.choice))}
			}
			asText, asJSON := printed(t, c.data, o)
			if !strings.HasPrefix(asText, c.text) {
				t.Errorf("%s want %s", asText, c.text)
			}
			if !strings.Contains(asJSON, c.js) {
				t.Errorf("%s want %s", asJSON, c.js)
			}
		})
	}
}

// A single float of any bits comes back from its word in JSON.
func TestStrangeFloatsComeBack(t *testing.T) {
	for i := range strange32 {
		data := protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), strange32[i])
		data = protowire.AppendFixed64(protowire.AppendTag(data, 2, protowire.Fixed64Type), strange64[i])
		for _, choice := range []string{"", "float", "fixed32", "sfixed32", "double", "fixed64", "sfixed64", "timestamp-s"} {
			o := Options{}
			if choice != "" {
				o.Choices = []kind.Choice{must(kind.ParseChoice("1:" + choice)), must(kind.ParseChoice("2:" + choice))}
			}
			if _, js := printed(t, data, o); choice == "float" && !strings.Contains(js, `"type":"float","chosen":true`) {
				t.Errorf("%#x: %s", strange32[i], js)
			}
		}
	}
}

// Every choice shows in text and in JSON: it is met, or the error says why not.
func TestEveryChoiceShows(t *testing.T) {
	values := map[string][]byte{
		"varint": {0x08, 0x01}, "large varint": {0x08, 0xac, 0x02}, "long varint": {0x08, 0x81, 0x80, 0x00},
		"i32": append([]byte{0x0d}, packed32(0x3e4ccccd)...), "i64": append([]byte{0x09}, packed64(0x3fc999999999999a)...),
		"group": {0x0b, 0x0c}, "empty": {0x0a, 0x00}, "text": packedField(1, []byte("abcdefg")), "8 bytes": packedField(1, packed32(0x3e4ccccd, 0x3f800000)),
		"flags": packedField(1, []byte{1, 0, 1}), "overlong": packedField(1, []byte{0x80, 0x80, 0}), "no varint": packedField(1, []byte{0xff}),
		"message": packedField(1, packedField(1, []byte("abc"))), "cut message": packedField(1, packedField(1, []byte("some words that are cut off"))[:20]),
	}
	words := strings.Fields("message string text bytes group int64 int32 int varint uint64 uint32 uint sint64 sint32 zigzag bool enum float fixed32 sfixed32 double fixed64 sfixed64 " +
		"timestamp-s timestamp-ms timestamp-us timestamp-ns packed packed-varint packed-int32 packed-int64 packed-uint32 packed-uint64 packed-sint32 packed-sint64 packed-bool packed-enum " +
		"packed-float packed-fixed32 packed-sfixed32 packed-double packed-fixed64 packed-sfixed64")
	for name, data := range values {
		plainText, plainJSON := printed(t, data, Options{})
		for _, word := range words {
			choice := must(kind.ParseChoice("1:" + word))
			asText, asJSON := printed(t, data, Options{Choices: []kind.Choice{choice}})
			_, typ := choice.For(wire.Parse(data, wire.Options{}).Node(1).Type)
			met := strings.Contains(asText, "read as "+typ+", chosen with --as") && strings.Contains(asJSON, `"type":"`+typ+`","`) && strings.Contains(asJSON, `"chosen":true`)
			refused := strings.Contains(asText, "! cannot read as "+choice.Type+": ") && strings.Contains(asJSON, `"error":"cannot read as `+choice.Type+`: `)
			if met == refused || asText == plainText || asJSON == plainJSON {
				t.Errorf("%s as %s: %s%s", name, word, asText, asJSON)
			}
		}
	}
}
