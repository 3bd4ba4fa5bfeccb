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
	maxVariations = 20_000 // paths of a series
	maxExamples   = 3
	maxElements   = 8    // of a repeated field, in an example
	maxDistinct   = 1000 // values of a path that are told apart
)

// A Class says how a path's values vary over a series.
type Class string

const (
	Constant Class = "constant" // wherever it is, it is the same
	Volatile Class = "volatile" // ids, times and tokens differ, and nothing else
	Varies   Class = "varies"
)

// A Variation is what became of one path over a series of messages.
//
// Shape: Path has no indexes: the elements of a repeated field count together,
// in their order. In a series of exchanges it begins with the direction.
type Variation struct {
	Path    string `json:"path"`
	Class   Class  `json:"class"`
	Present int    `json:"present"` // messages that have it
	Of      int    `json:"of"`      // messages in all
	Values  int    `json:"values"`  // different ones, up to 1,000

	// Examples are of these values, in the order of the series: of a repeated field
	// a list of its first 8.
	Examples []any `json:"examples"`
}

// A series collects paths.
type series struct {
	*comparison
	of    int
	paths map[string]*track
	order []*track
}

// A track is what was seen of a path.
type track struct {
	path           string
	present        int
	last           int // the sample that it was last seen in, from 1
	exact, alike   uint64
	nth            uint64
	exacts, alikes map[uint64]bool
	example        []*node // of the current sample, the first of it
	examples       []any
}

func newSeries() *series {
	return &series{comparison: newComparison(Options{}), paths: map[string]*track{}}
}

// TreeSeries says which paths of messages of one type vary; choices are what somebody
// said of their fields.
//
// Limits: 20,000 paths; time is proportional to the trees.
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

// ExchangeSeries says which paths of exchanges of one method vary. Deltas are
// joined first, and heartbeats left out.
func ExchangeSeries(exchanges []*decode.Exchange) []Variation {
	s := newSeries()
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
			joined, _ := s.join(path, kept, nil)
			for _, it := range joined {
				s.walk(path, it.node)
			}
		}
		s.leaf("status", s.textNode("", number(ex.Status)))
		s.leaf("code", s.textNode("", ex.Code))
		if ex.Message != "" {
			s.leaf("message", s.textNode("", ex.Message))
		}
	}
	return s.finish()
}

func (s *series) next() { s.of++ }

// walk adds the values below n.
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

// leaf adds one value of the current sample.
func (s *series) leaf(path string, n *node) {
	t := s.paths[path]
	if t == nil {
		if len(s.order) == maxVariations {
			return
		}
		t = &track{path: path, exacts: map[uint64]bool{}, alikes: map[uint64]bool{}}
		s.paths[path] = t
		s.order = append(s.order, t)
	}
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

// close ends the sample that t was in.
func (t *track) close() {
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

// exampleOf is the value of a sample, a list where there are several.
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

// padded is a path whose text order is that of its numbers.
func padded(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == ' ' })
	for i, p := range parts {
		if p[0] >= '0' && p[0] <= '9' && len(p) < 10 {
			parts[i] = strings.Repeat("0", 10-len(p)) + p
		}
	}
	return strings.Join(parts, ".")
}
