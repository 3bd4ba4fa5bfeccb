package search

import (
	"fmt"
	"slices"
	"testing"

	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
)

// What Values leaves out has no values: a walk over everything finds the same.
func TestValues(t *testing.T) {
	t.Parallel()
	gz, err := envelope.Compress("gzip", []byte(field(1, "hello there, inner")+field(2, field(5, "more"))))
	if err != nil {
		t.Fatal(err)
	}
	message := field(1, field(2, "inner")+field(2, "again")+"\x18\x07") + field(3, string(gz)) + field(4, `{"a":{"b":[1,2]},"1":"x"}`) + field(4, `"quoted"`) + "\x28\x01" + field(1, "text")
	for _, f := range []string{message, `{"a":{"b":[1,{"c":"x"}]},"1":{"2":true}}`, "no message"} {
		for _, pattern := range []string{
			"1", "1.2", "1.2[1]", "1[1]", "1.3", "1.9", "2", "3", "3.2.5", "3.*", "3.2.6", "4", "4.a.b.1", "4.1", "5", "*", "*.*", "**", "**.5", "1.**", "**.b.**", "3.**.5",
			"a.b", "a.b.1.c", "a.x",
		} {
			path, err := fieldpath.ParsePattern(pattern)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			Values(frame(0, f), path, nil, func(v Value) bool {
				got = append(got, textOf(v))
				return true
			})
			everything := &searcher{}
			everything.onValue = func(v Value) bool {
				if matchSteps(path, everything.steps) {
					want = append(want, textOf(v))
				}
				return true
			}
			everything.Frame(frame(0, f))
			if !slices.Equal(got, want) {
				t.Errorf("%s in %q: %q, want %q", pattern, f, got, want)
			}
		}
	}
}

// textOf identifies a value.
func textOf(v Value) string {
	if v.Tree == nil {
		return v.JSON.Text()
	}
	return fmt.Sprintf("%d %x", v.Node, v.Tree.Payload(v.Node))
}
