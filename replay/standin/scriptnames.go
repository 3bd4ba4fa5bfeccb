package standin

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/walk"
)

// A binder resolves the names that occur in one turn of a script, and validates the turn.
type binder struct {
	// api has the definitions of the messages.
	api *api

	// scope has the names that placeholders may use so far.
	scope *scope
	// message is the type of the messages that the steps "send" and "raw" send.
	message protoreflect.MessageDescriptor

	// agent means that the turn is for the agent's stream and not for a chat.
	agent bool

	// blobs are the names of the blobs that steps so far have stored.
	blobs map[string]bool
}

// turnScope returns the names that placeholders may use at the beginning of a turn.
func turnScope() *scope {
	return &scope{
		names: map[string]bool{
			"prompt": true, "model": true, "conversation_id": true, "answer": true,
			"system": true, "tools": true, "history": true, "images": true,
		},
		results: map[string]protoreflect.MessageDescriptor{},
	}
}

// turn resolves and validates a turn. Errors begin with path, its position in the script.
func (b *binder) turn(path string, t *scriptTurn) error {
	if len(t.Steps) > maxSteps {
		return fmt.Errorf("%s: has %d steps; the limit is %d", path, len(t.Steps), maxSteps)
	}
	if t.BootstrapMS != nil {
		if err := times("bootstrap_ms", *t.BootstrapMS); err != nil {
			return fmt.Errorf("%s.%w", path, err)
		}
	}
	b.blobs = map[string]bool{}
	for i := range t.Steps {
		if err := b.step(&t.Steps[i]); err != nil {
			return fmt.Errorf("%s.steps[%d]: %w", path, i, err)
		}
	}
	return nil
}

// step resolves and validates a step.
func (b *binder) step(s *scriptStep) error {
	actions := s.actions()
	if len(actions) != 1 {
		return fmt.Errorf("a step must have exactly one action, but this one has %d (%s)", len(actions), strings.Join(actions, ", "))
	}
	action := actions[0]
	if !b.agent && !slices.Contains([]string{"thinking", "text", "wait", "send", "raw", "error", "reset", "drop_end"}, action) {
		return fmt.Errorf("%s: allowed only in an element of \"turns\", not of \"chats\"", action)
	}
	if err := times("delay_ms", s.DelayMS, "pace_ms", s.PaceMS); err != nil {
		return err
	}
	if (s.Split != nil || s.PaceMS != 0) && action != "text" && action != "thinking" {
		return fmt.Errorf("split and pace_ms are allowed only together with text or thinking")
	}
	for i, n := range s.Split {
		if n < 1 {
			return fmt.Errorf("split[%d] is %d: each part needs at least one character", i, n)
		}
	}
	if err := b.action(action, s); err != nil {
		// Members of a nested object name themselves: tool.name.
		return fmt.Errorf("%s%w", action, err)
	}
	return nil
}

