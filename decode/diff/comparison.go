package diff

import (
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
)

// defaultChanges is the default of Options.MaxChanges.
const defaultChanges = 10_000

// A comparison collects the differences between A and B. It also counts which volatile value (an id or a time, for
// example) of A corresponds to which value of B.
type comparison struct {
	// o are the options, with defaults filled in.
	o Options

	// seed is random and makes the hashes of texts and bytes unpredictable, so that hostile input cannot cause
	// collisions.
	seed maphash.Seed

	// salt are random odd numbers, derived from seed, that make the mixing of two hashes unpredictable.
	salt [3]uint64

	// keys caches the decimal text of field numbers.
	keys map[uint64]string

	// lastKey is the last argument of hashKey, if hasLast is true, and lastHash is its hash.
	lastKey  string
	lastHash uint64
	hasLast  bool

	// truncations is the number of truncated fields that enclose the current one.
	truncations int

	// found are the differences found so far, at most Options.MaxChanges.
	found []finding

	// dropped is the number of differences that were not recorded because the limit MaxChanges was reached.
	dropped int

	// pairs has the number of times that each pair of volatile values occurred at the same position of A and B.
	pairs map[pair]*pairCount

	// ordered has the values of the map pairs in order of first occurrence.
	ordered []*pairCount
}

// A finding is a difference between A and B, with the volatile values that explain it.
type finding struct {
	// Change is the difference, whose Ignored is set at the end.
	Change

	// pairs are the volatile values of A with their counterparts in B, if A and B differ only in these; otherwise
	// nil.
	pairs []pair

	// ignored is the reason to ignore the change, such as "map order", if that is independent of volatile values;
	// otherwise "".
	ignored string
}

// A pair is a volatile value a (an id or a time, for example) of A and the value b of B at the same position.
type pair struct {
	// class is the kind of both values, such as "uuid".
	class ident.Class

	// a is the value in A, the first of the two compared inputs.
	a string

	// b is the value at the same position in B, the second input.
	b string
}

// A pairCount is the number of times that a pair of values occurs.
type pairCount struct {
	// pair has the two volatile values (for example ids), one from each of the compared inputs.
	pair

	// n is the number of positions at which the first input has the one value and the second input the other.
	n int
}

// newComparison returns a comparison without results.
func newComparison(o Options) *comparison {
	if o.MaxChanges <= 0 {
		o.MaxChanges = defaultChanges
	}
	c := &comparison{o: o, seed: maphash.MakeSeed(), keys: make(map[uint64]string), pairs: make(map[pair]*pairCount)}
	for i := range c.salt {
		// Odd numbers lose no bits in a multiplication.
		c.salt[i] = maphash.String(c.seed, strconv.Itoa(i)) | 1
	}
	return c
}

// A pathPair is the position of a compared value: its path in A, and that of the corresponding value in B.
type pathPair struct {
	// a is the path of the value in A, the first of the two compared inputs.
	a string

	// b is the path of the corresponding value in B, the second input.
	b string
}

// at returns the pathPair with the same path in A and B.
func at(path string) pathPair { return pathPair{path, path} }

// join returns the position of a member: both paths with a key appended.
func (p pathPair) join(key string) pathPair {
	a := join(p.a, key)
	if p.a == p.b {
		return pathPair{a, a}
	}
	return pathPair{a, join(p.b, key)}
}

// element returns the position of list elements: both paths with an index appended.
func (p pathPair) element(i, j int) pathPair {
	a := p.a + "[" + strconv.Itoa(i) + "]"
	if p.a == p.b && i == j {
		return pathPair{a, a}
	}
	return pathPair{a, p.b + "[" + strconv.Itoa(j) + "]"}
}

// compareNodes compares the values a and b at position p and records the differences. Either may be nil, if only
// one side has a value.
func (c *comparison) compareNodes(p pathPair, a, b *node) {
	switch {
	case a == nil && b == nil:
	case a == nil:
		c.addFinding(finding{Change: Change{Path: p.b, Op: Add, New: b.value(), NewBytes: b.raw()}})
	case b == nil:
		c.addFinding(finding{Change: Change{Path: p.a, Op: Remove, Old: a.value(), OldBytes: a.raw()}})
	// Equal hashes mean equal content.
	case a.exact == b.exact:
		c.countVolatile(a)
	// Values of different kinds have no common structure.
	case a.kind != b.kind || a.wire != b.wire:
		c.addChange(p, a, b, nil)
	case a.kind == object:
		c.compareMembers(p, a, b)
	case a.kind == list:
		c.compareElements(p, a.children, b.children, true)
	case a.kind == text:
		c.addChange(p, a, b, c.pairVolatile(a.text, b.text))
	case a.kind == integer && ident.IsTime(a.number) && ident.IsTime(b.number):
		c.addChange(p, a, b, []pair{{class: ident.Time}})
	case a.isNumberID() && b.isNumberID():
		c.addChange(p, a, b, []pair{c.countPair(numberID, strconv.FormatUint(a.number, 10), strconv.FormatUint(b.number, 10))})
	case a.kind == blob && ident.IsBytes(a.bytes) && ident.IsBytes(b.bytes):
		c.addChange(p, a, b, []pair{c.countPair(ident.Bytes, string(a.bytes), string(b.bytes))})
	default:
		c.addChange(p, a, b, nil)
	}
}

