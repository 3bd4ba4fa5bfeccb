package check

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/internal/schematest"
)

// TestDrift: traffic of a later version, held against what was inferred of the
// earlier one, proposes exactly the fields that were added.
func TestDrift(t *testing.T) {
	old := schematest.RandomFile(schematest.NewRand(41))
	grown := proto.CloneOf(old)
	want := map[string]bool{}
	for i, m := range grown.GetMessageType()[:2] {
		number := m.GetField()[len(m.GetField())-1].GetNumber() + 3
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: new("added"), Number: &number, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type: []descriptorpb.FieldDescriptorProto_Type{descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT64}[i].Enum(),
		})
		want[fmt.Sprintf("random.%s %d", m.GetName(), number)] = true
	}
	before, err := protodesc.NewFile(old, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := protodesc.NewFile(grown, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := NewChecker(schema.FromFiles(before), Options{})
	add := func(m proto.Message) {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var tree wire.Tree
		tree.Reset(b, wire.Options{})
		k.addMessage("x#1/up/0", before.Messages().Get(0), &tree)
	}
	g := schematest.NewGenerator(schematest.NewRand(42))
	for range 60 {
		add(g.Message(before.Messages().Get(0), 0))
	}
	list, err := k.Proposals()
	if err != nil || len(list) > 0 {
		t.Fatalf("false alarms: %+v, %v", list, err)
	}
	for range 60 {
		m := g.Message(after.Messages().Get(0), 0)
		if fd := after.Messages().Get(0).Fields().ByName("added"); !m.Has(fd) {
			g.Set(m, fd, 0)
		}
		add(m)
	}
	if list, err = k.Proposals(); err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		id := fmt.Sprintf("%s %d", p.Message, p.Number)
		if !want[id] || p.New || len(p.Frames) == 0 {
			t.Errorf("%+v", p)
		}
		delete(want, id)
	}
	for id := range want {
		t.Errorf("%s is not proposed", id)
	}
}
