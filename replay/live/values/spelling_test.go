package values

import (
	"testing"
)

// Hex ids of nothing but digits are hex ids.
func TestClassOfDigits(t *testing.T) {
	for s, id := range map[string]bool{
		"4912676395129907": true, "sh_1243113481637517": true, "st-2032789980837054": true, "1763744400000": false,
		"123456": false, "v_12": false, "file_name": false, "": false, "_": false,
	} {
		if (ClassOf(s) != "") != id {
			t.Errorf("%q is %q", s, ClassOf(s))
		}
	}
}
