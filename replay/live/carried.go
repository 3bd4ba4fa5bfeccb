package live

import (
	"strings"

	"unwire/replay/edit"
)

// Carried are the places of the server's values that frames up carry on. Paths
// are without indexes.
type Carried struct {
	numbers map[string]bool
	parts   asking
}

// CarriedBy returns the places of the values that turns carry on.
func CarriedBy(turns []Turn) *Carried {
	c := &Carried{numbers: map[string]bool{}, parts: asking{parts: map[string]map[string]bool{}}}
	for i := range turns {
		for _, b := range turns[i].Live {
			switch path := edit.WithoutIndexes(b.FromPath); {
			case strings.HasPrefix(b.value, "n"):
				c.numbers[path] = true
			case b.Part != "" && !spelling(b.How).isDigest():
				c.parts.carry(path, b.Part)
			}
		}
	}
	return c
}

// IsNumber reports whether the number at a path is carried on.
func (c *Carried) IsNumber(path string) bool { return c.numbers[path] }

// SameOtherwise reports whether two texts at a path differ in nothing but the
// parts that are carried on.
func (c *Carried) SameOtherwise(path, was, is string) bool {
	if c.parts.parts[path] == nil {
		return false
	}
	x, y := leaf{path: path}, leaf{path: path}
	x.text([]byte(was))
	y.text([]byte(is))
	return c.parts.without(&x).value == c.parts.without(&y).value
}
