package transcript

import (
	"maps"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/naming"
)

// Roles as indexes of columns in the table of weights, in the order of roleOrder.
const (
	assistant = iota
	thinking
	toolCall
	toolResult
	user
	system
	metadata
	idRole
)

// roleHints lists words in names of members and kinds (values of fields such as "type") with the role that they
// suggest. The first word that occurs in a name decides.
var roleHints = [...]struct {
	role int

	// words are separated by spaces; a word that ends in a dot must be the whole name.
	words string
}{
	{metadata, "finish stop status model version title error created object type. role. name. language locale usage fingerprint index logprobs refusal url uri path event mime encoding citation"},
	{thinking, "thinking reasoning thought thoughts reason rationale analysis scratchpad"},
	{toolResult, "result results stdout stderr observation"},
	{toolCall, "tool tools function args arguments call json parameters command"},
	{system, "system developer instructions instruction preamble description rules schema"},
	{user, "user human prompt query question ask"},
	{assistant, "assistant answer completion completions response reply choices bot ai output_text"},
	{idRole, "id ids uuid guid token key signature hash checksum nonce"},
}

// textWords are words in names of members that usually contain text.
var textWords = [...]string{"text", "content", "delta", "message", "output", "body", "markdown", "parts"}

// roleWords maps the values of a role field to roles.
var roleWords = map[string]int{
	"user": user, "human": user, "assistant": assistant, "ai": assistant, "bot": assistant, "model": assistant,
	"system": system, "developer": system, "tool": toolResult, "function": toolResult,
}

// roleWord returns the role for a value of a role field, or -1.
func roleWord(s string) int {
	if role, ok := roleWords[strings.ToLower(s)]; ok {
		return role
	}
	return -1
}

// addNameFeatures sets the features that are derived from the stream's member names and its label. Words in common
// are ignored.
func (s *stream) addNameFeatures(common map[string]bool) {
	s.addPathFeatures()
	s.namedAssistant = s.features[saysRole+assistant]
	s.addLabelFeatures(common)
}

// addLabelFeatures sets the features that are derived from the label of s, the values of fields such as "role" and
// "type" next to the text.
func (s *stream) addLabelFeatures(common map[string]bool) {
	for part := range strings.FieldsSeq(s.label) {
		if role := roleWord(part); role >= 0 {
			if role == toolResult && s.dir == captures.Down && strings.EqualFold(part, "function") {
				// A server that sends "function" means a call.
				role = toolCall
			}
			// The client sends the assistant's text as history.
			if role == assistant && s.dir == captures.Up && s.class == plain {
				s.features[past] = 1
			}
			// The role "assistant" only names the sender: it does not exclude thinking.
			if role != assistant || s.features[saysRole+thinking] == 0 {
				s.raiseFeature(saysRole+feature(role), 1)
			}
		} else {
			s.addNameFeature(part, 1, common)
		}
	}
}

// addPathFeatures sets the features that are derived from the member names on the path: the last one counts fully,
// up to three enclosing names count half.
func (s *stream) addPathFeatures() {
	if s.name == "" {
		return
	}
	// A short value at a name for answers may be the whole answer.
	names := strings.Split(s.path, ".")
	if s.dir == captures.Down && (s.class == word || s.class == number || s.class == plain) {
		switch strings.ToLower(strings.ReplaceAll(s.name, "_", "")) {
		case "content", "text", "answer", "reply", "response", "message", "outputtext", "completion", "markdown":
			s.features[plainName] = 1
			if s.class == plain && s.features[languageLike] > 0.5 {
				s.features[plainName] = 0.3
			}
		}
	}

	// All members of a call's arguments belong to the call, whatever their names are.
	if len(names) > 1 && naming.IsCall(names[:len(names)-1]) {
		s.raiseFeature(saysRole+toolCall, 1)
		return
	}
	for i, n := range names[max(0, len(names)-4):] {
		weight := 0.5
		if i == min(len(names), 4)-1 {
			weight = 1
		}
		s.addNameFeature(n, weight, nil)
	}
}

// addNameFeature sets the features that the words of one name suggest to weight, except for words in common.
func (s *stream) addNameFeature(name string, weight float64, common map[string]bool) {
	parts := naming.Parts(name)
	maps.DeleteFunc(parts, func(word string, _ bool) bool { return common[word] })
	for _, t := range textWords {
		if parts[t] {
			s.raiseFeature(saysText, weight)
		}
	}
	for _, h := range roleHints {
		for w := range strings.FieldsSeq(h.words) {
			whole, exact := strings.CutSuffix(w, ".")
			if exact && strings.EqualFold(whole, name) || !exact && parts[w] {
				s.raiseFeature(saysRole+feature(h.role), weight)
				return
			}
		}
	}
}

// raiseFeature sets feature f to v unless it is greater already.
func (s *stream) raiseFeature(f feature, v float64) { s.features[f] = max(s.features[f], v) }
