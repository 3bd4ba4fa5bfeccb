package diff

import (
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/score/ident"
)

const defaultChanges = 10_000

// A comparison collects differences, and which volatile values faced which.
type comparison struct {
	o       Options
	seed    maphash.Seed
	found   []finding
	dropped int
	pairs   map[pair]*count
	ordered []*count // pairs as they were first met
}

// A finding is a change with the volatile values that explain all of it.
type finding struct {
	Change
	pairs   []pair
	ignored string // decided when it was found
}

type pair struct {
	class ident.Class
	a, b  string
}

type count struct {
	pair
	n int
}

func newComparison(o Options) *comparison {
	if o.MaxChanges <= 0 {
		o.MaxChanges = defaultChanges
	}
	return &comparison{o: o, seed: maphash.MakeSeed(), pairs: make(map[pair]*count)}
}

// nodes compares a and b, which are at path. Either may be nil.
func (c *comparison) nodes(path string, a, b *node) {
	switch {
	case a == nil && b == nil:
	case a == nil:
		c.add(finding{Change: Change{Path: path, Op: Add, New: b.value()}})
	case b == nil:
		c.add(finding{Change: Change{Path: path, Op: Remove, Old: a.value()}})
	case a.exact == b.exact:
		c.note(a)
	case a.kind != b.kind || a.wire != b.wire:
		c.modify(path, a, b, nil)
	case a.kind == object:
		c.members(path, a, b)
	case a.kind == list:
		c.elements(path, a.children, b.children, true)
	case a.kind == text:
		c.modify(path, a, b, c.facing(a.text, b.text))
	case a.kind == integer && ident.IsTime(a.number) && ident.IsTime(b.number):
		c.modify(path, a, b, []pair{{class: ident.Time}})
	case a.kind == blob && ident.IsBytes(a.bytes) && ident.IsBytes(b.bytes):
		c.modify(path, a, b, []pair{c.pair(ident.Bytes, string(a.bytes), string(b.bytes))})
	default:
		c.modify(path, a, b, nil)
	}
}

// members compares objects key by key; their children are sorted by key.
func (c *comparison) members(path string, a, b *node) {
	as, bs := a.children, b.children
	for len(as) > 0 || len(bs) > 0 {
		key := ""
		switch {
		case len(as) == 0, len(bs) > 0 && less(bs[0].key, as[0].key, a.wire == 0):
			key = bs[0].key
		default:
			key = as[0].key
		}
		i, j := run(as, key), run(bs, key)
		c.elements(join(path, key), as[:i], bs[:j], false)
		as, bs = as[i:], bs[j:]
	}
}

