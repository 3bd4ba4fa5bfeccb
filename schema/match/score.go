package match

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"unwire/decode/wire"
)

const (
	maxDepth = 100

	// occurrences of a field in one message that are looked at; the others are taken to be like them
	maxLooked = 64

	// messages in a sample, times types, that are looked into; others are priced as bytes
	maxScores = 300_000

	// reasons kept for one type
	maxVetoes = 3

	// unknown fields kept for one type
	maxPaths = 8

	// Prices in bits.
	// that a type lacks a field
	costUnknown = 18

	// a message that is declared singular, in two parts
	costAgain = 8

	// a default value where none is written
	costDefault = 5

	// an enum number that has no name
	costNoName = 12

	// an entry of a map that replaces another
	costKeyTwice = 10

	// an entry without key or value
	costEntryLacks = 3
	maxFieldNumber = 1<<29 - 1
)

// A group is the fields of one number in a message.
type group struct {
	number  int32
	nodes   []int32
	bytes   int64   // of all of them, tags included
	unknown float64 // bits where the number is not known
}

// A score is what a message costs as a type.
type score struct {
	bits    float64 // values, and how often each field occurs
	slots   []int   // that are present
	size    int     // of all slots
	known   int64   // bytes of fields that the type has
	vetoes  []reason
	unknown []reason
}

// A reason is something about a field at a path.
type reason struct {
	path string
	text string
}

func (r reason) below(number int32) reason {
	if r.path == "" {
		r.path = strconv.Itoa(int(number))
	} else {
		r.path = strconv.Itoa(int(number)) + "." + r.path
	}
	return r
}

func (s *score) veto(number int32, format string, args ...any) {
	if len(s.vetoes) < maxVetoes {
		s.vetoes = append(s.vetoes, reason{strconv.Itoa(int(number)), fmt.Sprintf(format, args...)})
	}
}

type memoKey struct {
	ty   *typ
	node int32
}

// A scorer scores the messages of one tree.
type scorer struct {
	t      *wire.Tree
	memo   map[memoKey]*score
	groups map[int32][]group
	texts  map[int32]text
	lists  map[int32]bool
}

// A text is the price of a payload as text.
type text struct {
	bits float64
	ok   bool // it is UTF-8
}

func newScorer(t *wire.Tree) *scorer {
	return &scorer{t: t, memo: map[memoKey]*score{}, groups: map[int32][]group{}, texts: map[int32]text{}, lists: map[int32]bool{}}
}

// text prices a node's payload as text, once.
func (s *scorer) text(c int32) (bits float64, ok bool) {
	v, done := s.texts[c]
	if !done {
		v.bits, v.ok = costText(s.t.Payload(c))
		s.texts[c] = v
	}
	return v.bits, v.ok
}

// isVarints reports whether a node's payload is a list of varints.
func (s *scorer) isVarints(c int32) bool {
	ok, done := s.lists[c]
	if done {
		return ok
	}
	p := s.t.Payload(c)
	ok = true
	for ok && len(p) > 0 {
		_, n := wire.ConsumeVarint(p)
		ok = n > 0
		p = p[max(n, 0):]
	}
	s.lists[c] = ok
	return ok
}

// grouped returns the fields of a node by number.
func (s *scorer) grouped(node int32) []group {
	if g, ok := s.groups[node]; ok {
		return g
	}
	var list []group
	at := map[int32]int{}
	for c := range s.t.Children(node) {
		n := &s.t.Nodes[c]
		number := int32(0) // of what is malformed
		if n.Type != wire.Garbage && n.Number <= maxFieldNumber {
			number = int32(n.Number)
		}
		i, ok := at[number]
		if !ok {
			i = len(list)
			at[number] = i
			list = append(list, group{number: number})
		}
		g := &list[i]
		g.nodes = append(g.nodes, c)
		g.bytes += int64(n.End - n.Off)
		g.unknown += costTag + s.raw(c)
	}
	for i := range list {
		list[i].unknown += costUnknown
	}
	s.groups[node] = list
	return list
}

// message scores a node as a type.
func (s *scorer) message(ty *typ, node int32, depth int) *score {
	key := memoKey{ty, node}
	if r := s.memo[key]; r != nil {
		return r
	}
	r := &score{size: ty.slots}
	if depth > maxDepth || len(s.memo) >= maxScores {
		if depth > 0 {
			r.bits = s.raw(node)
		}
		return r
	}
	s.memo[key] = r
	oneofs := map[int]int32{}
	groups := s.grouped(node)
	for i := range groups {
		g := &groups[i]
		f := ty.get(g.number)
		switch {
		case g.number == 0:
			r.bits += g.unknown
			r.veto(0, "malformed")
			continue
		case f == nil:
			r.bits += g.unknown
			if len(r.unknown) < maxPaths {
				r.unknown = append(r.unknown, reason{path: strconv.Itoa(int(g.number))})
			}
			continue
		}
		r.known += s.field(r, f, g, depth)
		if f.oneof > 0 {
			if other, ok := oneofs[f.oneof]; ok {
				r.veto(g.number, "together with %d of the same oneof", other)
				continue
			}
			oneofs[f.oneof] = g.number
			r.bits += f.choice
		}
		r.slots = append(r.slots, f.slot)
	}
	for _, n := range ty.required {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.number == n }) {
			r.veto(n, "is required, and missing")
		}
	}
	if depth > 0 { // of the root it is counted over all samples
		if ty.entry {
			r.bits += costEntryLacks * float64(ty.slots-len(r.slots))
		} else {
			r.bits += costSubset(len(r.slots), ty.slots)
		}
	}
	return r
}

