package diff

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

func put(b []byte, n protowire.Number, p []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p)
}

// TestCutFields: of a field that is cut off what is there is compared, by its path.
func TestCutFields(t *testing.T) {
	inner := put(put(put(nil, 1, []byte("what was asked")), 2, []byte("and what was answered")), 3, []byte("\x00\xff\xfe\x01"))
	whole := put(put(nil, 1, []byte("a name")), 2, inner)
	for _, c := range []struct {
		left int // bytes of the second
		want string
	}{
		{len(whole) - 2, "change 2.3 [0 255 254 1] [0 255]"},
		{len(whole) - 6, "add 2. <nil> [18 45]; remove 2.3 [0 255 254 1] <nil>"},
		{len(whole) - 12, "change 2.2 and what was answered and what was an; remove 2.3 [0 255 254 1] <nil>"},
		{len(whole) - len(inner) + 5, "change 2.1 what was asked wha; remove 2.2 and what was answered <nil>; remove 2.3 [0 255 254 1] <nil>"},
		{4, "change 1 a name a "},
	} {
		got := ""
		for _, change := range compareMessages(whole, whole[:c.left], Options{}) {
			if change.Path == "2" && c.left == 4 {
				continue
			}
			if got != "" {
				got += "; "
			}
			got += fmt.Sprintf("%s %s %v %v", change.Op, change.Path, change.Old, change.New)
		}
		if got != c.want {
			t.Errorf("%d bytes: %s\nwant %s", c.left, got, c.want)
		}
	}
}

// TestCutFieldsProperty: a message and its beginning differ, and each is the same as itself;
// the bytes of a change are where it says.
func TestCutFieldsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 1, 20)
		inner := put(put(nil, 1, payload.Draw(t, "first")), 2, payload.Draw(t, "second"))
		whole := put(put(nil, 3, inner), 4, payload.Draw(t, "third"))
		at := rapid.IntRange(1, len(whole)-1).Draw(t, "at")
		changes := compareMessages(whole, whole[:at], Options{Volatile: true})
		if Same(changes) {
			t.Fatalf("%x and its first %d bytes are the same", whole, at)
		}
		for _, c := range changes {
			for _, b := range []Bytes{c.OldBytes, c.NewBytes} {
				if b.Off < 0 || b.Off+len(b.Data) > len(whole) || len(b.Data) > 0 && !bytes.Equal(b.Data, whole[b.Off:][:len(b.Data)]) {
					t.Fatalf("%s: %x at %d of %x", c.Path, b.Data, b.Off, whole)
				}
			}
		}
		if changes := compareMessages(whole[:at], whole[:at], Options{Volatile: true}); len(changes) > 0 {
			t.Fatalf("%v", changes)
		}
	})
}
