package keyed

import (
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/naming"
)

// A meaning is a set of what the words of a name mean.
type meaning uint

const (
	// filler is a word that may be next to others, such as "message".
	filler meaning = 1 << iota

	// saying is a word for a text of the conversation.
	saying

	// byUser and byAssistant are words for the author of a text, and inThought for thinking.
	byUser
	byAssistant
	inThought

	// ofTool with calling names a call of a tool, and with returning its result.
	ofTool
	calling
	returning

	// entire is a word for a message, which is a text if the name also says whose.
	entire

	// bySystem is a word for the side of the server.
	bySystem
)

// meanings are the words of names such as "assistantResponseMessage" or "final_answer_text". Names of one word, and
// names whose words are not separated, are in vocabulary.go.
var meanings = func() map[string]meaning {
	out := make(map[string]meaning)
	for _, group := range []struct {
		means meaning
		words string
	}{
		{saying, `content text delta answer completion reply generation transcript transcription markdown utterance`},
		{filler, `chunk event block part final full partial generated streamed stream current input turn value raw str string token tokens body chat`},
		{entire, `message`},
		{bySystem, `system`},
		{byUser, `user human customer`},
		{byAssistant, `assistant agent bot model ai`},
		{inThought, `thinking reasoning thought thoughts`},
		{ofTool, `tool tools function functions`},
		{calling, `call calls use uses used invocation invocations request requests execution executions`},
		{returning, `result results outputs responses return returns`},
		{returning | filler, `output`},
		{returning | saying, `response`},
	} {
		for word := range strings.FieldsSeq(group.words) {
			out[word] = group.means
		}
	}
	return out
}()

// thoughtWords are the words of names of thinking, and ofThought those that may be next to them.
var (
	thoughtWords = set(`think thinking reasoning thought thoughts cot monologue rationale deliberation reflection`)
	ofThought    = set(`content text delta chunk part block process internal raw string str token tokens summary details detail chain of full partial hidden trace message steps step output plan model current`)
)

// isThinking reports whether the words of a name mean thinking.
func isThinking(name string) bool {
	whole, found := strings.ToLower(name), false
	words := naming.Parts(name)
	for w := range words {
		switch {
		case thoughtWords[w]:
			found = true
		case ofThought[w], len(words) > 1 && w == whole:
		default:
			return false
		}
	}
	return found
}

// asking are words for what a client asks.
var asking = set(`input query question prompt utterance`)

// isAsked reports whether a client asks with a string of that name.
func isAsked(n *event.Node) bool {
	if askedNames[n.Fold] {
		return true
	}
	asks := false
	for w := range naming.Parts(n.Name) {
		if whole := strings.ToLower(n.Name); w == whole && !asking[w] {
			continue
		}
		if asks = asks || asking[w]; !asking[w] && meanings[w] == 0 {
			return false
		}
	}
	return asks
}

// A compound has the meaning of a name of several words.
type compound struct {
	// speaker is the author that the name implies, or Nobody.
	speaker Speaker

	// channel is Thought, Call or Result if the name implies it, and otherwise Unmarked.
	channel Channel

	// text means that a string of that name is a text of the conversation.
	text bool
}

// compoundOf returns the meaning of a name. A name with a word that is not in meanings has none.
func compoundOf(name string) compound {
	whole := strings.ToLower(name)
	if isThinking(name) {
		return compound{text: true, channel: Thought}
	}
	words, all := 0, meaning(0)
	for w := range naming.Parts(name) {
		if w == whole {
			continue
		}
		m := meanings[w]
		if m == 0 {
			return compound{}
		}
		words++
		all |= m
	}
	switch {
	case words < 2:
		return compound{}
	case all&ofTool != 0 && all&returning != 0:
		return compound{channel: Result}
	case all&ofTool != 0 && all&calling != 0:
		return compound{channel: Call}
	case all&(ofTool|calling) != 0:
		return compound{}
	}
	c := compound{text: all&saying != 0}
	switch {
	case all&byAssistant != 0:
		c.speaker = Assistant
	case all&byUser != 0:
		c.speaker = User
	case all&bySystem != 0:
		c.speaker = System
	}
	c.text = c.text || c.speaker != Nobody && all&entire != 0
	if all&inThought != 0 {
		c.channel = Thought
	}
	return c
}

// inDirection returns c for a name in messages of that direction. The system that answers a user with a text is the
// model; any other is not an author.
func (c compound) inDirection(dir captures.Direction, isText bool) compound {
	switch {
	case c.speaker != System:
	case dir == captures.Down && isText:
		c.speaker = Assistant
	default:
		return compound{}
	}
	return c
}
