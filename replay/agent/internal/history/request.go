// Package history builds the message that opens a stream: the conversation so far, as the state
// that servers of the protocol store with their clients, and the next action.
//
//	var blobs history.Blobs
//	first, err := history.Request(definitions, set, &blobs, conversation, request)
//
// The state refers to its parts by their SHA-256. Blobs has the parts, and what the server stores
// during the stream. replay/agent uses the package.
//
// Source: replay/agent/README.md
package history

import (
	"strings"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

// A builder builds the first message of one stream; its fields are the arguments of Request.
type builder struct {
	// definitions are the message types of the agent service.
	definitions *message.Definitions

	// set are the client's tools.
	set *tools.Set

	// blobs receives the blobs that the first message refers to.
	blobs *Blobs

	// conversation is the id of the conversation.
	conversation string
}

// Request builds the first message of a stream, with the model, the tools and the transcript. The
// earlier messages are stored in blobs, and the message contains only their names; the server then
// requests the blobs.
//
// Errors: a *turn.Error.
func Request(d *message.Definitions, set *tools.Set, blobs *Blobs, conversation string, r *turn.Request) ([]byte, error) {
	b := builder{definitions: d, set: set, blobs: blobs, conversation: conversation}
	return b.request(r)
}

// request implements Request.
func (b *builder) request(r *turn.Request) ([]byte, error) {
	if len(r.Messages) == 0 {
		return nil, &turn.Error{Kind: turn.Invalid, Param: "messages", Message: "there are no messages"}
	}

	// Everything before the last message of the user is state; that message is the action.
	system, history, last := divide(r.Messages)
	root := b.definitions.Client()
	run := root.At("run_request")
	state := run.At("conversation_state")
	if err := b.history(state, history); err != nil {
		return nil, err
	}
	if last != nil {
		userMessage(run.At("action", "user_message_action", "user_message"), last)
	} else {
		run.At("action", "resume_action")
	}

	// The identifiers of the model and the conversation, and the tools.
	run.At("model_details").Set("model_id", r.Model).Set("display_model_id", r.Model).Set("display_name", r.Model)
	run.Set("conversation_id", b.conversation)
	if system != "" {
		run.Set("custom_system_prompt", system)
	}
	if len(r.Tools) > 0 {
		if err := b.set.Announce(run.At("mcp_tools")); err != nil {
			return nil, err
		}
	}
	return root.Bytes(), nil
}

// divide splits a transcript into the system prompt, the earlier messages, and the user's last message,
// which asks for the turn. last is nil if the transcript ends with another message, such as results of
// tools.
func divide(list []turn.Message) (system string, history []turn.Message, last *turn.Message) {
	var prompt []string
	for len(list) > 0 && list[0].Role == turn.System {
		prompt = append(prompt, textOf(&list[0]))
		list = list[1:]
	}
	if n := len(list); n > 0 && list[n-1].Role == turn.User {
		list, last = list[:n-1], &list[n-1]
	}
	return strings.Join(prompt, "\n\n"), list, last
}

// textOf returns the concatenated texts of a message.
func textOf(m *turn.Message) string {
	var texts []string
	for i := range m.Parts {
		if t := m.Parts[i].Text; t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n")
}

// userMessage copies text and images of a user's message into the protobuf message m.
func userMessage(m message.Message, from *turn.Message) {
	m.Set("text", textOf(from)).Set("message_id", message.NewUUID())
	for i := range from.Parts {
		if image := from.Parts[i].Image; image != nil {
			selected := m.At("selected_context").AddNew("selected_images")
			selected.Set("data", image.Data).Set("mime_type", image.MIME).Set("uuid", message.NewUUID())
		}
	}
}
