package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"unwire/cmd/internal/cli"
)

// contractSchema is the JSON Schema of what commands print, which JSON.md documents.
//
//go:embed JSON.schema.json
var contractSchema []byte

// exitUndocumented is the exit status of a command that printed JSON that JSON.md lacks.
const exitUndocumented = 99

// runUnwire is the program as tests run it: what it prints as JSON must be documented.
// What decode and schema merge-evidence print with --json are files that encode and schema
// infer read, not objects of JSON.md.
func runUnwire() {
	args := os.Args[1:]
	if !slices.Contains(args, "--json") || args[0] == "decode" || slices.Contains(args, "merge-evidence") {
		os.Exit(cli.Run(args, os.Stdin, os.Stdout, os.Stderr))
	}
	out := &documentedLines{to: os.Stdout}
	status := cli.Run(args, os.Stdin, out, os.Stderr)
	if out.err != nil {
		fmt.Fprintf(os.Stderr, "JSON that JSON.md and JSON.schema.json lack: %v\n", out.err)
		status = exitUndocumented
	}
	os.Exit(status)
}

// documentedLines passes output on, and checks its lines that are objects of the contract.
type documentedLines struct {
	to   io.Writer
	line []byte // the beginning of a line
	err  error  // the first line that is not documented
}

func (w *documentedLines) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	for {
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		if !ok {
			break
		}
		if bytes.HasPrefix(line, []byte(`{"v":`)) && w.err == nil {
			w.err = checkDocumented(line)
		}
		w.line = rest
	}
	return w.to.Write(p)
}

var compiledContract = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(contractSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("contract.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("contract.json")
})

// checkDocumented reports whether a line is an object of the contract with documented members
// only.
func checkDocumented(line []byte) error {
	schema, err := compiledContract()
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return fmt.Errorf("%w: %.200s", err, line)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%.300s", line)
	}
	return nil
}

// TestDocumentedLines: the check accepts what is documented, and nothing else.
func TestDocumentedLines(t *testing.T) {
	t.Parallel()
	for line, ok := range map[string]bool{
		`{"v":1,"event":"also","url":"http://127.0.0.1:1","origin":"https://a"}`:          true,
		`{"v":1,"event":"also","url":"http://127.0.0.1:1","origin":"https://a","more":1}`: false,
		`{"v":1,"event":"also","url":1,"origin":"https://a"}`:                             false,
		`{"v":1}`: false,
		`text`:    true,
		`{"a":1}`: true, // a file in another format
	} {
		var b strings.Builder
		w := &documentedLines{to: &b}
		for _, part := range []string{line[:len(line)/2], line[len(line)/2:], "\nrest"} {
			if _, err := io.WriteString(w, part); err != nil {
				t.Fatal(err)
			}
		}
		if (w.err == nil) != ok {
			t.Errorf("%s: %v", line, w.err)
		}
		if b.String() != line+"\nrest" {
			t.Errorf("passed on: %q", b.String())
		}
	}
}
