package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"unwire/schema/extract"
	"unwire/schema/update"
)

// TestLoad: a file is loaded as what its beginning shows.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	l := &Loader{ReadFile: os.ReadFile}
	load := func(name string) (*update.Source, error) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return l.Load(t.Context(), name, data[:min(len(data), 64)])
	}

	if src, err := load(write("a.proto", runProto)); err != nil || src.Name != "definitions" || !src.Complete {
		t.Errorf("definitions: %+v, %v", src, err)
	}
	join := `{"v":1,"message":"a.Request","number":1,"name":"text","json_name":"text","type":"string","label":"singular","alternatives":[],"evidence":[]}`
	if src, err := load(write("joins.json", join)); err != nil || !src.Spelled || src.Schema.Message("a.Request") == nil {
		t.Errorf("joins: %+v, %v", src, err)
	}
	for name, want := range map[string]Form{
		write("findings.json", `{"x": 1}`):                Findings,
		write("half.json", join+"{"):                      Joins,
		write("words.txt", "this is text and no program"): code,
	} {
		_, err := load(name)
		if e := (*FormError)(nil); !errors.As(err, &e) || e.Form != want {
			t.Errorf("%s: %v", name, err)
		}
		if want == code && !errors.Is(err, extract.ErrNothing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
