package match

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"unwire/decode/wire"
)

// Limits of scoring, and description lengths (costs) in bits.
const (
	// maxDepth is the nesting depth beyond which messages are not examined.
	maxDepth = 100

	// maxOccurrences is the number of values of one field in one message that are examined. The others are
	// assumed to be similar.
	maxOccurrences = 64

	// maxScores is the maximum number of pairs of a message and a type that are compared in one sample. Further
	// messages are counted as unknown bytes.
	maxScores = 300_000

	// maxVetoes is the maximum number of reasons that are kept against one type.
	maxVetoes = 3

	// maxPaths is the maximum number of paths of unknown fields that are kept for one type.
	maxPaths = 8

	// costUnknown is the cost, in bits, of a field that the type does not declare.
	costUnknown = 18

	// costAgain is the cost of each further occurrence of a singular message, which parsers merge.
	costAgain = 8

	// costDefault is the cost of a default value, which proto3 writers omit.
	costDefault = 5

	// costNoName is the cost of an enum value that is not declared.
	costNoName = 12

	// costKeyTwice is the cost of a map entry with the key of an earlier one.
	costKeyTwice = 10

	// costEntryLacks is the cost of a map entry without key or value.
	costEntryLacks = 3
	// maxFieldNumber is the greatest field number that protobuf allows.
	maxFieldNumber = 1<<29 - 1
)

// A fieldGroup has all fields of a message with the same number.
type fieldGroup struct {
	// number is the field number.
	number int32
	// nodes are the indices of these fields in the tree.
	nodes []int32
	// bytes is the total size of these fields including their tags.
	bytes int64
	// unknown is the description length in bits if the type does not declare the number.
	unknown float64
}

// A messageScore is the result of comparing one message with one type.
type messageScore struct {
	// bits is the description length, in bits, of the values and of the lengths of lists.
	bits float64
	// slots are the slots of the type that are occupied by fields of the message. See messageType.slots.
	slots []int
	// size is the number of slots of the type; the members of a oneof share a slot.
	size int
	// known is the number of bytes in fields that the type declares.
	known int64
	// vetoes are reasons why the message cannot be of the type.
	vetoes []reason
	// unknown are the fields that the type does not declare.
	unknown []reason
}

// A reason is an observation about the field at a path, for or against a type.
type reason struct {
	// path is the path of field numbers, joined by dots.
	path string
	// text describes the observation in words.
	text string
}

// below returns the reason with the number of the enclosing field prepended to its path.
func (r reason) below(number int32) reason {
	if r.path == "" {
		r.path = strconv.Itoa(int(number))
	} else {
		r.path = strconv.Itoa(int(number)) + "." + r.path
	}
	return r
}

// veto records a reason why the message cannot be of the type. number is the field.
func (s *messageScore) veto(number int32, format string, args ...any) {
	if len(s.vetoes) < maxVetoes {
		s.vetoes = append(s.vetoes, reason{strconv.Itoa(int(number)), fmt.Sprintf(format, args...)})
	}
}

// A memoKey identifies the cached result of comparing a message with a type.
type memoKey struct {
	// ty is the type with which the message is compared.
	ty *messageType
	// node is the index of the message in the tree.
	node int32
}

// A scorer computes how well the messages of one tree fit types.
type scorer struct {
	// t is the parsed tree.
	t *wire.Tree

	// memo caches how well each nested message fits each type.
	memo map[memoKey]*messageScore

	// groups caches the fields of each nested message, grouped by number; the key is the index of the message in t.
	groups map[int32][]fieldGroup

	// texts caches the description length in bits of each payload as text; the key is the index of the field in t.
	texts map[int32]textCost

	// lists caches whether each payload is a sequence of varints; the key is the index of the field in t.
	lists map[int32]bool
}

// A textCost is the description length of a payload if it is text.
type textCost struct {
	// bits is the description length in bits.
	bits float64
	// ok is set if the payload is valid UTF-8.
	ok bool
}

