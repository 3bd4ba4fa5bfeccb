package agent

import (
	"slices"
	"strings"
	"sync"
)

// maxTokens is the number of tokens that are remembered. A token is refreshed after minutes at the
// earliest.
const maxTokens = 16

// tokens are the tokens that were sent, to remove them from error messages.
type tokens struct {
	mu   sync.Mutex
	list []string
}

func (t *tokens) add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token == "" || slices.Contains(t.list, token) {
		return
	}
	if len(t.list) == maxTokens {
		t.list = t.list[1:]
	}
	t.list = append(t.list, token)
}

// hide replaces access tokens in a text by a placeholder.
func (t *tokens) hide(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range t.list {
		text = strings.ReplaceAll(text, token, "[redacted]")
	}
	return text
}
