package tools

import (
	"runtime"

	"unwire/replay/agent/internal/message"
)

// Context answers a request for information about the user's workspace. unwire has no workspace, so
// only the operating system and the time zone are filled in. The tools are left out, because they were
// announced already.
func (s *Set) Context(e *Exec) []message.Message {
	root, result := s.answer(e)
	env := result.At("success", "request_context", "env")
	env.Set("os_version", runtime.GOOS).Set("time_zone", "UTC")
	return []message.Message{root}
}
