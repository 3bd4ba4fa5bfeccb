package mcp

import "slices"

// tools returns the tools that this server offers.
func (s *Server) tools() []tool {
	return slices.Concat(inspectTools(), schemaTools(), replayTools(s.AllowSend), noteTools())
}

// A ToolText describes a tool in documents: Name is the name that clients call, About its description.
type ToolText struct{ Name, About string }

// ToolTexts returns the names and descriptions of all tools, including the one that is offered only if
// the user allows sending.
func ToolTexts() []ToolText {
	var list []ToolText
	for _, t := range slices.Concat(inspectTools(), schemaTools(), replayTools(true), noteTools()) {
		list = append(list, ToolText{t.name, t.about})
	}
	return list
}
