package diff

import (
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/shape"
)

const (
	// maxPaired bounds the calls of one method, of a side, that are paired by
	// similarity.
	maxPaired = 1000

	sketchSize   = 128  // hashes kept of an exchange
	maxWords     = 200  // of a text, that count apart
	inOrderFloor = 0.02 // what calls of one method have in common at least
	strayFloor   = 0.5  // calls out of order less similar are no pair
)

// A pairing finds which exchanges of two captures are the same call made again:
// of one name, in order, and as similar as can be in sum.
//
// Limits: memory is bounded per exchange. Of more than 1,000 calls of one name
// on a side, the nth is paired with the nth.
type pairing struct {
	c     *comparison
	sides [2]map[string][]sketch
	names []string
}

// A sketch is what is kept of an exchange: the smallest hashes of its values
// with their paths.
type sketch struct {
	id     int64
	nth    int
	hashes []uint64
}

// An exchangePair is an exchange of each capture, by its number; 0 where only the other
// capture has it. nth counts the calls of its name in A, or in B of what A has not.
type exchangePair struct {
	name string
	nth  int
	a, b int64
}

// newPairing returns an empty Pairing.
func newPairing() *pairing {
	return &pairing{c: newComparison(Options{}), sides: [2]map[string][]sketch{{}, {}}}
}

// addA adds an exchange of capture A, in the capture's order; name is its call.
func (p *pairing) addA(name string, ex *decode.Exchange) { p.addExchange(0, name, ex) }

// addB adds an exchange of capture B.
func (p *pairing) addB(name string, ex *decode.Exchange) { p.addExchange(1, name, ex) }

func (p *pairing) addExchange(side int, name string, ex *decode.Exchange) {
	if p.sides[0][name] == nil && p.sides[1][name] == nil {
		p.names = append(p.names, name)
	}
	list := p.sides[side][name]
	p.sides[side][name] = append(list, sketch{ex.ID, len(list), p.sketch(ex)})
}

func (p *pairing) sketch(ex *decode.Exchange) []uint64 {
	var hashes []uint64
	add := func(h uint64) {
		hashes = append(hashes, h)
		if len(hashes) >= 8*sketchSize {
			hashes = smallest(hashes)
		}
	}
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		var s shape.Shape
		addShapes(&s, ex, dir)
		for _, it := range p.c.items(&s, ex, dir) {
			p.leaves(p.c.sum(dir.String()), it.node, add)
		}
	}
	return smallest(hashes)
}

// leaves adds a hash of each value below n with its path, and of the words of texts.
func (p *pairing) leaves(path uint64, n *node, add func(uint64)) {
	if n.kind != object && n.kind != list {
		add(p.c.mix(path, n.alike))
		rest := n.text
		for words := 0; words < maxWords && rest != "" && n.kind == text; words++ {
			word := ""
			word, rest, _ = strings.Cut(rest, " ")
			add(p.c.mix(path, p.c.sum(word)))
		}
		return
	}
	for _, child := range n.children {
		p.leaves(p.c.mix(path, p.c.sum(child.key)), child, add)
	}
}

func smallest(hashes []uint64) []uint64 {
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	return slices.Clip(hashes[:min(len(hashes), sketchSize)])
}

// common estimates the share of values that two exchanges have in common.
func (s sketch) common(o sketch) float64 {
	all, both := 0, 0
	a, b := s.hashes, o.hashes
	for (len(a) > 0 || len(b) > 0) && all < sketchSize {
		all++
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			b = b[1:]
		default:
			both++
			a, b = a[1:], b[1:]
		}
	}
	if all == 0 {
		return 1
	}
	return float64(both) / float64(all)
}

// pairs returns the pairs and what has none: by name as they were added, then
// in the order of A, and what only B has behind.
func (p *pairing) pairs() []exchangePair {
	var list []exchangePair
	for _, name := range p.names {
		as, bs := p.sides[0][name], p.sides[1][name]
		mates := pairSketches(as, bs)
		used := map[int]bool{}
		for i, a := range as {
			pair := exchangePair{name: name, nth: a.nth, a: a.id}
			if j := mates[i]; j >= 0 {
				pair.b = bs[j].id
				used[j] = true
			}
			list = append(list, pair)
		}
		for j, b := range bs {
			if !used[j] {
				list = append(list, exchangePair{name: name, nth: b.nth, b: b.id})
			}
		}
	}
	return list
}

func pairSketches(as, bs []sketch) []int {
	mates := make([]int, len(as))
	used := make([]bool, len(bs))
	for i := range mates {
		mates[i] = -1
	}
	pair := func(i, j int) { mates[i], used[j] = j, true }
	n, m := len(as), len(bs)
	if n > maxPaired || m > maxPaired {
		for i := range min(n, m) {
			pair(i, i)
		}
		return mates
	}
	like := make([][]float64, n)
	best := make([][]float64, n+1)
	best[n] = make([]float64, m+1)
	for i := n - 1; i >= 0; i-- {
		like[i], best[i] = make([]float64, m), make([]float64, m+1)
		for j := m - 1; j >= 0; j-- {
			like[i][j] = as[i].common(bs[j])
			best[i][j] = max(best[i+1][j], best[i][j+1], inOrderFloor+like[i][j]+best[i+1][j+1])
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch best[i][j] {
		case inOrderFloor + like[i][j] + best[i+1][j+1]:
			pair(i, j)
			i++
			j++
		case best[i+1][j]:
			i++
		default:
			j++
		}
	}
	for i := range as {
		stray := -1
		for j := range bs {
			if mates[i] < 0 && !used[j] && like[i][j] >= strayFloor && (stray < 0 || like[i][j] > like[i][stray]) {
				stray = j
			}
		}
		if stray >= 0 {
			pair(i, stray)
		}
	}
	return mates
}
