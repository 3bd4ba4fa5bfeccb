package part

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/tagged"
)

// takeWritten moves the calls that the model wrote into its texts to the calls, unless the server sent them as calls,
// too.
func (p *Parts) takeWritten() {
	mentioned := func(name string) bool {
		return slices.ContainsFunc(p.Texts, func(t Text) bool { return t.Dir == captures.Up && strings.Contains(t.Text, "<"+name+">") })
	}
	for i := range p.Texts {
		t := &p.Texts[i]
		if t.Dir != captures.Down || t.Thought || t.Speaker == keyed.User {
			continue
		}
		rest, calls := tagged.Cut(t.Text, mentioned)
		t.Text = rest
		for _, c := range calls {
			known := slices.ContainsFunc(p.Calls, func(o Call) bool {
				return o.Dir == t.Dir && o.Name == c.Name && compact(o.Arguments) == compact(c.Arguments) && o.Path != t.Path
			})
			if !known && len(p.Calls) < maxCalls {
				p.Calls = append(p.Calls, Call{Dir: t.Dir, Name: c.Name, Arguments: c.Arguments, Path: t.Path, Frames: t.Frames, First: t.First, Event: t.at[len(t.at)-1]})
			}
		}
	}
	slices.SortStableFunc(p.Calls, func(a, b Call) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Event, b.Event)) })
}
