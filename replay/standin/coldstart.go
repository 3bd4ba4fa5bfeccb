package standin

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/history"
)

// maxMessages limits the number of messages in a transcript.
const maxMessages = 20_000

// coldStart reads the transcript of earlier turns in the client's request (a cold continuation), and
// returns the number of turns in it. If the request is to resume an unfinished turn, the prompt and the
// results of its first tool calls are taken from the transcript.
//
// Source: RESEARCH.md#cold-continuation
func (t *turn) coldStart() (place int, err error) {
	transcript, err := t.transcript()
	if err != nil {
		return 0, err
	}
	t.vars.text["history"] = history.Print(transcript)
	resumed := has(t.request, "action", "resume_action") ||
		get(t.request, "action", "user_message_action", "user_message", "is_simulated_msg").Bool()
	place = get(t.request, "conversation_state", "turns").List().Len()

	// A new prompt starts the next turn; resuming continues the last one.
	if !resumed {
		if place == 0 {
			place = history.Answered(transcript)
		}
		return place, nil
	}

	last := history.Unfinished(transcript)
	if last == nil {
		return 0, connect.NewError(connect.CodeInvalidArgument, errors.New("there is no prompt to answer: the conversation_state has no user message"))
	}

	// Continue the unfinished turn: its prompt, and the results that the client already has.
	t.vars.text["prompt"] = last.Prompt
	t.vars.text["images"] = history.Images(last.Images)
	t.done = last.Calls
	if place == 0 {
		return last.Place, nil
	}
	return place - 1, nil
}

// transcript returns the messages in the conversation's state. The state contains their blob ids; blobs
// that the server lacks are requested from the client.
func (t *turn) transcript() (list []history.Message, err error) {
	roots := get(t.request, "conversation_state", "root_prompt_messages_json").List()
	if roots.Len() > maxMessages {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the conversation_state has %d messages, more than %d", roots.Len(), maxMessages))
	}
	var ids [][]byte
	for i := range roots.Len() {
		if id := roots.Get(i).Bytes(); !isMessage(id) {
			ids = append(ids, id)
		}
	}

	// An entry is a message, or the id of a blob that has it.
	if err := t.fetch(ids); err != nil {
		return nil, err
	}
	for i := range roots.Len() {
		data := roots.Get(i).Bytes()
		if !isMessage(data) {
			if data, err = t.blob(data); err != nil {
				return nil, err
			}
		}
		if !bytes.HasPrefix(data, []byte("{")) {
			// a script's blob that is not a message
			continue
		}
		m, err := history.Parse(data)
		if err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("root_prompt_messages_json[%d]: %w", i, err))
		}
		list = append(list, m)
	}
	return list, nil
}

// isMessage reports whether an entry of the list is a message itself and not a blob id. An id may also
// begin with a brace, by chance.
func isMessage(entry []byte) bool { return bytes.HasPrefix(entry, []byte("{")) && json.Valid(entry) }

// fetchAtOnce is the number of blobs that are requested before the server waits for a response.
const fetchAtOnce = 64

