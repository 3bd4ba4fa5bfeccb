package schematext

import (
	"context"
	"slices"
	"strings"
	"testing"

	"unwire/decode"
	"unwire/schema"
	"unwire/schema/check"
)

// TestCheckPage: each frame is read once, whichever findings it shows, and what is in it
// is no markup of the page.
func TestCheckPage(t *testing.T) {
	r := &check.Report{
		Unknown:        []check.UnknownField{{Message: "a.M", Name: "x", Kind: "string", P: 1, Seen: 3, Frames: []string{"f#1/up/0", "f#1/up/1", "f#1/up/2"}}},
		UnknownMethods: []check.UnknownMethod{{Service: "a.B", RPC: "D", Count: 1, Frames: []string{"f#1/up/0"}}},
	}
	var asked []string
	read := func(_ context.Context, addresses []string, do func(string, *decode.Exchange, *decode.Frame)) error {
		asked = addresses
		f := &decode.Frame{}
		f.Data = []byte(`{"x": "<script>"}`)
		do(addresses[0], &decode.Exchange{}, f)
		return nil
	}
	page, err := NewCheckPage(t.Context(), r, []string{"f"}, schema.FromFiles(), read)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(asked, []string{"f#1/up/0", "f#1/up/1"}) {
		t.Errorf("read: %v", asked)
	}
	var b strings.Builder
	if err := page.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 new findings.", "also <code>f#1/up/2</code>", "&lt;script&gt;", "seen 3"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(b.String(), "<script>") {
		t.Error("a frame's text is markup of the page")
	}
}
