package suggest

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/descriptorpb"
)

func TestEnumValue(t *testing.T) {
	ed := descriptorpb.FieldDescriptorProto_TYPE_BOOL.Descriptor()
	for name, want := range map[string]string{
		"BOOL":                     "; did you mean TYPE_BOOL? Its values are ",
		"TYPE_BOOK":                "; did you mean TYPE_BOOL? Its values are ",
		"sint32":                   "; did you mean TYPE_SINT32? Its values are ",
		"PURPLE_ELEPHANT_SANDWICH": "; its values are ",
	} {
		got := EnumValue(ed, name)
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, " and 10 more") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := EnumValue(descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Descriptor(), "ANY"); got != "; its values are LABEL_OPTIONAL, LABEL_REPEATED, LABEL_REQUIRED" {
		t.Errorf("%q", got)
	}
}

// The enum is found by the field's name, also in a message far below, unless two enums have a field of
// that name.
func TestEnumInJSON(t *testing.T) {
	var file descriptorpb.FileDescriptorSet
	reject := func(text string) string {
		err := protojson.Unmarshal([]byte(text), &file)
		if err == nil {
			t.Fatalf("%s was accepted", text)
		}
		got := EnumInJSON(err, file.ProtoReflect().Descriptor())
		if !errors.Is(got, err) {
			t.Errorf("%v does not wrap %v", got, err)
		}
		return got.Error()
	}
	if got := reject(`{"file":[{"options":{"optimizeFor":"SPEEED"}}]}`); !strings.Contains(got, "google.protobuf.FileOptions.OptimizeMode has no such value; did you mean SPEED? Its values are SPEED, CODE_SIZE, LITE_RUNTIME") {
		t.Errorf("%q", got)
	}
	if got := reject(`{"file":[{"nothing":1}]}`); strings.Contains(got, "values") {
		t.Errorf("%q", got)
	}
}
