package part

import (
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
)

// A listed is the place at which the server lists calls, or results, that have no identifiers.
type listed struct {
	// channel says whether these are calls or results.
	channel keyed.Channel

	// where is the path of the pieces and their types, and keys are the identifiers around them.
	where, keys string
}

// lastSnapshots returns the pieces of calls and results without those that a later event repeats. If the events list
// all calls so far, or all of a step that an identifier names, each list begins with the previous one, and only the last
// list counts. Identifiers of calls or indexes distinguish them better, so only pieces without are compared.
func lastSnapshots(pieces []keyed.Piece) []keyed.Piece {
	return withoutRepeated(withoutRepeated(pieces, keysOf), func(*keyed.Piece) string { return "" })
}

// keysOf returns the keys around a piece.
func keysOf(p *keyed.Piece) string {
	out := ""
	for _, k := range p.Keys {
		out += k.Name + "=" + k.Value + " "
	}
	return out
}

// withoutRepeated is lastSnapshots for lists of pieces that have what keys returns in common.
func withoutRepeated(pieces []keyed.Piece, keys func(p *keyed.Piece) string) []keyed.Piece {
	lists := make(map[listed][]int)
	for i := range pieces {
		if p := &pieces[i]; p.Dir == captures.Down && p.ID == "" && indexesOf(p) == "" && (p.Name != "" || p.Channel == keyed.Result) {
			at := listed{p.Channel, p.Path + " " + p.Type, keys(p)}
			lists[at] = append(lists[at], i)
		}
	}
	dropped, several := make(map[int]bool), make(map[string]bool)
	repeated := make(map[listed][]int)
	for at, list := range lists {
		repeated[at] = grownFrom(pieces, list)
		if repeated[at] == nil && at.channel == keyed.Result && pieces[list[0]].Event != pieces[list[len(list)-1]].Event {
			// Other results come from other calls.
			several[at.keys] = true
		}
	}
	for at, list := range repeated {
		for _, i := range list {
			dropped[i] = !several[at.keys]
		}
	}
	var out []keyed.Piece
	for i := range pieces {
		if !dropped[i] {
			out = append(out, pieces[i])
		}
	}
	return out
}

// grownFrom returns those pieces of a list, which has indexes in pieces, that later events repeat, or nil if the events
// do not list all pieces so far. Each piece of the last event then has the place of the first that it repeats.
func grownFrom(pieces []keyed.Piece, list []int) []int {
	events := 1
	first := list[:1]
	before := 0
	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && pieces[list[end]].Event == pieces[list[start]].Event {
			end++
		}
		if start > 0 {
			events++
			if end-start < start-before {
				return nil
			}
			for i := range start - before {
				if !growsTo(&pieces[list[before+i]], &pieces[list[start+i]]) {
					return nil
				}
			}
		}
		for len(first) < end-start {
			first = append(first[:len(first):len(first)], list[start+len(first)])
		}
		before, start = start, end
	}
	if events < 2 {
		return nil
	}
	for i, at := range list[before:] {
		p, f := &pieces[at], &pieces[first[i]]
		p.Frame, p.Seq, p.Event = f.Frame, f.Seq, f.Event
	}
	return list[:before]
}

// growsTo reports whether piece b is the next snapshot of piece a.
func growsTo(a, b *keyed.Piece) bool {
	return a.Name == b.Name && (a.Object == b.Object && strings.HasPrefix(b.Text, a.Text) || a.Text == "")
}

// chooseSnapshots takes the last of the pieces of a text, each of which begins with the previous one, if the server
// also sent this last one as a whole elsewhere. Without that, pieces of a few letters may be either.
func chooseSnapshots(texts []Text) {
	whole := make(map[string]bool)
	for i := range texts {
		if t := &texts[i]; t.Dir == captures.Down && t.Pieces == 1 {
			whole[strings.TrimSpace(t.Text)] = true
		}
	}
	for i := range texts {
		if t := &texts[i]; t.grows && t.Dir == captures.Down && whole[strings.TrimSpace(t.last)] {
			t.Text = t.last
		}
	}
}
