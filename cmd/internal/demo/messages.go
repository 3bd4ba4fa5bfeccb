package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A message is a protobuf message that is built from its definition at run time.
type message = dynamicpb.Message

// object is the JSON form of a message.
type object = map[string]any

// build creates a message from its JSON form.
func build(md protoreflect.MessageDescriptor, form object) (*message, error) {
	data, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("demo: %s: %w", md.FullName(), err)
	}
	m := dynamicpb.NewMessage(md)
	if err := protojson.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("demo: %s: %w", md.FullName(), err)
	}
	return m, nil
}

// find returns the value at a path of field names, such as "exec_server_message.read_args.path". ok is
// false if a message on the path, or a field with presence at its end, is not set.
func find(m protoreflect.Message, path string) (v protoreflect.Value, ok bool) {
	names := strings.Split(path, ".")
	for i, name := range names {
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if fd == nil || fd.HasPresence() && !m.Has(fd) {
			return v, false
		}
		v = m.Get(fd)
		if i < len(names)-1 {
			if fd.Message() == nil || fd.IsList() || fd.IsMap() {
				return v, false
			}
			m = v.Message()
		}
	}
	return v, true
}

// A stableCodec is the connect codec "proto" with deterministic output: without it, the field order of
// dynamic messages would vary from run to run.
type stableCodec struct{}

// Name returns the name of the codec.
func (stableCodec) Name() string { return "proto" }

// Marshal encodes a message with its fields in a fixed order.
func (stableCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("demo: %T is not a message", v)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Unmarshal decodes a message.
func (stableCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("demo: %T is not a message", v)
	}
	return proto.Unmarshal(data, m)
}

// method returns a connect client for one method, and the method's definition. Its messages are built
// from the definition.
func (c *client) method(service, rpc string, o ...connect.ClientOption) (*connect.Client[message, message], protoreflect.MethodDescriptor, error) {
	md := c.schema.Method(service, rpc)
	if md == nil {
		return nil, nil, fmt.Errorf("demo: proto/ has no method %s/%s", service, rpc)
	}
	all := []connect.ClientOption{
		connect.WithSchema(md),
		connect.WithCodec(stableCodec{}),
		connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
			if m, ok := v.(*message); ok {
				*m = *dynamicpb.NewMessage(md.Output())
			}
			return nil
		}),
	}
	return connect.NewClient[message, message](c.http, c.o.URL+"/"+service+"/"+rpc, append(all, o...)...), md, nil
}
