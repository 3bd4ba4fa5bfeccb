package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"unwire/decode/fieldpath"
)

const (
	evaluated  = 500 // messages
	mostEdits  = 8
	aimedShare = 0.98
)

// A val is a field that keeps its identity through edits.
type val struct {
	id, number int
	v          any // int, string, or nil for a message
	kids       []*val
	parent     *val
	fixed      bool // edited, or within what was added
}

// An edition makes messages and edits them.
type edition struct {
	r      *rand.Rand
	ids    int
	shapes map[string]int
	want   map[string]bool // "op id"
	byID   [2]map[int]*val
}

func (e *edition) id() int { e.ids++; return e.ids }

// Kinds of fields of the evaluation's messages.
const (
	intField = iota
	wordField
	sentenceField
	uuidField
	subField
	intList
	wordList
	subList // of messages, some with a key
	keyedList
	kindsOfFields
)

func (e *edition) message(path string, depth int) []*val {
	var kids []*val
	for n := range 2 + e.r.IntN(5) {
		p := path + "." + strconv.Itoa(n+1)
		kind, ok := e.shapes[p]
		if !ok {
			kind = e.r.IntN(kindsOfFields)
			if depth == 0 && kind >= subField {
				kind = e.r.IntN(subField)
			}
			e.shapes[p] = kind
		}
		if e.r.IntN(10) == 0 {
			continue
		}
		times := 1
		if kind == intList || kind == wordList || kind == subList || kind == keyedList {
			times = 2 + e.r.IntN(9)
		}
		for range times {
			kids = append(kids, e.field(n+1, p, kind, depth))
		}
	}
	if len(kids) == 0 {
		kids = append(kids, e.field(9, path, intField, depth))
	}
	return kids
}

func (e *edition) field(number int, path string, kind, depth int) *val {
	v := &val{id: e.id(), number: number}
	switch kind {
	case intField:
		v.v = e.r.IntN(1000)
	case intList:
		v.v = e.r.IntN(1_000_000)
	case wordField:
		v.v = words[e.r.IntN(len(words))]
	case wordList:
		v.v = words[e.r.IntN(len(words))] + strconv.Itoa(e.r.IntN(1000))
	case sentenceField:
		v.v = sentence(e.r.IntN(1 << 30))
	case uuidField:
		v.v = e.uuid()
	case keyedList:
		v.kids = append([]*val{{id: e.id(), number: 14, v: "key" + strconv.Itoa(e.r.IntN(1<<30)), fixed: true}}, e.message(path, depth-1)...)
	default:
		v.kids = e.message(path, depth-1)
	}
	for _, k := range v.kids {
		k.parent = v
	}
	return v
}

func (e *edition) uuid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", e.r.Uint32(), e.r.IntN(1<<16), e.r.IntN(1<<12), e.r.IntN(1<<12), e.r.Uint64()>>16)
}

func (v *val) clone(parent *val) *val {
	c := *v
	c.parent = parent
	c.kids = nil
	for _, k := range v.kids {
		c.kids = append(c.kids, k.clone(&c))
	}
	return &c
}

func (v *val) each(do func(*val)) {
	for _, k := range v.kids {
		do(k)
		k.each(do)
	}
}

func (v *val) msg() msg {
	var m msg
	for _, k := range v.kids {
		if k.v != nil {
			m = append(m, k.number, k.v)
		} else {
			m = append(m, k.number, k.msg())
		}
	}
	return m
}

func (v *val) siblings(number int) (list []*val) {
	for _, k := range v.kids {
		if k.number == number {
			list = append(list, k)
		}
	}
	return list
}

// path is v's path in its tree, with the indexes that a comparison with the
// other tree has.
func (e *edition) path(v *val, other map[int]*val) fieldpath.Path {
	if v.parent == nil {
		return nil
	}
	step := fieldpath.Field(uint64(v.number))
	same := v.parent.siblings(v.number)
	many := len(same) > 1
	if o := other[v.parent.id]; o != nil && len(o.siblings(v.number)) > 1 {
		many = true
	}
	if many {
		step.Index = slices.Index(same, v)
	}
	return append(e.path(v.parent, other), step)
}

