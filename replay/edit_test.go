package replay

import (
	"encoding/hex"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestParseEditText(t *testing.T) {
	for _, c := range []struct{ op, text, want string }{
		{"set", "1.2[3].5=x", ""},
		{"set", "@2 1.3=a=b", ""},
		{"set", "run_request.model.name=", ""},
		{"set", "@0=hex:0a00", "--set @0 =hex:0a00"},
		{"add", "1.5:string=with space", ""},
		{"add", "1.6:[]int32=1,2", ""},
		{"del", "1.7", ""},
		{"del", "@3", "--del @3 "},
		{"raw", "@1 2=0A00", "--raw @1 2=0a00"},
		{"set", `"a.b"."c d"[0]=1`, ""},
		{"set", `[0].x=1`, ""},
		{"set", `a[1][2].b=1`, ""},
		{"set", `"plain"=1`, "--set plain=1"},
	} {
		e, err := ParseEdit(c.op, c.text)
		if err != nil {
			t.Errorf("%s %s: %v", c.op, c.text, err)
			continue
		}
		want := c.want
		if want == "" {
			want = "--" + c.op + " " + c.text
		}
		if e.String() != want {
			t.Errorf("%s %s: written as %s", c.op, c.text, e)
		}
	}
}

func TestParseEditErrors(t *testing.T) {
	for _, c := range []struct{ op, text, want string }{
		{"move", "1=2", "no kind of edit"},
		{"set", "1.2", "=VALUE is missing"},
		{"del", "1.2=3", "a value has no meaning"},
		{"del", "", "a path is missing"},
		{"add", ":string=x", "a path is missing"},
		{"add", "1:text=x", `kind "text" is none of string bytes`},
		{"add", "1:[]string=x", "is none of"},
		{"raw", "1=0g", "not hex"},
		{"raw", "1:string=00", "a kind has no meaning"},
		{"set", "@x 1=2", "does not begin with a frame's number"},
		{"set", "1..2=3", "at 2: a step is missing"},
		{"set", "1.=3", "a step is missing after the dot"},
		{"set", "1[x]=3", "is not an index"},
		{"set", "1[2=3", "closing bracket"},
		{"set", "a b=3", "in a path"},
		{"set", `"a=3`, "without its end"},
		{"set", "a.[0]=3", "an index stands after its name"},
		{"set", strings.Repeat("1.", 200) + "1=2", "more than 100 steps"},
	} {
		if _, err := ParseEdit(c.op, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.op, c.text, err, c.want)
		}
	}
}

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
		{nil, "0801", "set", "1=x", `!"x" is no varint`},
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
		{nil, "0801", "set", "1:bool=2", "!no bool"},
		{nil, "0801", "set", "1:json=2", "!for JSON bodies"},
		{nil, "0801", "set", "2=1", "!2 is not there; --add 2:KIND=VALUE"},
		{nil, "08010802", "set", "1=3", "!there 2 times; say which, as in 1[0]"},
		{nil, "08010802", "set", "1[1]=3", "08010803"},
		{nil, "0801", "set", "name=3", "!names need a schema"},
		// Nested: enclosing lengths follow, an overlong one keeps its width.
		{nil, "0a040a02616210 01", "set", "1.1=abc", "0a050a036162631001"},
		{nil, "0a84000a026162", "set", "1.1=abc", "0a85000a03616263"},
		{nil, "0a03666f6f", "set", "1.1=x", "!1 is no message"},
		// Groups.
		{nil, "0b10010c", "set", "1.2=5", "0b10050c"},
		{nil, "0b10010c", "add", "1.3:bool=true", "0b100118010c"},
		// Add: after siblings, before an index, in messages that are missing.
		{nil, "0801", "add", "2:string=b", "0801120162"},
		{nil, "0a01611001", "add", "1:string=b", "0a01610a01621001"},
		{nil, "0a01611001", "add", "1[0]:string=b", "0a01620a01611001"},
		{nil, "0a0161", "add", "1[2]:string=b", "!index 2 of a field that is there 1 times"},
		{nil, "", "add", "1.2.3:varint=7", "0a0412021807"},
		{nil, "0a00", "add", "1.2:varint=7", "0a021007"},
		{nil, "", "add", "1:[]sint32=-1, 1", "0a020102"},
		{nil, "", "add", "1:message=hex:0801", "0a020801"},
		{nil, "", "add", `1:message=1: 1 2: {"a"}`, "0a050801120161"},
		{nil, "", "add", "1:message=hex:08", "!the bytes are no message"},
		{nil, "", "add", "1:message=words", "!a message is hex:"},
		{nil, "", "add", "1=x", "!in no schema; name its kind"},
		{nil, "", "add", "1:enum=NAME", "!enum's names need a schema"},
		{nil, "", "add", "1:string=\xff", "!must be UTF-8"},
		// Del and raw.
		{nil, "080110020803", "del", "1", "1002"},
		{nil, "080110020803", "del", "1[1]", "08011002"},
		{nil, "0801", "del", "3", "!3 is not there"},
		{nil, "0801", "raw", "1=ffff", "08ffff"},
		{nil, "0a0161", "raw", "1=ffffff", "0a03ffffff"},
		{nil, "0a0161", "raw", "=ffffff", "ffffff"},
		{nil, "0a0161", "set", "=hex:0802", "0802"},
		{nil, "0a0161", "set", ":string=x", "!a whole message is no string"},
		// Malformed input around the edit stays.
		{nil, "0801ff", "set", "1=2", "0802ff"},
		// With a schema: names, kinds, absent fields, enums, packed, JSON.
		{str, "", "set", "value=x", "0a0178"},
		{str, "0a0161", "set", "value=hex:00", "0a066865783a3030"},
		{str, "0a0161", "set", "valu=x", "!google.protobuf.StringValue has no field \"valu\""},
		{typ, "", "set", "syntax=SYNTAX_PROTO3", "3001"},
		{typ, "", "set", "syntax=NO", "!has no value \"NO\""},
		{typ, "", "set", "fields.type_url=x", "1203320178"},
		{typ, "", "add", `source_context={"fileName":"f"}`, "2a030a0166"},
		{typ, "", "set", "source_context.fileName=f", "2a030a0166"},
		{typ, "", "add", "oneofs=a", "1a0161"},
		{field, "", "set", "number=-1", "18ffffffffffffffffff01"},
		{field, "", "set", "packed=yes", "!no bool"},
		{value, "", "set", "number_value=1.5", "11000000000000f83f"},
		{value, "", "set", "=" + `{"a":1}`, "2a100a0e0a0161120911000000000000f03f"},
		{api, "", "set", "1=n", "0a016e"},
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(c.data, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEdit(c.op, c.text)
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

func TestApplyJSON(t *testing.T) {
	typ := (&typepb.Type{}).ProtoReflect().Descriptor()
	field := (&typepb.Field{}).ProtoReflect().Descriptor()
	anyType := (&anypb.Any{}).ProtoReflect().Descriptor()
	for _, c := range []struct {
		md                   protoreflect.MessageDescriptor
		data, op, text, want string
	}{
		{nil, `{ "a" : "x" , "b":1}`, "set", "a=2", `{ "a" : "2" , "b":1}`},
		{nil, `{ "a" : "x" , "b":1}`, "set", "b=2", `{ "a" : "x" , "b":2}`},
		{nil, `{"a":1}`, "set", "a=x", `!"x" is no number`},
		{nil, `{"a":1}`, "set", "a=true", "!a number is there"},
		{nil, `{"a":1}`, "set", "a:string=x", `{"a":"x"}`},
		{nil, `{"a":1}`, "set", `a:json={"b":[]}`, `{"a":{"b":[]}}`},
		{nil, `{"a":1}`, "set", "a:json={", "!is not JSON"},
		{nil, `{"a":null}`, "set", "a=x", `{"a":"x"}`},
		{nil, `{"a":"<"}`, "set", `a=<"&`, `{"a":"<\"&"}`},
		{nil, `{"a":[1, {"b": "]}\""}, 3]}`, "set", "a[1].b=y", `{"a":[1, {"b": "y"}, 3]}`},
		{nil, `{"a":[1]}`, "set", "a[1]=y", "!a[1] is not there"},
		{nil, `{"a":[1]}`, "set", "a.b=y", "!named by its index"},
		{nil, `{"a":{}}`, "set", "a[0]=y", "!an index into what is no array"},
		{nil, `{"a":1}`, "set", "a.b=y", "!neither an object nor an array"},
		{nil, `{"a":1}`, "set", "b.c=y", "!b is not there"},
		{nil, `{"a":1,"a":2}`, "set", "a=3", `{"a":1,"a":3}`},
		{nil, `[{"x":1}]`, "set", "[0].x=3", `[{"x":3}]`},
		{nil, `[[1,2],[3]]`, "set", "[0][1]=9", `[[1,9],[3]]`},
		{nil, `{"a":1}`, "add", "b=x", `{"a":1,"b":"x"}`},
		{nil, `{"a":1}`, "add", "b=2", `{"a":1,"b":2}`},
		{nil, `{ }`, "add", `"b c"=2`, `{"b c":2 }`},
		{nil, `{"a":1}`, "add", "a=2", "!it is there already"},
		{nil, `{"a":[1]}`, "add", "a=2", `{"a":[1,2]}`},
		{nil, `{"a":[ ]}`, "add", "a=2", `{"a":[2 ]}`},
		{nil, `{"a":[1,2]}`, "add", "a[1]=9", `{"a":[1,9,2]}`},
		{nil, `{"a":[1,2]}`, "add", "a[3]=9", "!index 3 of an array of 2"},
		{nil, `{"a":1, "b":2}`, "del", "a", `{"b":2}`},
		{nil, `{"a":1, "b":2}`, "del", "b", `{"a":1}`},
		{nil, `{"a":1}`, "del", "a", `{}`},
		{nil, `{"a":[1,2,3]}`, "del", "a[1]", `{"a":[1,3]}`},
		{nil, `{"a":1}`, "raw", "a=7b7d", `{"a":{}}`},
		{nil, `{"a":1}`, "raw", "=00", "\x00"},
		{nil, `{"a"`, "set", "a=1", "!not valid JSON"},
		{nil, `{"a":"1"}`, "set", "a:int64=5", `{"a":"5"}`},
		{nil, `{"a":1}`, "set", "a:int64=5", `{"a":5}`},
		{nil, `{"a":1}`, "set", "a:uint32=-5", "!no uint32"},
		{nil, `{"a":""}`, "set", "a:bytes=hex:00ff", `{"a":"AP8="}`},
		{nil, `{"a":1}`, "set", "a:double=NaN", `{"a":"NaN"}`},
		{nil, `{"a":1}`, "set", "a:[]int64=1,2", `{"a":["1","2"]}`},
		{typ, `{}`, "set", "source_context={}", `{"sourceContext":{}}`},
		{typ, `{"sourceContext":{"fileName":"a"}}`, "set", "source_context.file_name=1", `{"sourceContext":{"fileName":"1"}}`},
		{typ, `{}`, "add", "oneofs=a", `{"oneofs":["a"]}`},
		{typ, `{"syntax":"SYNTAX_PROTO2"}`, "set", "syntax=SYNTAX_PROTO3", `{"syntax":"SYNTAX_PROTO3"}`},
		{typ, `{"syntax":"SYNTAX_PROTO2"}`, "set", "syntax=SYNTAX", "!has no value"},
		{field, `{"packed":true}`, "set", "packed=false", `{"packed":false}`},
		{anyType, `{"value":""}`, "set", "value=hex:00", `{"value":"AA=="}`},
	} {
		e, err := ParseEdit(c.op, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var got []byte
		if len(e.path) == 0 && e.Op == OpRaw {
			got, err = e.rawBytes()
		} else {
			got, err = e.applyJSON([]byte(c.data), c.md)
		}
		checkEdit(t, c.data+" "+c.op+" "+c.text, string(got), err, c.want)
	}
}

func FuzzParseEdit(f *testing.F) {
	for _, s := range []string{"1.2[3].5=x", "@2 1.3=a", `"a.b"[0][1].c:string=x`, "1:[]int32=1,2", "@0=", "[0].a=1", ":message=hex:00"} {
		f.Add("set", s, []byte("\x0a\x02\x10\x01"))
		f.Add("add", s, []byte(`{"a":[1,{"b":"c"}]}`))
	}
	f.Add("del", "1.2", []byte("\x0a\x02\x10\x01"))
	f.Add("raw", "1.2=00", []byte("\x0b\x10\x01\x0c"))
	f.Fuzz(func(t *testing.T, op, text string, data []byte) {
		e, err := ParseEdit(op, text)
		if err != nil {
			return
		}
		flag, rest, _ := strings.Cut(e.String(), " ")
		again, err := ParseEdit(strings.TrimPrefix(flag, "--"), rest)
		if err != nil || again.String() != e.String() {
			t.Fatalf("%q is written as %q, which reads as %q, %v", text, e, again, err)
		}
		_, _ = e.applyProto(data, nil) // must not panic, whatever data is
		_, _ = e.applyJSON(data, nil)
	})
}
