package standin

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/standin/walk"
)

// A question is a tool call that the server has requested from the client.
type question struct {
	// tool is the call in the script.
	tool *scriptTool

	// args are the arguments that were sent.
	args protoreflect.Message

	// callID and modelCallID are the ids of the call in messages that display it.
	callID, modelCallID string

	// id is the number of the request; the client's response repeats it.
	id uint32

	// output is the output of a shell command so far.
	output strings.Builder
}

// errAborted reports that the server aborted a tool call.
var errAborted = errors.New("the server aborted the call")

// tool lets the client execute a tool: the server displays the call, requests it, waits for the result,
// and displays the call again with the result.
func (t *turn) tool(tool *scriptTool) error {
	q, err := t.ask(tool)
	if err != nil {
		return err
	}
	return t.answered(q)
}

// tools requests several tool calls before it waits for the first result.
func (t *turn) tools(tools *scriptTools) error {
	order := make([]int, len(tools.Calls))
	for i := range order {
		order[i] = i
	}
	if tools.Shuffle {
		for i := len(order) - 1; i > 0; i-- {
			k := int(t.ids.Number(uint32(i+1))) - 1
			order[i], order[k] = order[k], order[i]
		}
	}
	asked := make([]*question, len(order))
	for _, i := range order {
		var err error
		if asked[i], err = t.ask(&tools.Calls[i]); err != nil {
			return err
		}
	}
	for _, i := range order {
		if err := t.answered(asked[i]); err != nil {
			return err
		}
	}
	return nil
}

// ask displays a tool call, and requests it from the client.
func (t *turn) ask(tool *scriptTool) (*question, error) {
	q := &question{tool: tool, callID: t.ids.Call(), modelCallID: t.ids.UUID()}
	args := t.vars.expandMessage(tool.args)
	// One of several candidates is called: the first that the client announced and whose schema
	// accepts the arguments.
	if tool.candidates != nil {
		var err error
		if args, err = t.choose(tool); err != nil {
			return nil, err
		}
	}
	if fd := args.Descriptor().Fields().ByName("tool_call_id"); fd != nil && fd.Kind() == protoreflect.StringKind {
		args.Set(fd, protoreflect.ValueOfString(q.callID))
	}
	q.args = args
	if tool.ArgsSplit > 0 {
		if err := t.writeArgs(tool, q.callID, q.modelCallID, args); err != nil {
			return nil, err
		}
	}

	// The call is displayed before it is requested, as the live service does.
	if err := t.showCall("tool_call_started", q, nil); err != nil {
		return nil, err
	}
	t.execID++
	q.id = t.execID
	root, leaf := t.s.api.message("exec_server_message")
	set(leaf, "id", q.id)
	set(leaf, "exec_id", t.ids.UUID())
	leaf.Set(tool.argsField, protoreflect.ValueOfMessage(args))
	t.openCalls++
	return q, t.emit(root)
}

// answered waits for the result of a tool call, and sends the update that displays the call with the
// result.
func (t *turn) answered(q *question) error {
	result, err := t.await(q)
	if errors.Is(err, errAborted) {
		t.openCalls--
		return t.showCall("tool_call_completed", q, nil)
	}
	if err != nil {
		return err
	}
	t.openCalls--
	if q.tool.As != "" {
		t.vars.results[q.tool.As] = result
		if q.tool.streams {
			t.vars.outputs[q.tool.As] = q.output.String()
		}
	}
	if q.tool.Name == "request_context" {
		if err := t.announceAgain(get(result, "success", "request_context", "tools").List()); err != nil {
			return err
		}
	}
	return t.showCall("tool_call_completed", q, result)
}

// writeArgs sends the arguments of a tool call as JSON text in pieces, as a model generates them.
func (t *turn) writeArgs(tool *scriptTool, callID, modelCallID string, args protoreflect.Message) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(args.Interface())
	if err != nil {
		return err
	}
	if text, err = walk.JSON(text, func(s string) (string, error) { return s, nil }); err != nil {
		return err
	}
	for piece := range pieces(string(text), []int{tool.ArgsSplit}) {
		root, leaf := t.s.api.message("interaction_update", "partial_tool_call")
		set(leaf, "call_id", callID)
		set(leaf, "model_call_id", modelCallID)
		set(leaf, "args_text_delta", piece)
		if tool.callField != nil {
			within(leaf, "tool_call", tool.callField.Name())
		}
		if err := t.emit(root); err != nil {
			return err
		}
	}
	return nil
}

