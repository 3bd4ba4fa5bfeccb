package mcp

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/mcp/answer"
)

// testServer is a server about a capture with one call.
func testServer(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "F.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h.example/a.B/C", HTTP: "2", RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}}})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, []byte("\x0a\x05hello"))
	rec.End(captures.Complete, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a := app.New(t.Context(), nil, strings.NewReader(""), &strings.Builder{}, &strings.Builder{})
	return New(Options{App: a, Captures: []string{path}, Folder: t.TempDir()})
}

// FuzzArguments: whatever a client sends, each tool answers in a bounded size, or says what is wrong.
func FuzzArguments(f *testing.F) {
	s := testServer(f)
	tools := slices.DeleteFunc(s.tools(), func(t tool) bool { return t.sends })
	for i, arguments := range []string{
		`{}`, `{"address":"1/up/0"}`, `{"address":1,"path":1}`, `{"address":"F.uwc#1","path":"1","omit":["raw"],"max_bytes":1024}`, `{"data":"CgVoZWxsbw=="}`,
		`{"text":"a","filter":"code:!ok","cursor":"1.x"}`, `{"a":"1","b":"1"}`, `{"series":["1/up/0","1/up/0"]}`, `{"definitions":{"a.proto":"syntax = \"proto3\";"}}`,
		`{"to":"http://127.0.0.1:1","method":"/a.B/C","fields":"1-3"}`, `{"address":"1","edits":["set 1=x"]}`, `null`, `[]`, `{"address":`,
	} {
		f.Add(uint8(i), arguments)
	}
	f.Fuzz(func(t *testing.T, which uint8, arguments string) {
		tool := tools[int(which)%len(tools)]
		a, err := s.callTool(t.Context(), tool, json.RawMessage(arguments))
		if err != nil {
			if text, _ := s.explain(t.Context(), err); text == "" {
				t.Fatalf("%s %s: an error without words", tool.name, arguments)
			}
			return
		}
		text, err := encode(a)
		if err != nil || !json.Valid(text) || len(text) > 3*answer.MostBytes {
			t.Fatalf("%s %s: %v, %d bytes", tool.name, arguments, err, len(text))
		}
	})
}

// TestLargeArguments: arguments are bounded.
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	_, err := s.callTool(t.Context(), s.tools()[0], json.RawMessage(`{"filter":"`+strings.Repeat("x", maxArguments)+`"}`))
	var wrong *argumentError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "the limit is") {
		t.Error(err)
	}
}
