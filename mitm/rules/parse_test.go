package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const full = `rules:
  - name: fast
    match: host:api.* method:Run dir:up path:1.7
    times: 3
    set: [1.7=fast, "1.8:int32=5"]
    add: 1.9:string=x
    delete: 1.4
    retype: 1.3:string
    set-raw: 1.5=00ff
    delay: 1.5s
    duplicate: 2
  - match: is:end
    replace: 'json:{"error":{"code":"aborted"}}'
    hold: true
  - match: dir:down
    drop: true
  - match: method:Get
    answer: text:hello
  - match: verb:GET
    answer: {status: 404, headers: {x-by: rule}, body: hex:00ff}
  - match: method:Fail
    fail: unavailable
  - match: method:Fail2
    fail: {code: not_found, message: "not here"}
  - match: method:Gone
    reset: true
  - match: host:api.example.com
    map: https://127.0.0.1:8443
`

func TestParse(t *testing.T) {
	s, err := parse("rules.yaml", []byte(full))
	if err != nil || s.Len() != 9 {
		t.Fatalf("%v, %v", s, err)
	}
	if r := s.rules[0]; r.Name != "fast" || len(r.edits) != 6 || r.times != 3 || r.duplicate != 2 || r.Line != 2 {
		t.Errorf("%+v", r)
	}
	if r := s.rules[1]; r.Name != "rule 2" || !r.matchesEnd {
		t.Errorf("%+v", r)
	}
	for _, text := range []string{"", "# nothing\n", "rules: []\n"} {
		if s, err := parse("r.yaml", []byte(text)); err != nil || s.Len() != 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// faulty are files with what is reported of them. schemaAccepts says that only the parser sees the fault.
var faulty = []struct {
	text, want    string
	schemaAccepts bool
}{
	{"rules:\n  - match: host:a\n    sett: 1=x\n", `r.yaml:3: "sett" is not a key of rules files; did you mean set?`, false},
	{"rules:\n\t- match: a\n", "r.yaml:2: the line is indented with a tab: YAML requires spaces", true},
	{"rules:\n  - match: a\n   drop: true\n", "r.yaml:1: this line or one below it is not valid YAML: ", true},
	{"rules:\n  - match: host:a\n    set: {name: x}\n", "r.yaml:3: expected an edit in one text, such as 1.7=fast, or a list of edits", false},
	{"rulse: []\n", `r.yaml:1: "rulse" is not a key of rules files; did you mean rules?`, false},
	{"rules:\n  - mach: host:a\n    drop: true\n", "did you mean match?", false},
	{"rules:\n  - match: hots:a\n    drop: true\n", `r.yaml:2: match: column 1: "hots" is not a key of filters; did you mean "host"?`, true},
	{"rules:\n  - match: host:a\n    set: 1..2=x\n", "r.yaml:3:", true},
	{"rules:\n  - match: host:a\n    set: '1:int32=abc'\n", `"abc" is not a valid int32`, true},
	{"rules:\n  - match: host:a\n    set: '1:int23=4'\n", `the type "int23" must be one of string, bytes`, true},
	{"rules:\n  - match: host:a\n    set: '@2 1=4'\n", "frame:2", true},
	{"rules:\n  - match: host:a\n    set: '1'\n", "the value (=VALUE) is missing", true},
	{"rules:\n  - match: host:a\n    fail: unavalable\n", "did you mean unavailable?", false},
	{"rules:\n  - match: host:a\n    fail: ok\n", `"ok" is not an error code; the valid ones are aborted, `, false},
	{"rules:\n  - match: host:a\n    delay: 2\n", "a duration with its unit", false},
	{"rules:\n  - match: host:a\n    delay: 2h\n", "up to 10m", true},
	{"rules:\n  - match: host:a\n    drop: false\n", "the only value is true", false},
	{"rules:\n  - match: host:a\n", "no action", false},
	{"rules:\n  - drop: true\n", "no match", false},
	{"rules:\n  - match: host:a\n    drop: true\n    reset: true\n", "more than one of", true},
	{"rules:\n  - match: host:a\n    drop: true\n    drop: true\n", "given twice", true},
	{"rules:\n  - match: host:a\n    replace: hello\n", "a message must begin with text:, json:, hex:, base64: or file:, but found \"hello\"", false},
	{"rules:\n  - match: host:a\n    replace: json:{\n", "is not valid JSON", true},
	{"rules:\n  - match: host:a\n    replace: file:missing.bin\n", "missing.bin", true},
	{"rules:\n  - match: host:a\n    answer: {status: 99}\n", "from 200 to 599", false},
	{"rules:\n  - match: host:a\n    answer: {headers: {Content-Length: '3'}}\n", "a rule cannot set the header Content-Length, because unwire sets it", true},
	{"rules:\n  - match: host:a\n    answer: {boddy: text:x}\n", "did you mean body?", false},
	{"rules:\n  - match: host:a method:X\n    map: https://b\n", "only host: conditions", true},
	{"rules:\n  - match: host:a\n    map: https://b/path\n", "the URL of a server", false},
	{"rules:\n  - match: host:a\n    map: https://b\n    drop: true\n", "cannot be combined", true},
	{"rules:\n  - match: host:a\n    map: https://b\n  - match: host:b\n    map: https://a\n", "r.yaml:2: the rule \"rule 1\" maps to https://b, which the rule \"rule 2\" maps again", true},
	{"rules:\n  - match: host:*\n    map: https://b\n", `the rule "rule 1" maps to https://b, which the rule "rule 1" maps again, so requests would loop`, true},
	{"rules:\n  - &a {match: host:a, drop: true}\n  - *a\n", "anchors", true},
	{"rules:\n  - !!map {match: host:a, drop: true}\n", "tags", true},
	{"rules:\n  - {name: x, match: host:a, drop: true}\n  - {name: x, match: host:b, drop: true}\n", "has the same name, \"x\"", true},
	{"rules: {}\n", "a list of rules", false},
	{"- match: host:a\n  drop: true\n", "r.yaml:1: expected 'rules:' and, below it, the list of rules", false},
	{"rules:\n  - match: host:a\n    replace: {\"a\":1}\n", `r.yaml:3: expected a message in one text, such as 'json:{"a":1}' with the quotes`, false},
	{"rules: []\n---\nrules: []\n", "more than one document", true},
	{"rules: [\n", "r.yaml", true},
}

func TestFaults(t *testing.T) {
	for _, c := range faulty {
		_, err := parse("r.yaml", []byte(c.text))
		if !errors.Is(err, ErrRules) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\n got %v\nwant %q", c.text, err, c.want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.yaml"), []byte("rules:\n  - match: host:a\n    replace: file:m.bin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m.bin"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(filepath.Join(dir, "r.yaml")); err != nil || string(s.rules[0].replace.data) != "content" {
		t.Errorf("%v", err)
	}
}

// The schema accepts what the parser accepts, and refuses what it is able to see of the rest.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(SchemaJSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rules.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("rules.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return nil
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(inst)
	}
	if err := validate(full); err != nil {
		t.Error(err)
	}
	for _, f := range faulty {
		if err := validate(f.text); (err == nil) != f.schemaAccepts && !strings.Contains(f.text, "---") && !strings.Contains(f.text, "drop: true\n    drop") {
			t.Errorf("%q: %v", f.text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	for _, c := range faulty {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse("/nowhere/r.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, r := range s.rules {
			if r.match == nil || r.Name == "" || !r.changesFrames() && r.mapTo == "" {
				t.Errorf("%q: %+v", text, r)
			}
		}
	})
}
