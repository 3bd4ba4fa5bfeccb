package tools

import "unwire/replay/agent/internal/message"

// refusals are the possible names of the member of a result that reports that nothing was done, in
// order of preference.
var refusals = []string{"rejected", "error", "failure", "permission_denied"}

// reasons are the possible names of the field, in such a member, that explains why.
var reasons = []string{"reason", "error", "client_visible_error"}

// Refuse returns the messages that report to the server that the request e was not executed, and why.
// It uses the result type of the request if that type can report this.
func (s *Set) Refuse(e *Exec, reason string) []message.Message {
	if e.Kind == "" {
		return []message.Message{s.throw(e, reason)}
	}
	root, result := s.answer(e)
	switch e.Kind {
	case "list_mcp_resources_exec_args":
		// there are none
		result.At("success")
	case "read_mcp_resource_exec_args":
		result.At("not_found").Set("uri", e.Args.Text("uri"))
	case "force_background_shell_args":
		result.Set("status", int(statusNotFound))
	default:
		if !refuse(result, e.Args, reason) {
			return []message.Message{s.throw(e, reason)}
		}
	}
	return []message.Message{root}
}

// statusNotFound is FORCE_BACKGROUND_SHELL_STATUS_NOT_FOUND.
const statusNotFound = 2

// refuse sets the member of a result that reports that nothing was done, with the reason. It returns
// false if the type has no such member.
func refuse(result, args message.Message, reason string) bool {
	return refuseAs(result, args, reason, refusals...)
}

// refuseAs sets the first member in names that the result's type has, with the reason and the fields
// that it repeats from args. It returns false if it has none of them.
func refuseAs(result, args message.Message, reason string, names ...string) bool {
	for _, name := range names {
		if !result.HasField(name) {
			continue
		}
		member := result.At(name)
		message.CopyCommon(member, args)
		for _, field := range reasons {
			if member.HasField(field) {
				member.Set(field, reason)
				break
			}
		}
		return true
	}
	return false
}

// notFound returns the response to a request for a tool that the client did not offer.
func (s *Set) notFound(e *Exec) []message.Message {
	root, result := s.answer(e)
	missing := result.At("tool_not_found").Set("name", e.Args.Text("name"))
	for i := range s.tools {
		missing.Add("available_tools", s.tools[i].Name)
	}
	return []message.Message{root}
}
