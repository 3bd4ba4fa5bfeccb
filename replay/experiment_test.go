package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/replay/standin"
)

// The experiments in testdata/suite are of the stand-in's first turn.
func TestSuite(t *testing.T) {
	a := newAgent(t, standin.Options{})
	id := a.turn("Does Backoff ever return more than its limit?")
	files, err := filepath.Glob("testdata/suite/*.replay")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // it was only read
			x, err := ReadExperiment(f)
			if err != nil {
				t.Fatal(err)
			}
			o := a.settings()
			o.Edits = x.Edits
			r, err := a.planned(id, o).Send(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if failed := x.Check(r); failed != nil {
				t.Error(strings.Join(failed, "\n"))
			}
			// Expectations can fail: the opposite of each does.
			for i := range x.Expect {
				e := x.Expect[i]
				switch e.what {
				case "differs":
					e.what = "same"
				case "same":
					e.what = "differs"
				case "value":
					e.match, e.want = nil, "\x00"
				default:
					e.want += "?"
				}
				if got, ok := e.met(r); ok {
					t.Errorf("the opposite of %q is met: %s", e.Text, got)
				}
			}
		})
	}
}

func TestReadExperimentErrors(t *testing.T) {
	for text, want := range map[string]string{
		"exchange 1\n":                                    "what is expected",
		"expect verdict same\n":                           "which exchange",
		"exchange 0\n":                                    "line 1: \"0\" is no exchange",
		"exchange 1\nexpect verdict maybe\n":              "line 2: expect verdict: \"maybe\" is none of same",
		"exchange 1\nexpect code bad\n":                   "no code",
		"exchange 1\nexpect status x\n":                   "no number",
		"exchange 1\nexpect value 1.2\n":                  "neither = nor ~",
		"exchange 1\nexpect value 1..2=3\n":               "no path",
		"exchange 1\nexpect value 1~(\n":                  "missing closing",
		"exchange 1\nexpect value @x 1=2\n":               "frame's number",
		"exchange 1\nexpect luck\n":                       "none of verdict code",
		"exchange 1\n\nset 1\nexpect verdict same\n":      "line 3: ",
		"exchange 1\nset 1 <<A\nx\nexpect verdict same\n": "no A ends",
	} {
		if _, err := ReadExperiment(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadExperiment(f *testing.F) {
	f.Add("# a\ncapture a.uwc\nexchange 2\nset 1=x\nexpect verdict same\nexpect value @0 1~x\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ReadExperiment(strings.NewReader(text))
		if err == nil && (x.Exchange < 1 || len(x.Expect) == 0) {
			t.Errorf("%+v", x)
		}
	})
}