// edit does one random thing to root.
func (e *edition) edit(root *val) {
	var all []*val
	root.each(func(v *val) {
		if !v.fixed && v.parent != nil {
			all = append(all, v)
		}
	})
	if len(all) == 0 {
		return
	}
	v := all[e.r.IntN(len(all))]
	if isUUID(v) {
		return // these are renamed, not edited
	}
	same := v.parent.siblings(v.number)
	fix := func(v *val) { v.fixed = true; v.each(func(k *val) { k.fixed = true }) }
	busy := slices.ContainsFunc(same, func(s *val) bool { return s.fixed })
	at := slices.Index(v.parent.kids, v)
	switch kind := e.r.IntN(6); {
	case kind <= 1 && v.v != nil: // change
		switch x := v.v.(type) {
		case int:
			v.v = x + 1 + e.r.IntN(500)
		case string:
			v.v = x + " " + words[e.r.IntN(len(words))]
		}
		v.fixed = true
		e.want[fmt.Sprintf("%s %d", Modify, v.id)] = true
	case kind == 2 && len(same) > 2: // another element before it
		c := v.clone(v.parent)
		c.id = e.id()
		refresh(e, c)
		v.parent.kids = slices.Insert(v.parent.kids, at, c)
		fix(c)
		e.want[fmt.Sprintf("%s %d", Add, c.id)] = true
	case kind == 3 && !v.hasFixed() && (len(same) > 2 || len(same) == 1 && len(v.parent.kids) > 1):
		v.parent.kids = slices.Delete(v.parent.kids, at, at+1)
		e.want[fmt.Sprintf("%s %d", Remove, v.id)] = true
		for _, s := range same {
			s.fixed = true // what stands beside it would be as good
		}
	case kind == 4 && len(same) >= 4 && !busy: // to a place at least two away
		i := slices.Index(same, v)
		j := e.r.IntN(len(same))
		if i-j < 2 && j-i < 2 {
			return
		}
		target := same[j]
		v.parent.kids = slices.Delete(v.parent.kids, at, at+1)
		to := slices.Index(v.parent.kids, target)
		if j > i {
			to++
		}
		v.parent.kids = slices.Insert(v.parent.kids, to, v)
		e.want[fmt.Sprintf("%s %d", Move, v.id)] = true
		for _, s := range same {
			s.fixed = true
		}
	case kind == 5: // a new field
		c := &val{id: e.id(), number: 15 + e.ids%1000, v: sentence(e.r.IntN(1 << 30)), parent: v.parent, fixed: true}
		v.parent.kids = append(v.parent.kids, c)
		e.want[fmt.Sprintf("%s %d", Add, c.id)] = true
	}
}

func (v *val) hasFixed() bool {
	found := false
	v.each(func(k *val) { found = found || k.fixed && k.number != 14 })
	return found
}

func isUUID(v *val) bool {
	s, ok := v.v.(string)
	return ok && len(s) == 36 && s[8] == '-'
}

// refresh gives a copy other values.
func refresh(e *edition, v *val) {
	switch x := v.v.(type) {
	case int:
		v.v = x + 1 + e.r.IntN(1_000_000)
	case string:
		if isUUID(v) {
			v.v = e.uuid()
		} else {
			v.v = x + strconv.Itoa(e.r.IntN(1<<20))
		}
	}
	for _, k := range v.kids {
		k.id = e.id()
		refresh(e, k)
	}
}

// TestEvaluation compares random messages with edited ones, all their UUIDs
// renamed: what is reported against what was done.
func TestEvaluation(t *testing.T) {
	hits, reported, done, perfect := 0, 0, 0, 0
	missed, wrong := map[Op]int{}, map[Op]int{}
	shown := 0
	for seed := range uint64(evaluated) {
		e := &edition{r: rand.New(rand.NewPCG(seed, 11)), shapes: map[string]int{}, want: map[string]bool{}}
		a := &val{id: e.id()}
		a.kids = e.message("", 2)
		for _, k := range a.kids {
			k.parent = a
		}
		b := a.clone(nil)
		for range 1 + e.r.IntN(mostEdits) {
			e.edit(b)
		}
		names := map[any]string{}
		b.each(func(v *val) {
			if isUUID(v) {
				if names[v.v] == "" {
					names[v.v] = e.uuid()
				}
				v.v = names[v.v]
			}
		})
		e.byID = [2]map[int]*val{{}, {}}
		for i, root := range []*val{a, b} {
			e.byID[i][root.id] = root
			root.each(func(v *val) { e.byID[i][v.id] = v })
		}
		want := map[string]bool{}
		for w := range e.want {
			var op Op
			var id int
			if _, err := fmt.Sscan(w, &op, &id); err != nil {
				t.Fatal(err)
			}
			side := 0
			if op == Add {
				side = 1
			}
			v := e.byID[side][id]
			if v == nil || side == 0 && op != Remove && e.byID[1][id] == nil {
				continue // what held it is gone again
			}
			want[string(op)+" "+e.path(v, e.byID[1-side]).String()] = true
		}
		got := map[string]bool{}
		for _, c := range compareTrees(a.msg().tree(), b.msg().tree(), Options{}) {
			if c.Ignored == "" {
				got[string(c.Op)+" "+c.Path] = true
			}
		}
		ok := true
		for w := range want {
			done++
			if got[w] {
				hits++
			} else {
				ok = false
				op, _, _ := strings.Cut(w, " ")
				missed[Op(op)]++
			}
		}
		for g := range got {
			reported++
			if !want[g] {
				ok = false
				op, _, _ := strings.Cut(g, " ")
				wrong[Op(op)]++
			}
		}
		if ok {
			perfect++
		} else if shown++; shown <= 6 && testing.Verbose() {
			t.Logf("seed %d: missed %v, false %v", seed, missing(want, got), missing(got, want))
		}
	}
	precision, recall := float64(hits)/float64(reported), float64(hits)/float64(done)
	t.Logf("%d messages, %d edits: precision %.4f, recall %.4f, %.3f of messages perfect; missed %v, false %v",
		evaluated, done, precision, recall, float64(perfect)/evaluated, missed, wrong)
	if precision < aimedShare || recall < aimedShare {
		t.Errorf("precision %.4f and recall %.4f are to be at least %.2f", precision, recall, aimedShare)
	}
}

func missing(list, other map[string]bool) (left []string) {
	for s := range list {
		if !other[s] {
			left = append(left, s)
		}
	}
	return left
}
