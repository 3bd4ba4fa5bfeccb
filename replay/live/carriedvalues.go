package live

import (
	"strings"

	"unwire/replay/edit"
)

// carried are the places of the server's values that frames up carry on. Paths
// are without indexes.
type carried struct {
	numbers map[string]bool
	parts   questionType
}

// CarriedOn returns what reports whether two values at a path without indexes are one
// value of the server's that turns carry on: numbers at a place that is carried on, or
// texts that differ in nothing but the parts that are.
func CarriedOn(turns []Turn) (number func(path string) bool, text func(path, was, is string) bool) {
	c := &carried{numbers: map[string]bool{}, parts: questionType{parts: map[string]map[string]bool{}}}
	for i := range turns {
		for _, b := range turns[i].Live {
			switch path := edit.WithoutIndexes(b.FromPath); {
			case strings.HasPrefix(b.value, "n"):
				c.numbers[path] = true
			case b.Part != "" && !spelling(b.How).isDigest():
				c.parts.addPart(path, b.Part)
			}
		}
	}
	return func(path string) bool { return c.numbers[path] }, c.isSameText
}

// isSameText reports whether two texts at a path differ in nothing but the parts
// that are carried on.
func (c *carried) isSameText(path, was, is string) bool {
	if c.parts.parts[path] == nil {
		return false
	}
	x, y := leaf{path: path}, leaf{path: path}
	x.setText([]byte(was))
	y.setText([]byte(is))
	return c.parts.without(&x).value == c.parts.without(&y).value
}
