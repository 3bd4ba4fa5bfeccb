package messages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"unwire/captures/need"
	"unwire/replay/agent/turn"
)

// TestNodeSDK runs a conversation with @anthropic-ai/sdk on Node.
func TestNodeSDK(t *testing.T) {
	t.Parallel()
	const sdk = "../testdata/sdk"
	node := need.Node(t, sdk)
	core := &fakeCore{scripts: [][]any{
		toolTurn,
		{turn.Text{Text: "Done."}, end},
		{turn.Text{Text: "Half"}, &turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"}},
	}}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(sdk, "anthropic.mjs"), serve(t, core))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `{"events":["The user wants ","two files.","I read ","both: <a> & \"b\"."],"stop":"tool_use","content":[{"type":"thinking","thinking":"The user wants two files.","signature":"dW53aXJl"},{"type":"text","text":"I read both: <a> & \"b\".","citations":null},{"type":"tool_use","id":"sess_A__call_1","name":"read","caller":{"type":"direct"},"input":{"path":"a"}},{"type":"tool_use","id":"sess_A__call_2","name":"list","caller":{"type":"direct"},"input":{}}]}
{"stop":"end_turn","content":[{"type":"text","text":"Done.","citations":null}],"usage":{"input_tokens":11,"output_tokens":7,"cache_creation_input_tokens":3,"cache_read_input_tokens":5,"output_tokens_details":{"thinking_tokens":2},"server_tool_use":null,"cache_creation":null,"inference_geo":null,"service_tier":null,"speed":null}}
{"type":"APIError","error":{"type":"error","error":{"type":"api_error","message":"the upstream broke off"},"request_id":"req_5"}}
["composer-1","default","small-1","vendor/big-1"]
{"type":"NotFoundError","status":404}
`
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	const transcript = `{"Role":"tool","Parts":["result sess_A__call_1 [result of read a]","result sess_A__call_2 [result of list ]"]}]`
	if got := sketch(core.requests[1].Messages); len(got) < len(transcript) || got[len(got)-len(transcript):] != transcript {
		t.Errorf("the core got %s", got)
	}
}
