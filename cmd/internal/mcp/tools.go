package mcp

import "slices"

// tools returns the tools that this server offers.
func (s *Server) tools() []tool {
	return slices.Concat(inspectTools(), schemaTools(), replayTools(s.AllowSend), noteTools())
}

// A ToolText describes a tool in documents.
type ToolText struct {
	// Name is the name by which clients call the tool.
	Name string

	// About is its description.
	About string
}

// ToolTexts returns the names and descriptions of all tools, including the one that is offered only if
// the user allows sending.
func ToolTexts() []ToolText {
	var list []ToolText
	for _, t := range slices.Concat(inspectTools(), schemaTools(), replayTools(true), noteTools()) {
		list = append(list, ToolText{t.name, t.about})
	}
	return list
}
