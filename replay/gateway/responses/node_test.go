package responses_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures/need"
	"unwire/replay/agent/turn"
	"unwire/replay/internal/fronttest"
)

// TestNodeClient runs a conversation with the openai package.
func TestNodeClient(t *testing.T) {
	t.Parallel()
	sdk := filepath.Join("..", "testdata", "sdk")
	node := need.Node(t, sdk)
	end := turn.Ended{Reason: turn.Finished, Usage: &turn.Usage{Input: 11, Output: 7}}
	core, url := serve(
		t,
		fronttest.Script(
			turn.Thinking{Text: "Both "}, turn.Thinking{Text: "files."}, turn.Text{Text: "I read "}, turn.Text{Text: "both."},
			turn.Calling{Call: turn.Call{ID: "sess_A__call_1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
			turn.Calling{Call: turn.Call{ID: "sess_A__call_2", Name: "list"}},
			turn.Ended{Reason: turn.ToolCalls},
		),
		fronttest.Script(turn.Text{Text: "Done."}, end),
		fronttest.Script(turn.Text{Text: "Done again."}, end),
		fronttest.Script(turn.Text{Text: "Half"}, &turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"}),
	)
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(sdk, "openai.mjs"), "responses", url)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fronttest.Golden(t, "testdata/node.jsonl", out)

	messages, err := json.Marshal(core.Requests()[1].Messages)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"result of read a", "result of list "} {
		if !strings.Contains(string(messages), want) {
			t.Errorf("%q did not arrive: %s", want, messages)
		}
	}
}
