// Package choice decides which of several definitions of one name are kept: bundles often contain copies.
//
// Package bundle calls Of with the definitions of a name and a function that reports whether one includes another.
package choice

import (
	"context"
	"slices"
)

// Max is how many contradicting definitions of one name are kept. Comparing each with all others takes
// quadratic time.
const Max = 128

// A Choice records which of several definitions of the same name are kept.
type Choice[T comparable] struct {
	// Kept are the definitions that are not included in another one, in their original order.
	Kept []T

	// Same maps each definition that is included in another one to that definition in Kept.
	Same map[T]T

	// Dropped are the definitions that were ignored because Max others are kept already.
	Dropped []T
}

// Of chooses among the definitions in list. covers reports whether a includes all of b. If ctx ends, the result
// is incomplete.
func Of[T comparable](ctx context.Context, list []T, covers func(a, b T) bool) Choice[T] {
	c := Choice[T]{Same: map[T]T{}}
	for _, m := range list {
		if ctx.Err() != nil {
			return c
		}
		if i := slices.IndexFunc(c.Kept, func(k T) bool { return covers(k, m) }); i >= 0 {
			// The same definition may be listed twice; it does not replace itself.
			if c.Kept[i] != m {
				c.Same[m] = c.Kept[i]
			}
			continue
		}
		i := slices.IndexFunc(c.Kept, func(k T) bool { return covers(m, k) })
		switch {
		case i < 0 && len(c.Kept) == Max:
			c.Dropped = append(c.Dropped, m)
			continue
		case i < 0:
			c.Kept = append(c.Kept, m)
			continue
		}

		// m takes the place of the first that it covers; the others that it covers go.
		rest := c.Kept[:i+1]
		for _, k := range c.Kept[i:] {
			if covers(m, k) {
				c.Same[k] = m
			} else {
				rest = append(rest, k)
			}
		}
		c.Kept = rest
		c.Kept[i] = m
	}
	c.Flatten()
	return c
}

// Flatten makes each entry of Same refer directly to a definition in Kept, if there are chains (path
// compression, as in union-find).
func (c *Choice[T]) Flatten() {
	for m := range c.Same {
		last := m
		for next, ok := c.Same[last]; ok; next, ok = c.Same[last] {
			last = next
		}
		for at := m; at != last; {
			next := c.Same[at]
			c.Same[at] = last
			at = next
		}
	}
}
