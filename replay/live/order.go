package live

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A client may sort the identifiers of a list before it sends them back, or send only the first in that
// order. The places of its values then say nothing about the places in the live server's list. An order
// is assumed only if the places in the capture contradict each other and the order explains all of them.

const (
	// leastOrderOdds is how improbable an order must be by chance, as 1 in so many, to be followed without
	// doubt: the usual 5 %.
	leastOrderOdds = 20
	// maxOrdered limits the length of a list that is examined.
	maxOrdered = 1000
)

// An ordering is the order in which the client sends the values of a list of the server.
type ordering struct {
	// descending means that the largest value comes first.
	descending bool
	// first means that the client sends only the first value in this order.
	first bool
	// certain means that the capture contains enough lists to exclude a coincidence.
	certain bool
}

// String describes the order for a message to the user.
func (o *ordering) String() string {
	names := map[ordering]string{
		{}: "sorted", {descending: true}: "sorted in descending order",
		{first: true}: "the smallest of a list", {first: true, descending: true}: "the largest of a list",
	}
	return names[ordering{descending: o.descending, first: o.first}]
}

// An element is a value of a list in a server's message, with its path and its part of the value there.
type element struct{ path, part, value string }

// isAt reports whether two values have the same place.
func (e element) isAt(o element) bool { return e.path == o.path && e.part == o.part }

// A sentList has the values of one list that the client sends in one frame.
type sentList struct {
	// sent are the values in the order in which the client sends them, with their places in the server's
	// list.
	sent []element
	// list are all values of the server's list, in its order.
	list []element
}

// listIndex matches an index in a path.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// orderOf returns the order of the client's values that explains all groups; nil if there is none.
func orderOf(groups []*sentList) *ordering {
	if slices.ContainsFunc(groups, func(g *sentList) bool { return len(g.list) > maxOrdered }) {
		return nil
	}
	first := !slices.ContainsFunc(groups, func(g *sentList) bool { return len(g.sent) > 1 })
	for _, descending := range [...]bool{false, true} {
		o := &ordering{descending: descending, first: first}
		if slices.ContainsFunc(groups, func(g *sentList) bool { return !o.explains(g) }) {
			continue
		}

		// How improbable the order is by chance.
		odds := 0.0
		for _, g := range groups {
			n, _ := math.Lgamma(float64(len(g.sent) + 1))
			if first {
				n = math.Log(float64(len(g.list)))
			}
			odds += n
		}
		o.certain = odds >= math.Log(leastOrderOdds) && !isFixed(groups)
		return o
	}
	return nil
}

// explains reports whether the client's values in a group are in this order.
func (o *ordering) explains(g *sentList) bool {
	if o.first {
		all := slices.Clone(g.list)
		o.sort(all)
		return all[0].value == g.sent[0].value
	}
	for i := 1; i < len(g.sent); i++ {
		if o.compare(g.sent[i-1].value, g.sent[i].value) > 0 {
			return false
		}
	}
	return true
}

// compare compares two values as the client does: numbers by their size, texts by their bytes.
func (o *ordering) compare(a, b string) int {
	n := strings.Compare(a, b)
	if x, err := strconv.ParseUint(a, 10, 64); err == nil {
		if y, err := strconv.ParseUint(b, 10, 64); err == nil {
			n = cmp.Compare(x, y)
		}
	}
	if o.descending {
		return -n
	}
	return n
}

// sort sorts the elements of a list in this order.
func (o *ordering) sort(list []element) {
	slices.SortStableFunc(list, func(a, b element) int { return o.compare(a.value, b.value) })
}

// isByPlace reports whether the client sends values in the order of the server's list; or, if it sends one
// of each list, always the one at the same place.
func isByPlace(groups []*sentList) bool {
	inOrder, single := true, true
	for _, g := range groups {
		inOrder = inOrder && slices.IsSortedFunc(g.sent, func(a, b element) int {
			return slices.Compare(indexesOf(a.path+a.part), indexesOf(b.path+b.part))
		})
		single = single && len(g.sent) == 1
	}
	if single {
		return isFixed(groups)
	}
	return inOrder
}

// indexesOf returns the indexes of lists in a path.
func indexesOf(path string) (list []int) {
	for _, s := range listIndex.FindAllString(path, -1) {
		n, _ := strconv.Atoi(s[1 : len(s)-1])
		list = append(list, n)
	}
	return list
}

// isFixed reports whether the client always sends the values at the same places of the server's lists.
func isFixed(groups []*sentList) bool {
	return !slices.ContainsFunc(groups, func(g *sentList) bool {
		return !slices.EqualFunc(g.sent, groups[0].sent, element.isAt)
	})
}
