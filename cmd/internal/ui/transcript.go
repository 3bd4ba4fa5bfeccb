package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode/transcript"
)

// labelsFile is the file to which labels are appended, as 'unwire chat --label' does.
const labelsFile = "labels.jsonl"

// transcriptEndpoints returns the API endpoints about the conversation of an exchange.
func transcriptEndpoints() []endpoint {
	return []endpoint{
		{path: "transcript", answer: answerTranscript},
		{path: "transcript/label", post: true, answer: labelTranscript},
	}
}

// commandLines runs an unwire command that prints JSON Lines, like command. It returns these lines, and
// what the command printed on stderr.
func (q *request) commandLines(ctx context.Context, accepted []int, args ...string) ([]json.RawMessage, string, error) {
	out, said, err := q.command(ctx, accepted, args...)
	if err != nil {
		return nil, "", err
	}
	list := []json.RawMessage{}
	for l := range bytes.Lines(out) {
		if l = bytes.TrimSpace(l); len(l) > 0 {
			list = append(list, l)
		}
	}
	return list, said, nil
}

// withProto adds to the arguments of a command the definitions that the workbench was started with, and
// the operands.
func (q *request) withProto(args []string, operands ...string) []string {
	if q.options.Proto != "" {
		args = append(args, "--proto="+q.options.Proto)
	}
	return append(append(args, "--"), operands...)
}

// part returns an address with Part set if the parameter part asks for the exchange alone, even if it is
// one of several that carry a conversation.
func (q *request) part(at query.Address) query.Address {
	at.Part = q.query.Get("part") != ""
	return at
}

// answerTranscript implements the endpoint transcript. It returns the conversation of an exchange, as
// 'unwire chat --json' prints it, and the roles that a label can have.
func answerTranscript(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	at, err := q.address()
	if err != nil {
		return nil, err
	}
	c, defs, err := f.openWithDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	options := query.TranscriptOptions{}
	if q.options.Transcript != nil {
		if options, err = q.options.Transcript(); err != nil {
			return nil, err
		}
	}
	ex, tr, damage := c.Transcript(ctx, q.part(at), options)
	switch {
	case ex == nil && errors.Is(damage, captures.ErrNoExchange):
		return nil, damage
	case ex == nil:
		return nil, badRequest("%v", damage)
	}
	out, err := line(contract.NewTranscript(ex.ID, tr, defs))
	return map[string]any{"v": 1, "transcript": out, "roles": roleNames()}, err
}

// roleNames returns the roles that a label can have.
func roleNames() []string {
	return []string{"assistant", "thinking", "user", "system", "tool_call", "tool_result", "id", "metadata"}
}

// labelTranscript implements the endpoint transcript/label. It runs 'unwire chat --label', which appends
// the role of a field to the labels file.
func labelTranscript(ctx context.Context, q *request) (any, error) {
	var asked struct {
		Dir  string `json:"dir"`
		Path string `json:"path"`
		Role string `json:"role"`
	}
	if err := q.parse(&asked); err != nil {
		return nil, err
	}
	if asked.Dir != "up" && asked.Dir != "down" {
		return nil, badRequest("a label must have a direction, up or down")
	}
	if _, err := transcript.ParseRole(asked.Role); err != nil {
		return nil, badRequest("%v", err)
	}
	at, err := q.address()
	if err != nil {
		return nil, err
	}
	label := fmt.Sprintf("%s/%s=%s", asked.Dir, asked.Path, asked.Role)
	_, said, err := q.command(ctx, []int{0}, "chat", "--label="+label, "--labels="+labelsFile, "--", q.part(at).String())
	return map[string]any{"v": 1, "said": said}, err
}
