package kind

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"
)

// TestOneNumberInBytes checks that payloads with the size of one number are bytes, unless their sizes or values
// suggest a list.
func TestOneNumberInBytes(t *testing.T) {
	for _, c := range []struct {
		name     string
		payloads []string
		want     wire.Kind
	}{
		{"milliseconds since 1970, little endian", []string{"\xb1\x96p_\x8d\x01\x00\x00", "\r\xacQ\xe2\x8d\x01\x00\x00", "u\xb8\xbe\x8c\x8c\x01\x00\x00"}, wire.KindBytes},
		{"one of them", []string{"\xcah\xb6\xbb\x8d\x01\x00\x00"}, wire.KindBytes},
		{"counters of 8 bytes, big endian", []string{"\x00\x00\x00\x00\x00\x01W]", "\x00\x00\x00\x00\x00\x01\x14@"}, wire.KindBytes},
		{"counters of 4 bytes, little endian", []string{"\xc4*\x00\x00", "\x9b<\x00\x00"}, wire.KindBytes},
		{"lists of floating-point numbers", []string{"\xcd\xcc\x4c\x3e\x00\x00\x00\x3f", "\x00\x00\x80\x3e", "\x9a\x99\x99\x3e\x00\x00\x80\x3f\x66\x66\x66\x3f"}, wire.KindPacked},
		{"lists of one floating-point number", []string{"\xcd\xcc\x4c\x3e"}, wire.KindPacked},
	} {
		e := NewEvidence()
		for _, p := range c.payloads {
			if err := e.Add("R", protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), p)); err != nil {
				t.Fatal(err)
			}
		}
		f := e.Root("R").Field(1)
		if got := JudgeField(f, Costs{}.Payloads(f)); got.Kind != c.want {
			t.Errorf("%s: %s with probability %.2f, not %s", c.name, got.Kind, got.P, c.want)
		}
	}
}
