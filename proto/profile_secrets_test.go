package proto_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/proto"
)

// Every secret field is one of the definitions', with a value that can hold a secret.
func TestSecretFieldsExist(t *testing.T) {
	files := compile(t).AsResolver()
	for _, name := range proto.Profile().Secrets.Fields {
		d, err := files.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		field, ok := d.(protoreflect.FieldDescriptor)
		if !ok {
			t.Errorf("%s is no field", name)
			continue
		}
		switch field.Kind() {
		case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		default:
			t.Errorf("%s is of kind %s", name, field.Kind())
		}
	}
}
