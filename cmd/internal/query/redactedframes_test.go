package query

import (
	"path/filepath"
	"strings"
	"testing"

	"unwire/decode"
	"unwire/decode/secret"
)

// TestRedactedFrames: the frames come without secrets, and what does not exist is left out.
func TestRedactedFrames(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "text", "Bearer "+token)
	capture := open(t, path)
	at, err := capture.Resolve(t.Context(), 2, false)
	if err != nil || !strings.Contains(string(at.Frames[0].Data), token) {
		t.Fatalf("%v: the capture has no token", err)
	}
	list := []Address{ParseAddress(path + "#2/up/0"), ParseAddress(path + "#1/up/0"), ParseAddress(path + "#1/up/7")}
	var seen []string
	err = capture.RedactedFrames(t.Context(), list, &secret.Rules{}, func(at Address, _ *decode.Exchange, f *decode.Frame) {
		seen = append(seen, at.String())
		if strings.Contains(string(f.Data), token) {
			t.Errorf("%s has the token", at)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || seen[0] != list[1].String() || seen[1] != list[0].String() {
		t.Errorf("%v", seen)
	}
}
