package transcript

import (
	"maps"
	"strings"

	"unwire/captures"
)

// The columns of the weights.
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

// roleHints are words in the names of members and kinds, with the role they speak
// for. The first that occurs in a name counts.
var roleHints = [...]struct {
	role  int
	words string // separated by spaces; a word with a point is a whole name
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

var textWords = [...]string{"text", "content", "delta", "message", "output", "body", "markdown", "parts"}

// roleWords are the values of a role field.
var roleWords = map[string]int{
	"user": user, "human": user, "assistant": assistant, "ai": assistant, "bot": assistant, "model": assistant,
	"system": system, "developer": system, "tool": toolResult, "function": toolResult,
}

// roleWord is the role that a role field's value stands for, or -1.
func roleWord(s string) int {
	if role, ok := roleWords[strings.ToLower(s)]; ok {
		return role
	}
	return -1
}

// addNameFeatures adds to the features of s what its names say, and the labels beside it.
func (s *stream) addNameFeatures(common map[string]bool) {
	s.addPathFeatures()
	s.namedAssistant = s.features[saysRole+assistant]
	s.addLabelFeatures(common)
}

func (s *stream) addLabelFeatures(common map[string]bool) {
	for part := range strings.FieldsSeq(s.label) {
		if role := roleWord(part); role >= 0 {
			if role == toolResult && s.dir == captures.Down && strings.EqualFold(part, "function") {
				role = toolCall // a kind of call, there
			}
			if role == assistant && s.dir == captures.Up && s.class == plain {
				s.features[past] = 1
			}
			// Whose it is, and not what.
			if role != assistant || s.features[saysRole+thinking] == 0 {
				s.raiseFeature(saysRole+feature(role), 1)
			}
		} else {
			s.addNameFeature(part, 1, common)
		}
	}
}

// addPathFeatures takes the last member fully, and those that enclose it half.
func (s *stream) addPathFeatures() {
	if s.name == "" {
		return
	}
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
	if len(names) > 1 && isCallName(names[:len(names)-1]) {
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

// isCallName reports whether members that enclose a text are the arguments of a
// call, whatever the text's own name.
func isCallName(names []string) bool {
	for _, n := range names[max(0, len(names)-3):] {
		switch strings.ToLower(strings.ReplaceAll(n, "_", "")) {
		case "args", "arguments", "functioncall", "toolcall", "tooluse", "toolinput", "rawinput", "parameters":
			return true
		}
	}
	return false
}

// addNameFeature takes the words of a name but those that are common to all names.
func (s *stream) addNameFeature(name string, weight float64, common map[string]bool) {
	parts := nameParts(name)
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

// nameParts are the words of a name in lower case, and the name itself.
func nameParts(name string) map[string]bool {
	parts := map[string]bool{strings.ToLower(name): true}
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			parts[strings.ToLower(b.String())] = true
			b.Reset()
		}
	}
	for i := range len(name) {
		c := name[i]
		upper := c >= 'A' && c <= 'Z'
		if c == '_' || c == '-' || c == '.' || upper && i > 0 && !(name[i-1] >= 'A' && name[i-1] <= 'Z') {
			flush()
		}
		if c != '_' && c != '-' && c != '.' {
			b.WriteByte(c)
		}
	}
	flush()
	return parts
}

func (s *stream) raiseFeature(f feature, v float64) { s.features[f] = max(s.features[f], v) }
