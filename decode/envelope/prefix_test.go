package envelope

import (
	"bytes"
	"testing"
)

// A prefix is the same in whichever pieces it arrives.
func TestPrefixReader(t *testing.T) {
	want := Prefix{Compressed, 0x01020304}
	wire := append(want.Append(nil), 'x')
	for size := 1; size <= len(wire); size++ {
		var r PrefixReader
		read := 0
		for whole := false; !whole; {
			var n int
			var got Prefix
			n, got, whole = r.Feed(wire[read:min(read+size, len(wire))])
			read += n
			if !whole && !bytes.Equal(r.Pending(), wire[:read]) {
				t.Fatalf("%d at a time: %x is pending", size, r.Pending())
			}
			if whole && got != want {
				t.Errorf("%d at a time: %v, want %v", size, got, want)
			}
		}
		if read != PrefixLen || len(r.Pending()) != 0 {
			t.Errorf("%d at a time: read %d bytes, %d pending", size, read, len(r.Pending()))
		}
	}
}
