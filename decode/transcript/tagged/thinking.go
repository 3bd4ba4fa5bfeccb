package tagged

import "strings"

// Thinking splits an answer that begins with thinking in a <think> tag, which models without a separate field
// send. Without an end tag it does not split: the text may be about the tag.
func Thinking(text string) (thoughts, answer string) {
	rest := strings.TrimLeft(text, " \n")
	for _, tag := range [...]string{"think", "thinking"} {
		inner, ok := strings.CutPrefix(rest, "<"+tag+">")
		if !ok {
			continue
		}
		if inner, after, ok := strings.Cut(inner, "</"+tag+">"); ok {
			return strings.TrimSpace(inner), strings.TrimLeft(after, " \n")
		}
	}
	return "", text
}
