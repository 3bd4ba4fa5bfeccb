package tagged

import "strings"

// thinkingTags are the names of tags around thinking.
var thinkingTags = [...]string{"think", "thinking", "thought", "thoughts", "reasoning", "antThinking", "scratchpad", "reflection", "analysis"}

// Thinking splits an answer that begins with thinking in a tag such as <think>, which models without a separate field
// send. Without an end tag it does not split: the text may be about the tag. Of <think> the beginning may be missing,
// since some templates write it into the prompt; then the end tag begins a line.
func Thinking(text string) (thoughts, answer string) {
	rest := strings.TrimLeft(text, " \n")
	for _, tag := range thinkingTags {
		inner, ok := strings.CutPrefix(rest, "<"+tag+">")
		if !ok {
			continue
		}
		if inner, after, ok := strings.Cut(inner, "</"+tag+">"); ok {
			return strings.TrimSpace(inner), strings.TrimLeft(after, " \n")
		}
	}
	before, after, ok := strings.Cut(text, "\n</think>")
	if ok && !strings.Contains(before, "<think>") && !strings.Contains(before, fence) && !strings.Contains(after, "</think>") {
		return strings.TrimSpace(before), strings.TrimLeft(after, " \n")
	}
	return "", text
}
