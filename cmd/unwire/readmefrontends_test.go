package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// blocks returns the code blocks of a language in a document.
func blocks(t *testing.T, file, language string) (list []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readFile(t, file), -1) {
		list = append(list, m[1])
	}
	return list
}

// TestMCPReadme: the call in the README of package mcp has the answer that is printed there, apart from what is random
// and what an ellipsis stands for.
func TestMCPReadme(t *testing.T) {
	t.Parallel()
	examples := blocks(t, "../internal/mcp/README.md", "json")
	if len(examples) != 2 {
		t.Fatalf("%d examples", len(examples))
	}
	var call struct {
		Name      string
		Arguments map[string]any
	}
	var want, got map[string]any
	for i, to := range []any{&call, &want} {
		if err := json.Unmarshal([]byte(examples[i]), to); err != nil {
			t.Fatalf("%v: %s", err, examples[i])
		}
	}
	c := startMCP(t, demoCapture(t), "demo.uwc")
	if err := json.Unmarshal([]byte(text(t, c.result(call.Name, call.Arguments))), &got); err != nil {
		t.Fatal(err)
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the answer has the members %v, the README %v", keys, slices.Sorted(maps.Keys(want)))
	}
	for _, random := range []string{"begin_recorded", "end_recorded", "cursor"} {
		delete(want, random)
	}
	compareShown(t, "", want, got)
}

// compareShown compares what a document shows of a value with the value. A text that ends with an ellipsis is the
// beginning, and a member that is an ellipsis stands for all further ones.
func compareShown(t *testing.T, at string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %v", at, got)
			return
		}
		for k, v := range want {
			if k != "…" {
				compareShown(t, at+"."+k, v, object[k])
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) < len(want) {
			t.Errorf("%s: %v", at, got)
			return
		}
		for i := range want {
			compareShown(t, at, want[i], list[i])
		}
	case string:
		beginning, cut := strings.CutSuffix(want, "…")
		if s, ok := got.(string); !ok || s != want && (!cut || !strings.HasPrefix(s, beginning)) {
			t.Errorf("%s: %v, the README has %s", at, got, want)
		}
	default:
		if want != got {
			t.Errorf("%s: %v, the README has %v", at, got, want)
		}
	}
}

// TestWorkbenchReadme: the command in the README of the workbench prints such a URL, where the page is, and says what it
// shows.
func TestWorkbenchReadme(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(blocks(t, "../internal/ui/README.md", "console")[0]), "\n")
	command, ok := strings.CutPrefix(lines[0], "$ unwire ")
	if !ok || len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	dir := demoCapture(t)
	if err := os.Rename(filepath.Join(dir, "demo.uwc"), filepath.Join(dir, "F.uwc")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(unwireCommand(t), strings.Fields(command)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		resp, failure := http.Get(strings.TrimSpace(url))
		if err = failure; err == nil {
			err = resp.Body.Close()
		}
	}
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	shape := regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+/#token=`)
	if !shape.MatchString(url) || !shape.MatchString(lines[1]) || !strings.Contains(said.String(), lines[2]) {
		t.Errorf("printed %q and %q; the README has %q", url, said.String(), lines[1:])
	}
}
