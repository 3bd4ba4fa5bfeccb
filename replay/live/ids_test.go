package live

import (
	"fmt"
	"testing"

	"unwire/replay/live/values"
)

// TestUpdateForgetsTheOldest: when there are too many identifiers, those that were added first are forgotten, and not
// all.
func TestUpdateForgetsTheOldest(t *testing.T) {
	t.Parallel()
	var ids IDs
	for i := range maxTokens + 10 {
		ids.Update(&IDs{values: values.Replacements{fmt.Sprint(i): "now"}})
		ids.Update(&IDs{values: values.Replacements{"often": fmt.Sprint(i)}})
	}
	if n := len(ids.values); n > maxTokens {
		t.Errorf("%d identifiers", n)
	}
	for id, want := range map[string]string{
		"0": "0", fmt.Sprint(maxTokens): "now", fmt.Sprint(maxTokens - maxTokens/4): "now", "often": fmt.Sprint(maxTokens + 9),
	} {
		if got := ids.Of(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