// showCall sends the update kind, which displays a tool call, with its arguments and its result if the
// update's type has fields for them. result may be nil.
func (t *turn) showCall(kind protoreflect.Name, q *question, result protoreflect.Message) error {
	if q.tool.callField == nil {
		return nil
	}
	root, leaf := t.s.api.message("interaction_update", kind)
	set(leaf, "call_id", q.callID)
	set(leaf, "model_call_id", q.modelCallID)
	call := within(leaf, "tool_call", q.tool.callField.Name())
	for name, from := range map[protoreflect.Name]protoreflect.Message{"args": q.args, "result": result} {
		fd := call.Descriptor().Fields().ByName(name)
		if from != nil && fd != nil && fd.Message() != nil && !fd.IsList() {
			copyCommon(call.Mutable(fd).Message(), from)
		}
	}
	return t.emit(root)
}

// await waits for the result of a tool call, and returns the result message.
func (t *turn) await(q *question) (protoreflect.Message, error) {
	id, tool := q.id, q.tool
	limit := t.s.answerTimeout(tool.TimeoutMS)
	if tool.AbortMS > 0 {
		limit = time.Duration(tool.AbortMS) * time.Millisecond
	}
	what := fmt.Sprintf("exec %d (%s)", id, tool.argsField.Name())
	// A streaming shell answers with several messages, the last of which is its exit.
	for {
		m, err := t.in.await(t.ctx, limit, what, func(kind protoreflect.Name, m protoreflect.Message) bool {
			return kind == "exec_client_message" && get(m, "id").Uint() == uint64(id) ||
				kind == "exec_client_control_message" && has(m, "throw") && get(m, "throw", "id").Uint() == uint64(id)
		})
		if err != nil {
			return nil, t.unanswered(q, err)
		}
		if m.Descriptor().Name() == "ExecClientControlMessage" {
			return nil, connect.NewError(connect.CodeAborted, fmt.Errorf("%s: the client threw: %s", what, get(m, "throw", "error").String()))
		}
		// The client may have answered with another kind of result.
		if !m.Has(tool.resultField) {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s: the answer has no %s", what, tool.resultField.Name()))
		}
		result := m.Get(tool.resultField).Message()
		if tool.streams && q.keepOutput(result) {
			continue
		}
		if tool.Require != "" && !has(result, protoreflect.Name(tool.Require)) {
			kind, _ := member(result)
			return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%s: the result is %q, not %q", what, kind, tool.Require))
		}
		return result, nil
	}
}

// unanswered is called with the error of waiting for a result. After a timeout, it aborts the tool
// call. It returns the error for the turn.
func (t *turn) unanswered(q *question, err error) error {
	if connect.CodeOf(err) != connect.CodeDeadlineExceeded || t.ctx.Err() != nil {
		return err
	}
	if q.tool.AbortMS > 0 {
		err = errAborted
	}
	return errors.Join(t.abort(q.id), err)
}

// keepOutput stores the output in an event of a shell command; it returns false for the last event.
func (q *question) keepOutput(event protoreflect.Message) bool {
	kind, inner := member(event)
	if kind == "stdout" && q.output.Len() < maxMessageBytes {
		q.output.WriteString(stringField(inner, "data"))
	}
	return kind == "stdout" || kind == "stderr" || kind == "start" || kind == ""
}

// abort tells the client that the tool call with this number is cancelled.
func (t *turn) abort(id uint32) error {
	root, leaf := t.s.api.message("exec_server_control_message", "abort")
	set(leaf, "id", id)
	return t.emit(root)
}