// fetch requests from the client those of the blobs ids that the server lacks.
func (t *turn) fetch(ids [][]byte) error {
	asked := map[string]bool{}
	ids = slices.DeleteFunc(ids, func(id []byte) bool {
		known := asked[string(id)] || t.s.blobs.get(id) != nil
		asked[string(id)] = true
		return known
	})
	for some := range slices.Chunk(ids, fetchAtOnce) {
		questions := make([]uint32, len(some))
		for i, id := range some {
			var err error
			if questions[i], err = t.askKV("get_blob_args", func(args protoreflect.Message) { set(args, "blob_id", id) }); err != nil {
				return err
			}
		}
		for i, id := range some {
			answer, err := t.awaitKV(questions[i], 0, "get_blob_args", "get_blob_result")
			if err != nil {
				return err
			}
			if _, err := t.addBlob(id, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// blob returns the blob with an id; if the server lacks it, it is requested from the client.
func (t *turn) blob(id []byte) ([]byte, error) {
	if data := t.s.blobs.get(id); data != nil {
		return data, nil
	}
	answer, err := t.kv(0, "get_blob_args", "get_blob_result", func(args protoreflect.Message) { set(args, "blob_id", id) })
	if err != nil {
		return nil, err
	}
	return t.addBlob(id, answer)
}

// addBlob stores and returns the blob in the client's GetBlobResult answer.
func (t *turn) addBlob(id []byte, answer protoreflect.Message) ([]byte, error) {
	data := get(answer, "blob_data").Bytes()
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], id) {
		return nil, connect.NewError(connect.CodeDataLoss, fmt.Errorf("blob %x: the client gave %d bytes back that have another SHA-256", id, len(data)))
	}
	t.s.blobs.add(data)
	return data, nil
}

// images returns the images that came with the prompt. A SelectedImage is known to have data, or the id
// of a blob, and a media type; fields that proto/ lacks are ignored.
func (t *turn) images() ([]history.Part, error) {
	list := get(t.request, "action", "user_message_action", "user_message", "selected_context", "selected_images").List()
	var images []history.Part
	for i := range list.Len() {
		m := list.Get(i).Message()
		p := history.Part{Kind: "image", MIME: stringField(m, "mime_type"), Image: bytesField(m, "data")}
		if fd := m.Descriptor().Fields().ByName("blob_id_with_data"); fd != nil && m.Has(fd) {
			p.Image = bytesField(m.Get(fd).Message(), "data")
		}
		if id := bytesField(m, "blob_id"); len(p.Image) == 0 && len(id) > 0 {
			var err error
			if p.Image, err = t.blob(id); err != nil {
				return nil, err
			}
		}
		images = append(images, p)
	}
	return images, nil
}

// skip processes a step that precedes the last tool call with a result in the transcript. It sends
// nothing, but updates the state on which later steps depend.
func (t *turn) skip(st *scriptStep) error {
	switch {
	case st.Text != nil:
		t.answer.WriteString(t.vars.expand(st.text))
		t.vars.text["answer"] = t.answer.String()
	case st.Tool != nil:
		t.recall(st.Tool)
	case st.Tools != nil:
		return t.recallAll(st.Tools)
	case st.KVSet != nil:
		return t.kvSet(st.KVSet)
	}
	return nil
}

// recallAll takes the results of parallel tool calls from the transcript, and requests the missing ones
// from the client. Each result is used for the call in the script that is most similar to its own.
func (t *turn) recallAll(tools *scriptTools) error {
	open := make([]*scriptTool, len(tools.Calls))
	for i := range open {
		open[i] = &tools.Calls[i]
	}
	for len(open) > 0 && len(t.done) > 0 {
		best := mostLike(len(open), func(i int) int { return t.likeness(open[i], t.done[0]) })
		t.take(open[best], 0)
		open = slices.Delete(open, best, best+1)
	}

	missing := make([]*question, len(open))
	for i, tool := range open {
		var err error
		if missing[i], err = t.ask(tool); err != nil {
			return err
		}
	}
	for _, q := range missing {
		if err := t.answered(q); err != nil {
			return err
		}
	}
	return nil
}

// recall takes the result of a tool call from the transcript: that of a call of the same tool with the
// same arguments, else of the same tool, else the first one.
func (t *turn) recall(tool *scriptTool) {
	t.take(tool, mostLike(len(t.done), func(i int) int { return t.likeness(tool, t.done[i]) }))
}

// mostLike returns the index from 0 to n-1 with the highest score; the first one if several have it.
func mostLike(n int, score func(int) int) (best int) {
	for i := 1; i < n; i++ {
		if score(i) > score(best) {
			best = i
		}
	}
	return best
}

// take uses tool result i of the transcript as the result of the call tool.
func (t *turn) take(tool *scriptTool, i int) {
	call := t.done[i]
	t.done = slices.Delete(t.done, i, i+1)
	if tool.As != "" {
		t.vars.results[tool.As] = recalled(tool, call)
		t.vars.outputs[tool.As] = history.Text(call.Result)
	}
}

// likeness returns a score for how similar a call in the transcript is to the call tool in the script.
func (t *turn) likeness(tool *scriptTool, call history.Call) (score int) {
	for _, candidate := range tool.candidates {
		args := t.vars.expandMessage(candidate)
		definition := t.definition(get(args, "name").String())
		if get(args, "name").String() != call.Name && (definition == nil || toolName(definition) != call.Name) {
			continue
		}
		score = max(score, 1)
		var want, have any
		data, err := argsJSON(args)
		if err == nil && json.Unmarshal(data, &want) == nil && json.Unmarshal(call.Args, &have) == nil && reflect.DeepEqual(want, have) {
			score = 2
		}
	}
	return score
}

// recalled converts a tool result in a transcript to the result message of the tool, as far as the
// transcript has the data.
func recalled(tool *scriptTool, call history.Call) protoreflect.Message {
	result := dynamicpb.NewMessage(tool.resultField.Message())
	kind := protoreflect.Name("success")
	if call.IsError && tool.Name != "mcp" {
		kind = "error"
	}
	fd := result.Descriptor().Fields().ByName(kind)

	// The definitions of some tools have no such case, so their result stays empty.
	if fd == nil || fd.Message() == nil {
		return result
	}
	inner := result.Mutable(fd).Message()

	// For built-in tools, the text goes into the first text field that the result has.
	if tool.Name != "mcp" {
		for _, name := range []protoreflect.Name{"content", "stdout", "output", "error"} {
			if text := inner.Descriptor().Fields().ByName(name); text != nil && text.Kind() == protoreflect.StringKind && !text.IsList() {
				inner.Set(text, protoreflect.ValueOfString(history.Text(call.Result)))
				break
			}
		}
		return result
	}
	set(inner, "is_error", call.IsError)
	content := inner.Mutable(inner.Descriptor().Fields().ByName("content")).List()
	for _, p := range call.Result {
		item := content.AppendMutable().Message()

		// An image has a member of its own; everything else is text.
		if p.Kind == "image" {
			image := within(item, "image")
			set(image, "data", p.Image)
			set(image, "mime_type", p.MIME)
			continue
		}
		set(within(item, "text"), "text", p.Text)
	}
	return result
}
