package values

import (
	"cmp"
	"slices"
	"strings"
)

// A ShapeIndex finds the messages of a conversation that have matching shapes.
//
// Shapes with equal required values at the top level match if their inner values are alike. Other shapes match only if
// one of them has optional values; candidates for that are found by the names of these values.
type ShapeIndex struct {
	// byTop are the messages by the names of their required values at the top level.
	byTop map[string]*topShapes
	// byShape are all shapes, by their text.
	byShape map[string]*shapeMessages
	// byName are the shapes by the names of all their values at the top level, and then by those of the required ones.
	byName map[string]map[string][]*shapeMessages
	// byFirst are the shapes by the name of their first required value.
	byFirst map[string][]*shapeMessages
	// added is the number of messages that were added.
	added int
}

// shapeMessages are the messages of one shape.
type shapeMessages struct {
	// shape is the shape, and messages are the numbers of its messages in ascending order.
	shape    Shape
	messages []int
	// matching are the lists of the messages whose shapes match, when known messages had been added.
	matching [][]int
	known    int
}

// topShapes are the messages with the same required values at the top level.
type topShapes struct {
	// messages are the numbers of all messages in ascending order.
	messages []int
	// bySub are the messages by their inner values, as a text, and byName by the name of each of these.
	bySub  map[string]*shapeMessages
	byName map[string][]*shapeMessages
}

// joinNames returns a list of names as a text.
func joinNames(names []string) string { return strings.Join(names, "\x00") }

// key returns a text that differs for each shape.
func (s *Shape) key() string {
	return joinNames(s.top) + "\x01" + joinNames(s.maybe) + "\x01" + joinNames(s.sub)
}

// Add adds a message with this shape. Numbers must be added in ascending order.
func (x *ShapeIndex) Add(s Shape, message int) {
	if x.byTop == nil {
		x.byTop, x.byShape = map[string]*topShapes{}, map[string]*shapeMessages{}
		x.byName, x.byFirst = map[string]map[string][]*shapeMessages{}, map[string][]*shapeMessages{}
	}
	x.added++
	id, top := s.key(), joinNames(s.top)
	m := x.byShape[id]
	if m == nil {
		m = &shapeMessages{shape: s}
		x.byShape[id] = m
		for _, name := range slices.Concat(s.top, s.maybe) {
			if x.byName[name] == nil {
				x.byName[name] = map[string][]*shapeMessages{}
			}
			x.byName[name][top] = append(x.byName[name][top], m)
		}
		if len(s.top) > 0 {
			x.byFirst[s.top[0]] = append(x.byFirst[s.top[0]], m)
		}
	}
	m.messages = append(m.messages, message)

	t := x.byTop[top]
	if t == nil {
		t = &topShapes{bySub: map[string]*shapeMessages{}, byName: map[string][]*shapeMessages{}}
		x.byTop[top] = t
	}
	t.add(s, message)
}

// add adds a message with this shape.
func (t *topShapes) add(s Shape, message int) {
	t.messages = append(t.messages, message)
	m := t.bySub[joinNames(s.sub)]
	if m == nil {
		m = &shapeMessages{shape: s}
		t.bySub[joinNames(s.sub)] = m
		for _, name := range s.sub {
			t.byName[name] = append(t.byName[name], m)
		}
	}
	m.messages = append(m.messages, message)
}

// Count returns the number of messages up to the given one whose shapes match s.
func (x *ShapeIndex) Count(s Shape, message int) (n int) {
	for _, list := range x.matching(s) {
		k, _ := slices.BinarySearch(list, message+1)
		n += k
	}
	return n
}

// Matching returns the numbers of the messages whose shapes match s, in ascending order.
func (x *ShapeIndex) Matching(s Shape) []int {
	all := slices.Concat(x.matching(s)...)
	slices.Sort(all)
	return all
}

// matching returns the messages whose shapes match s, as lists without common elements.
func (x *ShapeIndex) matching(s Shape) (lists [][]int) {
	own := x.byShape[s.key()]
	if own != nil && own.known == x.added {
		return own.matching
	}
	if t := x.byTop[joinNames(s.top)]; t != nil {
		lists = t.matching(&s)
	}
	for _, m := range x.others(&s) {
		if m.shape.Matches(s) {
			lists = append(lists, m.messages)
		}
	}
	if own != nil {
		own.matching, own.known = lists, x.added
	}
	return lists
}

// others returns the shapes that may match s although their required values are not the same, without duplicates.
func (x *ShapeIndex) others(s *Shape) (list []*shapeMessages) {
	if len(s.top) == 0 {
		for _, name := range s.maybe {
			list = append(list, x.byFirst[name]...)
		}
		return list
	}
	// All of them have each of these names.
	tops := x.byName[s.top[0]]
	for _, name := range s.top[1:] {
		if other := x.byName[name]; len(other) < len(tops) {
			tops = other
		}
	}
	own := joinNames(s.top)
	for top, shapes := range tops {
		if top != own {
			list = append(list, shapes...)
		}
	}
	slices.SortFunc(list, func(a, b *shapeMessages) int { return cmp.Compare(a.messages[0], b.messages[0]) })
	return slices.Compact(list)
}

// matching returns the messages whose inner values are like those of s, as lists without common elements.
func (t *topShapes) matching(s *Shape) (lists [][]int) {
	if len(s.sub) == 0 {
		return [][]int{t.messages}
	}
	if m := t.bySub[""]; m != nil {
		lists = append(lists, m.messages)
	}
	seen := map[*shapeMessages]bool{}
	for _, name := range s.sub {
		for _, m := range t.byName[name] {
			if !seen[m] && s.isLike(&m.shape) {
				lists = append(lists, m.messages)
			}
			seen[m] = true
		}
	}
	return lists
}
