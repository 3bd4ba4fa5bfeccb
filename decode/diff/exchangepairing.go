package diff

import (
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/shape"
)

const (
	// maxPaired is the maximum number of calls of one method and side that are paired by similarity.
	maxPaired = 1000

	// sketchSize is the maximum number of hashes that an exchange's sketch keeps.
	sketchSize = 128

	// maxWords is the maximum number of words of a text that enter a sketch.
	maxWords = 200

	// inOrderFloor is added to the similarity of calls of one method, so that even dissimilar calls are paired
	// in order.
	inOrderFloor = 0.02

	// strayFloor is the minimum similarity of a pair of calls out of order.
	strayFloor = 0.5
)

// A pairing finds, in two captures, the exchanges that are repetitions of the same call. It pairs calls
// of the same name in order, such that the sum of similarities is maximal.
//
// Limits: memory per exchange is constant. With more than 1,000 calls of one name on a side, the nth
// call is paired with the nth.
type pairing struct {
	// c computes the hashes that similarity is estimated with.
	c *comparison

	// sides are the sketches of A and B by the name of the call.
	sides [2]map[string][]sketch

	// names are the names of calls in order of first occurrence.
	names []string
}

// A sketch is the bottom-k sketch of an exchange: the smallest hashes of its values with their paths. Two
// sketches allow to estimate the Jaccard similarity of the exchanges. Source: Broder, "On the resemblance and
// containment of documents", 1997.
type sketch struct {
	// id is the number of the exchange (one recorded call) in its capture.
	id int64

	// nth is the exchange's position, from 0, among the calls of the same name in its capture.
	nth int

	// hashes are hashes of the exchange's content, in ascending order, if computed is true.
	hashes   []uint64
	computed bool
}

// An exchangePair has the numbers of two exchanges (recorded calls) that are compared, one from each capture.
type exchangePair struct {
	// name is the name of the call, such as the RPC method.
	name string

	// nth is the position of the call, from 0, among the calls of that name: in capture A, or in capture B if A
	// does not have the call.
	nth int

	// a is the number of the exchange (one recorded call) in capture A, the first of the two compared; 0 if A lacks
	// it.
	a int64

	// b is the number of the exchange in capture B; 0 if B lacks it.
	b int64
}

// newPairing returns a pairing without exchanges.
func newPairing() *pairing {
	return &pairing{c: newComparison(Options{}), sides: [2]map[string][]sketch{{}, {}}}
}

// addA adds an exchange of capture A, in the order of the capture.
func (p *pairing) addA(name string, ex *decode.Exchange) { p.addExchange(0, name, ex) }

// addB adds an exchange of capture B, in the order of the capture.
func (p *pairing) addB(name string, ex *decode.Exchange) { p.addExchange(1, name, ex) }

// addExchange adds the sketch (a small set of hashes) of an exchange to one side of the pairing. The sketch of the first
// call of a name is computed by complete, because it is not needed if there is one such call on each side.
func (p *pairing) addExchange(side int, name string, ex *decode.Exchange) {
	if p.sides[0][name] == nil && p.sides[1][name] == nil {
		p.names = append(p.names, name)
	}
	list := p.sides[side][name]
	s := sketch{id: ex.ID, nth: len(list)}
	if len(list) > 0 {
		s.hashes, s.computed = p.sketch(ex), true
	}
	p.sides[side][name] = append(list, s)
}

// complete computes the sketches of one side that addExchange did not compute and that pairs needs. exchange returns the
// exchange with an ID.
func (p *pairing) complete(side int, exchange func(id int64) (*decode.Exchange, error)) error {
	for _, name := range p.names {
		list, other := p.sides[side][name], p.sides[1-side][name]
		if len(list) == 0 || len(other) == 0 || len(list)+len(other) == 2 || list[0].computed {
			continue
		}
		ex, err := exchange(list[0].id)
		if err != nil {
			return err
		}
		list[0].hashes, list[0].computed = p.sketch(ex), true
	}
	return nil
}

// sketch returns the sketchSize smallest hashes of the values of an exchange, from which its similarity to others
// is estimated.
func (p *pairing) sketch(ex *decode.Exchange) []uint64 {
	var hashes []uint64
	add := func(h uint64) {
		hashes = append(hashes, h)
		// Keep the memory bounded.
		if len(hashes) >= 8*sketchSize {
			hashes = smallest(hashes)
		}
	}
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		var s shape.Shape
		addShapes(&s, ex, dir)
		for _, it := range p.c.items(&s, ex, dir) {
			p.hashLeaves(p.c.hashString(dir.String()), it.node, add)
		}
	}
	return smallest(hashes)
}

// hashLeaves calls add with a hash of each value below n combined with its path, and with hashes of the words of
// texts, so that an edited text still resembles the original. path is the hash of n's path.
func (p *pairing) hashLeaves(path uint64, n *node, add func(uint64)) {
	if n.kind != object && n.kind != list {
		add(p.c.mix(path, n.alike))
		rest := n.text
		for words := 0; words < maxWords && rest != "" && n.kind == text; words++ {
			word := ""
			word, rest, _ = strings.Cut(rest, " ")
			add(p.c.mix(path, p.c.hashString(word)))
		}
		return
	}
	for _, child := range n.children {
		p.hashLeaves(p.c.mix(path, p.c.hashKey(child.key)), child, add)
	}
}

// smallest returns the sketchSize smallest of the hashes in ascending order, without duplicates. It sorts its
// argument.
func smallest(hashes []uint64) []uint64 {
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	return slices.Clip(hashes[:min(len(hashes), sketchSize)])
}

// jaccard estimates the Jaccard similarity of two exchanges: the share of their values that both have, from 0 to 1.
func (s sketch) jaccard(o sketch) float64 {
	all, both := 0, 0
	a, b := s.hashes, o.hashes
	for (len(a) > 0 || len(b) > 0) && all < sketchSize {
		// Only the smallest hashes of the union are a fair sample.
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

// pairs returns all pairs and all unpaired calls. They are sorted by name in order of first occurrence, then by the
// order of A; calls that only B has follow.
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

// pairSketches aligns the calls of one name in two captures. It returns, for each element of as, the index of its
// partner in bs, or -1.
func pairSketches(as, bs []sketch) []int {
	mates := make([]int, len(as))
	used := make([]bool, len(bs))
	for i := range mates {
		mates[i] = -1
	}
	pair := func(i, j int) { mates[i], used[j] = j, true }
	n, m := len(as), len(bs)

	// The tables below need n*m numbers, so very long captures are paired by position.
	if n > maxPaired || m > maxPaired {
		for i := range min(n, m) {
			pair(i, i)
		}
		return mates
	}

	// Dynamic programming as in alignInOrder.
	like := make([][]float64, n)
	best := make([][]float64, n+1)
	best[n] = make([]float64, m+1)
	for i := n - 1; i >= 0; i-- {
		like[i], best[i] = make([]float64, m), make([]float64, m+1)
		for j := m - 1; j >= 0; j-- {
			like[i][j] = as[i].jaccard(bs[j])
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

	// Calls that are out of order need more similarity.
	for i := range as {
		// Each remaining call takes the most similar unused one.
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
