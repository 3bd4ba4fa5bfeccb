package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The names of a body's members are judged alike however often they come and whatever
// others were seen before.
func TestRepeatedNames(t *testing.T) {
	names := []string{
		"text", "id", "tokens", "note", "a-name-of-many-bytes", "count",
		"apiKey", "api_key", "accessToken", "secret", "password", "aaKey", "xxpasswore",
	}
	r := New(Options{Names: []string{"tixt"}})
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		want := 0
		for range rapid.IntRange(0, 60).Draw(t, "members") {
			name := rapid.SampledFrom(append(names, "tixt")).Draw(t, "name")
			body.WriteString(`{"` + name + `":"made-up"},`)
			if surely, _ := r.IsSecretName(name); surely {
				want++
			}
		}
		if got := len(r.Find([]byte(body.String()), false, "")); got != want {
			t.Fatalf("%d secrets, not %d, in %s", got, want, body.String())
		}
	})
}
