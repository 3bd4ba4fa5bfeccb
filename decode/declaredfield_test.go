package decode

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A packed list of floats is one, inferred, declared or chosen; what JSON has no
// numbers for are words.
func TestPackedFloats(t *testing.T) {
	const floats = "\x12\x10\xcd\xcc\x4c\x3e\x00\x00\xc0\x3f\x00\x00\xe8\xc0\xcd\xcc\x4c\x3b"
	const strange = "\x12\x0c\x01\x00\xc0\x7f\x00\x00\x80\xff\x00\x00\x00\x80"
	md := (&descriptorpb.UninterpretedOption_NamePart{}).ProtoReflect().Descriptor() // 2: bool
	for _, c := range []struct{ name, data, choice, json, line string }{
		{"inferred", floats, "", `"type":"packed float","value":[0.2,1.5,-7.25,0.003125]`, "2: packed float[4] 0.2 1.5 -7.25 0.003125  (p"},
		{"chosen", floats, "2:fixed32", `"type":"packed fixed32","value":[1045220557,1069547520,3236429824,994888909],"chosen":true`, "2: packed fixed32[4] 1045220557 "},
		{"strange", strange, "2:packed-float", `"value":["NaN","-Infinity",-0]`, "2: packed float[3] NaN -Infinity -0  (chosen)"},
		{"zigzag", "\x12\x02\x01\x02", "2:sint64", `"type":"packed sint64","value":[-1,1]`, "2: packed sint64[2] -1 1  (chosen)"},
		{"flags", "\x12\x02\x01\x00", "2:packed-bool", `"value":[true,false]`, "2: packed bool[2] true false  (chosen)"},
		{"impossible", "\x12\x07abcdefg", "2:float", `"error":"cannot read as float: the field is length-delimited, 7 bytes are not a multiple of 4"`, "! cannot read as float: "},
	} {
		v := View{}
		if c.choice != "" {
			choice, err := kind.ParseChoice(c.choice)
			if err != nil {
				t.Fatal(err)
			}
			v.Choices, v.Type = []kind.Choice{choice}, md
		}
		fields := v.Fields(wire.Parse([]byte(c.data), wire.Options{}))
		got, err := json.Marshal(fields)
		if err != nil || !strings.Contains(string(got), c.json) {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.json)
		}
	}
}
