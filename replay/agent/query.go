package agent

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/agent/internal/message"
)

// query answers a question that the server asks the user: it declines, because no user is present.
func (s *Stream) query(m message.Message) error {
	kind, _ := m.Case("query")
	if kind == "" {
		// an unknown question of a newer server
		return nil
	}
	root := s.client.definitions.Client()
	answer := root.At("interaction_response")
	// protobuf omits zero
	if id := m.Uint32("id"); id != 0 {
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

// decline sets the fields of an answer that decline the question and give a reason, as far as the
// answer's type has them.
func decline(answer message.Message) {
	const reason = "No user is available to answer this question: continue without an answer."
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
