package keyed

import (
	"unwire/captures"
	"unwire/decode/transcript/naming"
)

// plainText adds an event that is only a text. Services send tokens of an answer as the data of such events.
func (f *finder) plainText(sc scope) {
	token := tokenEvents[naming.Fold(f.event.Name)]
	if f.structured && !f.event.Bare && !f.event.Coded && !token && (!sc.known() || sc.whole) {
		return
	}
	if f.event.Dir == captures.Up || f.event.Name != "" && !f.event.Coded && !sc.known() && !token {
		return
	}
	if token || f.event.Coded {
		sc.tier = 1
	}
	f.addText(f.event.Root.Text, sc)
}

// markSigned marks the text of the last code as thinking if the current event is its signature.
func (f *finder) markSigned() {
	last := len(f.out.List) - 1
	if last < 0 || !f.out.List[last].Coded || f.event.Root.String("signature") == "" {
		return
	}
	kind := f.out.List[last].Type
	for i := range f.out.List {
		if p := &f.out.List[i]; p.Coded && p.Type == kind {
			p.Channel = Thought
		}
	}
}

// tokenEvents are the names of events whose data is a part of the answer.
var tokenEvents = set(`output token data text chunk delta content completion answer`)
