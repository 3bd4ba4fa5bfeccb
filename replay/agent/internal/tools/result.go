package tools

import (
	"strings"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// Answer converts r, the result of a client's tool, to the messages that respond to the server's
// request e.
func (s *Set) Answer(e *Exec, r *turn.Result) []message.Message {
	text := textOf(r)
	if r.Rejected {
		if text == "" {
			text = "The tool was not run."
		}
		return s.Refuse(e, text)
	}
	if e.Kind == "mcp_args" {
		root, result := s.answer(e)
		answerMCP(result, r)
		return []message.Message{root}
	}
	return s.answerBuiltIn(e, r, text)
}

// answerMCP copies texts and images of r into the result message of an announced (MCP) tool.
func answerMCP(result message.Message, r *turn.Result) {
	success := result.At("success")
	for i := range r.Parts {
		switch p := &r.Parts[i]; {
		case p.Image != nil:
			success.AddNew("content").At("image").Set("data", p.Image.Data).Set("mime_type", p.Image.MIME)
		default:
			success.AddNew("content").At("text").Set("text", p.Text)
		}
	}
	if len(r.Parts) == 0 {
		success.AddNew("content").At("text")
	}
	if r.IsError {
		success.Set("is_error", true)
	}
}

// ShowResult copies a tool result into the message that displays it in an earlier turn.
func ShowResult(result message.Message, r *turn.Result) {
	switch text := textOf(r); {
	case r.Rejected:
		result.At("rejected").Set("reason", text)
	case r.IsError:
		result.At("error").Set("error", text)
	default:
		answerMCP(result, r)
	}
}

// textOf returns the concatenated texts of a result.
func textOf(r *turn.Result) string {
	var texts []string
	for i := range r.Parts {
		if r.Parts[i].Image == nil && r.Parts[i].Text != "" {
			texts = append(texts, r.Parts[i].Text)
		}
	}
	return strings.Join(texts, "\n")
}
