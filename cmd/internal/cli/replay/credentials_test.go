package replaycmd

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"
)

// A token says how long it is good for, and one that would not be sent is not
// said to be found.
func TestCredentialLines(t *testing.T) {
	end := time.Unix(1_800_000_000, 0)
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix()))
	t.Setenv("MADE_UP_TOKEN", "e30."+claims+".c2ln")
	t.Setenv("UNWIRE_API_KEY", "")
	for _, c := range []struct {
		left         time.Duration
		state, error string
	}{
		{2 * time.Hour, "found", ""},
		{30 * time.Second, "expiring", "in 30 s, so unwire does not send the token"},
		{0, "expired", ""},
		{-time.Hour, "expired", ""},
	} {
		lines := credentialLines("env:MADE_UP_TOKEN", end.Add(-c.left))
		if len(lines) != 1 || lines[0].State != c.state || lines[0].Error != c.error || lines[0].Expires != "2027-01-15T08:00:00Z" {
			t.Errorf("%s before its end: %+v", c.left, lines)
		}
	}
}
