// Package tools translates the server's requests to run a tool into calls of the tools that the
// client offers, and their results back.
//
//	set, err := tools.NewSet(definitions, request.Tools, nil)
//	call, refusal := set.Call(exec)
//	messages := set.Answer(exec, result)
//
// A Set has the tools of one request. An Exec is one request of the server; the answer is one
// message, or several for a streaming shell. A Map is the table that maps the server's built-in
// tools to the client's. A request that no tool of the client can do is refused with the result
// type that the server expects. The package keeps no state; replay/agent uses it.
//
// Source: replay/agent/README.md
package tools

import (
	"strings"

	"unwire/replay/agent/internal/message"
)

// An Exec is a request from the server to run a tool on the client's machine.
type Exec struct {
	// ID is the number of the request; each message of the response repeats it.
	ID uint32

	// ExecID is a second identifier of the request, which the response repeats, too; may be "".
	ExecID string
	// Kind is the kind of the request, i.e. the name of the member that is set in ExecServerMessage,
	// such as "read_args".
	Kind string
	// Args is the message with the arguments of the request.
	Args message.Message
}

// ExecOf returns the request in an ExecServerMessage. Its Kind is "" if no member is set, or only one
// that the definitions lack.
func ExecOf(m message.Message) Exec {
	e := Exec{ID: m.Uint32("id"), ExecID: m.Text("exec_id")}
	e.Kind, e.Args = m.Case("message")
	return e
}

// CallID returns the id that the server gave the tool call; "" if it gave none.
func (e *Exec) CallID() string {
	if e.Kind == "" || !e.Args.HasField("tool_call_id") {
		return ""
	}
	return e.Args.Text("tool_call_id")
}

// resultField returns the name of the member of ExecClientMessage that has the result for a kind of
// request.
func resultField(kind string) string {
	switch {
	case kind == "shell_stream_args":
		return "shell_stream"
	case strings.HasSuffix(kind, "_request"):
		return strings.TrimSuffix(kind, "_request") + "_response"
	}
	return strings.TrimSuffix(kind, "_args") + "_result"
}

// answer returns an empty response to e: root is the message to send, and result the member in it to be
// filled in.
func (s *Set) answer(e *Exec) (root, result message.Message) {
	root = s.definitions.Client()
	exec := root.At("exec_client_message")
	// protobuf omits zero
	if e.ID != 0 {
		exec.Set("id", e.ID)
	}
	if e.ExecID != "" {
		exec.Set("exec_id", e.ExecID)
	}
	return root, exec.At(resultField(e.Kind))
}

// throw returns a message that reports the failure of e, for requests whose result type cannot report
// an error.
func (s *Set) throw(e *Exec, reason string) message.Message {
	root := s.definitions.Client()
	thrown := root.At("exec_client_control_message", "throw").Set("error", reason)
	if e.ID != 0 {
		thrown.Set("id", e.ID)
	}
	return root
}

// StreamClose returns the message that is sent after the result of e, to tell the server that no more
// follows.
func (s *Set) StreamClose(e *Exec) message.Message {
	root := s.definitions.Client()
	closed := root.At("exec_client_control_message", "stream_close")
	if e.ID != 0 {
		closed.Set("id", e.ID)
	}
	return root
}