// field adds the price of a group of fields as what is declared, and returns
// the bytes that are explained by it.
func (s *scorer) field(r *score, f *field, g *group, depth int) (known int64) {
	if f.list {
		r.bits += costCount(len(g.nodes))
	} else if len(g.nodes) > 1 {
		if f.below == nil {
			r.veto(g.number, "%d times, declared singular", len(g.nodes))
		}
		r.bits += costAgain * float64(len(g.nodes)-1)
	}
	looked, before := int64(0), r.bits
	var keys map[string]bool
	if f.below != nil && f.below.entry {
		keys = map[string]bool{}
	}
	for _, c := range g.nodes[:min(len(g.nodes), maxLooked)] {
		n := &s.t.Nodes[c]
		own := int64(n.End - n.Off)
		looked += own
		if n.Type != f.wire {
			if n.Type == wire.Len && f.packable {
				known += s.packed(r, f, g, c)
				continue
			}
			r.veto(g.number, "wire type %s, declared %s", n.Type, f.kind)
			r.bits += costTag + s.raw(c)
			continue
		}
		if f.below == nil {
			bits, reason := s.scalar(f, c)
			if reason != "" {
				r.veto(g.number, "%s", reason)
			}
			r.bits += bits
			known += own
			continue
		}
		if !s.t.IsMessage(c) {
			r.veto(g.number, "no message, declared %s", f.below.name)
			r.bits += s.raw(c)
			continue
		}
		below := s.message(f.below, c, depth+1)
		r.bits += below.bits
		known += own - int64(len(s.t.Payload(c))) + below.known
		r.addBelow(below, g.number)
		if f.below.entry {
			if k := s.key(c); keys[k] {
				r.bits += costKeyTwice
			} else {
				keys[k] = true
			}
		}
	}
	if len(g.nodes) > maxLooked {
		scale := float64(g.bytes) / float64(looked)
		r.bits = before + scale*(r.bits-before)
		known = int64(scale * float64(known))
	}
	return known
}

// addBelow adds what was found below a field.
func (s *score) addBelow(below *score, number int32) {
	for _, v := range below.vetoes {
		if len(s.vetoes) < maxVetoes {
			s.vetoes = append(s.vetoes, v.below(number))
		}
	}
	for _, u := range below.unknown {
		if len(s.unknown) < maxPaths {
			s.unknown = append(s.unknown, u.below(number))
		}
	}
}

// key is the encoded key of a map entry.
func (s *scorer) key(entry int32) string {
	key := ""
	for c := range s.t.Children(entry) {
		if s.t.Nodes[c].Number == 1 {
			key = string(s.t.Payload(c))
		}
	}
	return key
}

// A row collects the scores of all samples as one type.
type row struct {
	ty      *typ
	values  float64
	subsets float64
	present []int // by slot
	samples int
	known   int64
	length  float64 // of all, once settled
	vetoes  []string
	unknown []string
}

func newRow(ty *typ) *row { return &row{ty: ty, present: make([]int, ty.slots)} }

func (w *row) addSample(s *score) {
	w.samples++
	w.values += s.bits
	w.known += s.known
	w.subsets += costSubset(len(s.slots), s.size)
	for _, slot := range s.slots {
		w.present[slot]++
	}
	for _, v := range s.vetoes {
		if text := v.path + ": " + v.text; len(w.vetoes) < maxVetoes && !slices.Contains(w.vetoes, text) {
			w.vetoes = append(w.vetoes, text)
		}
	}
	for _, u := range s.unknown {
		if len(w.unknown) < maxPaths && !slices.Contains(w.unknown, u.path) {
			w.unknown = append(w.unknown, u.path)
		}
	}
}

// sumUp adds up what the samples cost. Which fields are present is told sample by sample, or field
// by field, whichever is shorter.
func (w *row) sumUp() {
	bySlot := 0.0
	for _, n := range w.present {
		bySlot += math.Log2(float64(w.samples+1)) + costChoose(n, w.samples)
	}
	w.length = w.values + min(w.subsets, bySlot)
}

func (w *row) candidate() Candidate {
	return Candidate{Message: w.ty.name, Bits: math.Round(10*w.length) / 10, Bytes: w.known, Unknown: notNil(w.unknown), Vetoes: notNil(w.vetoes)}
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
