package conversation

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/decode"
	"unwire/decode/wire"
	"unwire/proto"
)

// A rebuilt append has what was asked for, and nothing else has changed.
func TestRebuildAppend(t *testing.T) {
	by := &proto.Profile().Split.Append
	rapid.Check(t, func(t *rapid.T) {
		form := wrapping{Hex: rapid.Bool().Draw(t, "hex"), Gzip: rapid.Bool().Draw(t, "gzip"), Enveloped: rapid.Bool().Draw(t, "enveloped")}
		value, err := form.Wrap(say("before"))
		if err != nil {
			t.Fatal(err)
		}
		field := protowire.Number(4)
		if form.Hex {
			field = 1
		}
		was := append(stringField(2, string(stringField(1, "old"))), stringField(field, string(value))...)
		was = append(was, stringField(99, "kept")...)
		if rapid.Bool().Draw(t, "numbered") {
			was = protowire.AppendVarint(protowire.AppendTag(was, 3, protowire.VarintType), 300)
		}
		number := rapid.Int64Range(0, 1<<40).Draw(t, "number")
		id := rapid.StringN(1, 40, 80).Draw(t, "id")
		message := say(rapid.String().Draw(t, "message"))
		now, err := RebuildAppend(by, was, id, number, message)
		if err != nil {
			t.Fatal(err)
		}
		f := &decode.Frame{Tree: wire.Parse(now, wire.Options{})}
		got := appended(by, f, false)
		if got.err != nil || !bytes.Equal(got.data, message) || got.number != number || got.form != form || textAt(f, by.ID) != id || textAt(f, []uint64{99}) != "kept" {
			t.Fatalf("%x: %+v, id %q", now, got, textAt(f, by.ID))
		}
	})
	for _, bad := range [][]byte{nil, say("no id"), append(appendMessage("r", 1, nil), appendMessage("r", 1, nil)...)} {
		if got, err := RebuildAppend(by, bad, "id", 0, nil); err == nil {
			t.Errorf("%x gives %x", bad, got)
		}
	}
	if _, err := RebuildHead(proto.Profile().ForAnyPackage(), decode.Call{Service: "a.B", RPC: "Run"}, say("r"), "id"); err == nil {
		t.Error("Run is a head")
	}
	if got, err := RebuildHead(proto.Profile().ForAnyPackage(), decode.Call{Service: "a.B", RPC: "RunPoll"}, stringField(1, string(say("r"))), "id"); err != nil || !bytes.Equal(got, stringField(1, string(say("id")))) {
		t.Errorf("%x, %v", got, err)
	}
}
