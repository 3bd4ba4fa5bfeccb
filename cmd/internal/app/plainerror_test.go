package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"unwire/cmd/internal/term"
	"unwire/decode"
)

func TestPlainText(t *testing.T) {
	server := errors.New("unavailable: the replay: it is over")
	for want, err := range map[string]error{
		"EOF":                           io.EOF,
		"not sent: EOF":                 fmt.Errorf("replay: not sent: %w", io.EOF),
		"a.uwc: frame 3: EOF":           fmt.Errorf("a.uwc: %w", fmt.Errorf("decode: wire: frame 3: %w", io.EOF)),
		"one\ntwo":                      errors.Join(errors.New("store: one"), errors.New("captures: two")),
		"har: entry 3":                  errors.New("har: entry 3"),
		"schema:":                       errors.New("schema:"),
		"schema: ":                      errors.New("schema: "),
		"rejected: " + server.Error():   fmt.Errorf("replay: rejected: %w", server),
		"nowhere: not found":            fmt.Errorf("standin: %w", &fs.PathError{Op: "open", Path: "nowhere", Err: errors.New("not found")}),
		"mkdir nowhere: not found":      &fs.PathError{Op: "mkdir", Path: "nowhere", Err: errors.New("not found")},
		"cannot run ./broken: no":       fmt.Errorf("launch: %w", &fs.PathError{Op: "fork/exec", Path: "./broken", Err: errors.New("no")}),
		"twice: no: and no":             fmt.Errorf("probe: twice: %w: and %w", errors.New("text: no"), errors.New("text: no")),
		"other text than what it wraps": &failure{1, nil, ""},
	} {
		if f, ok := err.(*failure); ok {
			f.err = errors.New("mitm: other text than what it wraps")
		}
		if got := PlainText(err); got != want {
			t.Errorf("%q is %q, want %q", err, got, want)
		}
	}
}

// Every package of the libraries whose errors begin with its name is known.
func TestLibrariesAreKnown(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	formats := []string{"flow", "har", "jsonl", "parquet", "pcap", "pcapng", "raw"}
	prefix := regexp.MustCompile(`(?:errors\.New|fmt\.Errorf)\("([a-z0-9]+): `)
	for _, top := range []string{"captures", "decode", "mitm", "replay", "schema"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") || strings.Contains(path, "internal") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range prefix.FindAllSubmatch(text, -1) {
				name := string(m[1])
				if name == filepath.Base(filepath.Dir(path)) && !slices.Contains(formats, name) && !isLibrary(name) {
					t.Errorf("%s: errors begin with %q, which users would see: add it to libraries", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Errors that Say prints have no names of packages, and foreign text in them cannot control the terminal.
func TestSayCleansErrors(t *testing.T) {
	var screen strings.Builder
	a := &App{Err: &term.Output{Writer: &screen}}
	a.Say("unwire: %v", fmt.Errorf("decode: %w", errors.New("envelope: a \x1b[31mname\u202e")))
	if got, want := screen.String(), "unwire: a "; !strings.HasPrefix(got, want) || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%q", got)
	}
}

// The help of --as names every framing.
func TestSplittingNames(t *testing.T) {
	for _, name := range decode.Splittings() {
		if !slices.Contains(strings.FieldsFunc(SplittingNames, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), name) {
			t.Errorf("%s is missing in %q", name, SplittingNames)
		}
	}
}
