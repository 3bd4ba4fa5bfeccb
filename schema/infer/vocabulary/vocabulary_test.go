package vocabulary

import "testing"

// Values that everybody knows suggest a name; all of them must agree.
func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want     string
		examples []string
	}{
		{"role", []string{"user", "assistant"}},
		{"locale", []string{"en-US", "pt-BR"}},
		{"model", []string{"gpt-5", "claude-4.5-sonnet"}},
		{"id", []string{"3f2a8c1e-7b7d-4c1a-9a55-0d7f3c8f1b22"}},
		{"id", []string{"toolu_0123456789abcdef", "call_abcdefghijkl"}},
		{"url", []string{"https://example.com/a?b=1", "http://example.org/"}},
		{"email", []string{"ann@example.com"}},
		{"mime_type", []string{"text/plain", "image/png"}},
		{"time", []string{"2026-01-02T15:04:05Z"}},
		{"", []string{"user", "https://example.com/"}},
		{"", []string{"a sentence of words"}},
		{"", nil},
	} {
		if got := Text(c.examples); got != c.want {
			t.Errorf("%q: %q, want %q", c.examples, got, c.want)
		}
	}
}
