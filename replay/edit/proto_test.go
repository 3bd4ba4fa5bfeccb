package edit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"unwire/decode/wire"
	"unwire/replay/internal/samples"
)

// Each row edits bytes, given in hex, with or without the type that knows them.
func TestApplyProto(t *testing.T) {
	str := (&wrapperspb.StringValue{}).ProtoReflect().Descriptor()
	typ := (&typepb.Type{}).ProtoReflect().Descriptor()
	field := (&typepb.Field{}).ProtoReflect().Descriptor()
	value := (&structpb.Value{}).ProtoReflect().Descriptor()
	api := (&apipb.Api{}).ProtoReflect().Descriptor()
	for _, c := range []struct {
		md                   protoreflect.MessageDescriptor
		data, op, text, want string // want in hex, or ! and a part of the error
	}{
		// Without a schema the wire type stays.
		{nil, "0801", "set", "1=300", "08ac02"},
		{nil, "0801", "set", "1=-1", "08ffffffffffffffffff01"},
		{nil, "0801", "set", "1=true", "0801"},
		{nil, "0801", "set", "1=x", `!"x" is not a valid varint`},
		{nil, "0a0161", "set", "1=hello", "0a0568656c6c6f"},
		{nil, "0a0161", "set", "1=hex:00ff", "0a0200ff"},
		{nil, "0a0161", "set", "1:string=hex:0", "0a056865783a30"},
		{nil, "0a0161", "set", "1=base64:AP8=", "0a0200ff"},
		{nil, "0d00000000", "set", "1=1.5", "0d0000c03f"},
		{nil, "0d00000000", "set", "1=-2", "0dfeffffff"},
		{nil, "090000000000000000", "set", "1=2", "090200000000000000"},
		{nil, "0801", "set", "1:string=a", "0a0161"},
		{nil, "0801", "set", "1:sint32=-1", "0801"},
		{nil, "0801", "set", "1:uint32=4294967296", "!out of the range of uint32"},
		{nil, "0801", "set", "1:bool=2", "!not a bool"},
		{nil, "0801", "set", "1:json=2", "!for JSON bodies"},
		{nil, "0801", "set", "2=1", "!the message has no field 2; --add 2:KIND=VALUE"},
		{nil, "08010802", "set", "1=3", "!occurs 2 times; select one of them, as in 1[0]"},
		{nil, "08010802", "set", "1[1]=3", "08010803"},
		{nil, "0801", "set", "name=3", `!the field name "name" needs definitions`},
		// Nested: enclosing lengths follow, an overlong one keeps its width.
		{nil, "0a040a02616210 01", "set", "1.1=abc", "0a050a036162631001"},
		{nil, "0a84000a026162", "set", "1.1=abc", "0a85000a03616263"},
		{nil, "0a03666f6f", "set", "1.1=x", "!1 is not a message"},
		// Groups.
		{nil, "0b10010c", "set", "1.2=5", "0b10050c"},
		{nil, "0b10010c", "add", "1.3:bool=true", "0b100118010c"},
		// Add: after siblings, before an index, in messages that are missing.
		{nil, "0801", "add", "2:string=b", "0801120162"},
		{nil, "0a01611001", "add", "1:string=b", "0a01610a01621001"},
		{nil, "0a01611001", "add", "1[0]:string=b", "0a01620a01611001"},
		{nil, "0a0161", "add", "1[2]:string=b", "!index 2 is too large: the field occurs 1 times"},
		{nil, "", "add", "1.2.3:varint=7", "0a0412021807"},
		{nil, "0a00", "add", "1.2:varint=7", "0a021007"},
		{nil, "", "add", "1:[]sint32=-1, 1", "0a020102"},
		{nil, "", "add", "1:message=hex:0801", "0a020801"},
		{nil, "", "add", `1:message=1: 1 2: {"a"}`, "0a050801120161"},
		{nil, "", "add", "1:message=hex:08", "!the bytes are not a protobuf message"},
		{nil, "", "add", "1:message=words", "!a message must be given as hex:"},
		{nil, "", "add", "1=x", "!the definitions lack the field 1; name its type"},
		{nil, "", "add", "1:enum=NAME", `!the name "NAME" of an enum value needs definitions`},
		{nil, "", "add", "1:string=\xff", "!must be valid UTF-8"},
		// Del and raw.
		{nil, "080110020803", "del", "1", "1002"},
		{nil, "080110020803", "del", "1[1]", "08011002"},
		{nil, "0801", "del", "3", "!the message has no field 3"},
		{nil, "0801", "raw", "1=ffff", "08ffff"},
		{nil, "0a0161", "raw", "1=ffffff", "0a03ffffff"},
		{nil, "0a0161", "raw", "=ffffff", "ffffff"},
		{nil, "0a0161", "set", "=hex:0802", "0802"},
		{nil, "0a0161", "set", ":string=x", "!a whole message cannot have the type string"},
		// Malformed input around the edit stays.
		{nil, "0801ff", "set", "1=2", "0802ff"},
		// With a schema: names, kinds, absent fields, enums, packed, JSON.
		{str, "", "set", "value=x", "0a0178"},
		{str, "0a0161", "set", "value=hex:00", "0a066865783a3030"},
		{str, "0a0161", "set", "valu=x", "!google.protobuf.StringValue has no field \"valu\""},
		{typ, "", "set", "syntax=SYNTAX_PROTO3", "3001"},
		{typ, "", "set", "syntax=NO", "!has no value \"NO\"; its values are SYNTAX_PROTO2, SYNTAX_PROTO3, SYNTAX_EDITIONS"},
		{typ, "", "set", "fields.type_url=x", "1203320178"},
		{typ, "", "add", `source_context={"fileName":"f"}`, "2a030a0166"},
		{typ, "", "set", "source_context.fileName=f", "2a030a0166"},
		{typ, "", "add", "oneofs=a", "1a0161"},
		{field, "", "set", "number=-1", "18ffffffffffffffffff01"},
		{field, "", "set", "packed=yes", "!not a bool"},
		{value, "", "set", "number_value=1.5", "11000000000000f83f"},
		{value, "", "set", "=" + `{"a":1}`, "2a100a0e0a0161120911000000000000f03f"},
		{api, "", "set", "1=n", "0a016e"},
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(c.data, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(c.op, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got, err := e.applyProto(data, c.md)
		checkEdit(t, c.data+" "+c.op+" "+c.text, hex.EncodeToString(got), err, c.want)
	}
}

func checkEdit(t *testing.T, what, got string, err error, want string) {
	t.Helper()
	part, fails := strings.CutPrefix(want, "!")
	switch {
	case fails && (err == nil || !strings.Contains(err.Error(), part)):
		t.Errorf("%s: error %v, want %q", what, err, part)
	case !fails && err != nil:
		t.Errorf("%s: %v", what, err)
	case !fails && got != want:
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func apply(t *rapid.T, op, text string, data []byte) []byte {
	e, err := Parse(op, text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.apply(data, false, nil)
	if err != nil {
		t.Fatalf("%s of %x: %v", e, data, err)
	}
	return out
}

// Putting a value in its own place changes no byte.
func TestRawOfTheSameIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := wire.Parse(samples.Message(t, 3), wire.Options{})
		if len(tree.Nodes) < 2 {
			t.Skip("an empty message")
		}
		i := int32(rapid.IntRange(1, len(tree.Nodes)-1).Draw(t, "node"))
		text := fmt.Sprintf("%s=%x", tree.PathOf(i), tree.Payload(i))
		if out := apply(t, "raw", text, tree.Data); !bytes.Equal(out, tree.Data) {
			t.Fatalf("%s: %x became %x", text, tree.Data, out)
		}
	})
}

// A field that was added at the end is taken out again without a trace.
func TestAddThenDel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := samples.Message(t, 3)
		added := apply(t, "add", "77:bytes=hex:"+hex.EncodeToString(rapid.SliceOf(rapid.Byte()).Draw(t, "value")), data)
		if len(added) <= len(data) || !bytes.HasPrefix(added, data) {
			t.Fatalf("%x became %x", data, added)
		}
		if out := apply(t, "del", "77", added); !bytes.Equal(out, data) {
			t.Fatalf("%x became %x", data, out)
		}
	})
}
