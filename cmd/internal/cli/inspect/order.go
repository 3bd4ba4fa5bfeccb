package inspect

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
)

// An order is how ls sorts; the zero value leaves the lines as they are.
type order struct {
	compare    func(a, b *contract.Exchange) int
	descending bool
}

// orders are the values of --sort.
var orders = []struct {
	name    string
	compare func(a, b *contract.Exchange) int
}{
	// Times of one width are ordered as their texts, but the nanoseconds have no trailing zeros.
	{"time", by(func(l *contract.Exchange) string { return strings.TrimSuffix(l.Started, "Z") })},
	{"size", by(func(l *contract.Exchange) int64 { return l.BytesUp + l.BytesDown })},
	{"duration", by(func(l *contract.Exchange) float64 { return l.DurationMS })},
	{"code", by(render.Ending)},
	{"host", by(hostOf)},
	{"method", by(render.CallName)},
}

// by compares two lines by a property.
func by[T cmp.Ordered](of func(*contract.Exchange) T) func(a, b *contract.Exchange) int {
	return func(a, b *contract.Exchange) int { return cmp.Compare(of(a), of(b)) }
}

func hostOf(l *contract.Exchange) string {
	u, err := url.Parse(l.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// parseOrder reads --sort.
func parseOrder(text string) (order, error) {
	name, descending := strings.CutPrefix(text, "-")
	if name == "" {
		return order{}, nil
	}
	var names []string
	for _, o := range orders {
		if o.name == name {
			return order{o.compare, descending}, nil
		}
		names = append(names, o.name)
	}
	return order{}, app.Usagef("--sort is one of %s, with - before it for the largest first, not %q", strings.Join(names, ", "), text)
}

// sort sorts lines; those that are equal stay in their order.
func (o order) sort(lines []*contract.Exchange) {
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
