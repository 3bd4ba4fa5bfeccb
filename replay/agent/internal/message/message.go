// Package message makes and reads messages of the definitions in proto/, by the names
// of their fields.
//
//	d, err := message.Load(ctx)
//	m := d.Client()
//	m.At("run_request", "model_details").Set("model_id", "composer-1")
//	body := m.Bytes()
//
// A Message is a protoreflect.Message with methods that take names. A name that a
// message does not have is a mistake in the caller, and panics: the definitions are part
// of the program. Values that a server sent never do. It is used by replay/agent and the
// packages below it.
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

// recursionLimit bounds how deeply messages of a server are nested.
const recursionLimit = 100

// Definitions are the messages of the agent's service.
type Definitions struct {
	*schema.Schema
	client, server protoreflect.MessageDescriptor
}

// Load compiles the definitions in proto/.
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

// Client returns an empty message of the client.
func (d *Definitions) Client() Message { return Message{dynamicpb.NewMessage(d.client)} }

// Server returns an empty message of the server.
func (d *Definitions) Server() Message { return Message{dynamicpb.NewMessage(d.server)} }

// New returns an empty message by its full name.
func (d *Definitions) New(name string) Message {
	md := d.Message(name)
	if md == nil {
		panic("agent: the definitions have no message " + name)
	}
	return Message{dynamicpb.NewMessage(md)}
}

// Agent returns an empty message of the agent's package.
func (d *Definitions) Agent(name string) Message { return d.New(proto.AgentPackage + "." + name) }

// A Message is one message, or a field of one.
type Message struct{ protoreflect.Message }

// Parse reads what a server sent into m.
//
// Errors: data that is no message, or that nests too deeply. Unknown fields are kept,
// and are no error.
func (m Message) Parse(data []byte) error {
	return pb.UnmarshalOptions{RecursionLimit: recursionLimit, Merge: true}.Unmarshal(data, m.Interface())
}

// Bytes returns the message as it is on the wire. Fields are in the order of their
// numbers.
func (m Message) Bytes() []byte {
	data, err := pb.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	if err != nil { // only invalid UTF-8 fails, which Set does not let in
		panic("agent: " + err.Error())
	}
	return data
}

// Field returns the descriptor of a field.
func (m Message) Field(name string) protoreflect.FieldDescriptor {
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if fd == nil {
		panic(fmt.Sprintf("agent: %s has no field %s", m.Descriptor().FullName(), name))
	}
	return fd
}

// HasField reports whether the type of m has a field of that name.
func (m Message) HasField(name string) bool {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name)) != nil
}

// At returns the message at the end of a path of fields, and makes what is missing of
// it.
func (m Message) At(path ...string) Message {
	for _, name := range path {
		m = Message{m.Mutable(m.Field(name)).Message()}
	}
	return m
}

// Set sets a field: to a string, bytes, a bool, a number of its type, or a Message. It
// returns m. Invalid UTF-8 in a string is replaced.
func (m Message) Set(name string, v any) Message {
	fd := m.Field(name)
	m.Message.Set(fd, value(fd, v))
	return m
}

// Add appends to a repeated field. It returns m.
func (m Message) Add(name string, v any) Message {
	fd := m.Field(name)
	m.Mutable(fd).List().Append(value(fd, v))
	return m
}

// AddNew appends an empty message to a repeated field, and returns it.
func (m Message) AddNew(name string) Message {
	return Message{m.Mutable(m.Field(name)).List().AppendMutable().Message()}
}

// Has reports whether the field at the end of a path is set.
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

// Value returns the field at the end of a path; its default if it is not set.
func (m Message) Value(path ...string) protoreflect.Value {
	for _, name := range path[:len(path)-1] {
		m = m.Sub(name)
	}
	return m.Message.Get(m.Field(path[len(path)-1]))
}

// Sub returns a field that is a message, to be read.
func (m Message) Sub(path ...string) Message {
	for _, name := range path {
		m = Message{m.Message.Get(m.Field(name)).Message()}
	}
	return m
}

// Text returns a string field.
func (m Message) Text(path ...string) string { return m.Value(path...).String() }

// Uint32 returns a field of type uint32.
func (m Message) Uint32(path ...string) uint32 {
	return uint32(m.Value(path...).Uint()) //nolint:gosec
}

// Case returns the name and the message of the member that a oneof holds; "" for none,
// which a message of a newer server may have.
func (m Message) Case(oneof string) (name string, member Message) {
	fd := m.WhichOneof(m.Descriptor().Oneofs().ByName(protoreflect.Name(oneof)))
	if fd == nil {
		return "", Message{}
	}
	return string(fd.Name()), Message{m.Message.Get(fd).Message()}
}