// compareMembers compares the objects a and b, whose children are sorted by key, key by key.
func (c *comparison) compareMembers(p pathPair, a, b *node) {
	if a.isTimestamp() && b.isTimestamp() {
		c.compareNodes(p.join("1"), a.children[0], b.children[0])
		c.compareNanos(p.join("2"), a, b)
		return
	}
	as, bs := a.children, b.children
	for len(as) > 0 || len(bs) > 0 {
		key := ""
		switch {
		case len(as) == 0, len(bs) > 0 && less(bs[0].key, as[0].key, a.wire == 0):
			key = bs[0].key
		default:
			key = as[0].key
		}
		// A key may repeat, as a repeated field does.
		i, j := run(as, key), run(bs, key)
		c.compareElements(p.join(key), as[:i], bs[:j], false)
		as, bs = as[i:], bs[j:]
	}
}

// less reports whether key a sorts before b. Names (names is true) are compared as text, field numbers as numbers.
func less(a, b string, names bool) bool {
	if !names && len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// run returns the number of nodes at the beginning that have the given key.
func run(nodes []*node, key string) int {
	i := 0
	for i < len(nodes) && nodes[i].key == key {
		i++
	}
	return i
}

// compareElements aligns and compares the values as and bs: those of one key, or the elements of two lists. If
// indexed is false and each side has at most one value, the paths have no index.
func (c *comparison) compareElements(p pathPair, as, bs []*node, indexed bool) {
	if !indexed && len(as) <= 1 && len(bs) <= 1 {
		var a, b *node
		if len(as) > 0 {
			a = as[0]
		}
		if len(bs) > 0 {
			b = bs[0]
		}
		c.compareNodes(p, a, b)
		return
	}

	// Align the elements first, so that an insertion is one change.
	mates, added := align(as, bs)
	inOrder := longestRun(mates)
	why := ""
	if slices.Contains(inOrder, false) && isMap(as) && isMap(bs) {
		why = "map order"
	}
	for i, j := range mates {
		switch {
		case j < 0:
			c.compareNodes(p.element(i, i), as[i], nil)
			continue
		case !inOrder[i]:
			to := p.element(i, j)
			c.addFinding(finding{Change: Change{Path: to.a, Op: Move, Old: i, New: j, To: to.b}, ignored: why})
		}

		// Equal elements need no comparison, however large they are.
		if as[i].exact == bs[j].exact {
			c.countVolatile(as[i])
		} else {
			c.compareNodes(p.element(i, j), as[i], bs[j])
		}
	}
	for _, j := range added {
		c.compareNodes(p.element(j, j), nil, bs[j])
	}
}

// isMap reports whether the nodes look like the entries of a protobuf map, whose order has no meaning: messages
// with a key (field 1), at most one value (field 2), and no key twice.
func isMap(nodes []*node) bool {
	seen := make(map[uint64]bool, len(nodes))
	for _, n := range nodes {
		if n.kind != object || n.wire != wire.Len || len(n.children) == 0 || len(n.children) > 2 {
			return false
		}
		k := n.children[0]
		if k.key != "1" || k.kind != text && k.kind != integer || seen[k.exact] || len(n.children) == 2 && n.children[1].key != "2" {
			return false
		}
		seen[k.exact] = true
	}
	return true
}

// addChange records that the value at p differs between a and b. volatile is as in finding.pairs.
func (c *comparison) addChange(p pathPair, a, b *node, volatile []pair) {
	ch := Change{Path: p.a, Op: Modify, Old: a.value(), New: b.value(), OldBytes: a.raw(), NewBytes: b.raw()}
	if _, was := a.packed(); was != "" || b.kind == blob {
		// Show both as bytes if they are not packed lists of the same type.
		if _, is := b.packed(); is != was {
			ch.Old, ch.New = a.plain(ch.Old), b.plain(ch.New)
		}
	}
	if p.b != p.a {
		ch.To = p.b
	}
	c.addFinding(finding{Change: ch, pairs: volatile})
}

// addFinding adds a difference, up to MaxChanges.
func (c *comparison) addFinding(f finding) {
	if len(c.found) >= c.o.MaxChanges {
		c.dropped++
		return
	}
	c.found = append(c.found, f)
}

// countVolatile counts the volatile values below n, a value that A and B have in common: each is paired with
// itself.
func (c *comparison) countVolatile(n *node) {
	// Equal hashes mean that the subtree has no volatile values.
	if n.exact == n.alike {
		return
	}
	switch {
	case n.kind == text:
		c.pairVolatile(n.text, n.text)
	case n.kind == blob && ident.IsBytes(n.bytes):
		c.countPair(ident.Bytes, string(n.bytes), string(n.bytes))
	case n.isNumberID():
		c.countPair(numberID, strconv.FormatUint(n.number, 10), strconv.FormatUint(n.number, 10))
	}
	for _, child := range n.children {
		c.countVolatile(child)
	}
}

// pairVolatile pairs the volatile parts (ids, times) of two texts and counts the pairs. It returns nil if the texts
// differ in other parts.
func (c *comparison) pairVolatile(a, b string) []pair {
	var as, bs []token
	if skeleton(a, &as) != skeleton(b, &bs) {
		return nil
	}
	pairs := make([]pair, 0, len(as))
	for i := range as {
		pairs = append(pairs, c.countPair(as[i].class, as[i].value, bs[i].value))
	}
	return pairs
}

// countPair counts one more occurrence of the volatile value b of B in place of a of A, and returns the pair.
func (c *comparison) countPair(class ident.Class, a, b string) pair {
	p := pair{class, a, b}
	n := c.pairs[p]
	if n == nil {
		n = &pairCount{pair: p}
		c.pairs[p] = n
		c.ordered = append(c.ordered, n)
	}
	n.n++
	return p
}

// finish determines which volatile values were renamed consistently, marks the changes that consist of such renames
// as ignored, and returns all changes.
func (c *comparison) finish() []Change {
	renamed := c.renaming()
	changes := make([]Change, 0, len(c.found))
	for _, f := range c.found {
		f.Ignored = c.ignoreReason(f, renamed)
		changes = append(changes, f.Change)
	}
	if c.dropped > 0 {
		changes = append(changes, Change{Op: Modify, New: fmt.Sprintf("%d more changes", c.dropped)})
	}
	return changes
}

// ignoreReason returns the reason why a difference is ignored, or "". renamed are the consistent renames.
func (c *comparison) ignoreReason(f finding, renamed map[pair]bool) string {
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

// renaming returns the pairs of volatile values that count as consistent renames. It selects them greedily, most
// frequent first, so that each value of A is renamed to at most one value of B, and vice versa.
func (c *comparison) renaming() map[pair]bool {
	slices.SortStableFunc(c.ordered, func(x, y *pairCount) int { return y.n - x.n })
	type side struct {
		class ident.Class
		value string
	}
	taken := [2]map[side]bool{{}, {}}
	renamed := make(map[pair]bool)
	for _, n := range c.ordered {
		a, b := side{n.class, n.a}, side{n.class, n.b}
		// Times differ everywhere and are not names, so they need not be unique.
		if n.class != ident.Time && (taken[0][a] || taken[1][b]) {
			continue
		}
		taken[0][a], taken[1][b] = true, true
		// A large number may be a quantity and not an identifier. It counts as an identifier only if it occurs
		// more than once.
		renamed[n.pair] = n.class != numberID || n.n > 1
	}
	return renamed
}

// explain returns the class of the first renamed value, such as "uuid", if all pairs of f are renames. Otherwise it
// returns "".
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

// indexes matches the list indexes in a path, such as "[3]".
var indexes = regexp.MustCompile(`\[\d+\]`)

// isIgnored reports whether Options.Ignore contains path or a path that encloses it.
func (c *comparison) isIgnored(path string) bool {
	if len(c.o.Ignore) == 0 {
		return false
	}
	// Ignored paths have no frame.
	if strings.HasPrefix(path, "@") {
		_, path, _ = strings.Cut(path, " ")
	}
	path = indexes.ReplaceAllString(path, "")
	return slices.ContainsFunc(c.o.Ignore, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && p != "" && (rest == "" || rest[0] == '.')
	})
}

// join appends a key to a path with a dot, or with a space if the path is the address of a frame, such as @down/3.
func join(path, key string) string {
	switch {
	case path == "":
		return key
	case path[0] == '@' && !strings.Contains(path, " "):
		return path + " " + key
	}
	return path + "." + key
}
