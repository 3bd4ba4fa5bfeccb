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

type message = dynamicpb.Message

// object is a message as decoded JSON.
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

// find follows a path of field names, such as "exec_server_message.read_args.path". ok reports whether
// the value exists: a message at the end of the path must be set; for a scalar its parent message must
// be set.
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

// A stableCodec is "proto" with the fields in order. A message that is built
// from a descriptor keeps them in a map: its bytes would differ from run to run.
type stableCodec struct{}

func (stableCodec) Name() string { return "proto" }

func (stableCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("demo: %T is not a message", v)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func (stableCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("demo: %T is not a message", v)
	}
	return proto.Unmarshal(data, m)
}

// method returns a client for one method, with messages generated from its descriptor.
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
