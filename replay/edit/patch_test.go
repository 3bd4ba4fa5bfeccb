package edit

import (
	"strings"
	"testing"
)

func TestReadPatch(t *testing.T) {
	edits, err := ReadPatch(strings.NewReader("# an experiment\n\nset 1.2=a b\n--del @3 4\r\n  retype 5:string\nset 6:string <<END\none\n  two\nEND\nraw 7=00\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range edits {
		got = append(got, e.String())
	}
	if want := []string{"--set 1.2=a b", "--del @3 4", "--retype 5:string", "--set 6:string=one\n  two", "--set-raw 7=00"}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"set 1=x\nmove 2": "line 2: ", "set 1 <<END\nx\n": "line 1: the end of the value, a line END", "\nset 1": "line 2: ", "retype 1\n": "the type (:KIND) is missing",
	} {
		if _, err := ReadPatch(strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadPatch(f *testing.F) {
	f.Add("set 1!gzip.2=x\n# c\nraw @1 2=00\nset 1 <<A\nb\nA\n", []byte("\x0a\x03abc"))
	f.Fuzz(func(t *testing.T, patch string, data []byte) {
		edits, err := ReadPatch(strings.NewReader(patch), nil)
		if err != nil {
			return
		}
		for _, e := range edits {
			if out, err := e.apply(data, false, nil); err == nil {
				data = out
			}
			if _, err := e.apply([]byte(`{"a":"7b7d","b":[1]}`), true, nil); err != nil {
				continue
			}
		}
	})
}