// action resolves the single action of a step. Errors begin with ": " or ".member: ".
func (b *binder) action(name string, s *scriptStep) (err error) {
	// Resolve names and templates now, so that mistakes are reported before the server starts.
	switch name {
	case "thinking":
		s.text, err = b.scope.parse(*s.Thinking)
	case "text":
		s.text, err = b.scope.parse(*s.Text)
	case "tool":
		return b.tool(s.Tool)
	case "tools":
		return b.tools(s.Tools)
	case "kv_set":
		return b.kvSet(s.KVSet)
	case "kv_get":
		return b.kvGet(s.KVGet)
	case "heartbeat", "wait", "hang":
		return b.pause(s)
	case "query":
		return b.query(s.Query)
	case "checkpoint":
		s.message, err = b.template(b.api.state, s.Checkpoint)
	case "send":
		s.message, err = b.template(b.message, s.Send)
	case "raw":
		s.bytes, err = hex.DecodeString(strings.ReplaceAll(*s.Raw, " ", ""))
	case "turn_ended":
		s.message, err = b.template(b.api.Message("agent.v1.TurnEndedUpdate"), s.TurnEnded)
	case "error":
		if err := s.Error.bind(b.api); err != nil {
			return fmt.Errorf(".%w", err)
		}
	case "echo", "reset", "drop_end":
		if on := map[string]*bool{"echo": s.Echo, "reset": s.Reset, "drop_end": s.DropEnd}[name]; !*on {
			err = fmt.Errorf("false has no effect: remove the step")
		}
	}

	// The path of the step is put before the error by the caller.
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// kvGet validates a step that requests a blob.
func (b *binder) kvGet(g *scriptKVGet) error {
	if err := times(".timeout_ms", g.TimeoutMS); err != nil {
		return err
	}
	if g.Unknown {
		if g.Blob != "" {
			return fmt.Errorf(": give either blob or unknown")
		}
		return nil
	}
	if !b.blobs[g.Blob] {
		return fmt.Errorf(".blob: no earlier kv_set has the name %q", g.Blob)
	}
	return nil
}

// pause validates the times of a step that waits and sends heartbeats.
func (b *binder) pause(s *scriptStep) error {
	switch {
	case s.Hang != nil:
		return times(".heartbeat_every_ms", s.Hang.HeartbeatEveryMS, ".ms", s.Hang.MS)
	case s.Wait != nil:
		return b.wait(s.Wait)
	}
	if n := *s.Heartbeat; n < 1 || n > maxHeartbeats {
		return fmt.Errorf(": must be from 1 to %d, not %d", maxHeartbeats, n)
	}
	return nil
}

// wait validates a pause.
func (b *binder) wait(w *scriptWait) error {
	if w.HeartbeatEveryMS > 0 && !b.agent {
		return fmt.Errorf(".heartbeat_every_ms: allowed only in an element of \"turns\", not of \"chats\"")
	}
	if w.HeartbeatEveryMS > 0 && w.MS/w.HeartbeatEveryMS > maxHeartbeats {
		return fmt.Errorf(".heartbeat_every_ms: gives more than %d heartbeats, which is the limit", maxHeartbeats)
	}
	return times(".ms", w.MS, ".heartbeat_every_ms", w.HeartbeatEveryMS)
}

// tool resolves a tool call: its fields in the API's messages and its arguments.
func (b *binder) tool(t *scriptTool) (err error) {
	if err := times(".timeout_ms", t.TimeoutMS, ".abort_ms", t.AbortMS); err != nil {
		return err
	}
	if t.Name != "mcp" && (t.Any != nil || t.Unannounced || t.InvalidArgs) {
		return fmt.Errorf(": any, unannounced and invalid_args are allowed only with the name mcp")
	}
	if t.ArgsSplit < 0 {
		return fmt.Errorf(".args_split: must not be negative, as %d is", t.ArgsSplit)
	}
	out := b.api.server.Fields().ByName("exec_server_message").Message().Fields()
	in := b.api.client.Fields().ByName("exec_client_message").Message().Fields()

	// The definitions use two pairs of suffixes.
	t.argsField = firstField(out, t.Name+"_args", t.Name+"_request")
	t.resultField = firstField(in, t.Name+"_result", t.Name+"_response")
	t.streams = t.Name == "shell_stream"
	if t.streams {
		t.resultField = in.ByName("shell_stream")
	}
	if t.argsField == nil || t.resultField == nil {
		return fmt.Errorf(".name: %q is not a tool: ExecServerMessage has no field %s_args, or ExecClientMessage no %s_result", t.Name, t.Name, t.Name)
	}
	call := b.api.Message("agent.v1.ToolCall")
	if call != nil {
		t.callField = call.Fields().ByName(protoreflect.Name(strings.TrimSuffix(t.Name, "_stream") + "_tool_call"))
	}

	// A tool of the client is announced by name; the built-in ones are fields.
	if t.args, err = b.template(t.argsField.Message(), t.Args); err != nil {
		return fmt.Errorf(".args: %w", err)
	}
	if t.Name == "mcp" {
		if err := b.candidates(t); err != nil {
			return err
		}
	}
	result := t.resultField.Message()
	if t.Require != "" {
		if fd := result.Fields().ByName(protoreflect.Name(t.Require)); fd == nil || fd.Message() == nil {
			return fmt.Errorf(".require: %s has no result %q", result.FullName(), t.Require)
		}
	}
	return b.name(t.As, result)
}

// name makes a response of the client, of type answer, available to later placeholders under the name
// as; if as is "", it does nothing.
func (b *binder) name(as string, answer protoreflect.MessageDescriptor) error {
	if as == "" {
		return nil
	}
	if !variableName.MatchString(as) {
		return fmt.Errorf(".as: %q is not a valid name", as)
	}
	b.scope.results[as] = answer
	return nil
}

// firstField returns the first of the named fields that exists; nil if none does.
func firstField(fields protoreflect.FieldDescriptors, names ...string) protoreflect.FieldDescriptor {
	for _, name := range names {
		if fd := fields.ByName(protoreflect.Name(name)); fd != nil && fd.Message() != nil {
			return fd
		}
	}
	return nil
}

// candidates resolves the alternative tools of a tool call: those in Any, or the single one in Args.
func (b *binder) candidates(t *scriptTool) error {
	if t.Any == nil {
		if get(t.args, "name").String() == "" {
			return fmt.Errorf(".args: must contain the name of a tool, and its args")
		}
		t.candidates = []*dynamicpb.Message{t.args}
		return nil
	}
	if t.Args != nil || len(t.Any) == 0 {
		return fmt.Errorf(".any: must be a list of tools, without args next to it")
	}

	// Each candidate is a message, like args.
	for i, c := range t.Any {
		if c.Name == "" {
			return fmt.Errorf(".any[%d].name: must be the name of a tool", i)
		}
		args := map[string]any{"name": c.Name}
		if c.Args != nil {
			args["args"] = c.Args
		}
		data, err := json.Marshal(args)
		if err != nil {
			return fmt.Errorf(".any[%d].args: %w", i, err)
		}
		m, err := b.template(t.argsField.Message(), data)
		if err != nil {
			return fmt.Errorf(".any[%d].args: %w", i, err)
		}
		t.candidates = append(t.candidates, m)
	}
	return nil
}

// query resolves a question to the user. The response is the member with the same number.
func (b *binder) query(q *scriptQuery) (err error) {
	if err := times(".timeout_ms", q.TimeoutMS); err != nil {
		return err
	}
	out := b.api.server.Fields().ByName("interaction_query").Message().Fields()
	in := b.api.client.Fields().ByName("interaction_response").Message().Fields()
	for _, name := range []string{"_request_query", "_interaction_query", "_query", "_args", ""} {
		if fd := firstField(out, q.Name+name); fd != nil && q.queryField == nil {
			q.queryField = fd
		}
	}
	if q.queryField != nil {
		q.responseField = in.ByNumber(q.queryField.Number())
	}
	if q.responseField == nil || q.responseField.Message() == nil {
		return fmt.Errorf(".name: InteractionQuery has no %q that InteractionResponse answers", q.Name)
	}
	if q.args, err = b.template(q.queryField.Message(), q.Args); err != nil {
		return fmt.Errorf(".args: %w", err)
	}
	return b.name(q.As, q.responseField.Message())
}

// maxParallelCalls limits the number of calls in one tools step.
const maxParallelCalls = 100

// tools resolves a step with several tool calls.
func (b *binder) tools(t *scriptTools) error {
	if n := len(t.Calls); n < 1 || n > maxParallelCalls {
		return fmt.Errorf(".calls: must be from 1 to %d, not %d", maxParallelCalls, n)
	}
	for i := range t.Calls {
		if err := b.tool(&t.Calls[i]); err != nil {
			return fmt.Errorf(".calls[%d]%w", i, err)
		}
	}
	return nil
}

// variableName matches the names that steps can give to their results.
var variableName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// kvSet resolves a step that stores a blob.
func (b *binder) kvSet(k *scriptKVSet) (err error) {
	if err := times(".timeout_ms", k.TimeoutMS); err != nil {
		return err
	}
	if (k.Data == nil) == (k.JSON == nil) {
		return fmt.Errorf(": give either data or json")
	}
	if k.Data != nil {
		k.text, err = b.scope.parse(*k.Data)
	} else {
		_, err = walk.JSON(k.JSON, b.check)
	}
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	if k.As != "" {
		b.blobs[k.As] = true
	}
	return nil
}

// template parses the JSON of a message of type md, whose strings may contain placeholders.
func (b *binder) template(md protoreflect.MessageDescriptor, data json.RawMessage) (*dynamicpb.Message, error) {
	m := dynamicpb.NewMessage(md)
	if data == nil {
		return m, nil
	}
	if err := readMessage(data, m); err != nil {
		return nil, err
	}
	return m, walk.Strings(m, b.check)
}

// check verifies that the placeholders in s are known, and returns s.
func (b *binder) check(s string) (string, error) {
	_, err := b.scope.parse(s)
	return s, err
}
