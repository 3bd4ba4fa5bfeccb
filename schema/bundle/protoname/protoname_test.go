package protoname

import "testing"

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{"fooBar": "foo_bar", "Foo": "foo", "foo_Bar": "foo_bar", "": ""} {
		if got := Snake(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestValid(t *testing.T) {
	for full, want := range map[string]bool{"a.v1.Foo": true, "a..b": false, "1a": false, "a.b-c": false, "_x": true} {
		if ValidFull(full) != want {
			t.Errorf("%q: %v", full, !want)
		}
	}
	for no, want := range map[int64]bool{0: false, 1: true, 18999: true, 19000: false, 1 << 29: false} {
		if ValidNumber(no) != want {
			t.Errorf("%d: %v", no, !want)
		}
	}
}

func TestKeepsCase(t *testing.T) {
	for name, want := range map[string]bool{"accountID": true, "Foo": true, "isATest": false, "fooBar": false, "": false} {
		if KeepsCase(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
