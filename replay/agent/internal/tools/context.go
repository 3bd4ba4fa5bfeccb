package tools

import (
	"runtime"

	"unwire/replay/agent/internal/message"
)

// Context answers a request for the context of the workspace. unwire has no workspace; the client's
// tools read it. The tools are left out, because they were announced already.
func (s *Set) Context(e *Exec) []message.Message {
	root, result := s.answer(e)
	env := result.At("success", "request_context", "env")
	env.Set("os_version", runtime.GOOS).Set("time_zone", "UTC")
	return []message.Message{root}
}
