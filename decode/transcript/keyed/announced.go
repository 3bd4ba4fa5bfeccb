package keyed

import (
	"unwire/captures"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/naming"
)

// An announcement has the marks of a text that follows in other events with the same key.
type announcement struct {
	// channel is the part of the conversation that the text belongs to.
	channel Channel

	// speaker is its author, or Nobody.
	speaker Speaker
}

// maxAnnounced is the maximum number of keys whose announcements are kept.
const maxAnnounced = 10_000

// announce handles the pieces of the current event from index from on: without pieces, the event may announce a text by
// its kind and a key; otherwise the pieces without marks get those that were announced for their keys.
func (f *finder) announce(from int) {
	if f.event.Dir != captures.Down {
		return
	}
	if from == len(f.out.List) {
		f.keepAnnouncement(f.event.Root, nil, 0)
		return
	}
	for i := from; i < len(f.out.List); i++ {
		p := &f.out.List[i]
		for k := len(p.Keys) - 1; k >= 0; k-- {
			a, ok := f.announced[p.Keys[k]]
			if !ok || p.Channel != Unmarked {
				continue
			}
			if p.Channel = a.channel; p.Speaker == Nobody {
				p.Speaker = a.speaker
			}
			break
		}
	}
}

// keepAnnouncement keeps the kinds in object n, and in objects inside it, for the innermost key in them. keys are those
// of the objects around n, and depth is its nesting.
func (f *finder) keepAnnouncement(n *event.Node, keys []Key, depth int) {
	if n.Kind != jsontree.Object || depth > maxAnnouncing {
		return
	}
	sc := scope{keys: keys}
	f.identify(n, &sc)
	if a, ok := announcementIn(n); ok && len(sc.keys) > 0 && len(f.announced) < maxAnnounced {
		f.announced[sc.keys[len(sc.keys)-1]] = a
	}
	for _, m := range n.Items {
		f.keepAnnouncement(m, sc.keys, depth+1)
	}
}

// maxAnnouncing is the maximum nesting of the object that announces a text.
const maxAnnouncing = 3

// announcementIn returns what the discriminators and roles of object n say about a text. ok is false if they say nothing.
func announcementIn(n *event.Node) (a announcement, ok bool) {
	a.speaker = speakerOf(n)
	for _, m := range n.Items {
		if m.Kind != jsontree.String || !isDiscriminator(m.Fold) || !naming.IsKind(m.Text) {
			continue
		}
		if t := typeOf(m.Text); t.channel == Thought || t.channel == Unmarked && t.text {
			a.channel, ok = t.channel, true
		}
	}
	return a, ok
}
