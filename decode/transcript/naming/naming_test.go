package naming

import (
	"maps"
	"slices"
	"testing"
)

func TestParts(t *testing.T) {
	for name, want := range map[string][]string{
		"text_delta": {"delta", "text", "text_delta"},
		"outputText": {"output", "outputtext", "text"},
		"id":         {"id"},
	} {
		if got := slices.Sorted(maps.Keys(Parts(name))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	for name, want := range map[string][2]bool{ // kind, tool
		"text_delta": {true, true}, "fs/read": {false, true}, "Read file": {}, "": {}, "_x": {},
	} {
		if got := [2]bool{IsKind(name), IsTool(name)}; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	if !IsCall([]string{"a", "toolCall", "b"}) || IsCall([]string{"a", "b"}) {
		t.Error("names of arguments")
	}
	if Fold("GPT-5.1") != "gpt51" {
		t.Error(Fold("GPT-5.1"))
	}
}

func TestUsage(t *testing.T) {
	for name, want := range map[string]int{
		"prompt_tokens": Input, "candidatesTokenCount": Output, "cached_content": Cached, "total_tokens": Total, "max_output_tokens": -1, "price": -1,
	} {
		if got := usage(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestUsageIn(t *testing.T) {
	for name, want := range map[string]int{
		"input_other": Input, "input_cache_read": Cached, "input_cache_creation": -1, "output": Output, "token_count": Total, "total": Total,
		"prompt_n": Input, "reasoning_output": reasoned, "output_cost": -1, "count": -1,
	} {
		if got := UsageIn("token_usage", name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := UsageIn("form", "input"); got != -1 {
		t.Errorf("input outside of usage: %d", got)
	}
}
