package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/internal/schematest"
)

func TestFind(t *testing.T) {
	s := schemaOf(t, `
		// Carries a growing answer.
		message TextDeltaUpdate { string text = 1; }
		message ThinkingDeltaUpdate { string text = 1; ThinkingStyle thinking_style = 2; }
		enum ThinkingStyle { THINKING_STYLE_NONE = 0; THINKING_STYLE_LOUD = 1; }
		message Delta {}
		service Chat { rpc StreamText(Delta) returns (stream TextDeltaUpdate); }`)
	for query, want := range map[string]string{
		"delta": "p.Delta", "text delta": "p.TextDeltaUpdate", "TextDeltaUpdate": "p.TextDeltaUpdate", "p.TextDeltaUpdate": "p.TextDeltaUpdate",
		"think style": "p.ThinkingStyle", "loud": "p.ThinkingStyle.THINKING_STYLE_LOUD", "growing": "p.TextDeltaUpdate", "strem": "p.Chat.StreamText",
		"updaet thinking": "p.ThinkingDeltaUpdate", "zebra": "",
	} {
		got := ""
		if hits := Find(s, query, 1); len(hits) > 0 {
			got = hits[0].Element
		}
		if got != want {
			t.Errorf("%q finds %q, want %q: %v", query, got, want, Find(s, query, 5))
		}
	}
}

// large makes n messages of eight fields.
func large(t testing.TB, n int) *schema.Schema {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	h := newHistory(9)
	var types []string
	for i := range n / 100 {
		f := &descriptorpb.FileDescriptorProto{Name: proto.String(fmt.Sprintf("f%d.proto", i)), Package: proto.String(fmt.Sprintf("pkg%d", i)), Syntax: proto.String("proto3")}
		for j := range i {
			f.Dependency = append(f.Dependency, fmt.Sprintf("f%d.proto", j))
		}
		e := &descriptorpb.EnumDescriptorProto{Name: proto.String(h.typeName())}
		for v := range 6 {
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(strings.ToUpper(h.word())), Number: proto.Int32(int32(v))})
		}
		f.EnumType = append(f.EnumType, e)
		for range 100 {
			m := h.message(types, []string{"." + f.GetPackage() + "." + e.GetName()})
			f.MessageType = append(f.MessageType, m)
			types = append(types, "."+f.GetPackage()+"."+m.GetName())
		}
		set.File = append(set.File, f)
	}
	s, err := schema.FromDescriptorSet(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLargeSchema: 3,000 messages of which a third lost their names are paired,
// searched and listed at once.
func TestLargeSchema(t *testing.T) {
	t.Parallel()
	s := large(t, 3000)
	set := schematest.SetOf(s)
	n := 0
	for _, f := range set.File {
		for i, m := range f.MessageType {
			if i%3 == 0 && len(m.Field) > 3 {
				m.Name = proto.String("Renamed" + m.GetName())
				n++
			}
		}
	}
	renamed := map[string]string{}
	for i, f := range s.Files {
		for j := range f.Messages().Len() {
			for _, g := range set.File {
				if g.GetName() == f.Path() {
					renamed["."+name(f.Messages().Get(j))] = "." + g.GetPackage() + "." + g.MessageType[j].GetName()
				}
			}
		}
		_ = i
	}
	for _, f := range set.File {
		for _, m := range f.MessageType {
			for _, fd := range m.Field {
				if now, ok := renamed[fd.GetTypeName()]; ok {
					fd.TypeName = proto.String(now)
				}
			}
		}
	}
	now, err := schema.FromDescriptorSet(set)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	changes := Diff(s, now)
	took := time.Since(start)
	t.Logf("%d of 3000 messages renamed: %d changes in %v", n, len(changes), took)
	if len(changes) != n {
		t.Errorf("%d changes for %d renames: %v …", len(changes), n, changes[:min(3, len(changes))])
	}
	if took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func BenchmarkFind(b *testing.B) {
	s := large(b, 3000)
	for b.Loop() {
		Find(s, "order price", 20)
	}
}

func BenchmarkRefs(b *testing.B) {
	s := large(b, 3000)
	for b.Loop() {
		RefsOfNumber(s, 7)
	}
}

func BenchmarkDiff(b *testing.B) {
	s, other := large(b, 3000), large(b, 3000)
	for b.Loop() {
		if n := len(Diff(s, other)); n != 0 {
			b.Fatalf("%d changes", n)
		}
	}
}

func FuzzDescriptorSet(f *testing.F) {
	h := newHistory(1)
	for _, set := range []*descriptorpb.FileDescriptorSet{h.old, {}} {
		data, err := proto.Marshal(set)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	known, err := schema.FromDescriptorSet(h.old)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var set descriptorpb.FileDescriptorSet
		if proto.Unmarshal(data, &set) != nil {
			return
		}
		s, err := schema.FromDescriptorSet(&set)
		if err != nil {
			return
		}
		if d := Diff(s, s); len(d) != 0 {
			t.Fatalf("differs from itself: %v", d)
		}
		Diff(s, known)
		Diff(known, s)
		Find(s, "order", 3)
		for _, l := range Contents(s) {
			Refs(s, l.Element)
			if d := s.Descriptor(l.Element); d != nil {
				s.Dependencies(d)
			}
		}
	})
}
