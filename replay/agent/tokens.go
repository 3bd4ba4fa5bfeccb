package agent

import (
	"slices"
	"strings"
	"sync"
)

// maxTokens is the number of tokens that are remembered. It suffices, because a token is only replaced
// every few minutes.
const maxTokens = 16

// tokens remembers the access tokens that were sent recently, in order to remove them from error
// messages.
type tokens struct {
	// mu guards list.
	mu sync.Mutex

	// list are the tokens, oldest first.
	list []string
}

// add remembers a token.
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

// hide replaces the remembered tokens in a text by "[redacted]".
func (t *tokens) hide(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range t.list {
		text = strings.ReplaceAll(text, token, "[redacted]")
	}
	return text
}
