package secret

import (
	"testing"

	"unwire/captures/redact"
)

func TestCount(t *testing.T) {
	got := Count([]Finding{
		{Rule: "jwt", Count: 2}, {Rule: "jwt", Count: 3, Stays: true}, {Rule: redact.RuleUnsearched, Count: 4, Len: 50},
	})
	if want := (Counts{Values: 5, Staying: 3, Unsearched: 4, UnsearchedBytes: 50}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
