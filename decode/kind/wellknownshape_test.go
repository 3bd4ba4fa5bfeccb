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
		if got := NewReader(tree, nil).Remark(1, wire.KindMessage, "message"); got.Shape != c.shape || got.Note != c.note || (got.Shape != "") != (got.P > 0.5) || got.P >= 1 {
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

// TestGuessedShapes is for shapes that much else has: each with what is nearly it.
func TestGuessedShapes(t *testing.T) {
	const none = ""
	str := func(number protowire.Number, values ...string) (b []byte) {
		for _, v := range values {
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
		}
		return b
	}
	num := func(number protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), v)
	}
	for _, c := range []struct {
		name     string
		payloads [][]byte // of one field, in a message each
		sibling  []byte   // of another
		want     string
	}{
		{"wrapped texts, some empty", [][]byte{str(1, "one more"), nil, str(1, "and another"), str(1, "some words")}, nil, "google.protobuf.StringValue"},
		{"wrapped numbers, with another", [][]byte{num(1, 40), num(1, 7000), num(1, 512)}, str(1, "text"), "google.protobuf.Int32Value"},
		{"wrapped numbers, large", [][]byte{num(1, 1<<40), nil, num(1, 1<<41)}, str(1, "text"), "google.protobuf.Int64Value"},
		{"a message of one text", [][]byte{str(1, "one more"), str(1, "and another"), str(1, "some words")}, nil, none},
		{"zeros that are written", [][]byte{num(1, 0), nil, num(1, 7000), num(1, 512)}, str(1, "text"), none},
		{"a list", [][]byte{str(1, "one", "two"), nil, str(1, "three"), str(1, "four")}, nil, none},
		{"too few", [][]byte{str(1, "one more"), nil}, nil, none},
		{"two fields", [][]byte{str(1, "one more"), nil, append(str(1, "x"), num(2, 3)...), str(1, "some words")}, nil, none},

		{"field masks", [][]byte{str(1, "display_name", "user.photo_url")}, nil, "google.protobuf.FieldMask"},
		{"names", [][]byte{str(1, "photos", "people")}, nil, none},
		{"hosts with capitals", [][]byte{str(1, "A.b_c", "user.photo_url")}, nil, none},

		{"statuses", [][]byte{append(num(1, 5), str(2, "no such thing")...), append(num(1, 13), str(2, "it broke again")...), append(num(1, 7), str(2, "not for you")...)}, nil, "google.rpc.Status"},
		{"numbers and names", [][]byte{append(num(1, 5), str(2, "blue")...), append(num(1, 13), str(2, "red")...), append(num(1, 7), str(2, "green")...)}, nil, none},
		{"larger numbers", [][]byte{append(num(1, 5), str(2, "no such thing")...), append(num(1, 40), str(2, "it broke again")...), append(num(1, 7), str(2, "not for you")...)}, nil, none},

		{"a time with too many nanoseconds", [][]byte{append(num(1, 1_700_000_000), num(2, 1_000_000_000)...)}, nil, none},
		{"a value of two kinds", [][]byte{str(1, string(append(str(1, "key"), str(2, string(append(num(4, 1), str(3, "x")...)))...)))}, nil, none},
	} {
		e := NewEvidence()
		var last *wire.Tree
		for _, p := range c.payloads {
			b := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), p)
			if c.sibling != nil {
				b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), c.sibling)
			}
			if err := e.Add("M", b); err != nil {
				t.Fatal(err)
			}
			last = wire.Parse(b, wire.Options{})
		}
		got := NewReader(last, e.Root("M")).Remark(1, wire.KindMessage, "message")
		if got.Shape != c.want || got.Shape != none && (got.P < leastGuess || got.P > mostWrapper) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
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
