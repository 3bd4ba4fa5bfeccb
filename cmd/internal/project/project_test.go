package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var profiles = []string{"auto", "none", "example"}

// A file that says all that it can.
const full = `# of the shop
definitions: [proto/, vendor/set.binpb]
profile: example
weights: weights.json
redact:
  headers: [X-Shop-Session]
  names: [sessionHandle, "a b"]
  keys: [{prefix: shop_, min-length: 20}, {prefix: till-}]
  fields: [shop.v1.Session.token]
`

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := parse("/p/unwire.yaml", []byte(full), profiles)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Secrets
	if len(f.Definitions) != 2 || f.Definitions[0] != filepath.Join("/p", "proto") || f.Weights != filepath.Join("/p", "weights.json") || f.Profile != "example" ||
		s.Headers[0] != "x-shop-session" || s.Names[1] != "a b" || s.Keys[0].MinLength != 20 || s.Keys[1].MinLength != 16 || s.Fields[0] != "shop.v1.Session.token" {
		t.Errorf("%+v", f)
	}
	if got := f.Summary(); got != "definitions proto, "+filepath.Join("vendor", "set.binpb")+"; profile example; weights weights.json; 6 additional rules for secrets" {
		t.Error(got)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "redact: {}\n"} {
		if f, err := parse("/p/unwire.yaml", []byte(empty), profiles); err != nil || f.Summary() != "nothing" {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// What the parser and the JSON Schema refuse, both. In the schema a test can have no line.
var refused = []struct{ text, want string }{
	{"hosts: [a.example]\n", "unwire.yaml:1: hosts cannot be set in unwire.yaml, because somebody else may have written the file: use --allow-host instead"},
	{"\nlive: true\n", ":2: live cannot be set in unwire.yaml"},
	{"CA: x.pem\n", "CA cannot be set in unwire.yaml, because somebody else may have written the file: use --upstream-ca instead"},
	{"keep_secrets: true\n", "keep_secrets cannot be set in unwire.yaml"},
	{"keep-secrets: true\n", "use --keep-secrets"},
	{"credentials: cursor\n", "credentials cannot be set in unwire.yaml"},
	{"commands: [rm]\n", "commands cannot be set in unwire.yaml"},
	{"header-from: x\n", "header-from cannot be set in unwire.yaml"},
	{"redact:\n  run: x\n", ":2: run cannot be set in unwire.yaml"},
	{"definition: proto/\n", `:1: unknown name "definition"; the valid names are definitions, profile, redact, weights`},
	{"redact:\n  header: [a]\n", `unknown name "header"`},
	{"definitions: /etc\n", "is not a path below"},
	{"definitions: ../other\n", "is not a path below"},
	{"definitions: a/../../b\n", "is not a path below"},
	{"definitions: reflect:http://127.0.0.1:8080\n", "this file cannot name reflect:http://127.0.0.1:8080, because unwire sends no requests when it reads this file"},
	{"definitions: [proto/, 'reflect:https://a.example']\n", ":1: this file cannot name reflect:https://a.example"},
	{"definitions: 7\n", "expected a text"},
	{"definitions: {a: b}\n", "expected a text"},
	{"definitions: ''\n", "1 to 256 bytes"},
	{"profile: other\n", "profile must be one of auto, none, example"},
	{"redact: [a]\n", "expected a mapping"},
	{"redact:\n  headers: a\n", "expected a list"},
	{"redact:\n  headers: [a b]\n", "is not a valid header name"},
	{"redact:\n  fields: [token]\n", "is not a full field name"},
	{"redact:\n  keys: [{prefix: ab}]\n", "prefix must have at least 3 letters"},
	{"redact:\n  keys: [{min-length: 20}]\n", "each entry of keys needs a prefix"},
	{"redact:\n  keys: [{prefix: abc, min-length: 2}]\n", "from 8 to 256"},
	{"- a\n", "expected a mapping"},
}

func TestRefused(t *testing.T) {
	t.Parallel()
	check := compiledSchema(t)
	for _, c := range refused {
		_, err := parse("/p/unwire.yaml", []byte(c.text), profiles)
		if !errors.Is(err, errFile) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if check(t, c.text) == nil {
			t.Errorf("%q: the JSON Schema has it", c.text)
		}
	}
	// The schema sees values, and not how they are written.
	for text, want := range map[string]string{
		"weights: &a w.json\ndefinitions: *a\n":                   "anchors or aliases",
		"profile: !!str none\n":                                   "must not contain tags",
		"profile: none\nprofile: none\n":                          "twice",
		"profile: none\n---\nprofile: none\n":                     "more than one document",
		"a: [\n":                                                  "line",
		"weights: " + strings.Repeat("w", maxBytes):               "has more than",
		"redact: &a {keys: [*a, *a]}\n":                           "anchors or aliases",
		strings.Repeat("- ", 20_000) + "x":                        "",
		"redact: {headers: [" + strings.Repeat("a,", 1001) + "]}": "at most 1000",
	} {
		if _, err := parse("/p/unwire.yaml", []byte(text), profiles); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestSchemaHas(t *testing.T) {
	t.Parallel()
	check := compiledSchema(t)
	for _, text := range []string{full, "", "# nothing\n", "definitions: proto/\n", "definitions: []\n", "redact: {}\n", "redact: {keys: []}\n"} {
		if err := check(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := parse("/p/unwire.yaml", []byte(text), profiles); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// compiledSchema returns what checks YAML against the JSON Schema.
func compiledSchema(t *testing.T) func(t *testing.T, text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(SchemaJSON(profiles)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("unwire.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("unwire.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, text string) error {
		t.Helper()
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(inst)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(home, "work", "shop", "deep")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	want := func(dir, want string) {
		t.Helper()
		got, foreign, err := Find(dir, filepath.Join(home, "work"))
		if got != want || foreign != "" || err != nil {
			t.Errorf("%s: %q, %q, %v, want %q", dir, got, foreign, err, want)
		}
	}
	want(below, "")
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("profile: none\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, Name)) // above home: not looked at
	want(below, "")
	atHome := filepath.Join(home, "work", Name)
	write(atHome)
	want(below, atHome)
	inShop := filepath.Join(home, "work", "shop", Name)
	write(inShop)
	want(below, inShop)
	want(filepath.Join(home, "work"), atHome)
	if err := os.Mkdir(filepath.Join(below, Name), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Find(below, home); !errors.Is(err, errFile) {
		t.Errorf("a folder: %v", err)
	}
}

// A link must not lead out of the folder: the folder may be somebody else's work.
func TestLinkOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(dir, "proto")); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path, []byte("definitions: proto/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, profiles); err == nil || !strings.Contains(err.Error(), "a symbolic link to a path outside") {
		t.Error(err)
	}
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	said := 0
	announce := func(path, text string) {
		t.Helper()
		f, err := parse(path, []byte(text), profiles)
		if err != nil {
			t.Fatal(err)
		}
		Announce(f, state, func(text string) {
			if said++; !strings.Contains(text, path) {
				t.Error(text)
			}
		})
	}
	for i, c := range []struct{ path, text string }{
		{"/a/unwire.yaml", "profile: none\n"},
		{"/a/unwire.yaml", "profile: auto\n"},
		{"/b/unwire.yaml", "profile: none\n"},
	} {
		for range 2 {
			if announce(c.path, c.text); said != i+1 {
				t.Errorf("%d announcements after file %d", said, i)
			}
		}
	}
}

var update = flag.Bool("update", false, "write cmd/unwire/docs/unwire.schema.json anew")

// The schema of the documents is the one that the program prints.
func TestDocumentedSchema(t *testing.T) {
	t.Parallel()
	const path = "../../unwire/docs/unwire.schema.json"
	want := SchemaJSON([]string{"auto", "none", "cursor"})
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v): run 'go test ./cmd/internal/project -update'", path, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	for _, c := range refused {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse("/p/unwire.yaml", []byte(text), profiles)
		if err != nil {
			return
		}
		for _, path := range append(file.Definitions, file.Weights) {
			if path != "" && !strings.HasPrefix(path, "/p") {
				t.Errorf("%q leads to %s", text, path)
			}
		}
	})
}
