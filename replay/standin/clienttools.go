package standin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// errHang makes a turn hang: its stream only gets heartbeats and never ends.
var errHang = errors.New("the stream hangs")

// announced reads the tools that the client announced in its first message.
//
// Errors: errHang if it announced tools in two places, unless the script allows that.
func (t *turn) announced() error {
	t.announce(get(t.request, "mcp_tools", "mcp_tools").List())
	for _, action := range []protoreflect.Name{"user_message_action", "resume_action"} {
		list := get(t.request, "action", action, "request_context", "tools").List()
		if err := t.announceAgain(list); err != nil {
			return err
		}
	}
	return nil
}

// announceAgain reads a list of tools that the client announced later, in another message.
// Errors: errHang if it had announced tools before, unless the script allows that.
func (t *turn) announceAgain(list protoreflect.List) error {
	if list.Len() > 0 && len(t.definitions) > 0 && t.s.script.AnnouncedTwice == "hang" {
		return errHang
	}
	t.announce(list)
	return nil
}

// announce adds a list of tool definitions to those of the client.
func (t *turn) announce(list protoreflect.List) {
	var names []string
	for i := range list.Len() {
		t.definitions = append(t.definitions, list.Get(i).Message())
	}
	for _, d := range t.definitions {
		names = append(names, toolName(d))
	}
	t.vars.text["tools"] = strings.Join(names, ", ")
}

// toolName returns the name of a tool as the client knows it, without the provider's prefix.
func toolName(definition protoreflect.Message) string {
	if name := get(definition, "tool_name").String(); name != "" {
		return name
	}
	return get(definition, "name").String()
}

// choose returns the arguments for the first alternative of a tool step that the client announced and
// whose schema accepts them.
func (t *turn) choose(tool *scriptTool) (*dynamicpb.Message, error) {
	var asked, why []string
	for _, candidate := range tool.candidates {
		args := t.vars.expandMessage(candidate)
		name := get(args, "name").String()
		definition := t.definition(name)

		// Try the next candidate if the client did not announce this tool.
		if definition == nil {
			asked = append(asked, name)
			continue
		}
		if !tool.InvalidArgs {
			if err := checkArgs(definition, args); err != nil {
				why = append(why, fmt.Sprintf("%s: %v", name, err))
				continue
			}
		}

		// The announced spelling of the name is sent, which may differ from the script's.
		set(args, "name", get(definition, "name").String())
		set(args, "tool_name", toolName(definition))
		set(args, "provider_identifier", get(definition, "provider_identifier").String())
		return args, nil
	}

	// The script may insist on a tool that the client did not announce.
	if tool.Unannounced {
		args := t.vars.expandMessage(tool.candidates[0])
		set(args, "tool_name", get(args, "name").String())
		return args, nil
	}
	text := fmt.Sprintf("the client announced none of the tools that the script asks for (%s); it announced: %s", strings.Join(asked, ", "), t.vars.text["tools"])
	if why != nil {
		text = "the arguments in the script do not match the tool's input schema: " + strings.Join(why, "; ")
	}
	return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New(text))
}

// definition returns the client's definition of the tool name; nil if it did not announce one.
func (t *turn) definition(name string) protoreflect.Message {
	for _, d := range t.definitions {
		if toolName(d) == name || get(d, "name").String() == name {
			return d
		}
	}
	return nil
}

// checkArgs validates the arguments in an McpArgs message against the input schema in the tool's
// definition.
func checkArgs(definition, args protoreflect.Message) error {
	if !has(definition, "input_schema") {
		return nil
	}
	data, err := protojson.Marshal(get(definition, "input_schema").Message().Interface())
	if err != nil {
		return fmt.Errorf("its input schema: %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("its input schema: %w", err)
	}
	// The schema comes from the client, so it must not refer to anything outside itself.
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	// The name is absolute: a relative one would be resolved against the working directory, which
	// may not exist.
	const name = "tool:///schema.json"
	if err := compiler.AddResource(name, document); err != nil {
		return fmt.Errorf("its input schema: %w", err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("its input schema: %w", err)
	}

	instance, err := argsJSON(args)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(instance))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// argsJSON returns the arguments in an McpArgs message as a JSON object.
func argsJSON(args protoreflect.Message) ([]byte, error) {
	data, err := protojson.Marshal(args.Interface())
	if err != nil {
		return nil, err
	}
	var members struct {
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	if members.Args == nil {
		return []byte("{}"), nil
	}
	return members.Args, nil
}