// kvSet stores a blob with the client, and waits for the confirmation.
func (t *turn) kvSet(k *scriptKVSet) error {
	data := []byte(t.vars.expand(k.text))
	if k.JSON != nil {
		var err error
		if data, err = walk.JSON(k.JSON, t.vars.expandText); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(data)
	if k.As != "" {
		t.blobs[k.As] = data
	}
	t.roots = append(t.roots, sum[:])
	t.s.blobs.add(data)
	answer, err := t.kv(k.TimeoutMS, "set_blob_args", "set_blob_result", func(args protoreflect.Message) {
		set(args, "blob_id", sum[:])
		set(args, "blob_data", data)
	})
	if err != nil {
		return err
	}
	if has(answer, "error") {
		return connect.NewError(connect.CodeAborted, fmt.Errorf("the client could not store blob %x", sum[:4]))
	}
	return nil
}

// kvGet requests a blob that was stored with the client before, and verifies it.
func (t *turn) kvGet(k *scriptKVGet) error {
	want := t.blobs[k.Blob]
	if k.Unknown {
		want = []byte("nobody stored " + t.ids.UUID())
	}
	sum := sha256.Sum256(want)
	if k.NoID {
		// An id of 0 is omitted on the wire.
		kept := t.kvID
		t.kvID = math.MaxUint32
		defer func() { t.kvID = kept }()
	}
	answer, err := t.kv(k.TimeoutMS, "get_blob_args", "get_blob_result", func(args protoreflect.Message) {
		set(args, "blob_id", sum[:])
	})
	if err != nil || k.Unknown {
		return err
	}
	if got := get(answer, "blob_data").Bytes(); !bytes.Equal(got, want) {
		return connect.NewError(connect.CodeDataLoss, fmt.Errorf("blob %x: the client gave %d bytes back that are not the %d stored", sum[:4], len(got), len(want)))
	}
	return nil
}

// query sends a question to the user, and waits for the response.
func (t *turn) query(q *scriptQuery) error {
	t.queryID++
	id := t.queryID
	root, leaf := t.s.api.message("interaction_query")
	set(leaf, "id", id)
	leaf.Set(q.queryField, protoreflect.ValueOfMessage(t.vars.expandMessage(q.args)))
	if err := t.emit(root); err != nil {
		return err
	}
	what := fmt.Sprintf("query %d (%s)", id, q.queryField.Name())
	m, err := t.in.await(t.ctx, t.s.answerTimeout(q.TimeoutMS), what, func(kind protoreflect.Name, m protoreflect.Message) bool {
		return kind == "interaction_response" && get(m, "id").Uint() == uint64(id)
	})
	if err != nil {
		return err
	}
	if !m.Has(q.responseField) {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s: the response has no %s", what, q.responseField.Name()))
	}
	if q.As != "" {
		t.vars.results[q.As] = m.Get(q.responseField).Message()
	}
	return nil
}

// kv sends a request about a blob and waits for the response. ask and answer are the names of the
// members for both, and fill sets the fields of the request.
func (t *turn) kv(timeoutMS int, ask, answer protoreflect.Name, fill func(args protoreflect.Message)) (protoreflect.Message, error) {
	id, err := t.askKV(ask, fill)
	if err != nil {
		return nil, err
	}
	return t.awaitKV(id, timeoutMS, ask, answer)
}

// askKV sends a request about a blob, and returns its number. ask is the name of the member, and fill
// sets its fields.
func (t *turn) askKV(ask protoreflect.Name, fill func(args protoreflect.Message)) (uint32, error) {
	t.kvID++
	root, leaf := t.s.api.message("kv_server_message")
	set(leaf, "id", t.kvID)
	fill(within(leaf, ask))
	return t.kvID, t.emit(root)
}

// awaitKV waits for the response to request id about a blob; answer is the name of its member.
func (t *turn) awaitKV(id uint32, timeoutMS int, ask, answer protoreflect.Name) (protoreflect.Message, error) {
	what := fmt.Sprintf("kv %d (%s)", id, ask)
	m, err := t.in.await(t.ctx, t.s.answerTimeout(timeoutMS), what, func(kind protoreflect.Name, m protoreflect.Message) bool {
		return kind == "kv_client_message" && get(m, "id").Uint() == uint64(id)
	})
	if err != nil {
		return nil, err
	}
	if !has(m, answer) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s: the answer has no %s", what, answer))
	}
	return get(m, answer).Message(), nil
}
