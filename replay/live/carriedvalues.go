package live

import (
	"strings"

	"unwire/decode/fieldpath"
	"unwire/replay/edit"
	"unwire/replay/live/values"
)

// Carried are the places of the server's values that frames up carry on. Paths
// are without indexes.
type Carried struct {
	numbers map[string]bool
	parts   questionType

	// whole has the places whose value the client sends back unchanged or in another spelling.
	whole map[string]bool
}

// CarriedOn returns which of the server's values the client sends back in turns.
func CarriedOn(turns []Turn) *Carried {
	c := &Carried{numbers: map[string]bool{}, parts: questionType{parts: map[string]map[string]bool{}}, whole: map[string]bool{}}
	for i := range turns {
		for _, b := range turns[i].Live {
			path := edit.WithoutIndexes(b.FromPath)
			if b.Part == "" {
				c.whole[path] = true
			}
			switch {
			case strings.HasPrefix(b.value, "n"):
				c.numbers[path] = true
			case b.Part != "" && !values.Spelling(b.How).IsDigest():
				c.parts.addPart(path, b.Part)
			}
		}
	}
	return c
}

// Number reports whether numbers at a path without indexes are carried on.
func (c *Carried) Number(path string) bool { return c.numbers[path] || c.below(path) }

// longestCarried is the length in bytes of the longest identifier, in base64. What is longer
// may be content.
const longestCarried = 96

// Identifier reports whether two texts at a path without indexes may be identifiers that
// are carried on.
func (c *Carried) Identifier(path, was, is string) bool {
	return c.below(path) && len(was) <= longestCarried && len(is) <= longestCarried && isIDLike("t"+was) && isIDLike("t"+is)
}

// Key reports whether the last step of a path is the key of a map that is carried on, and
// returns where the map is.
func (c *Carried) Key(path string) (at string, ok bool) {
	steps, rest, err := fieldpath.Cut(path)
	if err != nil || rest != "" || len(steps) < 2 {
		return "", false
	}
	at = edit.WithoutIndexes(steps[:len(steps)-1].String())
	key := steps[len(steps)-1].Name
	return at, (values.ClassOf(key) != "" || values.IsDigits(key)) && (c.below(at+".key") || c.below(at))
}

// below reports whether a path leads to a value that is carried on, or into one.
func (c *Carried) below(path string) bool {
	if c.whole[path] {
		return true
	}
	for i := range len(path) {
		if path[i] == '.' && c.whole[path[:i]] {
			return true
		}
	}
	return false
}

// SameText reports whether two texts at a path differ in nothing but the parts
// that are carried on.
func (c *Carried) SameText(path, was, is string) bool {
	if c.parts.parts[path] == nil {
		return false
	}
	x, y := values.Leaf{Path: path}, values.Leaf{Path: path}
	x.SetText([]byte(was))
	y.SetText([]byte(is))
	return x.Without(c.parts.parts[path]).Value == y.Without(c.parts.parts[path]).Value
}
