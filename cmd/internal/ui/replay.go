package ui

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
)

// maxEdits bounds the edits of a replay.
const maxEdits = 200

// replayEndpoints returns the API endpoints that send a request again.
func replayEndpoints() []endpoint {
	return []endpoint{
		{path: "replay/plan", post: true, answer: planReplay},
		{path: "replay/send", post: true, answer: sendReplay},
	}
}

// A replayRequest is the body of a request to plan or send a replay.
type replayRequest struct {
	// To is the URL of the server to send to; "" for the server of the capture.
	To string `json:"to"`

	// Edits are the values of --set, such as "@0 1.2=x". Empty ones are ignored.
	Edits []string `json:"edits"`

	// Insecure accepts any certificate of the server.
	Insecure bool `json:"insecure"`

	// OmitSecrets leaves out headers whose secret values are not available.
	OmitSecrets bool `json:"omit_secrets"`
}

// replayArguments returns the arguments of the 'unwire replay' command that the body of a request asks
// for, and the address of the exchange.
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
		return nil, "", badRequest("the request has more than %d edits", maxEdits)
	}
	for _, edit := range asked.Edits {
		if strings.TrimSpace(edit) != "" {
			args = append(args, "--set="+edit)
		}
	}
	return args, q.part(at).String(), nil
}

// planReplay implements the endpoint replay/plan. It returns what a replay would send, and sends nothing.
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

// sendReplay implements the endpoint replay/send. It sends a request again and returns the verdict of
// 'unwire replay', which sends only to the hosts that the flags of the workbench permit.
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

// firstLine returns the first line of b without its line end.
func firstLine(b []byte) []byte {
	text, _, _ := strings.Cut(string(b), "\n")
	return []byte(text)
}
