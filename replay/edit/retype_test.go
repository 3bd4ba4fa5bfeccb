package edit

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestRetype(t *testing.T) {
	for _, c := range []struct{ data, text, want string }{
		{"089601", "1:string", "0a03313530"},
		{"089601", "1:fixed32", "0d96000000"},
		{"089601", "1:fixed64", "099600000000000000"},
		{"089601", "1:double", "090000000000c06240"},
		{"089601", "1:sint32", "08ac02"},
		{"08ffffffffffffffffff01", "1:string", "0a022d31"},
		{"08ffffffffffffffffff01", "1:sint64", "0801"},
		{"0d0000c03f", "1:double", "09000000000000f83f"},
		{"0d07000000", "1:int32", "0807"},
		{"0a03313530", "1:int32", "089601"},
		{"0a0131", "1:bool", "0801"},
		{"0a020801", "1:bytes", "0a020801"},
		{"0a02080110011a0101", "3:varint", ""},
		{"0801100118011005", "3:string", "080110011a01311005"},
	} {
		data, err := hex.DecodeString(c.data)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse("retype", c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.apply(data, false, nil)
		if (c.want == "") != (err != nil) || hex.EncodeToString(got) != c.want {
			t.Errorf("%s of %s: %x, %v, want %s", c.text, c.data, got, err, c.want)
		}
	}
	list := "[1" + strings.Repeat(",1", 100) + "]"
	for _, c := range []struct{ data, text, want string }{
		{`{"a":150}`, "a:string", `{"a":"150"}`},
		{`{"a": "150", "b":1}`, "a:int32", `{"a": 150, "b":1}`},
		{`{"a":true}`, "a:string", `{"a":"true"}`},
		{`{"a":"[1]"}`, "a:json", `{"a":[1]}`},
		{`{"a":1}`, "a:bool", `{"a":true}`},
		{`{"a":"x"}`, "a:int32", ""},
		// longer than what an edit's description quotes
		{`{"a":"` + list + `"}`, "a:json", `{"a":` + list + `}`},
		{`{"a":` + list + `}`, "a:string", `{"a":"` + list + `"}`},
	} {
		e, err := Parse("retype", c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.apply([]byte(c.data), true, nil)
		if (c.want == "") != (err != nil) || string(got) != c.want {
			t.Errorf("%s of %s: %s, %v, want %s", c.text, c.data, got, err, c.want)
		}
	}
}
