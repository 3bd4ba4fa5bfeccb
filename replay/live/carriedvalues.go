package live

import (
	"strings"

	"unwire/decode/fieldpath"
	"unwire/replay/edit"
	"unwire/replay/live/values"
)

// Carried describes which of the server's values the client sends back in later frames, by the paths of
// these values in the server's frames, without list indexes.
type Carried struct {
	// numbers has the paths of numbers that the client sends back.
	numbers map[string]bool

	// parts has, by path, the parts of longer values that the client sends back.
	parts questionType

	// whole has the paths of values that the client sends back as a whole, unchanged or in another
	// encoding.
	whole map[string]bool
}

// CarriedOn collects the values that the client sends back, from the bindings in its turns.
func CarriedOn(turns []Turn) *Carried {
	c := &Carried{numbers: map[string]bool{}, parts: questionType{parts: map[string]map[string]bool{}, words: map[string]map[string]bool{}}, whole: map[string]bool{}}
	for i := range turns {
		for _, b := range turns[i].Live {
			path := edit.WithoutIndexes(b.FromPath)
			if b.Part == "" && b.word == "" {
				c.whole[path] = true
			}
			switch {
			case b.word != "":
				addTo(c.parts.words, path, b.Part)
				c.numbers[path] = c.numbers[path] || b.Part == ""
			case strings.HasPrefix(b.value, "n"):
				c.numbers[path] = true
			case b.Part != "" && !values.Spelling(b.How).IsDigest():
				addTo(c.parts.parts, path, b.Part)
			}
		}
	}
	return c
}

// Number reports whether the client sends back numbers at this path, which has no list indexes.
func (c *Carried) Number(path string) bool { return c.numbers[path] || c.below(path) }

// Identifier reports whether two texts at a path (without list indexes) may be different identifiers
// that the client sends back.
func (c *Carried) Identifier(path, was, is string) bool {
	return c.below(path) && len(was) <= longestCarried && len(is) <= longestCarried && isIDLike("t"+was) && isIDLike("t"+is)
}

// Key reports whether the last step of a path is the key of a map, and is an identifier that the client
// sends back. at is the path of the map.
func (c *Carried) Key(path string) (at string, ok bool) {
	steps, rest, err := fieldpath.Cut(path)
	if err != nil || rest != "" || len(steps) < 2 {
		return "", false
	}
	at = edit.WithoutIndexes(steps[:len(steps)-1].String())
	key := steps[len(steps)-1].Name
	return at, (values.ClassOf(key) != "" || values.IsDigits(key)) && (c.below(at+".key") || c.below(at))
}

// below reports whether the value at a path, or one that contains it, is sent back as a whole.
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

// SameText reports whether two texts at a path are equal except for the parts that the client sends
// back.
func (c *Carried) SameText(path, was, is string) bool {
	parts, words := c.parts.parts[path], c.parts.words[path]
	if parts == nil && words == nil {
		return false
	}
	without := func(text string) string {
		v := &values.Leaf{Path: path}
		v.SetText([]byte(text))
		v, _ = v.WithoutWords(words)
		return v.Without(parts).Value
	}
	return without(was) == without(is)
}
