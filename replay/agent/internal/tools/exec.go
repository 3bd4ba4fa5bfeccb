// Package tools translates between what the server asks the client to do and calls of
// the tools that a client of unwire offers.
//
//	set, err := tools.NewSet(definitions, request.Tools, nil)
//	call, refusal := set.Call(exec)
//	messages := set.Answer(exec, result)
//
// A Set has the tools of one request. An Exec is one request of the server; its answer is
// one message, or for a shell that streams several. A Map is the table by which a
// built-in tool of the server becomes a call of a tool of the client. What no tool of the
// client can do is refused with the result type that the server expects. The package
// keeps no state, and is used by replay/agent.
//
// Source: replay/agent/README.md
package tools

import (
	"strings"

	"unwire/replay/agent/internal/message"
)

// An Exec is a request of the server to run something.
type Exec struct {
	ID     uint32
	ExecID string
	// Kind is the name of the member of ExecServerMessage that has Args, such as
	// "read_args".
	Kind string
	Args message.Message
}

// ExecOf reads an ExecServerMessage. Kind is "" if its member is one that the
// definitions lack, or none.
func ExecOf(m message.Message) Exec {
	e := Exec{ID: m.Uint32("id"), ExecID: m.Text("exec_id")}
	e.Kind, e.Args = m.Case("message")
	return e
}

// CallID is the id that the server gave the call; "" for none.
func (e *Exec) CallID() string {
	if e.Kind == "" || !e.Args.HasField("tool_call_id") {
		return ""
	}
	return e.Args.Text("tool_call_id")
}

// resultField returns the member of ExecClientMessage that answers a kind.
func resultField(kind string) string {
	switch {
	case kind == "shell_stream_args":
		return "shell_stream"
	case strings.HasSuffix(kind, "_request"):
		return strings.TrimSuffix(kind, "_request") + "_response"
	}
	return strings.TrimSuffix(kind, "_args") + "_result"
}

// answer returns an empty message of the client that answers e, and its result.
func (s *Set) answer(e *Exec) (root, result message.Message) {
	root = s.definitions.Client()
	exec := root.At("exec_client_message")
	if e.ID != 0 { // zero is not on the wire
		exec.Set("id", e.ID)
	}
	if e.ExecID != "" {
		exec.Set("exec_id", e.ExecID)
	}
	return root, exec.At(resultField(e.Kind))
}

// throw returns the message that says that e failed, for kinds whose result cannot say
// so.
func (s *Set) throw(e *Exec, reason string) message.Message {
	root := s.definitions.Client()
	thrown := root.At("exec_client_control_message", "throw").Set("error", reason)
	if e.ID != 0 {
		thrown.Set("id", e.ID)
	}
	return root
}

// StreamClose returns the message that follows each result.
func (s *Set) StreamClose(e *Exec) message.Message {
	root := s.definitions.Client()
	closed := root.At("exec_client_control_message", "stream_close")
	if e.ID != 0 {
		closed.Set("id", e.ID)
	}
	return root
}