// newScorer returns a scorer for the messages in a tree.
func newScorer(t *wire.Tree) *scorer {
	return &scorer{t: t, memo: map[memoKey]*messageScore{}, groups: map[int32][]fieldGroup{}, texts: map[int32]textCost{}, lists: map[int32]bool{}}
}

// costOfText returns the description length, in bits, of the payload of node c as text. ok is false if it is
// not UTF-8.
func (s *scorer) costOfText(c int32) (bits float64, ok bool) {
	v, done := s.texts[c]
	if !done {
		v.bits, v.ok = costText(s.t.Payload(c))
		s.texts[c] = v
	}
	return v.bits, v.ok
}

// isVarints reports whether the payload of node c is a sequence of varints.
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

// fieldsByNumber returns the fields of the message at a node, grouped by number.
func (s *scorer) fieldsByNumber(node int32) []fieldGroup {
	if g, ok := s.groups[node]; ok {
		return g
	}
	var list []fieldGroup
	at := map[int32]int{}
	for c := range s.t.Children(node) {
		n := &s.t.Nodes[c]
		// Malformed fields have the number 0.
		number := int32(0)
		if n.Type != wire.Garbage && n.Number <= maxFieldNumber {
			number = int32(n.Number)
		}
		i, ok := at[number]
		if !ok {
			i = len(list)
			at[number] = i
			list = append(list, fieldGroup{number: number})
		}
		g := &list[i]
		g.nodes = append(g.nodes, c)
		g.bytes += int64(n.End - n.Off)
		g.unknown += costTag + s.costRaw(c)
	}

	for i := range list {
		list[i].unknown += costUnknown
	}
	s.groups[node] = list
	return list
}

// scoreMessage compares the message at a node with the type ty. depth is the nesting so far.
func (s *scorer) scoreMessage(ty *messageType, node int32, depth int) *messageScore {
	key := memoKey{ty, node}
	if r := s.memo[key]; r != nil {
		return r
	}
	r := &messageScore{size: ty.slots}
	if depth > maxDepth || len(s.memo) >= maxScores {
		if depth > 0 {
			r.bits = s.costRaw(node)
		}
		return r
	}

	// A recursive type finds this entry, so that the recursion ends.
	s.memo[key] = r

	// The member that each oneof has had.
	oneofs := map[int]int32{}
	groups := s.fieldsByNumber(node)
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
		r.known += s.addField(r, f, g, depth)
		if f.oneof > 0 {
			// A writer never sets two members of a oneof.
			if other, ok := oneofs[f.oneof]; ok {
				r.veto(g.number, "field %d of the same oneof occurs, too", other)
				continue
			}
			oneofs[f.oneof] = g.number
			r.bits += f.choice
		}
		r.slots = append(r.slots, f.slot)
	}

	// A missing required field contradicts the type.
	for _, n := range ty.required {
		if !slices.ContainsFunc(groups, func(g fieldGroup) bool { return g.number == n }) {
			r.veto(n, "is required, but missing")
		}
	}

	// For a whole sample, the presence of fields is counted over all samples. See typeScore.sumUp.
	if depth > 0 {
		if ty.entry {
			r.bits += costEntryLacks * float64(ty.slots-len(r.slots))
		} else {
			r.bits += costSubset(len(r.slots), ty.slots)
		}
	}
	return r
}

