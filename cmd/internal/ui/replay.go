package ui

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
)

// maxEdits bounds the edits of a replay.
const maxEdits = 200

// replayEndpoints are those of requests that are sent again.
func replayEndpoints() []endpoint {
	return []endpoint{
		{path: "replay/plan", post: true, answer: planReplay},
		{path: "replay/send", post: true, answer: sendReplay},
	}
}

// A replayRequest is what the page asks to send.
type replayRequest struct {
	// To is the server's URL; "" for that of the capture.
	To string `json:"to"`

	// Edits are those of 'unwire replay --set', such as "@0 1.2=x"; "" lines are ignored.
	Edits []string `json:"edits"`

	// Insecure accepts any certificate of the server.
	Insecure bool `json:"insecure"`

	// OmitSecrets leaves out headers whose secret is missing.
	OmitSecrets bool `json:"omit_secrets"`
}

// replayArguments are those of 'unwire replay' that plans and sends have in common.
func (q *request) replayArguments() ([]string, string, error) {
	var asked replayRequest
	if err := q.parse(&asked); err != nil {
		return nil, "", err
	}
	at, err := q.address()
	if err != nil {
		return nil, "", err
	}
	args := append([]string{"replay", "--json"}, q.options.Live...)
	if asked.To != "" {
		u, err := url.Parse(asked.To)
		if err != nil || u.Host == "" {
			return nil, "", badRequest("the server must be a URL, such as https://127.0.0.1:9443, not %q", asked.To)
		}
		args = append(args, "--to="+asked.To)
	}
	if asked.Insecure {
		args = append(args, "--upstream-insecure")
	}
	if asked.OmitSecrets {
		args = append(args, "--omit-secrets")
	}
	if len(asked.Edits) > maxEdits {
		return nil, "", badRequest("at most %d edits", maxEdits)
	}
	for _, edit := range asked.Edits {
		if strings.TrimSpace(edit) != "" {
			args = append(args, "--set="+edit)
		}
	}
	return args, q.part(at).String(), nil
}

// planReplay returns what a replay would send, and sends nothing.
func planReplay(ctx context.Context, q *request) (any, error) {
	args, at, err := q.replayArguments()
	if err != nil {
		return nil, err
	}
	// 2 is a refusal, and 4 a missing secret: the plan says so.
	plan, said, err := q.commandLines(ctx, []int{0, 2, 4}, q.withProto(append(args, "--dry-run"), at)...)
	if err != nil {
		return nil, err
	}
	if len(plan) == 0 {
		return nil, badRequest("%s", said)
	}
	return map[string]any{"v": 1, "plan": plan[0], "said": said}, nil
}

// sendReplay sends a request again and returns the verdict. Which hosts may be sent to is
// decided by replay and by the flags of the workbench.
func sendReplay(ctx context.Context, q *request) (any, error) {
	args, at, err := q.replayArguments()
	if err != nil {
		return nil, err
	}
	out, text, status := q.options.Run(ctx, q.withProto(args, at)...)
	var result json.RawMessage
	if err := json.Unmarshal(firstLine(out), &result); err != nil {
		return nil, badRequest("%s", strings.ReplaceAll(strings.TrimSpace(string(text)), "unwire: error: ", ""))
	}
	return map[string]any{"v": 1, "result": result, "status": status, "said": strings.TrimSpace(string(text))}, nil
}

func firstLine(b []byte) []byte {
	text, _, _ := strings.Cut(string(b), "\n")
	return []byte(text)
}
