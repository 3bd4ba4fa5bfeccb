// Package message builds and reads messages of the definitions in proto/ by field name.
//
//	d, err := message.Load(ctx)
//	m := d.Client()
//	m.At("run_request", "model_details").Set("model_id", "composer-1")
//	body := m.Bytes()
//
// A Message is a protoreflect.Message with methods that take field names. An unknown name is a
// mistake of the caller and panics, because the definitions are part of the program; values from a
// server never panic. replay/agent and the packages below it use the package.
package message

import (
	"context"
	"fmt"

	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/proto"
	"unwire/schema"
)

// recursionLimit limits how deeply messages from a server may be nested.
const recursionLimit = 100

// Definitions are the protobuf message types of the agent service.
type Definitions struct {
	// Schema has all definitions of the service.
	*schema.Schema

	// client and server are the types of the messages that client and server send on the agent's
	// stream.
	client, server protoreflect.MessageDescriptor
}

// Load compiles the embedded .proto files of the service, which are in proto/.
func Load(ctx context.Context) (*Definitions, error) {
	s, err := schema.Load(ctx, proto.Files)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	run := s.Method(proto.AgentPackage+".AgentService", "Run")
	if run == nil {
		return nil, fmt.Errorf("agent: the definitions have no %s.AgentService/Run", proto.AgentPackage)
	}
	return &Definitions{Schema: s, client: run.Input(), server: run.Output()}, nil
}

// Client returns an empty message of the type that clients send on the agent's stream.
func (d *Definitions) Client() Message { return Message{dynamicpb.NewMessage(d.client)} }

// Server returns an empty message of the type that servers send on the agent's stream.
func (d *Definitions) Server() Message { return Message{dynamicpb.NewMessage(d.server)} }

// New returns an empty message of the type with this full name. It panics if there is none.
func (d *Definitions) New(name string) Message {
	md := d.Message(name)
	if md == nil {
		panic("agent: the definitions have no message " + name)
	}
	return Message{dynamicpb.NewMessage(md)}
}

// Agent returns an empty message of the type with this name in the agent's package.
func (d *Definitions) Agent(name string) Message { return d.New(proto.AgentPackage + "." + name) }

// A Message is a protobuf message whose fields are accessed by name.
type Message struct {
	// Message is the message for protobuf's reflection.
	protoreflect.Message
}

// Parse decodes a server's message into m.
//
// Errors: malformed data, or data that is nested too deeply. Unknown fields are kept; they are not
// an error.
func (m Message) Parse(data []byte) error {
	return pb.UnmarshalOptions{RecursionLimit: recursionLimit, Merge: true}.Unmarshal(data, m.Interface())
}

// Bytes returns the message in the protobuf wire format, with fields sorted by number.
func (m Message) Bytes() []byte {
	data, err := pb.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	// only invalid UTF-8 fails, which Set replaces
	if err != nil {
		panic("agent: " + err.Error())
	}
	return data
}

// Field returns the descriptor of the field with a name.
func (m Message) Field(name string) protoreflect.FieldDescriptor {
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if fd == nil {
		panic(fmt.Sprintf("agent: %s has no field %s", m.Descriptor().FullName(), name))
	}
	return fd
}

// HasField reports whether the type of m has a field of that name, set or not.
func (m Message) HasField(name string) bool {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name)) != nil
}

// At returns the nested message that a path of field names leads to, for writing. Messages on the path
// that are missing are created.
func (m Message) At(path ...string) Message {
	for _, name := range path {
		m = Message{m.Mutable(m.Field(name)).Message()}
	}
	return m
}

// Set sets the field name to a string, bytes, a bool, a number or a Message, and returns m for
// chaining. Invalid UTF-8 in a string is replaced. It panics if the field does not exist or has another
// type.
func (m Message) Set(name string, v any) Message {
	fd := m.Field(name)
	m.Message.Set(fd, value(fd, v))
	return m
}

// Add appends a value to a repeated field, and returns m for chaining.
func (m Message) Add(name string, v any) Message {
	fd := m.Field(name)
	m.Mutable(fd).List().Append(value(fd, v))
	return m
}

// AddNew appends an empty message to a repeated field, and returns the new message.
func (m Message) AddNew(name string) Message {
	return Message{m.Mutable(m.Field(name)).List().AppendMutable().Message()}
}

// Has reports whether the field that a path of field names leads to is set.
func (m Message) Has(path ...string) bool {
	for _, name := range path {
		fd := m.Field(name)
		if !m.Message.Has(fd) {
			return false
		}
		if fd.Message() != nil && !fd.IsList() && !fd.IsMap() {
			m = Message{m.Message.Get(fd).Message()}
		}
	}
	return true
}

// Value returns the value of the field that a path of field names leads to, or its default if it is not
// set.
func (m Message) Value(path ...string) protoreflect.Value {
	for _, name := range path[:len(path)-1] {
		m = m.Sub(name)
	}
	return m.Message.Get(m.Field(path[len(path)-1]))
}

// Sub returns the nested message that a path of field names leads to, for reading only.
func (m Message) Sub(path ...string) Message {
	for _, name := range path {
		m = Message{m.Message.Get(m.Field(name)).Message()}
	}
	return m
}

// Text returns the value of the string field that a path of field names leads to.
func (m Message) Text(path ...string) string { return m.Value(path...).String() }

// Uint32 returns the value of the uint32 field that a path of field names leads to.
func (m Message) Uint32(path ...string) uint32 {
	return uint32(m.Value(path...).Uint()) //nolint:gosec
}

// Case returns name and value of the oneof member that is set. The name is "" if none is set, or only
// one that the definitions lack.
func (m Message) Case(oneof string) (name string, member Message) {
	fd := m.WhichOneof(m.Descriptor().Oneofs().ByName(protoreflect.Name(oneof)))
	if fd == nil {
		return "", Message{}
	}
	return string(fd.Name()), Message{m.Message.Get(fd).Message()}
}