// addField adds the description length of the fields with one number, given their declaration f. It
// returns the number of bytes that the declaration explains.
func (s *scorer) addField(r *messageScore, f *field, g *fieldGroup, depth int) (known int64) {
	// A singular field that occurs several times contradicts the definition, unless it is a message:
	// those merge.
	if f.list {
		r.bits += costCount(len(g.nodes))
	} else if len(g.nodes) > 1 {
		if f.child == nil {
			r.veto(g.number, "occurs %d times, but is declared as singular", len(g.nodes))
		}
		r.bits += costAgain * float64(len(g.nodes)-1)
	}

	looked, before := int64(0), r.bits
	var keys map[string]bool

	// The keys of a map's entries must differ.
	if f.child != nil && f.child.entry {
		keys = map[string]bool{}
	}

	// Each value: its wire type, then its content.
	for _, c := range g.nodes[:min(len(g.nodes), maxOccurrences)] {
		n := &s.t.Nodes[c]
		own := int64(n.End - n.Off)
		looked += own
		if n.Type != f.wire {
			if n.Type == wire.Len && f.packable {
				known += s.addPacked(r, f, g, c)
				continue
			}
			r.veto(g.number, "the wire type is %s, but the field is declared as %s", n.Type, f.kind)
			r.bits += costTag + s.costRaw(c)
			continue
		}
		if f.child == nil {
			bits, reason := s.costScalar(f, c)
			if reason != "" {
				r.veto(g.number, "%s", reason)
			}
			r.bits += bits
			known += own
			continue
		}
		if !s.t.IsMessage(c) {
			r.veto(g.number, "does not parse as a message, but is declared as %s", f.child.name)
			r.bits += s.costRaw(c)
			continue
		}
		below := s.scoreMessage(f.child, c, depth+1)
		r.bits += below.bits
		known += own - int64(len(s.t.Payload(c))) + below.known
		r.addBelow(below, g.number)
		if f.child.entry {
			if k := s.key(c); keys[k] {
				r.bits += costKeyTwice
			} else {
				keys[k] = true
			}
		}
	}

	// Extrapolate from the values that were read.
	if len(g.nodes) > maxOccurrences {
		scale := float64(g.bytes) / float64(looked)
		r.bits = before + scale*(r.bits-before)
		known = int64(scale * float64(known))
	}
	return known
}

// addBelow adds the reasons against a nested message, which is the value of the field with the given
// number, to the reasons against the outer message.
func (s *messageScore) addBelow(below *messageScore, number int32) {
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

// key returns the encoded key of a map entry, given the index of the entry's node.
func (s *scorer) key(entry int32) string {
	key := ""
	for c := range s.t.Children(entry) {
		if s.t.Nodes[c].Number == 1 {
			key = string(s.t.Payload(c))
		}
	}
	return key
}

// A typeScore is the result of comparing all messages with one type.
type typeScore struct {
	// ty is the type with which the samples are compared.
	ty *messageType
	// values is the description length of all values, in bits.
	values float64
	// subsets is the description length, in bits, of which fields are present in each sample.
	subsets float64
	// present is the number of messages that contain a field, for each slot of the type.
	present []int
	// samples is the number of messages that were added.
	samples int
	// known is the number of bytes in fields that the type declares.
	known int64
	// length is the description length, in bits, of all messages under the type. sumUp computes it.
	length float64
	// vetoes are the distinct reasons why the messages cannot be of the type.
	vetoes []string
	// unknown has the paths of fields that the type does not declare.
	unknown []string
}

// newTypeScore returns an empty score for a type.
func newTypeScore(ty *messageType) *typeScore {
	return &typeScore{ty: ty, present: make([]int, ty.slots)}
}

// addSample adds the result of comparing one message with the type.
func (w *typeScore) addSample(s *messageScore) {
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

// sumUp computes the total description length. Which fields are present is described for each message or for
// each field, whichever is shorter.
func (w *typeScore) sumUp() {
	// Field by field: how many samples have the field, and which of them.
	bySlot := 0.0
	for _, n := range w.present {
		bySlot += math.Log2(float64(w.samples+1)) + costChoose(n, w.samples)
	}
	w.length = w.values + min(w.subsets, bySlot)
}

// candidate converts the score to an element of a Result.
func (w *typeScore) candidate() Candidate {
	return Candidate{Message: w.ty.name, Bits: math.Round(10*w.length) / 10, Bytes: w.known, Unknown: notNil(w.unknown), Vetoes: notNil(w.vetoes)}
}

// notNil returns list, or an empty list that is encoded as [] in JSON.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
