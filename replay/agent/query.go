package agent

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/agent/internal/message"
)

// query answers a question to the user. There is none: the client of unwire is a
// program. Answers have the number of their questions in the definitions.
func (s *Stream) query(m message.Message) error {
	kind, _ := m.Case("query")
	if kind == "" {
		return nil // of a newer server, whose answer we do not know
	}
	root := s.client.definitions.Client()
	answer := root.At("interaction_response")
	if id := m.Uint32("id"); id != 0 { // zero is not on the wire
		answer.Set("id", id)
	}
	number := m.Field(kind).Number()
	fd := answer.Descriptor().Fields().ByNumber(number)
	if fd == nil || fd.Message() == nil {
		return nil
	}
	decline(message.Message{Message: answer.Mutable(fd).Message()})
	return s.answered(s.send(root))
}

// decline fills in an answer that says no, as far as its type can say so.
func decline(answer message.Message) {
	const reason = "There is no user to ask: go on without."
	if answer.HasField("result") && answer.Field("result").Message() != nil {
		answer = answer.At("result")
	}
	for _, name := range []string{"rejected", "error"} {
		if !answer.HasField(name) || answer.Field(name).Message() == nil {
			continue
		}
		member := answer.At(name)
		for _, field := range []string{"reason", "error", "error_message"} {
			if member.HasField(field) && member.Field(field).Kind() == protoreflect.StringKind {
				member.Set(field, reason)
			}
		}
		return
	}
}
