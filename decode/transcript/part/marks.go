package part

import "unwire/captures"

// Marks are the properties of the texts and calls of the server that mark a conversation.
type Marks struct {
	// Thoughts means that there is thinking, and Streamed that it arrives in pieces.
	Thoughts, Streamed bool

	// Calls means that there is a call of a tool, and Identified that one has an identifier and a name.
	Calls, Identified bool

	// Deltas means that the answer arrives in pieces, and Others that only another text does.
	Deltas, Others bool

	// Tokens means that the answer arrives in plain tokens, and Named that its name is typical of answers.
	Tokens, Named bool
}

// leastStreamed is the minimum number of events with pieces of a text that arrives in pieces.
const leastStreamed = 3

// Marks returns the marks in p. tier is that of the answer.
func (p *Parts) Marks(tier int) (m Marks) {
	for i := range p.Texts {
		if t := &p.Texts[i]; t.Dir == captures.Down {
			m.addText(t, p.IsAnswer(t, tier))
		}
	}
	m.Others = m.Others && !m.Deltas
	for i := range p.Calls {
		c := &p.Calls[i]
		m.Calls = m.Calls || c.Dir == captures.Down
		m.Identified = m.Identified || c.Dir == captures.Down && c.ID != "" && c.Name != ""
	}
	return m
}

// addText adds the marks of a text of the server.
func (m *Marks) addText(t *Text, isAnswer bool) {
	m.Thoughts = m.Thoughts || t.Thought
	m.Streamed = m.Streamed || t.Thought && t.Events >= leastStreamed
	m.Tokens = m.Tokens || isAnswer && t.Tokens
	m.Named = m.Named || isAnswer && t.IsNamed()
	m.Deltas = m.Deltas || isAnswer && (t.Events >= leastStreamed || t.Delta && t.Tier >= 2)
	m.Others = m.Others || !isAnswer && t.Pieces >= leastStreamed && !t.Thought
}
