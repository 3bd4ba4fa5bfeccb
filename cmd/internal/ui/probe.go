package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// shownJournal is how many lines of a probe's journal are sent.
const shownJournal = 50

// probeEndpoints returns the API endpoints that run probes.
func probeEndpoints() []endpoint {
	return []endpoint{
		{path: "probe/plan", post: true, answer: planProbe},
		{path: "probe/start", post: true, answer: startProbe},
		{path: "probe/stop", post: true, answer: stopProbe},
		{path: "probe/state", answer: answerProbe},
	}
}

// probeArguments returns the arguments of the 'unwire probe' command that the body of a request asks for.
func (q *request) probeArguments() ([]string, error) {
	var asked struct {
		// To is the server's URL, Method the method or "" for that of the exchange, Path the nested message, and Fields
		// ranges of numbers.
		To     string `json:"to"`
		Method string `json:"method"`
		Path   string `json:"path"`
		Fields string `json:"fields"`
		// Like copies the method and the headers of the exchange that is shown.
		Like bool `json:"like"`
	}
	if err := q.parse(&asked); err != nil {
		return nil, err
	}
	u, err := url.Parse(asked.To)
	if err != nil || u.Host == "" {
		return nil, badRequest("the server must be a URL, such as http://127.0.0.1:8080, not %q", asked.To)
	}
	args := append([]string{"probe", "--json", "--to=" + asked.To}, q.options.Live...)
	if asked.Like {
		at, err := q.address()
		if err != nil {
			return nil, err
		}
		args = append(args, "--like="+at.String())
	}
	for flag, value := range map[string]string{"--method=": asked.Method, "--path=": asked.Path, "--fields=": asked.Fields} {
		if value != "" {
			args = append(args, flag+value)
		}
	}
	return args, nil
}

// planProbe implements the endpoint probe/plan. It returns the requests that a probe would send, and
// sends none.
func planProbe(ctx context.Context, q *request) (any, error) {
	args, err := q.probeArguments()
	if err != nil {
		return nil, err
	}
	plan, said, err := q.commandLines(ctx, []int{0, 2}, append(args, "--dry-run")...)
	if err != nil {
		return nil, err
	}
	if len(plan) == 0 {
		return nil, badRequest("%s", said)
	}
	return map[string]any{"v": 1, "plan": plan[0], "said": said}, nil
}

// startProbe implements the endpoint probe/start. It starts a probe in the background.
func startProbe(_ context.Context, q *request) (any, error) {
	args, err := q.probeArguments()
	if err != nil {
		return nil, err
	}
	p := &q.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		return nil, badRequest("a probe is running: stop it first")
	}
	dir, err := os.MkdirTemp("", "unwire-probe-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.running, p.result, p.said, p.journal = cancel, true, nil, "", filepath.Join(dir, "journal.jsonl")
	go func() {
		out, said, _ := q.options.Run(ctx, append(args, "--journal="+p.journal)...)
		p.mu.Lock()
		defer p.mu.Unlock()
		cancel()
		p.running, p.said = false, strings.TrimSpace(string(said))
		if line := firstLine(out); json.Valid(line) && len(line) > 0 {
			p.result = line
		}
	}()
	return map[string]any{"v": 1}, nil
}

// stopProbe implements the endpoint probe/stop. It ends the running probe.
func stopProbe(_ context.Context, q *request) (any, error) {
	q.probe.mu.Lock()
	defer q.probe.mu.Unlock()
	if q.probe.cancel != nil {
		q.probe.cancel()
	}
	return map[string]any{"v": 1}, nil
}

// answerProbe implements the endpoint probe/state. It returns the progress of the last probe: how many
// requests it has sent, the last lines of its journal, and its result.
func answerProbe(_ context.Context, q *request) (any, error) {
	p := &q.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := []json.RawMessage{}
	count := 0
	if p.journal != "" {
		data, err := os.ReadFile(p.journal)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for l := range bytes.Lines(data) {
			if l = bytes.TrimSpace(l); !json.Valid(l) {
				continue // it is being written
			}
			count++
			lines = append(lines, l)
		}
		lines = lines[max(0, len(lines)-shownJournal):]
	}
	return map[string]any{"v": 1, "started": p.journal != "", "running": p.running, "requests": count, "journal": lines, "result": p.result, "said": p.said}, nil
}
