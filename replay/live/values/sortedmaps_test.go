package values

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"unwire/decode/wire"
)

// TestSortEntries sorts the maps of messages that a runtime has written in random orders: all become equal, and keep
// their meaning.
func TestSortEntries(t *testing.T) {
	m, err := structpb.NewStruct(map[string]any{"text": "hello", "name": "x", "more": map[string]any{"b": "two", "a": "one", "c": []any{"z", "y"}}})
	if err != nil {
		t.Fatal(err)
	}
	want, orders := "", map[string]bool{}
	for range 50 {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		orders[string(data)] = true
		sorted, _ := SortEntries(wire.Parse(data, wire.Options{}))
		var back structpb.Struct
		if err := proto.Unmarshal(sorted, &back); err != nil || !proto.Equal(&back, m) {
			t.Fatalf("%v: %v, want %v", err, &back, m)
		}
		if want == "" {
			want = string(sorted)
		}
		if string(sorted) != want {
			t.Fatalf("%x and %x", sorted, want)
		}
	}
	if len(orders) < 2 {
		t.Fatal("the runtime has written one order only")
	}
}

// TestSortEntriesLeaves checks what stays as it is: lists, and maps whose keys are identifiers.
func TestSortEntriesLeaves(t *testing.T) {
	for name, m := range map[string]proto.Message{
		"list": &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("z"), structpb.NewStringValue("a")}},
		"text": structpb.NewStringValue("z"),
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if out, changed := SortEntries(wire.Parse(data, wire.Options{})); changed || string(out) != string(data) {
			t.Errorf("%s: %x, want %x", name, out, data)
		}
	}
}
