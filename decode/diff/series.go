package diff

import (
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	kinds "unwire/decode/kind"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

const (
	// maxVariations is the maximum number of paths in a series. Further paths are ignored.
	maxVariations = 20_000

	// maxExamples is the number of examples per path.
	maxExamples = 3

	// maxElements is the maximum number of elements of a repeated field in an example.
	maxElements = 8

	// maxDistinct is the maximum number of different values that are counted for each path.
	maxDistinct = 1000
)

// A Class describes how the values of a path vary in a series.
type Class string

const (
	// Constant: the value is the same wherever the path exists.
	Constant Class = "constant"

	// Volatile: only ids, times and tokens differ.
	Volatile Class = "volatile"

	// Varies: other differences.
	Varies Class = "varies"
)

// A Variation describes how the values at one path vary over a series of messages.
type Variation struct {
	// Path is the path of the values, without indexes, because the elements of a repeated field count together. In
	// a series of exchanges it begins with the direction.
	Path string `json:"path"`

	// Class is Constant, Volatile or Varies.
	Class Class `json:"class"`

	// Present is the number of messages that have the path.
	Present int `json:"present"`

	// Of is the number of messages in the series.
	Of int `json:"of"`

	// Values is the number of different values, up to 1,000.
	Values int `json:"values"`

	// Examples are up to three values in the order of the series. For a repeated field, an example is a list of
	// its first 8 elements.
	Examples []any `json:"examples"`
}

// A series collects the values at each path over several messages, in order to find the paths whose values vary.
type series struct {
	// comparison computes the hashes of values.
	*comparison

	// of is the number of messages added so far, including the current one.
	of int

	// paths has the values at each path, by the path without list indexes.
	paths map[string]*pathValues

	// order has the elements of paths in order of first occurrence.
	order []*pathValues
}

// A pathValues collects the values at one path.
type pathValues struct {
	// path is the path of the values, without indexes.
	path string

	// present is the number of messages that have the path.
	present int

	// last is the number, from 1, of the last message that has the path.
	last int

	// exact is a hash of all values at the path in the current message.
	exact uint64

	// alike is a hash like exact, in which values that change with every call, such as ids and times, are replaced
	// by their class.
	alike uint64

	// nth is the number of values at the path in the current message so far. It is mixed into the hashes, so that
	// they depend on the order.
	nth uint64

	// exacts and alikes are the sets of these hashes over all messages.
	exacts, alikes map[uint64]bool

	// example are the first values in the current message, at most maxElements.
	example []*node

	// examples are values from several messages, at most maxExamples.
	examples []any
}

// newSeries returns a series without messages.
func newSeries() *series {
	return &series{comparison: newComparison(Options{}), paths: map[string]*pathValues{}}
}

// TreeSeries determines which paths vary in messages of one type. choices are the types that users chose for
// their fields.
//
// Limits: 20,000 paths. The time is proportional to the size of the trees.
func TreeSeries(trees []*wire.Tree, choices []kinds.Choice) []Variation {
	var sh shape.Shape
	for _, t := range trees {
		sh.Add(t)
	}
	sh.Choose(choices)
	s := newSeries()
	for _, t := range trees {
		s.next()
		s.walk("", s.fromTree(&sh, t))
	}
	return s.finish()
}

// ExchangeSeries determines which paths vary in exchanges of one method. Deltas are joined first, and heartbeats
// are ignored.
func ExchangeSeries(exchanges []*decode.Exchange) []Variation {
	s := newSeries()
	// Kinds of paths are determined from all exchanges.
	var shapes [2]shape.Shape
	dirs := []captures.Direction{captures.Up, captures.Down}
	for k, dir := range dirs {
		for _, ex := range exchanges {
			addShapes(&shapes[k], ex, dir)
		}
	}
	for _, ex := range exchanges {
		s.next()
		for k, dir := range dirs {
			path := "@" + dir.String()
			items := s.items(&shapes[k], ex, dir)
			kept := items[:0]
			for _, it := range items {
				if !isEmpty(it.node) {
					kept = append(kept, it)
				}
			}
			joined, _ := s.joinDeltas(path, kept, nil)
			for _, it := range joined {
				s.walk(path, it.node)
			}
		}

		// The result of the call counts as paths, too.
		s.leaf("status", s.textNode("", number(ex.Status)))
		s.leaf("code", s.textNode("", ex.Code))
		if ex.Message != "" {
			s.leaf("message", s.textNode("", ex.Message))
		}
	}
	return s.finish()
}

// next starts the next message of the series.
func (s *series) next() { s.of++ }

// walk adds all values below the node n, which has the given path.
func (s *series) walk(path string, n *node) {
	if n.kind != object && n.kind != list || len(n.children) == 0 {
		if path != "" {
			s.leaf(path, n)
		}
		return
	}
	for _, child := range n.children {
		if n.kind == list {
			s.walk(path, child)
		} else {
			s.walk(join(path, child.key), child)
		}
	}
}

// leaf adds n, a scalar value of the current message, to the values at path.
func (s *series) leaf(path string, n *node) {
	t := s.paths[path]
	if t == nil {
		if len(s.order) == maxVariations {
			return
		}
		t = &pathValues{path: path, exacts: map[uint64]bool{}, alikes: map[uint64]bool{}}
		s.paths[path] = t
		s.order = append(s.order, t)
	}
	// The first value of the path in this sample.
	if t.last != s.of {
		t.close()
		t.last = s.of
		t.present++
		t.exact, t.alike, t.nth = 0, 0, 0
	}
	if len(t.example) < maxElements {
		t.example = append(t.example, n)
	}
	t.nth++
	t.exact += s.mix(n.exact, t.nth)
	t.alike += s.mix(n.alike, t.nth)
}

// close finishes the values of one message: it adds their hashes to the sets and keeps an example.
func (t *pathValues) close() {
	defer func() { t.example = t.example[:0] }()
	if t.last == 0 || len(t.exacts) >= maxDistinct {
		return
	}
	if !t.exacts[t.exact] {
		t.exacts[t.exact] = true
		if len(t.examples) < maxExamples {
			t.examples = append(t.examples, exampleOf(t.example))
		}
	}
	t.alikes[t.alike] = true
}

// exampleOf returns the value of a single node, or a list of the values of several.
func exampleOf(nodes []*node) any {
	if len(nodes) == 1 {
		return nodes[0].value()
	}
	list := make([]any, len(nodes))
	for i, n := range nodes {
		list[i] = n.value()
	}
	return list
}

// finish returns the variation of each path, sorted by path.
func (s *series) finish() []Variation {
	list := make([]Variation, 0, len(s.order))
	for _, t := range s.order {
		t.close()
		v := Variation{Path: t.path, Class: Varies, Present: t.present, Of: s.of, Values: len(t.exacts), Examples: t.examples}
		switch {
		case len(t.exacts) == 1:
			v.Class = Constant
		case len(t.alikes) == 1:
			v.Class = Volatile
		}
		list = append(list, v)
	}
	slices.SortStableFunc(list, func(a, b Variation) int { return strings.Compare(padded(a.Path), padded(b.Path)) })
	return list
}

// padded returns path with numbers padded by zeros, so that sorting as text sorts by number.
func padded(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == ' ' })
	for i, p := range parts {
		if p[0] >= '0' && p[0] <= '9' && len(p) < 10 {
			parts[i] = strings.Repeat("0", 10-len(p)) + p
		}
	}
	return strings.Join(parts, ".")
}
