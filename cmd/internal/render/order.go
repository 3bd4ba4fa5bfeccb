package render

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"unwire/cmd/internal/contract"
)

// An Order is a sort order for exchanges. The zero value keeps the recorded order.
type Order struct {
	// compare compares two exchanges; nil keeps the recorded order.
	compare func(a, b *contract.Exchange) int

	// descending reverses the order.
	descending bool
}

// orders lists the properties by which exchanges can be sorted.
var orders = []struct {
	name    string
	compare func(a, b *contract.Exchange) int
}{
	// Times of one width are ordered as their texts, but the nanoseconds have no trailing zeros.
	{"time", by(func(l *contract.Exchange) string { return strings.TrimSuffix(l.Started, "Z") })},
	{"size", by(func(l *contract.Exchange) int64 { return l.BytesUp + l.BytesDown })},
	{"duration", by(func(l *contract.Exchange) float64 { return l.DurationMS })},
	{"code", by(Ending)},
	{"host", by(hostOf)},
	{"method", by(CallName)},
}

// by returns a function that compares two exchanges by the property that of returns.
func by[T cmp.Ordered](of func(*contract.Exchange) T) func(a, b *contract.Exchange) int {
	return func(a, b *contract.Exchange) int { return cmp.Compare(of(a), of(b)) }
}

// hostOf returns the HOST:PORT in the URL of an exchange.
func hostOf(l *contract.Exchange) string {
	u, err := url.Parse(l.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// ParseOrder parses the name of a sort order, such as "size", or "-size" for the reverse; "" is the
// recorded order.
func ParseOrder(text string) (Order, error) {
	name, descending := strings.CutPrefix(text, "-")
	if name == "" {
		return Order{}, nil
	}
	var names []string
	for _, o := range orders {
		if o.name == name {
			return Order{o.compare, descending}, nil
		}
		names = append(names, o.name)
	}
	return Order{}, fmt.Errorf("must be one of %s, with an optional prefix - to reverse the order, not %q", strings.Join(names, ", "), text)
}

// Sort sorts exchanges in place; the sort is stable.
func (o Order) Sort(lines []*contract.Exchange) {
	if o.compare == nil {
		return
	}
	slices.SortStableFunc(lines, func(a, b *contract.Exchange) int {
		if o.descending {
			return o.compare(b, a)
		}
		return o.compare(a, b)
	})
}
