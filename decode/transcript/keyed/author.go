package keyed

import (
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/naming"
)

// isMessage reports whether an element of a list is a message: an object that names an author (role).
func isMessage(n *event.Node) bool {
	if n.Kind != jsontree.Object {
		return false
	}
	return speakerOf(n) != Nobody
}

// speakerOf returns the author that the members of object n name, such as by "role", or Nobody.
func speakerOf(n *event.Node) Speaker {
	for _, m := range n.Items {
		if !speakerMembers[m.Fold] {
			continue
		}
		word := m.Text
		if m.Kind == jsontree.Object {
			if word = m.String("role"); word == "" {
				word = m.String("type")
			}
		}
		if s := speakers[naming.Fold(word)]; s != Nobody {
			return s
		}
		if s := branded(word); s != Nobody {
			return s
		}
	}
	for _, m := range n.Items {
		if m.Kind == jsontree.Bool && (assistantFlags[m.Fold] || userFlags[m.Fold]) {
			if assistantFlags[m.Fold] == (m.Text == "true") {
				return Assistant
			}
			return User
		}
	}
	// LangChain has the speaker as the type of a message.
	switch t := naming.Fold(n.String("type")); t {
	case "human", "ai", "aimessage", "aimessagechunk", "humanmessage", "systemmessage", "toolmessage":
		return speakers[t]
	}
	return Nobody
}

// branded returns the author that one of the words of a role names next to others, such as the name of a product, or
// Nobody. Words for different authors contradict each other.
func branded(role string) Speaker {
	author := Nobody
	if !naming.IsTool(role) {
		return author
	}
	for w := range naming.Parts(strings.NewReplacer("/", ".", ":", ".").Replace(role)) {
		named := Nobody
		switch m := meanings[w]; {
		case m&byAssistant != 0:
			named = Assistant
		case m&byUser != 0:
			named = User
		}
		if named != Nobody && author != Nobody && author != named {
			return Nobody
		}
		author = max(author, named)
	}
	return author
}

// hasContent reports whether a message of a conversation, as a JSON object, has a member for its content.
func hasContent(n *event.Node) bool {
	for _, m := range n.Items {
		if textNames[m.Fold] || weakNames[m.Fold] || callNames[m.Fold] || compoundOf(m.Name).text {
			return true
		}
	}
	return false
}

// applyDelta updates the scope of member m of object n, which has a delta.
func (f *finder) applyDelta(n, m *event.Node, sc *scope) {
	switch {
	case m.Fold != "delta":
		// What stands next to a delta is the whole so far.
		sc.delta = false
	case m.Kind == jsontree.String:
		f.applyDescribed(n, sc)
	}
}

// applyDescribed updates the scope of a delta in object n by the one object next to the delta, which then describes the
// part of the conversation that the delta continues.
func (f *finder) applyDescribed(n *event.Node, sc *scope) {
	var described *event.Node
	for _, m := range n.Items {
		if m.Kind != jsontree.Object {
			continue
		}
		if described != nil {
			return
		}
		described = m
	}
	if described != nil {
		f.applyMarks(described, sc)
	}
}

// isStatusText reports whether member m of object n is the text of a status: it is next to a numeric code.
func isStatusText(n, m *event.Node) bool {
	if m.Kind != jsontree.String || m.Fold != "message" && m.Fold != "msg" {
		return false
	}
	code := n.Member("code")
	return code != nil && code.Kind == jsontree.Number
}
