package contract

import (
	"testing"

	"unwire/decode/diff"
)

func TestChange(t *testing.T) {
	for _, c := range []struct {
		o    Object
		want string
	}{
		{
			&Change{Change: diff.Change{Path: "1.2", Op: diff.Modify, Old: "a", New: uint64(2), To: "1.3"}, Name: "x.y", OldHex: "0a", NewHex: "10"},
			`{"v":1,"path":"1.2","op":"change","old":"a","new":2,"ignored":"","to":"1.3","name":"x.y","old_hex":"0a","new_hex":"10"}`,
		},
		{&Change{Change: diff.Change{Path: "1", Op: diff.Add}}, `{"v":1,"path":"1","op":"add","old":null,"new":null,"ignored":""}`},
		{
			&Variation{Variation: diff.Variation{Path: "1", Class: diff.Varies, Present: 2, Of: 3, Values: 2, Examples: []any{"a"}}, Name: "x"},
			`{"v":1,"path":"1","class":"varies","present":2,"of":3,"values":2,"examples":["a"],"name":"x"}`,
		},
	} {
		if got := encoded(t, c.o); got != c.want+"\n" {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
