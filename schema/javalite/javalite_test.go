package javalite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/schema/classfile"
)

// classes are compiled from schema/extract/testdata/javalite/shop.proto.
func classes(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.class")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	list := map[string][]byte{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = data
	}
	return list
}

// TestIncomplete reads classes of which others are missing: fields whose types are not there are reported, and the rest
// counts.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	var r Reader
	for name, data := range classes(t) {
		r.Add(name, classfile.Parse(data))
	}
	d := r.Definitions()
	names := map[string]int{}
	for _, m := range d.Messages {
		names[m.Full] = len(m.Fields)
	}
	// Two of the three maps have no holder.
	if names["acme.shop.v1.Item"] != 14 || names["acme.shop.v1.Item.Part"] != 6 || len(d.Open) != 2 {
		t.Errorf("%v, %+v", names, d.Open)
	}
	if len(d.Enums) != 1 || len(d.Services) != 1 || len(d.Services[0].Methods) != 3 {
		t.Errorf("%d enums, %d services", len(d.Enums), len(d.Services))
	}
	built := d.Build(t.Context())
	if len(built.Files) == 0 {
		t.Error("no files")
	}
}

// TestFieldNames finds the names of the .proto file from the names that Java code has.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ constant, java, want string }{
		{"ITEM_ID", "itemId_", "item_id"},
		{"ITEMID", "itemId_", "itemId"},
		{"A1B_C2", "a1BC2_", "a1b_c2"},
		{"TEXT_VALUE", "", "text_value"}, // in a oneof
		{"", "itemId_", "item_id"},       // the constants were removed
		{"", "", "field7"},
	} {
		s := &shape{constants: map[int32]string{}}
		if c.constant != "" {
			s.constants[7] = c.constant
		}
		if got := s.fieldName(&field{number: 7, java: c.java}); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.constant, c.java, got, c.want)
		}
	}
}

// TestInfoBefore310 reads the description of a message of proto2 as earlier compilers write it: fields of proto2 have bits
// without a flag that says so.
func TestInfoBefore310(t *testing.T) {
	t.Parallel()
	text := func(units ...rune) []byte { return []byte(string(units)) }
	objects := []object{{text: []byte("bitField0_"), isText: true}, {text: []byte("name_"), isText: true}, {text: []byte("n_"), isText: true}}
	head := []rune{1, 2, 0, 1, 1, 2, 2, 0, 0, 0}
	for name, fields := range map[string][]rune{
		"with flags": {1, 0x1008, 0, 2, 0x1004, 1},
		"without":    {1, 0x008, 0, 2, 0x004, 1},
	} {
		in := parseInfo(text(append(head[:len(head):len(head)], fields...)...), objects)
		if in == nil || len(in.fields) != 2 || in.syntax != "proto2" || in.fields[1].java != "n_" {
			t.Errorf("%s: %+v", name, in)
		}
	}

	// Any other text, and objects that do not fit, are no description.
	whole := append(head[:len(head):len(head)], 1, 0x1008, 0, 2, 0x1004, 1)
	for n := range whole {
		if parseInfo(text(whole[:n]...), objects) != nil {
			t.Errorf("the first %d characters are a description", n)
		}
	}
	if parseInfo(text(whole...), objects[:2]) != nil || parseInfo(text(whole...), append(objects, object{})) != nil {
		t.Error("the objects do not fit")
	}
	if parseInfo([]byte(strings.Repeat("a", 1000)), nil) != nil {
		t.Error("a text is a description")
	}
}

// FuzzReader reads damaged classes.
func FuzzReader(f *testing.F) {
	for _, data := range classes(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Reader
		r.Add("fuzz.class", classfile.Parse(data))
		d := r.Definitions()
		for _, m := range d.Messages {
			for _, field := range m.Fields {
				if field.Scalar == 0 && field.Ref == nil {
					t.Errorf("%s.%s has no type", m.Full, field.Name)
				}
			}
		}
		d.Build(t.Context())
	})
}
