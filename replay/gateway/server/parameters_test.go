package server_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"unwire/replay/gateway/chat"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/messages"
	"unwire/replay/gateway/responses"
)

var update = flag.Bool("update", false, "write ../PARAMETERS.md anew")

// TestParametersDocument compares PARAMETERS.md with the tables that the front ends use.
func TestParametersDocument(t *testing.T) {
	t.Parallel()
	const file = "../PARAMETERS.md"
	want := parametersDocument()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the front ends do: go test ./replay/gateway/server -run TestParametersDocument -update", file)
	}
}

func parametersDocument() string {
	var b strings.Builder
	b.WriteString(`# What becomes of each request parameter

Honoured parameters reach the upstream. Emulated ones are carried out by unwire. Ignored ones have no effect, and the
response's ` + "`" + front.NoteHeader + "`" + ` header names them, as it does with parameters that are not listed here. Refused ones fail the
request with status 400. A value that asks for nothing special always passes.

This file is written by a test from the tables in the code.
`)
	for _, api := range []struct {
		name   string
		params front.Params
	}{
		{"POST /v1/chat/completions", chat.Params},
		{"POST /v1/responses", responses.Params},
		{"POST /v1/messages", messages.Params},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| parameter | | values that always pass | |\n|---|---|---|---|\n", api.name)
		for _, p := range api.params {
			allowed := ""
			if len(p.Allowed) > 0 {
				allowed = "`" + strings.Join(p.Allowed, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.Treatment, allowed, strings.ReplaceAll(p.Note, "|", "\\|"))
		}
	}
	return b.String()
}
