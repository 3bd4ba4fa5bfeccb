package values

import (
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/decode"
	"unwire/decode/wire"
)

// A schema keeps a text that parses as a message from being taken apart.
func TestLeavesFollowTheSchema(t *testing.T) {
	f := &decode.Frame{}
	f.Data = []byte("\x0a\x09image.png") // a tag and a fixed64
	f.Tree = wire.Parse(f.Data, wire.Options{})
	if n := len(Leaves(f, nil)); n != 2 {
		t.Fatalf("%d values without a schema: the text is no trap", n)
	}
	if n := len(Leaves(f, (&wrapperspb.StringValue{}).ProtoReflect().Descriptor())); n != 1 {
		t.Errorf("%d values", n)
	}
}
