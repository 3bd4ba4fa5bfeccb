package keyed

import (
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
)

// isAside reports whether the texts in object n do not belong to the conversation: a special token, which ends a text,
// a source, a file, or a message about the state of the server.
func isAside(n *event.Node) bool {
	if n.Is("special") || isSource(n) || isMedia(n) {
		return true
	}
	for _, m := range n.Items {
		if m.Kind != jsontree.Object || !strings.HasSuffix(m.Fold, "data") && !strings.HasSuffix(m.Fold, "info") {
			continue
		}
		// This object describes the text next to it, such as how it is streamed.
		for _, d := range m.Items {
			if d.Kind == jsontree.String && isDiscriminator(d.Fold) && typeOf(d.Text).channel == ignored {
				return true
			}
		}
	}
	return false
}

// isSource reports whether an object describes a source (citation) of an answer, with a title and an address.
func isSource(n *event.Node) bool {
	return n.Member("url") != nil && n.Member("title") != nil
}

// isMedia reports whether an object contains sound, an image or a film.
func isMedia(n *event.Node) bool {
	for _, name := range [...]string{"mimetype", "mediatype", "contenttype"} {
		switch kind, _, _ := strings.Cut(n.String(name), "/"); kind {
		case "audio", "image", "video":
			return true
		}
	}
	return false
}

// hasEnded reports whether object n says that the text in it has ended: by the reason, or by a state.
func hasEnded(n *event.Node) bool {
	for _, m := range n.Items {
		if m.Kind == jsontree.Bool && m.Text == "true" && endFlags[m.Fold] {
			return true
		}
		if m.Kind != jsontree.String || m.Text == "" {
			continue
		}
		if finishNames[m.Fold] && m.Text != "null" && !strings.Contains(strings.ToLower(m.Text), "not") || (m.Fold == "state" || m.Fold == "status") && typeOf(m.Text).whole {
			return true
		}
	}
	return false
}

// endFlags are names of flags that say that a text has ended.
var endFlags = set(`done finished isfinished final isfinal completed complete iscompleted isend last islast iscompletion`)
