package conversation

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestUnhexWithPlaceholders(t *testing.T) {
	secret := strings.Repeat("s", 20)
	text := hex.EncodeToString([]byte("a token: ")) + "redacted-3f2a9c1b" + strings.Repeat(".", 2*len(secret)-17) + hex.EncodeToString([]byte("!"))
	got, err := unhex([]byte(text))
	if want := "a token: redacted-3f2a9c1b...!"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if got, err := unhex([]byte("redacted-3f2a9c1b.......")); err != nil || string(got) != "redacted-3f2" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"redacted-3f2a9c1b", "xy", "3"} {
		if got, err := unhex([]byte(bad)); err == nil {
			t.Errorf("%s gives %q", bad, got)
		}
	}
}
