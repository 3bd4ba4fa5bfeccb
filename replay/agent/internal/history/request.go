// Package history makes the request that opens a stream: the conversation so far, as the
// state that servers of the protocol keep with their clients, and what is to be done next.
//
//	var blobs history.Blobs
//	first, err := history.Request(definitions, set, &blobs, conversation, request)
//
// The state names its parts by their SHA-256. Blobs has them, and what the server stores
// while the stream runs. The package is used by replay/agent.
//
// Source: replay/agent/README.md
package history

import (
	"strings"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

// A builder makes one request.
type builder struct {
	definitions  *message.Definitions
	set          *tools.Set
	blobs        *Blobs
	conversation string
}

// Request makes the first message of a stream. What it names as blobs is put into blobs,
// so that the server can ask for it.
//
// Errors: a *turn.Error.
func Request(d *message.Definitions, set *tools.Set, blobs *Blobs, conversation string, r *turn.Request) ([]byte, error) {
	b := builder{definitions: d, set: set, blobs: blobs, conversation: conversation}
	return b.request(r)
}

func (b *builder) request(r *turn.Request) ([]byte, error) {
	if len(r.Messages) == 0 {
		return nil, &turn.Error{Kind: turn.Invalid, Param: "messages", Message: "there are no messages"}
	}
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

// divide parts a transcript: the system prompt, what comes before the action, and the
// message of the user that is the action; nil if the transcript ends otherwise.
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

// textOf returns the texts of a message.
func textOf(m *turn.Message) string {
	var texts []string
	for i := range m.Parts {
		if t := m.Parts[i].Text; t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n")
}

// userMessage writes a message of the user.
func userMessage(m message.Message, from *turn.Message) {
	m.Set("text", textOf(from)).Set("message_id", message.NewUUID())
	for i := range from.Parts {
		if image := from.Parts[i].Image; image != nil {
			selected := m.At("selected_context").AddNew("selected_images")
			selected.Set("data", image.Data).Set("mime_type", image.MIME).Set("uuid", message.NewUUID())
		}
	}
}
