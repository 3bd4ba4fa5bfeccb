package app

import (
	"errors"
	"strings"
	"testing"
)

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

// If the number of an exchange is given before the capture, the hint shows the right order.
func TestAddressArgsSwapped(t *testing.T) {
	_, err := AddressArgs([]string{"3", "a.uwc"}, false)
	var fail *failure
	if !errors.As(err, &fail) || !strings.Contains(fail.hint, "a.uwc 3") {
		t.Errorf("%v", err)
	}
}
