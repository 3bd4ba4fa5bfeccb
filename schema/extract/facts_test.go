package extract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"
)

// facts are what a set of files declares, a line a fact, so that two sets can
// be held against each other whatever files they are in.
func facts(files []*descriptorpb.FileDescriptorProto) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		if f.GetPackage() == "google.protobuf" {
			continue
		}
		for _, m := range f.MessageType {
			messageFacts(out, f.GetSyntax(), join(f.GetPackage(), m.GetName()), m)
		}
		for _, e := range f.EnumType {
			enumFacts(out, join(f.GetPackage(), e.GetName()), e)
		}
		for _, x := range f.Extension {
			out["extension "+join(f.GetPackage(), x.GetName())] = fieldFact(x, nil) + " extends " + x.GetExtendee()
		}
		for _, s := range f.Service {
			full := join(f.GetPackage(), s.GetName())
			out["service "+full] = ""
			for _, m := range s.Method {
				out["method "+full+"."+m.GetName()] = fmt.Sprint(m.GetInputType(), " ", m.GetOutputType(), " client=", m.GetClientStreaming(),
					" server=", m.GetServerStreaming(), " ", m.GetOptions().GetIdempotencyLevel())
			}
		}
	}
	return out
}

func messageFacts(out map[string]string, syntax, full string, m *descriptorpb.DescriptorProto) {
	out["message "+full] = "syntax=" + strings.Replace(syntax, "proto2", "", 1)
	for _, f := range m.Field {
		out["field "+full+"."+f.GetName()] = fieldFact(f, m)
	}
	for _, x := range m.Extension {
		out["extension "+join(full, x.GetName())] = fieldFact(x, nil) + " extends " + x.GetExtendee()
	}
	for _, n := range m.NestedType {
		messageFacts(out, syntax, join(full, n.GetName()), n)
	}
	for _, e := range m.EnumType {
		enumFacts(out, join(full, e.GetName()), e)
	}
}

func fieldFact(f *descriptorpb.FieldDescriptorProto, m *descriptorpb.DescriptorProto) string {
	s := fmt.Sprint(f.GetNumber(), " ", f.GetLabel(), " ", f.GetType(), " ", f.GetTypeName(), " json=", f.GetJsonName())
	if m != nil && f.OneofIndex != nil {
		s += " oneof=" + m.OneofDecl[f.GetOneofIndex()].GetName()
	}
	if f.GetProto3Optional() {
		s += " optional"
	}
	if f.Options != nil && f.Options.Packed != nil {
		s += fmt.Sprint(" packed=", f.Options.GetPacked())
	}
	if f.DefaultValue != nil {
		s += fmt.Sprintf(" default=%q", f.GetDefaultValue())
	}
	return s
}

func enumFacts(out map[string]string, full string, e *descriptorpb.EnumDescriptorProto) {
	out["enum "+full] = fmt.Sprint("alias=", e.GetOptions().GetAllowAlias())
	for _, v := range e.Value {
		out["value "+full+"."+v.GetName()] = fmt.Sprint(v.GetNumber())
	}
}

// compare reports each fact that is missing, different or too much, but those
// that forgive lets pass, and returns how many of truth's facts were there.
func compare(t *testing.T, truth, got map[string]string, forgive func(fact, want, got string) bool) int {
	t.Helper()
	same, shown := 0, 0
	say := func(fact, want, got string) {
		if forgive != nil && forgive(fact, want, got) {
			return
		}
		if shown++; shown <= 12 {
			t.Errorf("%s:\n want %q\n got  %q", fact, want, got)
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(truth)) {
		g, ok := got[fact]
		switch {
		case !ok:
			say(fact, truth[fact], "nothing")
		case g != truth[fact]:
			say(fact, truth[fact], g)
		default:
			same++
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(got)) {
		if _, ok := truth[fact]; !ok {
			say(fact, "nothing", got[fact])
		}
	}
	if shown > 12 {
		t.Errorf("and %d more", shown-12)
	}
	return same
}

// kindOf is the first word of a fact.
func kindOf(fact string) string {
	kind, _, _ := strings.Cut(fact, " ")
	return kind
}
