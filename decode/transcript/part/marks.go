package part

import (
	"unwire/captures"
	"unwire/decode/transcript/naming"
)

// marks are the properties of the texts and calls of the server that mark a conversation.
type marks struct {
	// thoughts means that there is thinking, and streamed that it arrives in pieces.
	thoughts, streamed bool

	// calls means that there is a call of a tool, and identified that one has an identifier and a name.
	calls, identified bool

	// deltas means that the answer arrives in pieces, and others that only another text does.
	deltas, others bool

	// tokens means that the answer arrives in plain tokens, and named that its name is typical of answers.
	tokens, named bool
}

// leastStreamed is the minimum number of events with pieces of a text that arrives in pieces.
const leastStreamed = 3

// marks returns the marks in p. tier is that of the answer.
func (p *Parts) marks(tier int) (m marks) {
	for i := range p.Texts {
		if t := &p.Texts[i]; t.Dir == captures.Down {
			m.addText(t, p.IsAnswer(t, tier))
		}
	}
	m.others = m.others && !m.deltas
	for i := range p.Calls {
		c := &p.Calls[i]
		m.calls = m.calls || c.Dir == captures.Down
		m.identified = m.identified || c.Dir == captures.Down && c.ID != "" && c.Name != ""
	}
	return m
}

// addText adds the marks of a text of the server.
func (m *marks) addText(t *Text, isAnswer bool) {
	m.thoughts = m.thoughts || t.Thought
	m.streamed = m.streamed || t.Thought && t.Events >= leastStreamed
	m.tokens = m.tokens || isAnswer && t.Tokens
	m.named = m.named || isAnswer && t.IsNamed()
	m.deltas = m.deltas || isAnswer && (t.Events >= leastStreamed || t.Delta && t.Tier >= 2)
	m.others = m.others || !isAnswer && t.Pieces >= leastStreamed && !t.Thought
}

// IsConversation reports whether names and roles in the messages mark a conversation: the server sends a text, thinking
// or a call under such a name, and something else is typical of a conversation with a model, too.
func (p *Parts) IsConversation() bool {
	_, tier := p.Answer()
	m := p.marks(tier)
	// A text in deltas that is not marked contradicts marks of whole texts. A text under a name such as "value" needs
	// counts of tokens and a role.
	counted := p.Usage[naming.Input] != nil || p.Usage[naming.Output] != nil
	if tier < 1 && !m.thoughts && !m.calls && !(tier == 0 && counted && p.Messages > 0) || m.others && tier >= 0 {
		return false
	}

	// What the client sent counts as much as the answer, and names of counts of tokens are rare elsewhere.
	signs := 0
	for _, sign := range [...]struct {
		seen   bool
		weight int
	}{
		{p.Messages > 0 || p.Spoken(), 2},
		{counted, 2},
		{m.thoughts, 1},
		{m.calls, 1},
		{m.streamed, 1},
		{m.identified, 1},
		{m.deltas, 1},
		{p.Model, 1},
		{p.Asked, 1},
		{p.Finished, 1},
		{p.ModelStopped, 1},
		{tier >= 2, 1},
		{tier >= 3, 1},
		{m.tokens, 2},
		{m.named, 1},
	} {
		if sign.seen {
			signs += sign.weight
		}
	}
	return signs >= leastSigns
}

// leastSigns is the minimum total weight of the signs of a conversation.
const leastSigns = 3
