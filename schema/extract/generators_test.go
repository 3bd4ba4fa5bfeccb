package extract

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
)

// fieldLines describes the fields of all messages without the package, one per line: Item.color 7 enum. wider, if
// set, converts the type of a field to the one that a code generator's output shows.
func fieldLines(files []*descriptorpb.FileDescriptorProto, wider func(string) string) []string {
	var out []string
	var walk func(scope string, list []*descriptorpb.DescriptorProto)
	walk = func(scope string, list []*descriptorpb.DescriptorProto) {
		for _, m := range list {
			if m.GetOptions().GetMapEntry() {
				scope := scope + "(" + m.GetName() + ")"
				for _, f := range m.Field {
					out = append(out, fmt.Sprint(scope, ".", f.GetName(), " ", wider(typeWord(f))))
				}
				continue
			}
			for _, f := range m.Field {
				line := fmt.Sprint(scope, m.GetName(), ".", f.GetName(), " ", f.GetNumber(), " ", wider(typeWord(f)))
				if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
					line += " repeated"
				}
				if f.OneofIndex != nil && !f.GetProto3Optional() {
					line += " in a oneof"
				}
				out = append(out, line)
			}
			walk(scope+m.GetName()+".", m.NestedType)
		}
	}
	for _, f := range files {
		walk("", f.MessageType)
	}
	slices.Sort(out)
	return out
}

// typeWord returns the type of a field, and the name of its message or enum.
func typeWord(f *descriptorpb.FieldDescriptorProto) string {
	word := strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
	if name := f.GetTypeName(); name != "" && !strings.HasSuffix(name, "Entry") {
		word += " " + name[strings.LastIndex(name, ".")+1:]
	}
	return word
}

// TestGenerators reads the output of code generators that keep less of a definition, as it is and minified, and
// compares every field with what protoc reads from the definition.
func TestGenerators(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/generators")
	need.Protoc(t)
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), node, "testdata/generators/build.mjs", dir).CombinedOutput(); err != nil {
		t.Fatalf("build.mjs: %v\n%s", err, out)
	}
	truth := protocSet(t, "testdata/proto/store", "store.proto").File

	same := func(s string) string { return s }
	replaced := func(pairs ...string) func(string) string {
		byWord := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			byWord[pairs[i]] = pairs[i+1]
		}
		return func(s string) string {
			if to, ok := byWord[s]; ok {
				return to
			}
			return s
		}
	}
	// pbf has one method for integers of both widths, and none for enums.
	pbf := replaced("int32", "int64", "uint32", "uint64", "sint32", "sint64", "enum Color", "uint64")
	for codegen, c := range map[string]struct {
		// wider is what the output shows instead of a type.
		wider func(string) string
		// flat is set if the output does not distinguish Item.Inner from ItemInner.
		flat bool
		// methods is set if the output has the service.
		methods bool
	}{
		"pbf-3":             {wider: pbf},
		"pbf-4":             {wider: pbf, flat: true},
		"pbf-5":             {wider: pbf, flat: true},
		"protocol-buffers":  {wider: replaced("uint32", "uint64", "sint32", "sint64", "fixed64", "sfixed64", "enum Color", "int32")},
		"protons":           {wider: same},
		"protoc-gen-ts":     {wider: same, methods: true},
		"protoc-gen-ts-es5": {wider: same, methods: true},
		"protobufjs-5":      {wider: same, methods: true},
	} {
		want := strings.Join(fieldLines(truth, c.wider), "\n")
		// The type of a list of enums is in no statement of protoc-gen-ts.
		if strings.HasPrefix(codegen, "protoc-gen-ts") {
			want = strings.Replace(want, "Item.colors 8 enum Color", "Item.colors 8 int32", 1)
		}
		if c.flat {
			want = strings.NewReplacer("Item.Inner.", "ItemInner.", "message Inner", "message ItemInner").Replace(want)
		}
		for _, ending := range []string{".js", ".min.js"} {
			t.Run(codegen+ending, func(t *testing.T) {
				set := extracted(t, filepath.Join(dir, codegen+ending))
				got := strings.Join(fieldLines(set.Files, same), "\n")
				if sorted(got) != sorted(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				names := map[string]bool{}
				for _, f := range set.Files {
					for _, s := range f.Service {
						for _, m := range s.Method {
							names[fmt.Sprint(m.GetName(), m.GetInputType(), m.GetOutputType(), m.GetServerStreaming())] = true
						}
					}
				}
				if c.methods && len(names) != 2 {
					t.Errorf("methods: %q", slices.Sorted(maps.Keys(names)))
				}
				wantCompiles(t, set)
			})
		}
	}
}

// sorted returns the lines of a text in order.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
