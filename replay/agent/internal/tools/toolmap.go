package tools

import "unwire/replay/agent/turn"

// A Map says which tool of the client does what a built-in tool of the server does.
type Map struct{}

func builtin() *Map { return &Map{} }

func (m *Map) call(*Set, *Exec) (*turn.Call, string) {
	return nil, "This client does not have that tool. Use one of the tools that it announced."
}
