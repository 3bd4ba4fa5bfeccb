package history

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

// turns writes a transcript as the list of displayed turns into the conversation's state. Each message
// of the user starts a turn; the messages after it are the steps of the turn.
func (b *builder) turns(state message.Message, list []turn.Message) error {
	results := map[string]*turn.Result{}
	for i := range list {
		for j := range list[i].Parts {
			if r := list[i].Parts[j].Result; r != nil {
				results[r.CallID] = r
			}
		}
	}
	for begin := 0; begin < len(list); {
		end := begin + 1
		for end < len(list) && list[end].Role != turn.User {
			end++
		}
		if list[begin].Role == turn.User {
			id, err := b.turn(list[begin:end], results)
			if err != nil {
				return err
			}
			state.Add("turns", id)
		}
		begin = end
	}
	return nil
}

// turn stores one turn as a blob, and returns the blob's name. list are the turn's messages, beginning
// with the user's; results are the results of all tool calls, by call id.
func (b *builder) turn(list []turn.Message, results map[string]*turn.Result) ([]byte, error) {
	structure := b.definitions.Agent("ConversationTurnStructure")
	agent := structure.At("agent_conversation_turn").Set("request_id", message.NewUUID())
	user := b.definitions.Agent("UserMessage")
	userMessage(user, &list[0])
	id, err := b.blobs.Put(user.Bytes())
	if err != nil {
		return nil, err
	}
	agent.Set("user_message", id)
	for i := range list[1:] {
		for j := range list[1+i].Parts {
			step := b.step(&list[1+i].Parts[j], results)
			if step == nil {
				continue
			}
			if id, err = b.blobs.Put(step); err != nil {
				return nil, err
			}
			agent.Add("steps", id)
		}
	}
	return b.blobs.Put(structure.Bytes())
}

// step encodes one part of an assistant's message as a step of a turn; nil for parts that are not
// steps. results are the results of tool calls, by call id.
func (b *builder) step(p *turn.Part, results map[string]*turn.Result) []byte {
	step := b.definitions.Agent("ConversationStep")
	switch {
	case p.Thinking != "":
		step.At("thinking_message").Set("text", p.Thinking)
	case p.Text != "":
		step.At("assistant_message").Set("text", p.Text)
	case p.Call != nil:
		call := step.At("tool_call", "mcp_tool_call")
		arguments(call.At("args"), p.Call)
		if r := results[p.Call.ID]; r != nil {
			tools.ShowResult(call.At("result"), r)
		}
	default:
		return nil
	}
	return step.Bytes()
}

// arguments copies a call of one of the client's tools into the protobuf message args.
func arguments(args message.Message, call *turn.Call) {
	args.Set("name", call.Name).Set("tool_name", call.Name).Set("provider_identifier", tools.Provider).Set("tool_call_id", call.ID)
	var object map[string]json.RawMessage
	if json.Unmarshal(call.Arguments, &object) != nil {
		return
	}
	values := args.Mutable(args.Field("args")).Map()
	for name, raw := range object {
		v := values.NewValue()
		if protojson.Unmarshal(raw, v.Message().Interface()) == nil {
			values.Set(message.MapKey(name), v)
		}
	}
}
