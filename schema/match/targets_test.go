package match

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

// targetFrame adds a request of a.Service/method to ts.
func targetFrame(ts *Targets, method, address string, data []byte, chosen bool) {
	ex := &decode.Exchange{Call: decode.Call{Codec: "proto", Protocol: decode.ConnectUnary, Service: "a.Service", RPC: method}}
	f := &decode.Frame{Dir: captures.Up, Frame: envelope.Frame{Data: data}, Tree: wire.Parse(data, wire.Options{})}
	ts.addFrame(ex, f, address, chosen)
}

// names are the places that are matched, with their first conclusion.
func names(ts *Targets, m *Matcher) (list []string) {
	for t, r := range ts.Match(m) {
		list = append(list, t.In+" "+t.Path+" "+string(r.FullName()))
	}
	return list
}

const targetProto = `
message Request { Inner inner = 1; }
message Inner { int32 x = 1; string y = 2; }
message Other { double a = 4; string b = 5; repeated Inner c = 6; }
service Service { rpc Run(Request) returns (Inner); }
`

// TestTargets: without a path, messages of unknown methods are matched, and unknown
// fields that hold messages; what a match leaves open comes behind it.
func TestTargets(t *testing.T) {
	defs := load(t, targetProto)
	other := tags(protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), 0x3ff8000000000000)).text(5, "some text that is long").text(6, string(tags(nil).varint(1, 150).text(2, "hello there")))
	ts := NewTargets(defs, nil)
	targetFrame(ts, "Run", "F#1/up/0", tags(nil).text(1, "").text(7, string(other)), false)
	targetFrame(ts, "Run", "F#2/up/0", tags(nil).text(1, "").text(7, string(other)), false)
	targetFrame(ts, "Unknown", "F#3/up/0", other, false)
	got := names(ts, New(defs, Options{}))
	if want := []string{"a.Request 7 a.Other", "a.Service/Unknown:up  a.Other"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if ts.Trees != 3 || ts.Others != 0 || ts.Full {
		t.Errorf("%+v", ts)
	}
	for target, r := range ts.Match(New(defs, Options{})) {
		if target.Path == "7" && (r.Samples != 2 || !slices.Equal(target.Frames, []string{"F#1/up/0", "F#2/up/0"})) {
			t.Errorf("%d samples, %q", r.Samples, target.Frames)
		}
	}
}

// TestTargetsAtPath: with a path, what is there is matched, in known methods too.
func TestTargetsAtPath(t *testing.T) {
	defs := load(t, targetProto)
	path, err := fieldpath.ParseNumbers("1")
	if err != nil {
		t.Fatal(err)
	}
	ts := NewTargets(defs, path)
	targetFrame(ts, "Run", "F#1/up/0", tags(nil).text(1, string(tags(nil).varint(1, 150).text(2, "hello there"))), false)
	if got := names(ts, New(defs, Options{})); !slices.Equal(got, []string{"a.Service/Run:up 1 a.Inner"}) {
		t.Errorf("%q", got)
	}
	if ts = NewTargets(defs, path); !ts.Empty() {
		t.Error("there is something in nothing")
	}
	ts.AddMessage("file", wire.Parse(tags(nil).varint(1, 1), wire.Options{}))
	if !ts.Empty() {
		t.Error("a number was taken for a message")
	}
}

// TestTargetsAreBounded: so many places are kept, and it is said.
func TestTargetsAreBounded(t *testing.T) {
	ts := NewTargets(load(t, targetProto), nil)
	for i := range MaxTargets + 1 {
		targetFrame(ts, "M"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), "F", tags(nil).varint(1, 1), false)
	}
	if !ts.Full || len(ts.list) != MaxTargets {
		t.Errorf("%d places", len(ts.list))
	}
}
