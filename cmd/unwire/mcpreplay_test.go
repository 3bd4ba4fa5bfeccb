package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"unwire/captures"
	"unwire/captures/store"
)

// TestMCPSendsFirst: with learn, the unedited request is sent twice before; with after, other exchanges are sent, in
// order, and their answers are stored. A plan sends nothing.
func TestMCPSendsFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var asked []string
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"%d","name":"x"}`, len(asked))
	}))
	defer server.Close()
	s, err := store.Create(filepath.Join(dir, "f.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	media := captures.Headers{{Name: "content-type", Value: "application/json"}}
	for _, path := range []string{"/one", "/two"} {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: server.URL + path, HTTP: "1.1", RequestHeaders: media})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, []byte(`{"name":"x"}`))
		rec.Response(200, media)
		rec.Chunk(captures.Down, []byte(`{"id":"0","name":"x"}`))
		rec.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := startMCP(t, dir, "--allow-send", "-o", "answers.uwc", "f.uwc")
	for _, x := range []struct {
		tool    string
		args    map[string]any
		want    string
		verdict string
	}{
		{"replay_plan", map[string]any{}, "[]", ""},
		{"replay_send", map[string]any{}, "[/two]", "differs"},
		{"replay_send", map[string]any{"learn": true}, "[/two /two /two]", "same"},
		{"replay_send", map[string]any{"after": []string{"1"}}, "[/one /two]", "differs"},
	} {
		mu.Lock()
		asked = nil
		mu.Unlock()
		x.args["address"] = "f.uwc#2"
		a := c.page(x.tool, x.args)
		var result struct{ Verdict string }
		if err := json.Unmarshal(a.Items[0].Object, &result); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(asked); got != x.want || result.Verdict != x.verdict {
			t.Errorf("%s %v: asked %s, verdict %s; %v", x.tool, x.args, got, result.Verdict, a.Remarks)
		}
	}
	if got := c.failure("replay_send", map[string]any{"address": "f.uwc#2", "after": []string{"2"}}); !strings.Contains(got, "numbers of other exchanges") {
		t.Errorf("%s", got)
	}
	if got := c.failure("replay_plan", map[string]any{"address": "f.uwc#2", "learn": true}); !strings.Contains(got, `no argument "learn"`) {
		t.Errorf("%s", got)
	}
}

// TestMCPReadAs: a field is read as the client says, in that answer only; what cannot be read so is an error.
func TestMCPReadAs(t *testing.T) {
	t.Parallel()
	dir := demoCapture(t)
	c := startMCP(t, dir, "demo.uwc")
	show := func(readAs ...string) string {
		args := map[string]any{"address": "demo.uwc#2/up/0", "max_bytes": 1 << 20}
		if readAs != nil {
			args["read_as"] = readAs
		}
		return string(c.call("show", args).Items[0].Object)
	}
	before := show()
	if got := show("1:bytes"); !strings.Contains(got, `"chosen":true`) || strings.Contains(before, `"chosen":true`) {
		t.Errorf("%.500s", got)
	}
	if got := show(); got != before {
		t.Errorf("the choice is remembered: %.500s", got)
	}
	for choice, want := range map[string]string{"99:string": "no message in the input has this field", "1:double": "can be read as this type", "x": "read_as", "1:nonsense": "read_as"} {
		if got := c.failure("show", map[string]any{"address": "demo.uwc#2/up/0", "read_as": []string{choice}}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", choice, got)
		}
	}
}

// TestMCPProbePlanSettles: a plan asks about what the captures leave ambiguous, as --settle does with the evidence of
// an inference.
func TestMCPProbePlanSettles(t *testing.T) {
	t.Parallel()
	dir := demoCapture(t)
	c := startMCP(t, dir, "demo.uwc")
	unwireIn(t, dir, "schema", "infer", "--evidence", "evidence.json", "demo.uwc")
	printed, _ := unwireIn(t, dir, "probe", "--dry-run", "--json", "--to", "http://127.0.0.1:9", "--method", "/agent.v1.AgentService/Run", "--settle", "evidence.json")
	a := c.call("probe_plan", map[string]any{"to": "http://127.0.0.1:9", "method": "/agent.v1.AgentService/Run", "settle": true, "max_bytes": 1 << 20})
	compareObjects(t, a, printed, false)
	if got := c.failure("probe_plan", map[string]any{"to": "http://127.0.0.1:9", "method": "/no.such.Service/Call", "settle": true}); !strings.Contains(got, "no request of /no.such.Service/Call") {
		t.Errorf("%s", got)
	}
}
