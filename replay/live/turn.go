package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/live/values"
)

// A Turn describes when a client frame may be sent in a replay, and which identifiers in it the server
// issued.
type Turn struct {
	// After is the number of server frames before the client frame in the capture, not counting
	// heartbeats.
	After int `json:"after"`

	// Answers is the captured server frame that the client frame responds to, such as "down/4"; "" for
	// none.
	Answers string `json:"answers,omitempty"`

	// Live are the identifiers in the frame that the server issued. They are replaced by those of the
	// live server.
	Live []Binding `json:"live,omitempty"`

	// Beat means that the frame is a heartbeat: it is sent periodically, independently of the server.
	Beat bool `json:"heartbeat,omitempty"`

	// cause describes the server frame for which the client frame waits; nil for none.
	cause *target
}

// Turns returns the turn of each of the client's messages, in order.
func (l *Links) Turns() []Turn {
	if l.turns == nil {
		l.turns = l.findTurns()
	}
	return slices.Clone(l.turns)
}

// findTurns computes, for each of the client's messages, when a replay may send it and which identifiers in it the
// server issued.
func (l *Links) findTurns() []Turn {
	turns := make([]Turn, len(l.up))
	for i := range turns {
		t := &turns[i]
		if t.cause, t.After = l.cause(i); t.cause != nil {
			t.Answers = fmt.Sprintf("%s/%d", l.roles.in, t.cause.seq)
		}
		t.Live, t.Beat = l.bindings(i), l.up[i].heartbeat
		if l.up[i].frame.Err != nil {
			t.Live = nil
		}
	}
	l.agreeOnSpellings(turns)
	l.bindShortIDs(turns)
	l.findOrders(turns)
	bound := make([][]Binding, len(turns))
	for i := range turns {
		turns[i].Live = append(turns[i].Live, l.zeros(i)...)
		// shared, because digests are recorded in them
		bound[i] = turns[i].Live
	}
	l.findQuestions(bound)
	return turns
}

// Messages returns the number of messages in the server's captured response, without heartbeats.
func (l *Links) Messages() (n int) {
	for i := range l.down {
		if !l.down[i].heartbeat && l.down[i].shape.IsFrame() {
			n++
		}
	}
	return n
}

// listedBindings are the bindings of one client frame whose values are elements of one list of the server.
type listedBindings struct {
	// turn is the index of the client's frame.
	turn int
	// whole is the path of the message or list that contains the values, if it is equal to the server's;
	// otherwise "".
	whole string
	// bindings are the bindings in the order in which the client sends the values.
	bindings []*Binding
}

// findOrders determines which bindings in turns are values of lists that the client sorts.
func (l *Links) findOrders(turns []Turn) {
	type key struct{ path, from, part, how string }
	byKey := map[key][]*listedBindings{}
	for i := range turns {
		groups := map[key]map[int]*listedBindings{}
		add := func(b *Binding, whole string) {
			if !b.isListed() {
				return
			}
			at := key{values.WithoutIndexes(b.Path), values.WithoutIndexes(b.FromPath), values.WithoutIndexes(b.Part), b.How}
			if groups[at] == nil {
				groups[at] = map[int]*listedBindings{}
			}
			g := groups[at][b.source.down]
			if g == nil {
				g = &listedBindings{turn: i, whole: whole}
				groups[at][b.source.down] = g
				byKey[at] = append(byKey[at], g)
			}
			g.bindings = append(g.bindings, b)
		}
		for k := range turns[i].Live {
			b := &turns[i].Live[k]
			add(b, "")
			for _, in := range l.bindingsWithin(i, b) {
				add(in, b.Path)
			}
		}
	}

	wholes := map[int]map[string][]*Binding{}
	for _, groups := range byKey {
		o := l.orderOf(groups)
		if o == nil {
			continue
		}
		for _, g := range groups {
			for rank, b := range g.bindings {
				b.order, b.rank = o, rank
			}
			if wholes[g.turn] == nil {
				wholes[g.turn] = map[string][]*Binding{}
			}
			if g.whole != "" {
				wholes[g.turn][g.whole] = append(wholes[g.turn][g.whole], g.bindings...)
			}
		}
	}
	for i, ordered := range wholes {
		l.replaceWholes(i, &turns[i], ordered)
	}
}

// orderOf returns the order in which the client sends the values of lists; nil if it sends them by their
// places, or in no order.
func (l *Links) orderOf(groups []*listedBindings) *ordering {
	var lists []*sentList
	for _, g := range groups {
		l.sortAsSent(g.turn, g.bindings)
		s := &sentList{}
		for _, b := range g.bindings {
			s.sent = append(s.sent, b.place())
		}
		lists = append(lists, s)
	}
	if isByPlace(lists) {
		return nil
	}
	_, down := l.index()
	for i, g := range groups {
		b := g.bindings[0]
		lists[i].list = b.listOf(down.Listed(values.WithoutIndexes(b.FromPath), b.source.down))
	}
	return orderOf(lists)
}

// bindingsWithin returns bindings for the values inside the value of b, if b is the binding of a message
// or list of client frame i that the server issued as a whole. Their sources lack the numbers of frames.
func (l *Links) bindingsWithin(i int, b *Binding) (out []*Binding) {
	if b.token != "" || b.word != "" || b.ByHand || b.value == zero {
		return nil
	}
	leaves := l.up[i].leaves
	k := l.up[i].find(b.Path)
	if k < 0 || !leaves[k].IsMessage() || leaves[k].Inner > maxOrdered {
		return nil
	}
	down := l.down[b.source.down].leaves
	at := l.down[b.source.down].find(b.FromPath)
	if at < 0 || down[at].Inner != leaves[k].Inner {
		return nil
	}
	for in := 1; in <= leaves[k].Inner; in++ {
		v, from := &leaves[k+in], &down[at+in]
		if v.Object || v.IsMessage() || v.Value != from.Value {
			continue
		}
		out = append(out, &Binding{Path: v.Path, From: b.From, FromPath: from.Path, json: b.json, value: v.Value, source: target{down: b.source.down}})
	}
	return out
}

// replaceWholes replaces the bindings of whole messages and lists of client frame i, which ordered has by
// path, by bindings for the values in them. Those in ordered are used as they are.
func (l *Links) replaceWholes(i int, t *Turn, ordered map[string][]*Binding) {
	var list []Binding
	for k := range t.Live {
		b := &t.Live[k]
		known, ok := ordered[b.Path]
		if !ok {
			list = append(list, *b)
			continue
		}
		for _, in := range l.bindingsWithin(i, b) {
			if k := slices.IndexFunc(known, func(o *Binding) bool { return o.Path == in.Path }); k >= 0 {
				in = known[k]
			}
			in.source = *l.target(in.source.down, in.FromPath)
			list = append(list, *in)
		}
	}
	t.Live = list
}

// sortAsSent sorts bindings of client frame i by their positions in the frame.
func (l *Links) sortAsSent(i int, sent []*Binding) {
	type position struct{ leaf, offset int }
	positions, texts := make(map[*Binding]position, len(sent)), map[int]string{}
	for _, b := range sent {
		leaf := l.up[i].find(b.Path)
		if _, known := texts[leaf]; !known {
			texts[leaf] = l.up[i].leaves[leaf].Text()
		}
		positions[b] = position{leaf, strings.Index(texts[leaf], b.token)}
	}
	slices.SortStableFunc(sent, func(a, b *Binding) int {
		return cmp.Or(cmp.Compare(positions[a].leaf, positions[b].leaf), cmp.Compare(positions[a].offset, positions[b].offset))
	})
}
