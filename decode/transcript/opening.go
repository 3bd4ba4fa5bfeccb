package transcript

import (
	"slices"
	"strings"
)

// maxSpread is the maximum number of paths that have all steps but one in common.
const maxSpread = 64

// joinOpenings moves the first piece of a text to the stream of those that continue it. Some services create a message
// with the first words in one field and append to it in another, so that the paths differ in one step. The identifier
// of the message is next to both.
func (c *collection) joinOpenings() {
	alike := make(map[streamKey][]*stream)
	for _, s := range c.streams {
		for _, key := range s.masked() {
			alike[key] = append(alike[key], s)
		}
	}
	for _, s := range c.streams {
		var others []*stream
		for _, key := range s.masked() {
			if list := alike[key]; len(list) <= maxSpread {
				others = append(others, list...)
			}
		}
		c.takeOpenings(s, others)
	}
	c.streams = slices.DeleteFunc(c.streams, func(s *stream) bool { return len(s.pieces) == 0 })
}

// masked returns the path of a stream with each of its steps but the last replaced by an asterisk in turn.
func (s *stream) masked() []streamKey {
	if s.discriminates || s.stored {
		return nil
	}
	var out []streamKey
	steps := strings.Split(s.path, ".")
	for i := range steps[:len(steps)-1] {
		masked := slices.Clone(steps)
		masked[i] = "*"
		out = append(out, streamKey{s.dir, strings.Join(masked, ".")})
	}
	return out
}

// takeOpenings moves to s those pieces of other streams that are the only ones of their message and come before those
// of s with the same identifier.
func (c *collection) takeOpenings(s *stream, others []*stream) {
	if len(others) == 0 {
		return
	}
	first := make(map[string]int)
	for _, p := range s.pieces {
		if id := c.idAround(p.group); id != "" && p.text != id {
			if _, ok := first[id]; !ok {
				first[id] = p.frame
			}
		}
	}
	if len(first)*2 > len(s.pieces) {
		// The identifiers are those of the pieces.
		return
	}
	for _, o := range others {
		if o == s || len(o.pieces) > len(first) {
			continue
		}
		o.pieces = slices.DeleteFunc(o.pieces, func(p textPiece) bool {
			at, ok := first[c.idAround(p.group)]
			if !ok || p.frame >= at {
				return false
			}
			s.pieces = append(s.pieces, p)
			return true
		})
	}
	slices.SortStableFunc(s.pieces, func(a, b textPiece) int { return a.frame - b.frame })
}

// idAround returns the identifier in the message of a group, or in the innermost of those around it that has one.
func (c *collection) idAround(group int32) string {
	for range maxAround {
		if group < 0 {
			break
		}
		if id := c.groups[group].id; id != "" {
			return id
		}
		group = c.groups[group].parent
	}
	return ""
}

// maxAround is the maximum number of messages around a text in which the identifier of its message is searched.
const maxAround = 3
