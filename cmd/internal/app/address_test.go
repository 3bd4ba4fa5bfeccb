package app

import "testing"

func TestAddressArgs(t *testing.T) {
	if a, err := AddressArgs([]string{"a.uwc", "3"}, false); err != nil || a.Exchange != 3 {
		t.Errorf("F ID: %+v, %v", a, err)
	}
	for _, args := range [][]string{{"a.uwc"}, {"a.uwc", "x"}, {"a.uwc", "0"}, {"a.uwc#1", "2"}} {
		if _, err := AddressArgs(args, false); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	if _, err := AddressArgs([]string{"a.uwc"}, true); err != nil {
		t.Errorf("optional: %v", err)
	}
}
