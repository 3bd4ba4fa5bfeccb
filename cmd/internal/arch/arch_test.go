// Package arch holds the tests of the tree's shape: who may import whom, and
// that what the code cites exists.
package arch

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "unwire/"

// allowed says which of our own packages a folder may import; the longest
// prefix that matches a package decides. A trailing slash means all below.
var allowed = map[string][]string{
	"captures":             {},
	"captures/pcap":        {"captures"},
	"mitm":                 {"captures", "mitm/"},
	"decode/envelope":      {},
	"decode/wire":          {},
	"decode/wire/barewalk": {},
	"decode/kind":          {"decode/wire"},
	"decode/text":          {"decode/wire", "decode/kind", "decode/envelope", "decode/nested", "decode/known"},
	"decode/nested":        {"decode/wire", "decode/kind", "decode/envelope"},
	"decode/known":         {},
	"decode":               {"captures", "decode/"},
	"decode/diff":          {"captures", "decode", "decode/"},
	"decode/score":         {"captures", "decode", "decode/"},
	"decode/secret":        {"captures", "decode", "decode/"},
	"decode/search":        {"captures", "decode", "decode/"},
	"schema":               {"decode", "decode/", "captures", "schema/"},
	"schema/match":         {"schema", "decode", "decode/", "captures"},
	"schema/align":         {"captures", "decode", "decode/", "schema", "schema/jsonname"},
	"schema/jsonname":      {},
	"schema/update":        {"schema", "schema/jsonname"},
	"replay":               {"schema", "schema/", "decode", "decode/", "captures", "replay/"},
	"replay/probe":         {"replay", "schema", "schema/jsonname", "decode", "decode/envelope", "captures"},
	"replay/nodetest":      {"internal/need"},
	"replay/standin":       {"schema", "decode", "decode/", "captures", "proto"},
	"proto":                {},
	"internal/need":        {}, // for tests
	"cmd":                  {"captures", "captures/", "mitm", "mitm/", "decode", "decode/", "schema", "schema/", "replay", "replay/", "proto", "cmd/"},

	"captures/transfer": {"captures", "decode", "decode/"},
	"captures/har":      {"captures", "captures/transfer", "decode", "decode/"},
	"captures/jsonl":    {"captures", "captures/transfer"},
	"captures/flow":     {"captures", "captures/transfer"},
	"captures/raw":      {"captures/transfer", "decode"},
	"captures/pcapng":   {"captures", "captures/transfer"},
	"captures/parquet":  {"captures", "captures/transfer", "decode"},
}

// foreign says which third-party modules captures may use; the others are only
// barred from what belongs to the command line.
var foreign = map[string][]string{
	"captures":        {"modernc.org/sqlite", "github.com/klauspost/compress", "github.com/andybalholm/brotli", "golang.org/x/sys"},
	"captures/pcap":   {"github.com/google/gopacket", "golang.org/x/crypto", "golang.org/x/net"},
	"captures/pcapng": {"github.com/google/gopacket", "golang.org/x/net"},
	"proto":           {},
}

// cliOnly may be imported below cmd/ and nowhere else.
var cliOnly = []string{"github.com/spf13/cobra", "github.com/olekukonko/tablewriter"}

func TestImportTable(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		rule, ok := ruleFor(pkg)
		if !ok {
			t.Errorf("%s is in no row of the import table", pkg)
			continue
		}
		seen++
		for _, imp := range fields[1:] {
			checkImport(t, rule, pkg, imp)
		}
	}
	if seen < 5 {
		t.Fatalf("only %d packages were looked at", seen)
	}
}

func checkImport(t *testing.T, rule, pkg, imp string) {
	if own, ok := strings.CutPrefix(imp, module); ok {
		if !matches(allowed[rule], own) {
			t.Errorf("%s must not import %s", pkg, own)
		}
		return
	}
	if !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
		return // standard library
	}
	if list, limited := foreign[rule]; limited && !slices.ContainsFunc(list, func(m string) bool { return under(imp, m) }) {
		t.Errorf("%s must not import %s", pkg, imp)
	}
	if rule != "cmd" && slices.ContainsFunc(cliOnly, func(m string) bool { return under(imp, m) }) {
		t.Errorf("%s must not import %s: only cmd/ does", pkg, imp)
	}
}

func ruleFor(pkg string) (string, bool) {
	for p := pkg; p != "." && p != ""; p = filepath.Dir(p) {
		if _, ok := allowed[p]; ok {
			return p, true
		}
	}
	return "", false
}

func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return a == pkg || strings.HasSuffix(a, "/") && strings.HasPrefix(pkg, a)
	})
}

func under(imp, mod string) bool { return imp == mod || strings.HasPrefix(imp, mod+"/") }

var citation = regexp.MustCompile(`RESEARCH\.md#([a-z0-9-]+)`)

func TestAnchorsExist(t *testing.T) {
	root := "../../.."
	anchors := headings(t, filepath.Join(root, "RESEARCH.md"))
	cited := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == "node_modules" || d.Name() == ".git") {
				return filepath.SkipDir
			}
			return err
		}
		if !slices.Contains([]string{".go", ".md", ".proto", ".jsonl"}, filepath.Ext(path)) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range citation.FindAllSubmatch(data, -1) {
			cited++
			if !anchors[string(m[1])] {
				t.Errorf("%s cites RESEARCH.md#%s, which is no heading there", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if cited == 0 {
		t.Error("nothing cites RESEARCH.md: the check looked at nothing")
	}
}

// headings returns the anchors of a Markdown file as GitHub makes them.
func headings(t *testing.T, file string) map[string]bool {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		title, ok := strings.CutPrefix(strings.TrimLeft(sc.Text(), "#"), " ")
		if !ok || !strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
				return r
			}
			return -1
		}, strings.ToLower(strings.TrimSpace(title)))
		anchors[slug] = true
	}
	return anchors
}
