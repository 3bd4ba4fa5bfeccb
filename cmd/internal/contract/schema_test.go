package contract

import (
	"strings"
	"testing"

	"unwire/schema/check"
)

// TestEscapedObjects: the objects of package check have <, > and & escaped.
func TestEscapedObjects(t *testing.T) {
	var b strings.Builder
	lines := NewEncoder(&b)
	for _, o := range []Object{&SchemaCheck{Report: &check.Report{}}, &FieldProposal{Proposal: check.Proposal{Type: "map<string, a.B>"}}, &Definition{Text: "<&>"}} {
		if err := lines.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Split(b.String(), "\n")
	if !strings.HasPrefix(text[0], `{"v":1,"frames":0,"decoded":0,`) || !strings.HasPrefix(text[1], `{"v":1,"element":""`) ||
		!strings.Contains(text[1], `"type":"map\u003cstring, a.B\u003e"`) || !strings.Contains(text[2], `"text":"<&>"`) {
		t.Errorf("%s", b.String())
	}
}
