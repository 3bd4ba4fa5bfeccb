package proto

import (
	"encoding/base64"
	"testing"
	"time"
)

// The vector of facts that public clients agree on: t = 1769525.
func TestChecksumTime(t *testing.T) {
	at := time.UnixMilli(1769525 * 1_000_000)
	if got := checksumTime(at, base64.RawURLEncoding); got != "pZGTi4-_" {
		t.Errorf("url-safe: %s", got)
	}
	if got := checksumTime(at, base64.RawStdEncoding); got != "pZGTi4+/" {
		t.Errorf("standard: %s", got)
	}
}

func TestRefreshChecksum(t *testing.T) {
	now := time.UnixMilli(1769525 * 1_000_000)
	old := checksumTime(now.Add(-1000*time.Hour), base64.RawURLEncoding)
	for _, c := range []struct {
		captured, want string
		ok             bool
	}{
		{old + "machine/mac", "pZGTi4-_machine/mac", true},
		{"pZGTi4+/machine", "pZGTi4+/machine", true},
		{old, "pZGTi4-_", true},
		{"abcdefghmachine", "abcdefghmachine", false},
		{"short", "short", false},
		{"", "", false},
	} {
		got, ok := refreshChecksum(c.captured, now)
		if got != c.want || ok != c.ok {
			t.Errorf("%q: got %q, %v, want %q, %v", c.captured, got, ok, c.want, c.ok)
		}
	}
}
