package naming

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/infer"
)

// Fields get the names of the definitions where their bytes can be the same, also in
// messages below, and nothing else of what was inferred changes.
func TestFields(t *testing.T) {
	t.Parallel()
	ev := infer.NewEvidence()
	inner := protowire.AppendString([]byte{0x08, 0x07, 0x12}, "a basket for the bicycle")
	data := protowire.AppendBytes(protowire.AppendString([]byte{0x0a}, "A-17"), nil)[:6]
	data = protowire.AppendBytes(protowire.AppendTag(data, 2, protowire.BytesType), inner)
	data = protowire.AppendVarint(protowire.AppendTag(data, 3, protowire.VarintType), 5)
	data = protowire.AppendVarint(protowire.AppendTag(data, 9, protowire.VarintType), 5)
	for range 20 {
		ex := &decode.Exchange{Call: decode.Call{Protocol: decode.ConnectUnary, Codec: "proto", Service: "shop.v1.Shop", RPC: "Get"}}
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			ex.Frames = append(ex.Frames, decode.Frame{Dir: dir, Frame: envelope.Frame{Data: data}, Tree: wire.Parse(data, wire.Options{})})
		}
		if err := ev.AddExchange(ex); err != nil {
			t.Fatal(err)
		}
	}
	in, err := infer.Infer(ev, infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := schema.FromTexts(map[string]string{"shop.proto": `syntax = "proto3"; package shop.v1;
service Shop { rpc Get(Key) returns (Item); }
message Key { string sku = 1; Part part = 2; string not_a_number = 3; }
message Item { string sku = 1; Part part = 2; int32 stock = 3; }
message Part { int32 id = 1; string label = 2; }`})
	if err != nil {
		t.Fatal(err)
	}
	before := in.Files["shop/v1/inferred.proto"]
	n := Fields(in, known)
	after := in.Files["shop/v1/inferred.proto"]
	for _, want := range []string{"string sku = 1;", " part = 2;", "int32 stock = 3;", " id = 1;", "string label = 2;", " field_9 = 9;", " field_3 = 3;"} {
		if !strings.Contains(after, want) && !(want == "int32 stock = 3;" && strings.Contains(after, " stock = 3;")) {
			t.Errorf("no %q in\n%s", want, after)
		}
	}
	if n < 5 || strings.Count(before, "\n") != strings.Count(after, "\n") || strings.Contains(after, "not_a_number") {
		t.Errorf("%d names in\n%s", n, after)
	}
	if _, err := schema.FromTexts(in.Files); err != nil {
		t.Errorf("%v in\n%s", err, after)
	}
}

// Fields whose values everybody knows get a name, which is marked; of two with the same name the second gets a
// number, and a name from definitions stays.
func TestSuggest(t *testing.T) {
	t.Parallel()
	ev := infer.NewEvidence()
	for i := range 12 {
		var data []byte
		for n, s := range []string{1: fmt.Sprintf("https://example.com/%d", i), 2: fmt.Sprintf("https://example.org/%d", i), 3: []string{"user", "assistant"}[i%2], 4: fmt.Sprintf("words without a form, %d", i)} {
			if n > 0 {
				data = protowire.AppendString(protowire.AppendTag(data, protowire.Number(n), protowire.BytesType), s)
			}
		}
		if err := ev.Add("Root", data); err != nil {
			t.Fatal(err)
		}
	}
	in, err := infer.Infer(ev, infer.Options{Package: "p"})
	if err != nil {
		t.Fatal(err)
	}
	n := Suggest(in)
	text, err := in.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"string url = 1; // suggested name\n", "string url_2 = 2; // suggested name\n", "string role = 3; // suggested name\n", "string field_4 = 4;\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n != 3 {
		t.Errorf("%d names", n)
	}
	if _, err := schema.FromTexts(in.Files); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}
