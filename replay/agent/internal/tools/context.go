package tools

import (
	"runtime"

	"unwire/replay/agent/internal/message"
)

// Context returns the answer to a request for the context of the workspace. unwire has
// no workspace: what is in it, the client's tools find out. The tools are not in it,
// since they were announced already.
func (s *Set) Context(e *Exec) []message.Message {
	root, result := s.answer(e)
	env := result.At("success", "request_context", "env")
	env.Set("os_version", runtime.GOOS).Set("time_zone", "UTC")
	return []message.Message{root}
}
