package part

import (
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/naming"
)

// progressWords are words of types of messages about what the server is doing, and contentWords of those of messages
// that are answers.
var (
	progressWords = []string{"update", "updates", "progress", "status", "step", "search", "searching", "info", "log", "trace", "notice", "notification", "loading", "intermediate", "debug"}
	contentWords  = []string{"content", "text", "answer", "response", "reply", "completion", "final", "message", "output"}
)

// dropProgress returns the texts without those of the model that only report what it is doing: their type says so, and
// the type of other texts at the same path says that they are answers. It also leaves out summaries of thinking that was
// sent next to them.
func dropProgress(texts []Text) []Text {
	answers, thoughts := make(map[string]bool), make(map[string]bool)
	for i := range texts {
		t := &texts[i]
		if t.isOwn() && hasType(t.types, contentWords) {
			answers[t.Path] = true
		}
		thoughts[t.Path] = thoughts[t.Path] || t.Thought && t.Text != ""
	}
	return slices.DeleteFunc(texts, func(t Text) bool {
		if t.Thought {
			outer, isSummary := strings.CutSuffix(t.Path, ".summary")
			return isSummary && (thoughts[outer+".content"] || thoughts[outer+".text"])
		}
		return t.isOwn() && answers[t.Path] && !hasType(t.types, contentWords) && hasType(t.types, progressWords)
	})
}

// isOwn reports whether the text is one of the server's own, and not of the user.
func (t *Text) isOwn() bool { return t.Dir == captures.Down && t.Speaker != keyed.User }

// hasType reports whether the innermost of the types has one of the words.
func hasType(types string, words []string) bool {
	parts := naming.Parts(types[strings.LastIndexByte(types, '/')+1:])
	return slices.ContainsFunc(words, func(w string) bool { return parts[w] })
}
