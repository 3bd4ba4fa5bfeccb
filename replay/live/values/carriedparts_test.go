package values

import (
	"bytes"
	"compress/gzip"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Identifiers in compressed messages are left out, whether or not their bytes read like a message.
func TestWithoutIdentifiersThatReadLikeMessages(t *testing.T) {
	const (
		random  = "\x9f\x03\xe1\xc7\x88\x10\xfa\x5d\xb2\x71\x0e\xd4\x36\xcc\x97\xa8"
		message = "iw\xde\xb13C\")\xe2\x12\x03\xd9\x80S(\x10" // a fixed64, a string and a varint
	)
	leaf := func(id string, counter uint64) *Leaf {
		var b []byte
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), "in gzip")
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), id)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 3, protowire.Fixed64Type), counter)
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		l := &Leaf{Path: "11"}
		l.SetText(packed.Bytes())
		return l
	}
	carried := map[string]bool{"gzip 2": true, "gzip 3": true}
	was := leaf(random, 1<<60+7).Without(carried)
	if is := leaf(message, 1<<61+9).Without(carried); is.Value != was.Value {
		t.Errorf("%q, %q otherwise", is.Value, was.Value)
	}
	if is := leaf(message, 1<<61+9).Without(map[string]bool{"gzip 3": true}); is.Value == was.Value {
		t.Errorf("%q, though the bytes are not sent back", is.Value)
	}
}
