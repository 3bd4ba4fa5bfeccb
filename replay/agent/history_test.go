package agent_test

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// text, call and result are parts of messages.
func text(s string) turn.Part { return turn.Part{Text: s} }

func call(id, name, arguments string) turn.Part {
	return turn.Part{Call: &turn.Call{ID: id, Name: name, Arguments: json.RawMessage(arguments)}}
}

func result(id string, parts ...turn.Part) turn.Part {
	return turn.Part{Result: &turn.Result{CallID: id, Parts: parts}}
}

// transcript is a request that goes on after the result of a tool, with an interrupted
// call and a result without its call.
func transcript() *turn.Request {
	png := turn.Part{Image: &turn.Image{MIME: "image/png", Data: []byte("png")}}
	return &turn.Request{
		Model: "composer-1",
		Tools: []turn.Tool{{Name: "add", Description: "adds", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"number"}}}`)}},
		Messages: []turn.Message{
			{Role: turn.System, Parts: []turn.Part{text("Be brief.")}},
			{Role: turn.System, Parts: []turn.Part{text("Be kind.")}},
			{Role: turn.User, Parts: []turn.Part{text("One?"), png}},
			{Role: turn.Assistant, Parts: []turn.Part{{Thinking: "hm"}, text("I add."), call("c1", "add", `{"x":1}`), call("c2", "add", `{"x":`)}},
			{Role: turn.ToolRole, Parts: []turn.Part{result("c1", text("1"), png)}},
			{Role: turn.System, Parts: []turn.Part{text("Go on.")}},
			{Role: turn.User, Parts: []turn.Part{text("Two?")}},
			{Role: turn.ToolRole, Parts: []turn.Part{result("gone", text("7"))}},
			{Role: turn.Assistant, Parts: []turn.Part{call("c3", "add", `{"x":2}`)}},
			{Role: turn.ToolRole, Parts: []turn.Part{result("c3", text("2"))}},
		},
	}
}

// prompt is what root_prompt_messages_json of it has.
var prompt = []string{
	`{"role":"user","content":[{"type":"text","text":"One?"},{"type":"image","image":"cG5n","mediaType":"image/png"}]}`,
	`{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I add."},{"type":"tool-call","toolCallId":"c1","toolName":"add","args":{"x":1}},{"type":"tool-call","toolCallId":"c2","toolName":"add","args":{}}]}`,
	`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c2","toolName":"add","result":"The call was interrupted: there is no result.","isError":true}]}`,
	`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"add","result":[{"type":"text","text":"1"},{"type":"image","image":"cG5n","mediaType":"image/png"}]}]}`,
	`{"role":"system","content":"Go on."}`,
	`{"role":"user","content":[{"type":"text","text":"Two?"}]}`,
	`{"role":"user","content":[{"type":"text","text":"[Result of a tool whose call is not in this transcript]\n7"}]}`,
	`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c3","toolName":"add","args":{"x":2}}]}`,
	`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c3","toolName":"add","result":"2"}]}`,
}

// blob asks a client for a blob.
func (c *peerCall) blob(id []byte) []byte {
	c.t.Helper()
	m := c.definitions.Server()
	m.At("kv_server_message").Set("id", 5).At("get_blob_args").Set("blob_id", id)
	c.send(m)
	answer := c.next()
	data := answer.Value("kv_client_message", "get_blob_result", "blob_data").Bytes()
	if sum := sha256.Sum256(data); string(sum[:]) != string(id) || answer.Uint32("kv_client_message", "id") != 5 {
		c.t.Fatalf("the blob is another one: %v", answer)
	}
	return data
}

func TestColdContinuation(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, err := p.client.Run(t.Context(), "c-1", transcript())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := <-p.calls
	request := c.next().Sub("run_request")
	if got := request.Text("custom_system_prompt"); got != "Be brief.\n\nBe kind." {
		t.Errorf("system prompt = %q", got)
	}
	if !request.Has("action", "resume_action") || request.Text("conversation_id") != "c-1" || s.Conversation() != "c-1" {
		t.Errorf("request = %v", request)
	}
	if n := request.Value("mcp_tools", "mcp_tools").List().Len(); n != 1 {
		t.Errorf("%d tools are announced", n)
	}
	roots := request.Value("conversation_state", "root_prompt_messages_json").List()
	for i := range max(roots.Len(), len(prompt)) {
		if i >= roots.Len() || i >= len(prompt) {
			t.Fatalf("%d messages, want %d", roots.Len(), len(prompt))
		}
		if got := string(c.blob(roots.Get(i).Bytes())); got != prompt[i] {
			t.Errorf("message %d:\ngot  %s\nwant %s", i, got, prompt[i])
		}
	}
	checkTurns(t, c, request)
}

// checkTurns reads what is shown of the transcript.
func checkTurns(t *testing.T, c *peerCall, request message.Message) {
	t.Helper()
	turns := request.Value("conversation_state", "turns").List()
	if turns.Len() != 3 {
		t.Fatalf("%d turns, want 3", turns.Len())
	}
	steps := []string{}
	for i := range turns.Len() {
		structure := c.definitions.Agent("ConversationTurnStructure")
		if err := structure.Parse(c.blob(turns.Get(i).Bytes())); err != nil {
			t.Fatal(err)
		}
		user := c.definitions.Agent("UserMessage")
		if err := user.Parse(c.blob(structure.Value("agent_conversation_turn", "user_message").Bytes())); err != nil {
			t.Fatal(err)
		}
		if images := user.Value("selected_context", "selected_images").List().Len(); i == 0 && (images != 1 || user.Text("text") != "One?") {
			t.Errorf("the first message is %v", user)
		}
		list := structure.Value("agent_conversation_turn", "steps").List()
		for j := range list.Len() {
			step := c.definitions.Agent("ConversationStep")
			if err := step.Parse(c.blob(list.Get(j).Bytes())); err != nil {
				t.Fatal(err)
			}
			kind, member := step.Case("message")
			if kind == "tool_call" {
				kind, _ = member.Sub("mcp_tool_call", "result").Case("result")
			}
			steps = append(steps, kind)
		}
	}
	want := []string{"thinking_message", "assistant_message", "success", "rejected", "assistant_message", "success"}
	if len(steps) != len(want) {
		t.Fatalf("steps = %v, want %v", steps, want)
	}
	for i := range want {
		if steps[i] != want[i] {
			t.Errorf("step %d is %s, want %s", i, steps[i], want[i])
		}
	}
}

// TestUserMessageIsTheAction checks a request that ends in a message with an image.
func TestUserMessageIsTheAction(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	r := transcript()
	r.Messages = append(r.Messages, r.Messages[2])
	r.Tools = nil
	s, err := p.client.Run(t.Context(), "", r)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	request := (<-p.calls).next().Sub("run_request")
	sent := request.Sub("action", "user_message_action", "user_message")
	images := sent.Value("selected_context", "selected_images").List()
	if sent.Text("text") != "One?" || len(sent.Text("message_id")) != 36 || images.Len() != 1 || request.Has("mcp_tools") {
		t.Fatalf("request = %v", request)
	}
	image := message.Message{Message: images.Get(0).Message()}
	if string(image.Value("data").Bytes()) != "png" || image.Text("mime_type") != "image/png" || image.Has("blob_id") {
		t.Errorf("image = %v", image)
	}
	if n := request.Value("conversation_state", "root_prompt_messages_json").List().Len(); n != len(prompt) {
		t.Errorf("%d messages, want %d", n, len(prompt))
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil)
	for name, r := range map[string]*turn.Request{
		"no messages":     {Model: "composer-1"},
		"a bad schema":    user("go", turn.Tool{Name: "a", Schema: json.RawMessage(`7`)}),
		"too much to say": {Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Image: &turn.Image{MIME: "image/png", Data: make([]byte, 80<<20)}}}}, {Role: turn.User}}},
	} {
		s, err := c.Run(t.Context(), "", r)
		if err == nil {
			s.Close()
		}
		if kind := turn.AsError(err).Kind; err == nil || kind != turn.Invalid && kind != turn.ContextTooLong {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