func less(a, b string, names bool) bool {
	if !names && len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

func run(nodes []*node, key string) int {
	i := 0
	for i < len(nodes) && nodes[i].key == key {
		i++
	}
	return i
}

// elements compares the values of one key.
func (c *comparison) elements(path string, as, bs []*node, indexed bool) {
	if !indexed && len(as) <= 1 && len(bs) <= 1 {
		var a, b *node
		if len(as) > 0 {
			a = as[0]
		}
		if len(bs) > 0 {
			b = bs[0]
		}
		c.nodes(path, a, b)
		return
	}
	at := func(i int) string { return path + "[" + strconv.Itoa(i) + "]" }
	mates, added := align(as, bs)
	for i, j := range mates {
		if j < 0 {
			c.nodes(at(i), as[i], nil)
		} else {
			c.nodes(at(i), as[i], bs[j])
		}
	}
	for _, j := range added {
		c.nodes(at(j), nil, bs[j])
	}
}

func (c *comparison) modify(path string, a, b *node, volatile []pair) {
	c.add(finding{Change: Change{Path: path, Op: Modify, Old: a.value(), New: b.value()}, pairs: volatile})
}

func (c *comparison) add(f finding) {
	if len(c.found) >= c.o.MaxChanges {
		c.dropped++
		return
	}
	c.found = append(c.found, f)
}

// note counts the volatile values within an equal subtree: they stand for
// themselves.
func (c *comparison) note(n *node) {
	if n.exact == n.alike {
		return
	}
	switch {
	case n.kind == text:
		c.facing(n.text, n.text)
	case n.kind == blob && ident.IsBytes(n.bytes):
		c.pair(ident.Bytes, string(n.bytes), string(n.bytes))
	}
	for _, child := range n.children {
		c.note(child)
	}
}

// facing returns the volatile values of a with those of b that stand in the
// same places, if the texts are the same otherwise, and counts them.
func (c *comparison) facing(a, b string) []pair {
	var as, bs []token
	if skeleton(a, &as) != skeleton(b, &bs) {
		return nil
	}
	pairs := make([]pair, 0, len(as))
	for i := range as {
		pairs = append(pairs, c.pair(as[i].class, as[i].value, bs[i].value))
	}
	return pairs
}

// pair counts that a stands where b stands.
func (c *comparison) pair(class ident.Class, a, b string) pair {
	p := pair{class, a, b}
	n := c.pairs[p]
	if n == nil {
		n = &count{pair: p}
		c.pairs[p] = n
		c.ordered = append(c.ordered, n)
	}
	n.n++
	return p
}

// finish decides which volatile values were renamed one to one, and marks the
// changes that this explains.
func (c *comparison) finish() []Change {
	renamed := c.renaming()
	changes := make([]Change, 0, len(c.found))
	for _, f := range c.found {
		f.Ignored = c.excuse(f, renamed)
		changes = append(changes, f.Change)
	}
	if c.dropped > 0 {
		changes = append(changes, Change{Op: Modify, New: fmt.Sprintf("%d more changes", c.dropped)})
	}
	return changes
}

// excuse is why f is no real difference, or "".
func (c *comparison) excuse(f finding, renamed map[pair]bool) string {
	switch {
	case f.ignored != "":
		return f.ignored
	case c.isIgnored(f.Path):
		return "path"
	case c.o.Volatile:
		return ""
	}
	if class := explain(f, renamed); class != "" {
		return "volatile " + string(class)
	}
	return ""
}

// renaming pairs values greedily, the most frequent pair first: a value of one
// side belongs to one value of the other.
func (c *comparison) renaming() map[pair]bool {
	slices.SortStableFunc(c.ordered, func(x, y *count) int { return y.n - x.n })
	type side struct {
		class ident.Class
		value string
	}
	taken := [2]map[side]bool{{}, {}}
	renamed := make(map[pair]bool)
	for _, n := range c.ordered {
		a, b := side{n.class, n.a}, side{n.class, n.b}
		if n.class != ident.Time && (taken[0][a] || taken[1][b]) {
			continue
		}
		taken[0][a], taken[1][b] = true, true
		renamed[n.pair] = true
	}
	return renamed
}

// explain returns the class of the first renamed value if renaming is all that
// happened, else "".
func explain(f finding, renamed map[pair]bool) ident.Class {
	class := ident.Class("")
	for _, p := range f.pairs {
		if p.class != ident.Time && !renamed[p] {
			return ""
		}
		if class == "" && (p.a != p.b || p.class == ident.Time) {
			class = p.class
		}
	}
	return class
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// isIgnored reports whether path, or what encloses it, is in Options.Ignore.
func (c *comparison) isIgnored(path string) bool {
	if len(c.o.Ignore) == 0 {
		return false
	}
	if strings.HasPrefix(path, "@") {
		_, path, _ = strings.Cut(path, " ")
	}
	path = indexes.ReplaceAllString(path, "")
	return slices.ContainsFunc(c.o.Ignore, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && p != "" && (rest == "" || rest[0] == '.')
	})
}

// join puts key behind path, which may be a frame.
func join(path, key string) string {
	switch {
	case path == "":
		return key
	case path[0] == '@' && !strings.Contains(path, " "):
		return path + " " + key
	}
	return path + "." + key
}
