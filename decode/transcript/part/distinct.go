package part

import (
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
)

// A voice is the author of texts in one direction. Texts of one voice may repeat each other.
type voice struct {
	// dir is the direction of the texts.
	dir captures.Direction

	// thought means that the texts are thinking, not an answer.
	thought bool

	// user means that the author of the texts is the user.
	user bool
}

// A moment is an event in which a voice sent a piece of one alternative answer (choice).
type moment struct {
	// voice is the author of the piece.
	voice

	// choice identifies the alternative answer to which the piece belongs; "" if there are no alternatives.
	choice string

	// event is the index of the event (one JSON message or text) that contains the piece.
	event int
}

// A merger collects texts and omits those that repeat others.
type merger struct {
	// list are the texts that were kept.
	list []Text

	// same has the indexes of texts in list by their content without surrounding white space.
	same map[string][]int

	// said has all texts so far by their author, one after the other.
	said map[voice]*strings.Builder

	// deltas has the events in which an author sent a piece that is declared a part of a longer text.
	deltas map[moment]bool

	// searched is the number of bytes that were searched for repetitions.
	searched int
}

// maxSearched is the maximum number of bytes that are searched for whole texts which repeat parts.
const maxSearched = 1 << 30

// distinct returns the texts without those that repeat earlier ones. If the server sent several alternative answers
// (choices, candidates), only the texts of the first one are returned.
func distinct(texts []Text) []Text {
	m := &merger{same: make(map[string][]int), said: make(map[voice]*strings.Builder), deltas: make(map[moment]bool)}
	firstChoice := ""
	for _, t := range texts {
		if t.choice != "" && firstChoice == "" {
			firstChoice = t.choice
		}
		if t.choice == "" || t.choice == firstChoice {
			m.add(t)
		}
	}
	return m.list
}

// voiceOf returns the voice of a text.
func voiceOf(t *Text) voice { return voice{t.Dir, t.Thought, t.Speaker == keyed.User} }

// add adds a text to the list unless it repeats others.
func (m *merger) add(t Text) {
	v := voiceOf(&t)
	beside := m.deltas[moment{v, t.choice, t.at[0]}]
	if !t.Delta && t.Pieces > 1 && beside {
		// Snapshots next to the parts of the same text.
		t.Text = t.last
	}
	trimmed := strings.TrimSpace(t.Text)
	for _, i := range m.same[trimmed] {
		if o := &m.list[i]; isRepeated(o, &t) {
			o.Tier = max(o.Tier, t.Tier)
			return
		}
	}
	if t.Dir == captures.Down && t.Pieces == 1 && m.said[v] != nil && isReference(trimmed) {
		return
	}
	if trimmed != "" && t.Dir == captures.Down && !t.Delta && m.isSaid(v, &t, trimmed, beside) {
		return
	}

	if i := m.begun(v, &t); i >= 0 {
		// The first of these snapshots was sent when the text was announced.
		t.First, t.Event = m.list[i].First, m.list[i].Event
		m.list[i].Text = ""
	}
	m.same[trimmed] = append(m.same[trimmed], len(m.list))
	m.list = append(m.list, t)
	if m.said[v] == nil {
		m.said[v] = new(strings.Builder)
	}
	m.said[v].WriteString(t.Text)
	if t.Delta {
		for _, event := range t.at {
			m.deltas[moment{v, t.choice, event}] = true
		}
	}
}

// begun returns the index of the text in the list that is the first snapshot of t, of the voice v, or -1.
func (m *merger) begun(v voice, t *Text) int {
	if t.Delta || t.Text != t.last || t.Dir != captures.Down {
		return -1
	}
	return slices.IndexFunc(m.list, func(o Text) bool {
		return voiceOf(&o) == v && o.Path == t.Path && o.Pieces == 1 && !o.Delta && o.Text != "" && len(o.Text) < len(t.Text) && (t.Pieces > 1 || len(o.Text) > shortText) && strings.HasPrefix(t.Text, o.Text)
	})
}

// isReference reports whether a text is the path or address of something.
func isReference(s string) bool {
	return strings.Count(s, "/") > 1 && !strings.ContainsAny(s, " \n\t") && utf8.RuneCountInString(s) == len(s)
}

// isRepeated reports whether t repeats o, which has the same content.
func isRepeated(o, t *Text) bool {
	switch {
	case o.Dir != t.Dir:
		// What a server sends back of the client's messages is no part of the answer.
		return t.Dir == captures.Down && (o.Speaker == t.Speaker || t.Speaker == keyed.Nobody) && len(t.Text) > shortText
	case t.Dir == captures.Up && o.Message != t.Message:
		return false
	case o.Thought != t.Thought:
		// Thinking that another member of the same events repeats as plain text.
		return o.Thought && o.Text == t.Text && slices.Equal(o.at, t.at)
	case o.Speaker != t.Speaker && o.Speaker != keyed.Nobody && t.Speaker != keyed.Nobody:
		return false
	case o.Path == t.Path && o.Delta && t.Delta && !slices.Equal(o.at, t.at):
		// Two blocks of the same words, unless each is one message.
		return max(o.Pieces, t.Pieces) == 1 && len(t.Text) > shortText
	}
	return o.Path != t.Path || len(t.Text) > shortText || t.Pieces == 1
}

// isSaid reports whether the voice v has sent the text before: in pieces, or as a part of a longer text. trimmed is
// the text without surrounding white space. beside means that pieces of a text are in the same event.
func (m *merger) isSaid(v voice, t *Text, trimmed string, beside bool) bool {
	b := m.said[v]
	if b == nil || len(trimmed) < 2 && t.Pieces > 1 {
		return false
	}
	elsewhere := slices.ContainsFunc(m.list, func(o Text) bool {
		if voiceOf(&o) != v {
			return false
		}
		if o.Path == t.Path {
			return o.Delta != t.Delta
		}
		return beside || o.at[len(o.at)-1] <= t.at[0]
	})
	if m.searched += b.Len(); !elsewhere || m.searched > maxSearched {
		return false
	}
	return strings.Contains(b.String(), trimmed)
}
