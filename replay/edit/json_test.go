package edit

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/typepb"
)

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
		{nil, `{"a":1}`, "set", "a=x", `!must be a number`},
		{nil, `{"a":1}`, "set", "a=true", "!the current value is a number"},
		{nil, `{"a":1}`, "set", "a:string=x", `{"a":"x"}`},
		{nil, `{"a":1}`, "set", `a:json={"b":[]}`, `{"a":{"b":[]}}`},
		{nil, `{"a":1}`, "set", "a:json={", "!is not valid JSON"},
		{nil, `{"a":null}`, "set", "a=x", `{"a":"x"}`},
		{nil, `{"a":"<"}`, "set", `a=<"&`, `{"a":"<\"&"}`},
		{nil, `{"a":[1, {"b": "]}\""}, 3]}`, "set", "a[1].b=y", `{"a":[1, {"b": "y"}, 3]}`},
		{nil, `{"a":[1]}`, "set", "a[1]=y", "!the JSON body has no value at the path a[1]"},
		{nil, `{"a":[1]}`, "set", "a.b=y", "!selected by its index"},
		{nil, `{"a":{}}`, "set", "a[0]=y", "!the index refers to a value that is not an array"},
		{nil, `{"a":1}`, "set", "a.b=y", "!neither an object nor an array"},
		{nil, `{"a":1}`, "set", "b.c=y", "!the JSON body has no value at the path b"},
		{nil, `{"a":1,"a":2}`, "set", "a=3", `{"a":1,"a":3}`},
		{nil, `[{"x":1}]`, "set", "[0].x=3", `[{"x":3}]`},
		{nil, `[[1,2],[3]]`, "set", "[0][1]=9", `[[1,9],[3]]`},
		{nil, `{"a":1}`, "add", "b=x", `{"a":1,"b":"x"}`},
		{nil, `{"a":1}`, "add", "b=2", `{"a":1,"b":2}`},
		{nil, `{ }`, "add", `"b c"=2`, `{"b c":2 }`},
		{nil, `{"a":1}`, "add", "a=2", "!the member exists already; --set changes its value"},
		{nil, `{"a":[1]}`, "add", "a=2", `{"a":[1,2]}`},
		{nil, `{"a":[ ]}`, "add", "a=2", `{"a":[2 ]}`},
		{nil, `{"a":[1,2]}`, "add", "a[1]=9", `{"a":[1,9,2]}`},
		{nil, `{"a":[1,2]}`, "add", "a[3]=9", "!the index 3 is too large: the array has 2"},
		{nil, `{"a":1, "b":2}`, "del", "a", `{"b":2}`},
		{nil, `{"a":1, "b":2}`, "del", "b", `{"a":1}`},
		{nil, `{"a":1}`, "del", "a", `{}`},
		{nil, `{"a":[1,2,3]}`, "del", "a[1]", `{"a":[1,3]}`},
		{nil, `{"a":1}`, "raw", "a=7b7d", `{"a":{}}`},
		{nil, `{"a":1}`, "raw", "=00", "\x00"},
		{nil, `{"a"`, "set", "a=1", "!not valid JSON"},
		{nil, `{"a":"1"}`, "set", "a:int64=5", `{"a":"5"}`},
		{nil, `{"a":1}`, "set", "a:int64=5", `{"a":5}`},
		{nil, `{"a":1}`, "set", "a:uint32=-5", "!not a valid uint32"},
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
		e, err := Parse(c.op, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var got []byte
		if len(e.path) == 0 && e.Op == opRaw {
			got, err = e.rawBytes()
		} else {
			got, err = e.applyJSON([]byte(c.data), c.md)
		}
		checkEdit(t, c.data+" "+c.op+" "+c.text, string(got), err, c.want)
	}
}
