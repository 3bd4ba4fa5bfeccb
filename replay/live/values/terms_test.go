package values

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"unwire/decode"
)

// Terms are the words that two messages do not share by chance.
func TestTerms(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{`{"path":"k3f9"}`, "k3f9"},
		{`{"path":"a1"}`, ""},
		{`{"path":"open"}`, ""},
		{`{"path":"gentle-harbour"}`, "gentle-harbour"},
		{`{"n":12345,"m":1234}`, "12345"},
		{`{"day":"2026-11-28","at":1764000000,"host":"127.0.0.1:9440"}`, ""},
		{`{"text":"call k3f9 in the harbour"}`, "k3f9"},
		{`{"path":"job/9145770"}`, "9145770 job/9145770"},
		{`{"path":"out-37902.log"}`, "37902 out-37902.log"},
		{`{"text":"job 9145770 read 65536 bytes"}`, "9145770"},
		{`{"path":"/v1/jobs/1764000000?n=1234"}`, "/v1/jobs/1764000000?n=1234"},
		{`{"text":"{\"path\":\"job/9145770\"}"}`, "9145770 job/9145770"},
		{`{"byName":{"harbour":1}}`, "byName harbour"},
		{`{"text":"{\"calls\":{\"harbour\":{\"id\":\"k3f9\"}}}"}`, "harbour k3f9"},
	} {
		f := &decode.Frame{}
		f.Data = []byte(c.message)
		got := strings.Join(slices.Sorted(maps.Keys(Terms(Leaves(f, nil)))), " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.message, got, c.want)
		}
	}
}
