package agent

import (
	"slices"
	"strings"
	"sync"
)

// maxTokens is how many tokens are remembered. A refreshed one replaces another after
// minutes at least.
const maxTokens = 16

// tokens are those that were sent, so that errors do not repeat them.
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

// hide replaces tokens in a text.
func (t *tokens) hide(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range t.list {
		text = strings.ReplaceAll(text, token, "[redacted]")
	}
	return text
}
