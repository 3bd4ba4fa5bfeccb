package dialogue

import "testing"

// TestOdds: what is on the wire decides, and wording alone does not, unless it is a
// question with its answer.
func TestOdds(t *testing.T) {
	names := func(list ...string) map[string]bool {
		out := map[string]bool{}
		for _, n := range list {
			out[n] = true
		}
		return out
	}
	for _, c := range []struct {
		name string
		s    Signs
		want bool
	}{
		{"nothing", Signs{}, false},
		{"deltas", Signs{Deltas: 0.8, Replied: true, Length: 200, Silent: true}, true},
		{"deltas of a list", Signs{Deltas: 0.3, Listed: true}, false},
		{"prose that was not asked for", Signs{Replied: true, Length: 4000}, false},
		{"question and answer", Signs{Asked: 1, Question: true, Replied: true, Length: 200}, true},
		{"review and notice", Signs{Asked: 1, Replied: true, Length: 45}, false},
		{"question and a list", Signs{Asked: 1, Question: true, Listed: true, Rivals: 1}, false},
		{"a page", Signs{Replied: true, Length: 4000, Markup: true, Names: names("prompt")}, false},
		{"request for a completion", Signs{ModelAsked: true, Models: 1, Asked: 1, Names: names("max_tokens", "messages")}, true},
		{"one word of the vocabulary", Signs{Names: names("prompt", "name", "description"), Replied: true}, false},
		{"roles and counts", Signs{Roles: true, Tokens: true}, true},
	} {
		if got := c.s.Odds() >= 0; got != c.want {
			t.Errorf("%s: %.2f", c.name, c.s.Odds())
		}
	}
}

func TestVocabulary(t *testing.T) {
	if got := countVocabulary(map[string]bool{"max_tokens": true, "finish-reason": true, "messages": true, "price": true}); got != 2 {
		t.Errorf("%d words, want 2", got)
	}
}

func TestNamesChat(t *testing.T) {
	for address, want := range map[string]bool{
		"https://h.example/aiserver.v1.ChatService/StreamUnifiedChat":     true,
		"https://h.example/v1/chat/completions":                           true,
		"https://h.example/v1beta/models/m:streamGenerateContent?alt=sse": true,
		"https://chat.example/shop.v1.Catalog/GetProduct":                 false,
		"https://h.example/bottles/agenda":                                false,
		"https://h.example/agent.v1.AgentService/Run":                     true,
		"": false, "::": false,
	} {
		if got := namesChat(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string][3]bool{ // template, code, page
		"<|im_start|>user\nHi<|im_end|>":                    {true, false, false},
		"func f(a []int) (int, error) { return a[0], nil }": {false, true, false},
		"<!DOCTYPE html>\n<p>It is so.</p>":                 {false, false, true},
		"It is so (as a rule).":                             {},
	} {
		if got := [3]bool{IsTemplate(text), IsCode(text), IsPage(text)}; got[0] != want[0] || got[2] != want[2] || got[1] != want[1] && !want[0] && !want[2] {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
