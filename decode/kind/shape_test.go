package kind

import (
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/decode/wire"
)

func TestShapes(t *testing.T) {
	holds := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	object, err := structpb.NewStruct(map[string]any{"model": "small", "limit": 3.5, "tools": []any{true, nil}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m           proto.Message
		shape, note string
	}{
		{&timestamppb.Timestamp{Seconds: 1_700_000_000, Nanos: 5_000_000}, "google.protobuf.Timestamp", "2023-11-14T22:13:20.005Z"},
		{&timestamppb.Timestamp{Seconds: 1_700_000_000}, "google.protobuf.Timestamp", "2023-11-14T22:13:20Z"},
		{&durationpb.Duration{Seconds: 2, Nanos: 500_000_000}, "google.protobuf.Duration", "2.5s"},
		{&durationpb.Duration{Seconds: -2, Nanos: -500_000_000}, "google.protobuf.Duration", "-2.5s"},
		{&durationpb.Duration{Seconds: 2}, "", ""}, // any number
		{holds(wrapperspb.String("x")), "google.protobuf.Any", "of google.protobuf.StringValue"},
		{&anypb.Any{TypeUrl: "/home/dev/Shop/README.md", Value: []byte{8, 1}}, "", ""},
		{&spb.Status{Code: 8, Message: "too much", Details: []*anypb.Any{holds(durationpb.New(1e9))}}, "google.rpc.Status", "resource_exhausted"},
		{&spb.Status{Code: 8, Message: "too much"}, "", ""}, // a number and a text
		{object, "google.protobuf.Struct", ""},
	} {
		b, err := proto.Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		outer := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), b)
		tree := wire.Parse(outer, wire.Options{})
		if got := NewReader(tree, nil).Remark(1, wire.KindMessage, "message"); got.Shape != c.shape || got.Note != c.note {
			t.Errorf("%v: %+v, want %s %s", c.m, got, c.shape, c.note)
		}
	}
}

func TestMapEntries(t *testing.T) {
	entries := func(keys ...string) *wire.Tree {
		var b []byte
		for i, k := range keys {
			var e []byte
			e = protowire.AppendString(protowire.AppendTag(e, 1, protowire.BytesType), k)
			e = protowire.AppendVarint(protowire.AppendTag(e, 2, protowire.VarintType), uint64(i))
			b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), e)
		}
		return wire.Parse(b, wire.Options{})
	}
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"a", "b", "c"}, "map entry"},
		{[]string{"a", "b", "a"}, ""},
		{[]string{"a"}, ""},
	} {
		if got := NewReader(entries(c.keys...), nil).Remark(1, wire.KindMessage, "message").Shape; got != c.want {
			t.Errorf("%v: %q", c.keys, got)
		}
	}
}

func TestTimesInNumbers(t *testing.T) {
	var b []byte
	for i, v := range []uint64{1_700_000_000, 1_700_000_000_123, 1_700_000_000_123_456, 1_700_000_000_123_456_789} {
		b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), v)
	}
	tree := wire.Parse(b, wire.Options{})
	r := NewReader(tree, nil)
	for i, want := range []string{"2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123Z", "2023-11-14T22:13:20.123456Z", "2023-11-14T22:13:20.123456789Z"} {
		is, typ, _ := r.Best(int32(i + 1))
		if got := r.Remark(int32(i+1), is, typ).Note; got != want {
			t.Errorf("%s: %q, want %q", typ, got, want)
		}
	}
}
