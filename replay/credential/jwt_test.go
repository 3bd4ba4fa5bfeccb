package credential

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"unwire/replay/internal/samples"
)

func TestParseToken(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	token, ok := ParseToken("Bearer " + samples.Token(t, at))
	if !ok || !token.Expires.Equal(at) || token.Audience[0] != "api" || token.Issuer != "someone" {
		t.Errorf("%+v %v", token, ok)
	}
	for age, stale := range map[time.Duration]bool{59 * time.Second: true, 61 * time.Second: false, -time.Hour: true} {
		if token.IsStale(at.Add(-age)) != stale {
			t.Errorf("%s before the end", age)
		}
	}
	for _, s := range []string{"", "a.b.c", "key_0123", samples.Token(t, at) + ".x", "e30.e30"} {
		if token, ok := ParseToken(s); ok && !token.Expires.IsZero() {
			t.Errorf("%q: %+v", s, token)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(samples.Token(f, time.Unix(1, 0)))
	f.Add("Bearer a." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"x","exp":1e300}`)) + ".b")
	f.Fuzz(func(t *testing.T, s string) {
		if token, ok := ParseToken(s); ok && strings.Count(s, ".") != 2 {
			t.Errorf("%q: %+v", s, token)
		}
	})
}
